//! Kinds of table filters: what a store must know to build and read one.
//! ```text
//! kind + bits per key + tuning -> AnyFilterBuilder -- sorted keys --> bytes
//! kind + bytes ----------------------------------------------------> AnyFilter
//! ```
//! Anyone may add a kind: a static value that a store gets as an option or by registration.
//! [`TableKind`] is a kind as plain data.
//!
//! Invariant: two kinds are equal if their names are.

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

/// A kind of table filter.
pub trait FilterKind: Any + Send + Sync {
    /// The name in options, and in files if the kind has no tag. 1 to 255 bytes.
    fn name(&self) -> &'static str;

    /// The number that identifies the kind in files; never reused. None: files have its name.
    /// (`docs/format.md` assigns the numbers.)
    fn tag(&self) -> Option<u16> {
        None
    }

    /// Whether the filter can answer ranges. If not, it says "maybe" to every range of more than
    /// one key.
    fn knows_ranges(&self) -> bool;

    /// Returns an empty builder of one filter with these options.
    fn builder(&self, options: &FilterOptions) -> Box<dyn AnyFilterBuilder>;

    /// Checks bytes from a builder of this kind and returns the filter. The owner of the bytes has
    /// verified their checksum.
    ///
    /// # Errors
    /// The bytes are damaged, or another kind made them. (A filter may accept another kind's bytes
    /// if it reports that kind.)
    fn read(&self, bytes: AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt>;

    /// How the false positive rate falls with memory: of short ranges if the kind answers ranges,
    /// else of single keys. It lets a budget be divided among runs. None: the rate does not follow
    /// from bits per key.
    fn rate_law(&self) -> Option<RateLaw> {
        None
    }

    /// The number of empty query ranges that are kept for new filters to learn from. 0: filters
    /// learn nothing.
    fn questions_kept(&self, tuning: &FilterTuning) -> usize {
        let _ = tuning;
        0
    }

    /// Some: filters are loaded in parts, as many as are worth their memory.
    fn sub_filters(&self) -> Option<&dyn SubFilterKind> {
        None
    }

    /// The tuning options of this kind.
    fn tuning_options(&self) -> &'static [TuningOption] {
        &[]
    }

    /// The kind's options in `tuning`, as text for people. None: the kind has no options.
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

/// A range query: its first key, and its last one unless it is unbounded.
pub type Question = (Vec<u8>, Option<Vec<u8>>);

/// How to build the filter of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterOptions {
    /// The kind of filter.
    pub kind: &'static dyn FilterKind,
    /// Target size of the filter in bits per key, metadata included. More: fewer false positives.
    pub bits_per_key: f64,
    /// Further options of the kind, as text.
    pub tuning: FilterTuning,
    /// Empty query ranges, for filters that learn. More: better adapted filters, slower building.
    pub questions: Vec<Question>,
}

impl FilterOptions {
    /// Options for `bits_per_key` bits per key, with defaults for all else.
    pub fn new(kind: &'static dyn FilterKind, bits_per_key: f64) -> Self {
        FilterOptions { kind, bits_per_key, tuning: FilterTuning::default(), questions: Vec::new() }
    }

    /// Returns these options with `tuning`.
    #[must_use]
    pub fn tuned(self, tuning: FilterTuning) -> Self {
        FilterOptions { tuning, ..self }
    }

    /// Estimates the bytes of a filter of `keys` keys. Small filters have somewhat more.
    pub fn estimate_bytes(&self, keys: usize) -> usize {
        let bits = keys as f64 * self.bits_per_key.max(0.0);
        (bits / 8.0) as usize + FRAME_BYTES
    }

    /// Returns an empty builder of such a filter.
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
    /// A kind without a tag, a rate law or tuning options, which cannot answer ranges.
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

    /// Sets the number that identifies the kind in files.
    #[must_use]
    pub const fn with_tag(self, tag: u16) -> Self {
        TableKind { tag: Some(tag), ..self }
    }

    /// Declares that the kind can answer ranges.
    #[must_use]
    pub const fn with_ranges(self) -> Self {
        TableKind { knows_ranges: true, ..self }
    }

    /// Sets the law by which its false positive rate falls with memory.
    #[must_use]
    pub const fn with_rate_law(self, rate: RateLaw) -> Self {
        TableKind { rate_law: Some(rate), ..self }
    }

    /// Sets the kind's tuning options.
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

/// Bytes of a small filter besides its bits, approximately.
const FRAME_BYTES: usize = 64;

/// The last bytes of a filter with a tag: its tag, the version of its format, and a byte of the
/// kind's own.
const TRAILER_BYTES: usize = 4;

/// Reads a filter of one of `kinds`, which the tag at the end of its bytes selects.
///
/// # Errors
/// The bytes are too short, no kind has the tag, or the kind rejects the bytes.
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
