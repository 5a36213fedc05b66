//! How old what a base holds may be: what parts that were replaced still tell of it.
//! ```text
//! flush          40 ...... 47 | 48 ...... 60 | 61 ..       commits that read at flush 45 and later
//! part now                                     overlay     what came with 61 and later
//! part before                   overlay: 48 ..             its base has what came before 48
//! part before    overlay: .. 47                            the same for 45 .. 47
//! ```
//! A base has one code for all that is in it, so it tells no age. But what came into it since some
//! flush was in the overlay of the part that it has replaced, or of one before, each key with its
//! own code. Such parts stay as long as a transaction reads at an older number, and memory allows.
//! Invariant: of flushes for which a part is missing, a base may have anything.

use trommel_filters::{Codes, FlushNumber, KeyRange, Part, Query, Span, Untraced};

use crate::entries::key_bounds::KeyBounds;
use crate::sync::{Arc, Weak};

/// What is known of the ages of what bases hold.
#[derive(Clone)]
pub(crate) struct BaseAges {
    replaced: Arc<[ReplacedPart]>,
    /// Of flushes below this one, bases may have anything.
    known_from: FlushNumber,
}

/// A part that was replaced.
#[derive(Clone)]
struct ReplacedPart {
    bounds: KeyBounds,
    /// Who may need it keeps it.
    part: Weak<Part>,
    /// All flushes below this one are in it.
    until: FlushNumber,
}

impl BaseAges {
    /// Bases have anything of flushes below this one, and nothing of later ones.
    pub(crate) fn known_from(flush: FlushNumber) -> Self {
        BaseAges { replaced: Arc::new([]), known_from: flush }
    }

    /// After new parts have taken the place of these, which have all flushes below `until`.
    /// `keep`: whether someone keeps a part.
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

    /// Without those that nobody needs any more.
    fn pruned(&self) -> Self {
        let is_gone = |replaced: &&ReplacedPart| replaced.part.strong_count() == 0;
        let gone = self.replaced.iter().filter(is_gone).map(|replaced| replaced.until).max();
        let stay = self.replaced.iter().filter(|replaced| !is_gone(replaced));
        let known_from = gone.map_or(self.known_from, |gone| self.known_from.max(gone));
        BaseAges { replaced: stay.cloned().collect(), known_from }
    }

    /// Whether a base may have an entry for the query that came with this flush or later. False: it
    /// surely has none.
    pub(crate) fn may_have_since(&self, query: &Query<'_>, flush: FlushNumber) -> bool {
        // The code of what is in a base is [0, 1).
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

    /// As above, of some keys: a bit for each, from the lowest one on. Parts are asked for all keys
    /// at once. Requires: they are at most 64.
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

    /// The parts in which something may be of this flush or of later ones.
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
