//! The kind `arf` for the store.
//!
//! Invariant: a filter is trained before it gets keys.

use trommel_filters::{
    AlignedBytes, AnyFilter, AnyFilterBuilder, Corrupt, FilterKind, FilterOptions, FilterTuning,
    KeyRange, Tuning, TuningOption, read_tuning,
};

use super::{Arf, ArfBuilder, TAG};

/// `arf`: a binary tree with empty leaves, trained with the ranges in which scans found nothing.
pub const ARF: &dyn FilterKind = &ArfKind;

struct ArfKind;

impl FilterKind for ArfKind {
    fn name(&self) -> &'static str {
        "arf"
    }

    fn tag(&self) -> Option<u16> {
        Some(TAG)
    }

    fn knows_ranges(&self) -> bool {
        true
    }

    fn builder(&self, options: &FilterOptions) -> Box<dyn AnyFilterBuilder> {
        let mut builder = ArfBuilder::new(options.bits_per_key);
        let ranges = options.questions.iter();
        let ranges = ranges.filter_map(|(low, high)| KeyRange::new(low, high.as_deref()));
        ranges.for_each(|range| builder.train(&range));
        Box::new(builder)
    }

    fn read(&self, bytes: AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt> {
        Ok(Box::new(Arf::read(bytes)?))
    }

    fn questions_kept(&self, tuning: &FilterTuning) -> usize {
        tuning.get::<ArfOptions>().questions as usize
    }

    fn tuning_options(&self) -> &'static [TuningOption] {
        &[TuningOption {
            name: "arf_questions",
            limits: "any number",
            help: "arf: ranges in which scans found nothing, so many of the newest, train the \
                   filters of new tables",
            read: |tuning, text| {
                read_tuning(tuning, text, |arf: &mut ArfOptions, kept| arf.questions = kept)
            },
            write: |tuning| tuning.get::<ArfOptions>().questions.to_string(),
        }]
    }
}

/// How filters of the kind `arf` are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArfOptions {
    /// The number of empty ranges of recent scans that are kept, to train the filters of new
    /// tables. 0: filters are not trained. More: more memory (some 80 bytes each), longer flushes
    /// and merges.
    pub questions: u32,
}

impl Default for ArfOptions {
    fn default() -> Self {
        ArfOptions { questions: 10_000 }
    }
}

impl Tuning for ArfOptions {}
