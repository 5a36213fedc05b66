//! A sample of the keys of queries that found nothing. A filter divides its bits by it.
//! ```text
//! get or scan that finds nothing --one of 2^k--> sample      full: half of it is dropped, k + 1
//! merge into the last level <---- the sampled keys of its range, and half of the old parts' keys
//! image of a part           <---- the same, but the keys stay in the sample
//! ```
//! A query that is not sampled costs a comparison, and no query waits for another. Invariant: each
//! query is as likely to be sampled as any other of its time, whatever rhythm queries have.

use trommel_filters::{EmptyQueries, EmptyQuery, Part};

use crate::entries::key_bounds::KeyBounds;
use crate::guard::parts::Parts;
use crate::plan::guard_kind::GuardKind;
use crate::plan::options::Options;
use crate::sync::{AtomicU64, Mutex, Ordering, lock, try_lock};
use crate::tree::recent_empty_queries::RecentEmptyQueries;

/// The most keys in the sample, and the most bytes of all keys.
const KEPT_MAX: usize = 2 * EmptyQueries::MAX;
const BYTES_MAX: usize = 128 << 10;

/// The sample of an open store.
pub(crate) struct EmptyQuerySample {
    /// A query is sampled if its mixed number is below this: all queries at first, then half, a
    /// quarter ... 0: none.
    below: AtomicU64,
    /// The number of queries that were counted here.
    counted: AtomicU64,
    kept: Mutex<Kept>,
    /// None: the parts' memory does not depend on queries.
    recent: Option<Box<RecentEmptyQueries>>,
}

/// Sampled keys, back to back. Memory grows to its maximum in a few steps: many trees see few
/// queries, and most gets must not allocate.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    all: Vec<KeptKey>,
}

#[derive(Clone, Copy)]
struct KeptKey {
    start: usize,
    len: usize,
    is_point: bool,
}

impl Kept {
    fn get(&self, KeptKey { start, len, is_point }: KeptKey) -> EmptyQuery<'_> {
        EmptyQuery { key: &self.bytes[start..start + len], is_point }
    }

    fn has_room(&self, key: &[u8]) -> bool {
        self.all.len() < KEPT_MAX && self.bytes.len() + key.len() <= BYTES_MAX
    }

    /// Requires: there is room.
    fn push(&mut self, key: &[u8], is_point: bool) {
        grow(&mut self.bytes, key.len(), BYTES_MAX);
        grow(&mut self.all, 1, KEPT_MAX);
        self.all.push(KeptKey { start: self.bytes.len(), len: key.len(), is_point });
        self.bytes.extend_from_slice(key);
    }

    fn within(&self, range: &KeyBounds) -> impl Iterator<Item = EmptyQuery<'_>> {
        let all = self.all.iter().map(|one| self.get(*one));
        all.filter(|query| range.contains(query.key))
    }

    /// Keeps the keys for which `stays` is true. It is called in the order in which they came.
    fn retain(&mut self, mut stays: impl FnMut(EmptyQuery<'_>) -> bool) {
        let mut all = std::mem::take(&mut self.all);
        let mut end = 0;
        all.retain_mut(|kept| {
            let stays = stays(self.get(*kept));
            if stays {
                self.bytes.copy_within(kept.start..kept.start + kept.len, end);
                kept.start = end;
                end += kept.len;
            }
            stays
        });
        self.bytes.truncate(end);
        self.all = all;
    }
}

impl EmptyQuerySample {
    /// Makes an empty sample. Guards that do not learn sample nothing.
    pub(crate) fn new(options: &Options) -> EmptyQuerySample {
        let is_on = options.learn_questions && options.guard == GuardKind::Grf;
        EmptyQuerySample {
            below: AtomicU64::new(if is_on { u64::MAX } else { 0 }),
            counted: AtomicU64::new(0),
            kept: Mutex::new(Kept::default()),
            recent: options.part_memory().map(|_| Box::default()),
        }
    }

    /// Notes a get that found nothing. `before`: the number of queries before it, by the caller's
    /// count.
    #[inline]
    pub(crate) fn note_point(&self, key: &[u8], before: u64) {
        if self.takes(before) {
            self.keep(key, true);
        }
        if let Some(recent) = &self.recent {
            recent.note(key, mixed(before));
        }
    }

    /// Counts this many queries. Returns how many were counted before.
    pub(crate) fn count(&self, queries: usize) -> u64 {
        self.counted.fetch_add(queries as u64, Ordering::Relaxed)
    }

    /// Notes a scan that found nothing within its bounds.
    pub(crate) fn note_range(&self, bounds: &KeyBounds) {
        if !self.is_on() && self.recent.is_none() {
            return;
        }
        let before = self.count(1);
        if self.takes(before) {
            self.keep(&bounds.from, false);
        }
        if let Some(recent) = &self.recent {
            recent.note(&bounds.from, mixed(before));
        }
    }

    /// Returns recent queries. None: nobody needs them.
    pub(crate) fn recent(&self) -> Option<&RecentEmptyQueries> {
        self.recent.as_deref()
    }

    fn is_on(&self) -> bool {
        self.below.load(Ordering::Relaxed) > 0
    }

    #[inline]
    fn takes(&self, before: u64) -> bool {
        mixed(before) < self.below.load(Ordering::Relaxed)
    }

    /// Adds a key to the sample. While another thread holds the lock, the key is dropped.
    #[cold]
    fn keep(&self, key: &[u8], is_point: bool) {
        if key.len() > EmptyQueries::KEY_BYTES_MAX {
            return;
        }
        let Some(mut kept) = try_lock(&self.kept) else { return };
        while !kept.has_room(key) {
            // It changes only under the lock.
            let below = self.below.load(Ordering::Relaxed);
            self.below.store(below / 2 + 1, Ordering::Relaxed);
            let mut place = below;
            kept.retain(|_| {
                place = place.wrapping_add(1);
                mixed(place) >> 63 == 0
            });
        }
        kept.push(key, is_point);
    }

    /// Returns what is known about a part's range: the sampled queries, and the part's own. If any
    /// are sampled, only half of the part's own count.
    pub(crate) fn known(&self, part: &Part, range: &KeyBounds) -> EmptyQueries {
        let (kept, own) = (lock(&self.kept), part.empty_queries());
        let mut recent = kept.within(range).peekable();
        match recent.peek() {
            None => own.clone(),
            Some(_) => EmptyQueries::of(recent.chain(own.iter().step_by(2))),
        }
    }

    /// Takes the queries that new parts of a key range learn from. They leave the sample; the parts
    /// keep some of them.
    pub(crate) fn take(&self, parts: &Parts, range: &KeyBounds) -> EmptyQueries {
        if !self.is_on() {
            return EmptyQueries::default();
        }
        let mut kept = lock(&self.kept);
        let before =
            parts.within(range).flat_map(|(_, part)| part.empty_queries().iter().step_by(2));
        let queries = EmptyQueries::of(kept.within(range).chain(before));
        kept.retain(|query| !range.contains(query.key));
        // Few keys are left, so more of the next queries are sampled.
        let mut few = kept.all.len();
        let mut below = self.below.load(Ordering::Relaxed);
        while few < KEPT_MAX / 4 && below < u64::MAX {
            below = below.saturating_mul(2);
            few = 2 * few + 1;
        }
        self.below.store(below, Ordering::Relaxed);
        queries
    }
}

/// Reserves room for `more` elements by quadrupling the capacity, up to `most`.
fn grow<T>(list: &mut Vec<T>, more: usize, most: usize) {
    let needed = list.len() + more;
    if needed > list.capacity() {
        let room = (4 * list.capacity()).max(most / 256).max(needed).min(most.max(needed));
        list.reserve_exact(room - list.len());
    }
}

/// Spreads counts evenly over all numbers by the golden ratio, whatever rhythm they have.
#[inline]
fn mixed(count: u64) -> u64 {
    count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_query_sample() -> EmptyQuerySample {
        EmptyQuerySample::new(&Options::default())
    }

    fn everything() -> KeyBounds {
        KeyBounds { from: Vec::new(), to: None }
    }

    fn no_parts() -> Parts {
        Parts::empty(&trommel_filters::GrfOptions::default(), &[])
    }

    #[test]
    fn a_sample_is_of_all_questions_alike() {
        let sample = empty_query_sample();
        // Queries alternate between two tables; the sample must not prefer one.
        for number in 0..200_000u64 {
            let key = ((number % 2) << 63 | number).to_be_bytes();
            sample.note_point(&key, number);
        }
        let queries = sample.take(&no_parts(), &everything());
        assert!(queries.len() > EmptyQueries::MAX / 2, "{}", queries.len());
        let upper = queries.iter().filter(|query| query.key[0] >> 7 == 1).count();
        let share = upper as f64 / queries.len() as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
        let late = |query: &EmptyQuery<'_>| query.key[5..] >= [1, 0x86, 0xa0][..];
        let share = queries.iter().filter(late).count() as f64 / queries.len() as f64;
        assert!((0.4..0.6).contains(&share), "{share} are of the second half");
        assert!(sample.take(&no_parts(), &everything()).is_empty());
        sample.note_point(b"next", 200_001);
        assert_eq!(sample.take(&no_parts(), &everything()).len(), 1, "it begins anew");
    }

    #[test]
    fn a_range_takes_its_own_alone() {
        let sample = empty_query_sample();
        let range = |from: &[u8], to: Option<&[u8]>| KeyBounds {
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
        };
        sample.note_point(b"a", 0);
        sample.note_range(&range(b"b", Some(b"c")));
        sample.note_point(b"z", 1);
        sample.note_point(&[1; EmptyQueries::KEY_BYTES_MAX + 1], 2);
        let first = sample.take(&no_parts(), &range(b"", Some(b"c")));
        let kinds: Vec<_> =
            first.iter().map(|query| (query.key.to_vec(), query.is_point)).collect();
        assert_eq!(kinds, [(b"a".to_vec(), true), (b"b".to_vec(), false)]);
        assert_eq!(sample.take(&no_parts(), &everything()).len(), 1);
        let off = EmptyQuerySample::new(&Options::new().learn_questions(false));
        off.note_point(b"a", 0);
        assert!(off.take(&no_parts(), &everything()).is_empty());
    }
}
