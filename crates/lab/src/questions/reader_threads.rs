//! Reader threads that query one store at once, each with its own questions.
//! ```text
//! seed --> thread 0: draws of the seed      every record with one thread has these
//!      \-> thread t: draws of a generator of its own
//! round    [all questions of thread 0]
//!          [all questions of thread 1]      over when the last thread is
//! ```
//! Invariant: a seed gives a thread the same questions, however many threads there are.

use std::hint::black_box;

use trommel::Db;

use crate::error::Result;
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::questions::queries::{Kind, Queries};
use crate::questions::question_draw::Draw;
use crate::questions::unanswered::Ask;

/// Questions of one kind, with one list per thread.
#[derive(Clone, Debug)]
pub(crate) struct ReaderThreads {
    lists: Vec<Queries>,
}

/// Returns the generator of a thread. `stream` distinguishes generators of one seed.
fn thread_rng(seed: u64, stream: u64, thread: usize) -> Rng {
    let of_stream = scramble(seed ^ stream);
    Rng::new(if thread == 0 { of_stream } else { of_stream ^ scramble(thread as u64) })
}

/// Returns the generators of `threads` threads.
pub(crate) fn thread_rngs(seed: u64, stream: u64, threads: usize) -> Vec<Rng> {
    (0..threads).map(|thread| thread_rng(seed, stream, thread)).collect()
}

impl ReaderThreads {
    /// Draws the questions of every kind. Also returns the first thread's generator, for more
    /// draws.
    pub(crate) fn draw_all(
        keys: &KeySet,
        draw: Draw<'_>,
        seed: u64,
        threads: usize,
    ) -> Result<(Vec<ReaderThreads>, Rng)> {
        let rngs = |stream| thread_rngs(seed, stream, threads);
        // `PointHalf` has its own generators, so that the other questions stay those of earlier
        // records.
        let (mut others, mut halves) = (rngs(1), rngs(4));
        let readers = Kind::ALL.into_iter().map(|kind| {
            let rngs = if kind == Kind::PointHalf { &mut halves } else { &mut others };
            ReaderThreads::draw(kind, keys, draw, rngs)
        });
        Ok((readers.collect::<Result<_>>()?, others.swap_remove(0)))
    }

    /// Draws one list of questions for each generator.
    pub(crate) fn draw(
        kind: Kind,
        keys: &KeySet,
        draw: Draw<'_>,
        rngs: &mut [Rng],
    ) -> Result<Self> {
        let lists = rngs.iter_mut().map(|rng| Queries::draw_as(kind, keys, draw, rng));
        Ok(ReaderThreads { lists: lists.collect::<Result<_>>()? })
    }

    /// Draws questions that no stored key answers: at most `count` for each thread. Each kind has
    /// its own generators, so its questions do not depend on other kinds.
    pub(crate) fn draw_unanswered(
        ask: Ask,
        keys: &KeySet,
        (count, width): (usize, u64),
        seed: u64,
        threads: usize,
    ) -> Result<Self> {
        let mut rngs = thread_rngs(seed, 9, threads);
        let lists = rngs.iter_mut().map(|rng| ask.draw_some(keys, count, width, rng));
        Ok(ReaderThreads { lists: lists.collect::<Result<_>>()? })
    }

    /// Returns the kind of the questions.
    pub(crate) fn kind(&self) -> Kind {
        self.lists[0].kind()
    }

    /// Returns the lists of all threads.
    pub(crate) fn lists(&self) -> &[Queries] {
        &self.lists
    }

    /// Returns the list of the first thread.
    pub(crate) fn first(&self) -> &Queries {
        &self.lists[0]
    }

    /// Returns the number of questions of all threads together.
    pub(crate) fn len(&self) -> usize {
        self.lists.iter().map(Queries::len).sum()
    }

    /// Lets every thread ask all its questions. The calling thread asks the first list.
    pub(crate) fn ask_all(&self, db: &Db) -> Result<()> {
        std::thread::scope(|scope| {
            let others = self.lists[1..].iter();
            let others: Vec<_> = others.map(|list| scope.spawn(move || ask(list, db))).collect();
            ask(&self.lists[0], db)?;
            others.into_iter().try_for_each(|other| other.join().expect("no reader panics"))
        })
    }

    /// Asks every question, and counts the answers that differ from the sorted keys.
    pub(crate) fn count_wrong(
        &self,
        db: &Db,
        keys: &SortedKeys,
        value_bytes: usize,
    ) -> Result<u64> {
        self.lists.iter().map(|list| Ok(list.count_wrong(db, keys, value_bytes)?)).sum()
    }
}

fn ask(list: &Queries, db: &Db) -> Result<()> {
    for place in 0..list.len() {
        black_box(list.ask(db, place)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::dist::{Dist, FileFormat};
    use crate::keys::skew::Skew;
    use trommel::Options;

    fn keys() -> KeySet {
        KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(2000), 1).expect("keys")
    }

    fn readers(kind: Kind, keys: &KeySet, threads: usize) -> ReaderThreads {
        let draw = Draw { skew: Skew::Zipf(0.99), ..Draw::even(300, 64) };
        ReaderThreads::draw(kind, keys, draw, &mut thread_rngs(1, 1, threads)).expect("drawn")
    }

    #[test]
    fn a_thread_has_its_questions_however_many_there_are() {
        let keys = keys();
        let (one, four) = (readers(Kind::PointHit, &keys, 1), readers(Kind::PointHit, &keys, 4));
        assert_eq!((one.len(), four.len()), (300, 1200));
        let asked = |list: &Queries| -> Vec<Vec<u8>> {
            (0..list.len()).map(|place| list.lower(place).to_vec()).collect()
        };
        assert_eq!(asked(one.first()), asked(four.first()));
        for other in 1..4 {
            assert_ne!(asked(&four.lists[0]), asked(&four.lists[other]));
            assert_ne!(asked(&four.lists[other]), asked(&four.lists[other % 3 + 1]));
        }
    }

    #[test]
    fn every_thread_asks_all_its_questions() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Db::open(folder.path(), Options::default()).expect("opens");
        let keys = keys();
        keys.stored().iter().for_each(|key| db.put(key, b"value").expect("puts"));
        let asked = |stats: trommel::stats::Stats| stats.point.queries + stats.open_seek.queries;
        for kind in [Kind::PointMiss, Kind::PointHit, Kind::Seek] {
            let (readers, before) = (readers(kind, &keys, 3), asked(db.stats().expect("open")));
            readers.ask_all(&db).expect("asks");
            assert_eq!(asked(db.stats().expect("open")) - before, 900, "{}", kind.name());
        }
        // The values are not those of their keys, so every hit of every thread is wrong.
        let wrong = readers(Kind::PointHit, &keys, 3).count_wrong(&db, keys.stored(), 20);
        assert_eq!(wrong.expect("asks"), 900);
        let right = readers(Kind::PointMiss, &keys, 3).count_wrong(&db, keys.stored(), 20);
        assert_eq!(right.expect("asks"), 0);
    }
}
