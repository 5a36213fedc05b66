//! Key ranges in which a scan found nothing. They are the training data of filters that learn.
//! ```text
//! scan "c".."d" finds nothing ──> [ c..d ][ k..m ][ a..b ] ...      the newest ranges,
//!     the oldest is overwritten
//!                                        │
//! flush, merge ── a new table's filter <─┘
//! ```
//! Invariant: at most as many ranges as the options allow, and none with long keys. Guards that do
//! not learn have none.

use trommel_filters::Question;

use crate::entries::key_bounds::KeyBounds;
use crate::plan::options::Options;
use crate::sync::{Mutex, lock};

/// The most bytes that both keys of a range may have together. Filters that learn tell keys apart
/// by eight bytes, so longer keys are not worth their memory.
const KEY_BYTES_MAX: usize = 256;

/// The newest empty ranges, up to a limit.
pub(crate) struct EmptyRanges {
    kept_max: usize,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    kept: Vec<Question>,
    /// The range that is overwritten next, once all places are taken.
    oldest: usize,
}

impl EmptyRanges {
    /// Makes an empty list.
    pub(crate) fn new(options: &Options) -> Self {
        let filter = options.guard.table_filter();
        let kept_max = filter.map_or(0, |kind| kind.questions_kept(&options.filter));
        EmptyRanges { kept_max, ring: Mutex::new(Ring::default()) }
    }

    /// Notes that nothing lies within these bounds. Bounds without an end are left out: no single
    /// table answers them.
    pub(crate) fn note_nothing(&self, bounds: &KeyBounds) {
        if self.kept_max == 0 || bounds.to.is_none() {
            return;
        }
        let Some(range) = bounds.closed() else { return };
        let upper = range.upper().map(<[u8]>::to_vec);
        if range.lower().len() + upper.as_ref().map_or(0, Vec::len) > KEY_BYTES_MAX {
            return;
        }
        let question = (range.lower().to_vec(), upper);
        let ring = &mut *lock(&self.ring);
        if ring.kept.len() < self.kept_max {
            ring.kept.push(question);
        } else {
            ring.kept[ring.oldest] = question;
            ring.oldest = (ring.oldest + 1) % self.kept_max;
        }
    }

    /// Returns the ranges.
    pub(crate) fn kept(&self) -> Vec<Question> {
        if self.kept_max == 0 { Vec::new() } else { lock(&self.ring).kept.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::guard_kind::GuardKind;
    use trommel_guards::{ArfOptions, kinds};

    fn ranges_of(guard: GuardKind, most: u32) -> EmptyRanges {
        let options = Options::new().guard(guard).tune(|arf: &mut ArfOptions| arf.questions = most);
        EmptyRanges::new(&options)
    }

    fn lowers(ranges: &EmptyRanges) -> Vec<Vec<u8>> {
        ranges.kept().into_iter().map(|(lower, _)| lower).collect()
    }

    #[test]
    fn the_newest_questions_are_kept() {
        let ranges = ranges_of(GuardKind::Table(kinds::ARF), 3);
        for lower in [b"a", b"b", b"c", b"d", b"e"] {
            ranges.note_nothing(&KeyBounds { from: lower.to_vec(), to: Some(b"x".to_vec()) });
        }
        assert_eq!(lowers(&ranges), [b"d", b"e", b"c"]);
        ranges.note_nothing(&KeyBounds { from: b"f".to_vec(), to: None });
        ranges.note_nothing(&KeyBounds { from: b"f".to_vec(), to: Some(b"e".to_vec()) });
        ranges.note_nothing(&KeyBounds { from: vec![b'f'; 300], to: Some(b"g".to_vec()) });
        assert_eq!(lowers(&ranges), [b"d", b"e", b"c"]);
        ranges.note_nothing(&KeyBounds { from: b"f".to_vec(), to: Some(b"g\0".to_vec()) });
        assert_eq!(ranges.kept()[2], (b"f".to_vec(), Some(b"g".to_vec())));
    }

    #[test]
    fn guards_that_do_not_learn_keep_none() {
        let bounds = KeyBounds { from: b"a".to_vec(), to: Some(b"b".to_vec()) };
        let arf = GuardKind::Table(kinds::ARF);
        for guard in GuardKind::all().into_iter().chain([arf]) {
            let ranges = ranges_of(guard, 3);
            ranges.note_nothing(&bounds);
            assert_eq!(ranges.kept().len(), usize::from(guard == arf), "{guard}");
        }
    }
}
