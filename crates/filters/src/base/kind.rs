//! Kinds of filters of one table: what a store has to know of one to write and read it.
//! ```text
//! kind + bits per key + tuning -> AnyFilterBuilder -- sorted keys --> bytes
//! kind + bytes ----------------------------------------------------> AnyFilter
//! ```
//! Kinds are an open family. One is a value for the whole run of the program, which a store learns
//! by being given it or by its registration. [`TableKind`] is a kind as plain data.
//!
//! Invariant: two kinds are the same if their names are.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::tuning_option::TuningOption;
use crate::base::any_filter::{AnyFilter, AnyFilterBuilder};
use crate::base::monkey::RateLaw;
use crate::base::sub_filters::SubFilterKind;
use crate::base::tuning::FilterTuning;
use crate::base::wire::{Corrupt, Reader};
use crate::bits::AlignedBytes;

/// A kind of filter of one table.
pub trait FilterKind: Any + Send + Sync {
    /// The name that people write, and that files have where there is no tag. 1 to 255 bytes.
    fn name(&self) -> &'static str;

    /// The number that names the kind in files; never reused. None: files have its name. (Numbers
    /// are given out in `docs/format.md`.)
    fn tag(&self) -> Option<u16> {
        None
    }

    /// Whether it can answer for ranges; else it says "maybe" to every range of more than one key.
    fn knows_ranges(&self) -> bool;

    /// A builder of one filter, of these options, without a key.
    fn builder(&self, options: &FilterOptions) -> Box<dyn AnyFilterBuilder>;

    /// Checks bytes that a builder of this kind made. If another kind made them, the filter says so
    /// by its kind, or this is an error. (The owner of the bytes has checked a checksum of them.)
    fn read(&self, bytes: AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt>;

    /// How false positives fall with memory, of single keys, or of short ranges if it answers for
    /// them, so that a budget can be divided among runs. None: the rate does not follow from bits.
    fn rate_law(&self) -> Option<RateLaw> {
        None
    }

    /// How many ranges in which scans found nothing are kept, so that new filters learn from them.
    /// 0: filters learn nothing.
    fn questions_kept(&self, tuning: &FilterTuning) -> usize {
        let _ = tuning;
        0
    }

    /// Some: filters are not read as a whole, but in parts, as many as are worth their memory.
    fn sub_filters(&self) -> Option<&dyn SubFilterKind> {
        None
    }

    /// The options of this kind in a tuning.
    fn tuning_options(&self) -> &'static [TuningOption] {
        &[]
    }

    /// The options of this kind in a tuning, as people type them. None: it has none.
    fn tuning_text(&self, tuning: &FilterTuning) -> Option<String> {
        let text = |option: &TuningOption| {
            format!("{} {}", option.name.replace('_', "-"), (option.write)(tuning))
        };
        let texts: Vec<String> = self.tuning_options().iter().map(text).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

impl PartialEq for dyn FilterKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn FilterKind {}

impl Hash for dyn FilterKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for dyn FilterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A range that was asked for: its first key, and its last one, if it has one.
pub type Question = (Vec<u8>, Option<Vec<u8>>);

/// How the filter of a table is made.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterOptions {
    /// Which filter.
    pub kind: &'static dyn FilterKind,
    /// Its size, everything included, as near as the filter can come to it. More: fewer false
    /// positives.
    pub bits_per_key: f64,
    /// The options of the kind beside its memory, as text.
    pub tuning: FilterTuning,
    /// Ranges in which there was nothing, for filters that learn. More: they know better what is
    /// asked like them; building takes longer.
    pub questions: Vec<Question>,
}

impl FilterOptions {
    /// A filter of so many bits for each key, all else as it usually is.
    pub fn new(kind: &'static dyn FilterKind, bits_per_key: f64) -> Self {
        FilterOptions { kind, bits_per_key, tuning: FilterTuning::default(), questions: Vec::new() }
    }

    /// As above, tuned so.
    #[must_use]
    pub fn tuned(self, tuning: FilterTuning) -> Self {
        FilterOptions { tuning, ..self }
    }

    /// About how many bytes a filter of so many keys has. Small ones have some more.
    pub fn estimate_bytes(&self, keys: usize) -> usize {
        let bits = keys as f64 * self.bits_per_key.max(0.0);
        (bits / 8.0) as usize + FRAME_BYTES
    }

    /// A builder of such a filter, without a key.
    pub fn builder(&self) -> Box<dyn AnyFilterBuilder> {
        self.kind.builder(self)
    }
}

/// A kind of filter as plain data.
pub struct TableKind {
    name: &'static str,
    tag: Option<u16>,
    knows_ranges: bool,
    rate_law: Option<RateLaw>,
    tuning_options: &'static [TuningOption],
    builder: fn(&FilterOptions) -> Box<dyn AnyFilterBuilder>,
    read: fn(AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt>,
}

impl TableKind {
    /// A kind without a tag and options of its own, that knows no ranges.
    pub const fn new(
        name: &'static str,
        builder: fn(&FilterOptions) -> Box<dyn AnyFilterBuilder>,
        read: fn(AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt>,
    ) -> Self {
        TableKind {
            name,
            tag: None,
            knows_ranges: false,
            rate_law: None,
            tuning_options: &[],
            builder,
            read,
        }
    }

    /// With the number that names it in files.
    #[must_use]
    pub const fn with_tag(self, tag: u16) -> Self {
        TableKind { tag: Some(tag), ..self }
    }

    /// It can answer for ranges.
    #[must_use]
    pub const fn with_ranges(self) -> Self {
        TableKind { knows_ranges: true, ..self }
    }

    /// With the rate by which its false positives fall.
    #[must_use]
    pub const fn with_rate_law(self, rate: RateLaw) -> Self {
        TableKind { rate_law: Some(rate), ..self }
    }

    /// With its options in a tuning.
    #[must_use]
    pub const fn with_tuning_options(self, tuning_options: &'static [TuningOption]) -> Self {
        TableKind { tuning_options, ..self }
    }
}

impl FilterKind for TableKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tag(&self) -> Option<u16> {
        self.tag
    }

    fn knows_ranges(&self) -> bool {
        self.knows_ranges
    }

    fn builder(&self, options: &FilterOptions) -> Box<dyn AnyFilterBuilder> {
        (self.builder)(options)
    }

    fn read(&self, bytes: AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt> {
        (self.read)(bytes)
    }

    fn rate_law(&self) -> Option<RateLaw> {
        self.rate_law
    }

    fn tuning_options(&self) -> &'static [TuningOption] {
        self.tuning_options
    }
}

/// What a small filter has beside its bits, about.
const FRAME_BYTES: usize = 64;

/// What the last bytes of a filter with a tag are: the tag, the version of its format, a number of
/// its own.
const TRAILER_BYTES: usize = 4;

/// Reads a filter by the tag at the end of its bytes, which one of these kinds must have.
pub fn read_filter(
    bytes: AlignedBytes,
    kinds: &[&'static dyn FilterKind],
) -> Result<Box<dyn AnyFilter>, Corrupt> {
    let at = bytes.len().checked_sub(TRAILER_BYTES);
    let at = at.ok_or(Corrupt { at: 0, what: "the trailer of a filter" })?;
    let tag = Reader::new(&bytes[at..]).u16()?;
    let kind = kinds.iter().find(|kind| kind.tag() == Some(tag));
    kind.ok_or(Corrupt { at, what: "the tag of a filter that is known" })?.read(bytes)
}
