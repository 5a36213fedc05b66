//! A transaction that is open, and what is known of it: what it must read, and whether it may
//! commit.
//! ```text
//! moment + its own writes   -> what it reads
//! what it has read          -> written since by somebody?   -> it must not commit
//! ```

use trommel::{Db, Isolation, Keyspace, Savepoint, Transaction, Value};

use super::super::model::{State, expiry_of, number_of, value_of};
use super::super::operation::Write;
use super::super::world::Checked;
use super::step::{Stretch, name};
use super::{KEYS, number_of_key};
use crate::keys::spread::spread_key as key;

/// A space in one of its lives: dropped and made anew, it is another one.
pub(super) type Life = u32;

/// Keys of a space in one of its lives.
pub(super) type Touched = (Life, Stretch);

/// The key spaces as they are now.
pub(super) struct Spaces {
    pub(super) handles: Vec<Keyspace>,
    pub(super) lives: Vec<Life>,
}

impl Spaces {
    pub(super) fn of_place(&self, place: usize) -> &Keyspace {
        &self.handles[place / KEYS]
    }

    pub(super) fn touched(&self, stretch: Stretch) -> Touched {
        (self.lives[stretch.space], stretch)
    }
}

#[derive(Clone)]
enum Own {
    Write(Write),
    DeleteRange(Stretch),
}

impl Own {
    fn stretch(&self) -> Stretch {
        match self {
            Own::Write(write) => Stretch::of_place(usize::from(write.place)),
            Own::DeleteRange(stretch) => *stretch,
        }
    }

    fn writes(&self) -> Vec<Write> {
        match self {
            Own::Write(write) => vec![*write],
            Own::DeleteRange(stretch) => stretch.deletions(),
        }
    }
}

pub(super) struct OpenTransaction {
    transaction: Transaction,
    is_serializable: bool,
    moment: State,
    own: Vec<(Life, Own)>,
    noted: Vec<Touched>,
    /// When the first of the values that were read expires.
    expiry: Option<u32>,
    savepoints: Vec<(Savepoint, usize)>,
    /// How many writes there were when it began.
    begun: usize,
}

/// What a commit must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Commits,
    Conflicts,
}

/// What a transaction has written: all writes, and what they touch.
pub(super) struct Outcome {
    pub(super) writes: Vec<Write>,
    pub(super) touched: Vec<Touched>,
    pub(super) verdict: Verdict,
    pub(super) committed: trommel::Result<()>,
}

impl OpenTransaction {
    pub(super) fn begin(db: &Db, is_serializable: bool, seen: &State, begun: usize) -> Self {
        let isolation = if is_serializable { Isolation::Serializable } else { Isolation::Snapshot };
        OpenTransaction {
            transaction: db.transaction_with(isolation),
            is_serializable,
            moment: seen.clone(),
            own: Vec::new(),
            noted: Vec::new(),
            expiry: None,
            savepoints: Vec::new(),
            begun,
        }
    }

    pub(super) fn expire(&mut self, tick: u32) {
        self.moment.expire(tick);
    }

    /// A space was dropped, and is empty now.
    pub(super) fn lose(&mut self, space: usize) {
        Stretch::whole(space).places().for_each(|place| self.moment.0[place] = 0);
    }

    /// The number that a key has for it, and whether it has written that itself.
    fn number(&self, place: usize, spaces: &Spaces) -> (u32, bool) {
        let (life, key) = spaces.touched(Stretch::of_place(place));
        let hits = |(of, own): &&(Life, Own)| *of == life && own.stretch().meets(key);
        match self.own.iter().rev().find(hits) {
            Some((_, Own::Write(write))) => (write.number, true),
            Some((_, Own::DeleteRange(_))) => (0, true),
            None => (self.moment.0[place], false),
        }
    }

    fn note(&mut self, touched: Touched, numbers: impl IntoIterator<Item = u32>) {
        self.noted.push(touched);
        let expiries = numbers.into_iter().filter_map(expiry_of);
        self.expiry = self.expiry.into_iter().chain(expiries).min();
    }

    /// Reads a key. None: it has failed.
    pub(super) fn get(
        &mut self,
        place: usize,
        for_update: bool,
        spaces: &Spaces,
    ) -> Checked<trommel::Result<()>> {
        let part = self.transaction.of(spaces.of_place(place));
        let key = key(place % KEYS);
        let found = if for_update { part.get_for_update(key) } else { part.get(key) };
        let found = match found {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let (expected, is_own) = self.number(place, spaces);
        if !is_own && (for_update || self.is_serializable) {
            self.note(spaces.touched(Stretch::of_place(place)), [expected]);
        }
        compare(place, found.as_ref(), expected).map(Ok)
    }

    pub(super) fn scan(
        &mut self,
        stretch: Stretch,
        back: bool,
        limit: usize,
        spaces: &Spaces,
    ) -> Checked<trommel::Result<()>> {
        let numbers = stretch.places().map(|place| (place, self.number(place, spaces).0));
        let mut expected: Vec<(usize, u32)> = numbers.filter(|(_, number)| *number > 0).collect();
        if back {
            expected.reverse();
        }
        let is_whole = expected.len() < limit;
        expected.truncate(limit);
        let part = self.transaction.of(&spaces.handles[stretch.space]);
        let scan = part.range(key(stretch.from)..key(stretch.to));
        let found: trommel::Result<Vec<_>> =
            if back { scan.rev().take(limit).collect() } else { scan.take(limit).collect() };
        let found = match found {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        if self.is_serializable {
            let last = expected.last().map(|(place, _)| place % KEYS);
            let gone_over = match (is_whole, back, last) {
                (false, false, Some(last)) => Stretch { to: last + 1, ..stretch },
                (false, true, Some(last)) => Stretch { from: last, ..stretch },
                _ => stretch,
            };
            self.note(spaces.touched(gone_over), expected.iter().map(|(_, number)| *number));
        }
        let space = stretch.space * KEYS;
        let found = found.iter().map(|(key, value)| {
            let place = number_of_key(key).map(|number| space + number);
            (place.unwrap_or(usize::MAX), number_of(value).unwrap_or(u32::MAX))
        });
        let found: Vec<(usize, u32)> = found.collect();
        if found != expected {
            let text = |all: &[(usize, u32)]| {
                let each =
                    all.iter().map(|(place, number)| format!("{} = #{number}", name(*place)));
                each.collect::<Vec<_>>().join(", ")
            };
            return Err(format!("a scan gave {}, expected {}", text(&found), text(&expected)));
        }
        Ok(Ok(()))
    }

    pub(super) fn write(&mut self, writes: &[Write], spaces: &Spaces) -> trommel::Result<()> {
        for write in writes {
            let place = usize::from(write.place);
            let (part, key) = (self.transaction.of(spaces.of_place(place)), key(place % KEYS));
            match write.number {
                0 => part.delete(key)?,
                number => part.put(key, value_of(number))?,
            }
            let (life, _) = spaces.touched(Stretch::of_place(place));
            self.own.push((life, Own::Write(*write)));
        }
        Ok(())
    }

    pub(super) fn delete_range(
        &mut self,
        stretch: Stretch,
        spaces: &Spaces,
    ) -> trommel::Result<()> {
        let part = self.transaction.of(&spaces.handles[stretch.space]);
        part.delete_range(key(stretch.from), key(stretch.to))?;
        self.own.push((spaces.touched(stretch).0, Own::DeleteRange(stretch)));
        Ok(())
    }

    pub(super) fn set_savepoint(&mut self) {
        self.savepoints.push((self.transaction.savepoint(), self.own.len()));
    }

    pub(super) fn roll_back(&mut self) {
        if let Some((savepoint, own)) = self.savepoints.pop() {
            self.transaction.roll_back_to(&savepoint);
            self.own.truncate(own);
        }
    }

    /// Commits it. `written`: by all, since the history began.
    pub(super) fn commit(
        self,
        synced: bool,
        (written, tick): (&[Touched], u32),
        spaces: &Spaces,
    ) -> Outcome {
        let verdict = self.verdict(&written[self.begun..], tick, spaces);
        let touched = self.own.iter().map(|(life, own)| (*life, own.stretch())).collect();
        let writes = self.own.iter().flat_map(|(_, own)| own.writes()).collect();
        let committed = match synced {
            true => self.transaction.commit_synced(),
            false => self.transaction.commit(),
        };
        let committed = committed.map(|_| ());
        Outcome { writes, touched, verdict, committed }
    }

    fn verdict(&self, written: &[Touched], tick: u32, spaces: &Spaces) -> Verdict {
        if self.own.is_empty() {
            return Verdict::Commits;
        }
        let own = self.own.iter().map(|(life, own)| (*life, own.stretch()));
        let also = own.clone().filter(|_| !self.is_serializable);
        let mut noted = self.noted.iter().copied().chain(also);
        let hits = |(life, stretch): &Touched| {
            written.iter().any(|(of, other)| of == life && other.meets(*stretch))
        };
        let is_gone = |(life, _): &Touched| !spaces.lives.contains(life);
        let is_over = self.expiry.is_some_and(|expiry| expiry <= tick);
        let writes_into_gone = own.clone().any(|touched| is_gone(&touched));
        let conflicts =
            is_over || writes_into_gone || noted.any(|touched| hits(&touched) || is_gone(&touched));
        if conflicts { Verdict::Conflicts } else { Verdict::Commits }
    }
}

/// A difference between what a key has and what it is to have.
pub(super) fn compare(place: usize, found: Option<&Value>, expected: u32) -> Checked<()> {
    let found = found.map_or(Some(0), |value| number_of(value));
    if found == Some(expected) {
        return Ok(());
    }
    let found = found.map_or("bytes that were never written".into(), |number| format!("#{number}"));
    Err(format!("{} has {found}, expected #{expected}", name(place)))
}
