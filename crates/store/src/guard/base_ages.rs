//! The ages that entries of a base may have, as far as replaced parts still tell them.
//! ```text
//! flush          40 ...... 47 | 48 ...... 60 | 61 ..       transactions read at flush 45 and later
//! part now                                     overlay     entries of flush 61 and later
//! part before                   overlay: 48 ..             its base has the entries before 48
//! part before    overlay: .. 47                            the same for 45 .. 47
//! ```
//! A base has one code for all its entries, which tells no age. But every entry that came into it
//! since some flush was in the overlay of a part that it replaced, with its own code. Such parts
//! are kept while a transaction reads at an older number, and memory allows.
//!
//! Invariant: for flushes whose parts are missing, a base may have anything.

use trommel_filters::{Codes, FlushNumber, KeyRange, Part, Query, Span, Untraced};

use crate::entries::key_bounds::KeyBounds;
use crate::sync::{Arc, Weak};

/// What is known about the ages of the entries in bases.
#[derive(Clone)]
pub(crate) struct BaseAges {
    replaced: Arc<[ReplacedPart]>,
    /// For flushes below this one, bases may have anything.
    known_from: FlushNumber,
}

/// A part that a merge replaced.
#[derive(Clone)]
struct ReplacedPart {
    bounds: KeyBounds,
    /// Kept alive by the transactions that may need it.
    part: Weak<Part>,
    /// The part contains all flushes below this one.
    until: FlushNumber,
}

impl BaseAges {
    /// Bases may have anything of flushes below this one, and have nothing of later flushes.
    pub(crate) fn known_from(flush: FlushNumber) -> Self {
        BaseAges { replaced: Arc::new([]), known_from: flush }
    }

    /// Returns the ages after new parts have replaced `old`, which contain all flushes below
    /// `until`. `keep` tells whether somebody keeps a part alive.
    #[must_use]
    pub(crate) fn replacing(
        &self,
        old: impl Iterator<Item = (KeyBounds, Arc<Part>)>,
        until: FlushNumber,
        keep: impl Fn(&Arc<Part>) -> bool,
    ) -> Self {
        let mut next = self.pruned();
        let mut replaced = next.replaced.to_vec();
        for (bounds, part) in old {
            match keep(&part) {
                true => replaced.push(ReplacedPart { bounds, part: Arc::downgrade(&part), until }),
                false => next.known_from = until,
            }
        }
        next.replaced = replaced.into();
        next
    }

    /// Returns the ages without parts that nobody needs any more.
    fn pruned(&self) -> Self {
        let is_gone = |replaced: &&ReplacedPart| replaced.part.strong_count() == 0;
        let gone = self.replaced.iter().filter(is_gone).map(|replaced| replaced.until).max();
        let stay = self.replaced.iter().filter(|replaced| !is_gone(replaced));
        let known_from = gone.map_or(self.known_from, |gone| self.known_from.max(gone));
        BaseAges { replaced: stay.cloned().collect(), known_from }
    }

    /// Whether a base may have an entry for the query that came with this flush or later. False: it
    /// has none.
    pub(crate) fn may_have_since(&self, query: &Query<'_>, flush: FlushNumber) -> bool {
        // Entries of a base have the code [0, 1).
        let Some(since) = Span::new(flush, FlushNumber(u64::MAX)).filter(|_| flush.0 > 0) else {
            return true;
        };
        if flush < self.known_from {
            return true;
        }
        let range = query.range();
        self.concerned(flush).filter(|it| meets(&it.bounds, &range)).any(|replaced| {
            let Some(part) = replaced.part.upgrade() else { return true };
            let mut codes = Codes::new();
            part.candidates_traced(query, &mut codes, &mut Untraced);
            codes.may_meet(since)
        })
    }

    /// Like `may_have_since`, for several keys: one bit each, from the lowest on. Parts are asked
    /// for all keys together. Requires: at most 64 keys.
    pub(crate) fn may_have_of_many(&self, keys: &[&[u8]], flush: FlushNumber) -> u64 {
        let all = u64::MAX >> (64 - keys.len().clamp(1, 64));
        let Some(since) = Span::new(flush, FlushNumber(u64::MAX)).filter(|_| flush.0 > 0) else {
            return all;
        };
        if flush < self.known_from {
            return all;
        }
        let mut bits = 0;
        for ReplacedPart { bounds, part, .. } in self.concerned(flush) {
            let within = |key: &&[u8]| has(bounds, key);
            let places: Vec<usize> = (0..keys.len()).filter(|at| within(&keys[*at])).collect();
            let own: Vec<&[u8]> = places.iter().map(|place| keys[*place]).collect();
            let Some(part) = part.upgrade() else {
                places.iter().for_each(|place| bits |= 1 << place);
                continue;
            };
            part.candidates_many(&own, |nth, codes| {
                bits |= u64::from(codes.may_meet(since)) << places[nth];
            });
        }
        bits
    }

    /// Returns the parts that may have entries of this flush or later ones.
    fn concerned(&self, flush: FlushNumber) -> impl Iterator<Item = &ReplacedPart> {
        self.replaced.iter().filter(move |replaced| replaced.until > flush)
    }
}

fn has(bounds: &KeyBounds, key: &[u8]) -> bool {
    *bounds.from <= *key && bounds.ends_after(key)
}

fn meets(bounds: &KeyBounds, range: &KeyRange<'_>) -> bool {
    bounds.ends_after(range.lower()) && range.upper().is_none_or(|upper| *bounds.from <= *upper)
}
