//! Rosetta: Bloom filters for the last levels of a binary tree over the keys (Luo et al., SIGMOD
//! 2020).
//! ```text
//! keys as numbers     ...0110 1011
//! level 2             ...0110 10        its filter has the numbers without their last two bits
//! level 1             ...0110 101
//! level 0             ...0110 1011      its filter has the whole numbers
//!
//! range ──> nodes of the top level ──present──> children in the range ──present──> ... ──> maybe
//!
//! bytes   | whole keys | level 0 | level 1 | ... | fields | tail |
//! ```
//! Keys are the numbers of [`NumberSpace`]: eight bytes after the table's common prefix. If keys
//! are longer, or differ in length, range queries cannot tell keys with equal numbers apart. Half
//! of the memory then goes to a filter of whole keys, which point queries probe, too.
//!
//! Invariant: every stored level has the prefix of every key. No levels: no keys.

use std::fmt;
use std::str::FromStr;

use trommel_filters::hash::mix;
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, KeyRange, OutOfOrder, RateLaw, Reader, Signature, TableFilter,
    TableFilterBuilder, TableKind, Trace, Tuning, TuningOption, Writer, read_tuning,
};

use crate::range::base::dyadic::Descent;
use crate::range::base::hashed::{best_probes, is_marked, mark};
use crate::range::base::number::{NumberCollector, NumberSpace, Numbers, distinct_prefixes};
use crate::range::base::tail;

mod split;

/// Measured (`guards/monkey.rs`) on ranges of 64 even keys, with the default plan. The rate of
/// points falls a third faster.
const SHORT_RANGES: RateLaw = RateLaw::of_slope(0.36).from(6.7);

/// `rosetta`: Bloom filters for the last levels of a binary tree over the keys.
pub const ROSETTA: &dyn FilterKind = &TableKind::new(
    "rosetta",
    |options| Box::new(RosettaBuilder::new(options.bits_per_key, options.tuning.get())),
    |bytes| Ok(Box::new(Rosetta::read(bytes)?)),
)
.with_tag(TAG)
.with_ranges()
.with_rate_law(SHORT_RANGES)
.with_tuning_options(&[
    TuningOption {
        name: "rosetta_range_bits",
        limits: "0 to 31",
        help: "rosetta: log2 of the longest range. Longer ones take more probes",
        read: |tuning, text| {
            read_tuning(tuning, text, |plan: &mut RosettaPlan, bits| plan.range_bits = bits)
        },
        write: |tuning| tuning.get::<RosettaPlan>().range_bits.to_string(),
    },
    TuningOption {
        name: "rosetta_split",
        limits: "single, variable, first-cut",
        help: "rosetta: how levels share its memory. All to the last one: single. The more, the \
               more often a level is asked: variable. One rate, whatever level a question begins \
               at, and the fewest probes: first-cut",
        read: |tuning, text| {
            read_tuning(tuning, text, |plan: &mut RosettaPlan, split| plan.split = split)
        },
        write: |tuning| tuning.get::<RosettaPlan>().split.to_string(),
    },
]);

const VERSION: u8 = 1;
const TAG: u16 = 13;
/// A range that meets more nodes than this is answered with "maybe".
const VISITS_MAX: u32 = 2048;
/// More levels would be useless: ranges that need them hold too many numbers to be answered.
const LEVELS_MAX: usize = 32;
/// Bytes per level among the fields: its size and its probes.
const LEVEL_FIELD_BYTES: usize = 4 + 1;

/// The ranges that a Rosetta filter is built for, and how its memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosettaPlan {
    /// The longest ranges it is built for, as the binary logarithm of their length: 0 (points) to
    /// 31. More: fewer probes for long ranges. Longer ranges are answered, too, by up to two
    /// thousand probes.
    pub range_bits: u8,
    /// The division of memory among the levels.
    pub split: RosettaSplit,
}

impl Default for RosettaPlan {
    /// The best division that was measured (`examples/range_filters.rs`). In ranges of 2^5 it has
    /// the fewest false positives, and only few more near stored keys. It takes a fifth of the time
    /// of a single level.
    fn default() -> Self {
        RosettaPlan { range_bits: 6, split: RosettaSplit::FirstCut }
    }
}

impl Tuning for RosettaPlan {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        (self.range_bits > 31).then_some(("filter.rosetta.range_bits", "must be 0 to 31"))
    }
}

/// The division of a Rosetta filter's memory among its levels. (The names are the paper's.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosettaSplit {
    /// All memory goes to the last level: the fewest false positives near stored keys, the most
    /// probes.
    Single,
    /// A level gets more memory the more often it is probed: the paper's optimum for ranges of
    /// maximum length.
    Variable,
    /// The last level gets a false positive rate. The others get what keeps this rate whatever
    /// level a query begins at: the fewest probes.
    FirstCut,
}

impl RosettaSplit {
    /// All divisions.
    pub const ALL: [RosettaSplit; 3] =
        [RosettaSplit::Single, RosettaSplit::Variable, RosettaSplit::FirstCut];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            RosettaSplit::Single => "single",
            RosettaSplit::Variable => "variable",
            RosettaSplit::FirstCut => "first-cut",
        }
    }
}

impl fmt::Display for RosettaSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RosettaSplit {
    /// The error lists the allowed values.
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|split| split.name() == name)
            .ok_or_else(|| format!("there are: {}", Self::ALL.map(RosettaSplit::name).join(", ")))
    }
}

/// Builds a Rosetta filter.
#[derive(Clone, Debug)]
pub struct RosettaBuilder {
    keys: NumberCollector,
    bits_per_key: f64,
    plan: RosettaPlan,
}

impl RosettaBuilder {
    /// An empty builder.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn new(bits_per_key: f64, plan: RosettaPlan) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        RosettaBuilder { keys: NumberCollector::default(), bits_per_key, plan }
    }
}

impl TableFilterBuilder for RosettaBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.keys.add(key)
    }

    fn finish(self) -> Vec<u8> {
        let key_count = self.keys.len();
        let signature =
            |levels: usize| Signature { tag: TAG, version: VERSION, parameter: levels as u8 };
        let Some(keys) = self.keys.finish() else {
            return tail::seal(signature(0), vec![], &[]);
        };
        let level_count =
            (usize::from(self.plan.range_bits) + 1).min(LEVELS_MAX).min(keys.space.bits() as usize);
        let asked = (key_count as f64 * self.bits_per_key.clamp(0.0, 1000.0) / 8.0) as usize;
        let overhead = tail::FIXED_BYTES + fields_bytes(&keys.space, level_count);
        let payload_len = asked.saturating_sub(overhead).max(key_count.div_ceil(16));
        let whole_len = if keys.space.is_exact() { 0 } else { payload_len.div_ceil(2) };
        let counts = distinct_prefixes(&keys.numbers, level_count as u32);
        let sizes = split::level_bytes(self.plan.split, &counts, payload_len - whole_len);
        let levels: Vec<Level> =
            sizes.iter().zip(&counts).map(|(&len, &count)| Level::new(len, count)).collect();
        let whole = Level::new(whole_len, key_count as u64);
        let fields = encode_fields(&keys.space, whole, &levels);
        tail::seal(signature(levels.len()), payload(&keys, whole, &levels), &fields)
    }
}

/// Returns the bits of all levels, one after the other.
fn payload(keys: &Numbers, whole: Level, levels: &[Level]) -> Vec<u8> {
    let mut bytes = vec![0; whole.len + levels.iter().map(|level| level.len).sum::<usize>()];
    let (whole_bytes, mut rest) = bytes.split_at_mut(whole.len);
    if whole.len > 0 {
        keys.hashes.iter().for_each(|&hash| mark(whole_bytes, hash, whole.probes));
    }
    for (depth, level) in levels.iter().enumerate() {
        let (level_bytes, later) = rest.split_at_mut(level.len);
        rest = later;
        if level.len == 0 {
            continue;
        }
        let mut before = None;
        for node in keys.numbers.iter().map(|number| number >> depth) {
            if before != Some(node) {
                mark(level_bytes, node_hash(depth, node), level.probes);
            }
            before = Some(node);
        }
    }
    bytes
}

/// Returns the hash of a node.
#[inline]
fn node_hash(level: usize, node: u64) -> u64 {
    mix(node.wrapping_add((level as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The size of one level's filter, and its probes per node. No bytes: the level is not stored.
#[derive(Clone, Copy, Debug)]
struct Level {
    len: usize,
    probes: u32,
}

impl Level {
    fn new(len: usize, nodes: u64) -> Self {
        Level { len, probes: best_probes(len as f64 * 8.0 / nodes as f64) }
    }

    fn write(self, out: &mut Writer) {
        out.u32(u32::try_from(self.len).expect("a level has less than 4 GiB"));
        out.u8(self.probes as u8);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Corrupt> {
        Ok(Level { len: input.u32()? as usize, probes: u32::from(input.u8()?) })
    }
}

fn encode_fields(space: &NumberSpace, whole: Level, levels: &[Level]) -> Vec<u8> {
    let mut out = Writer::new();
    space.write(&mut out);
    whole.write(&mut out);
    levels.iter().for_each(|level| level.write(&mut out));
    out.finish()
}

fn fields_bytes(space: &NumberSpace, levels: usize) -> usize {
    space.written_bytes() + LEVEL_FIELD_BYTES * (1 + levels)
}

/// The parameters of a filter with keys.
#[derive(Clone, Debug)]
struct Parameters {
    space: NumberSpace,
    whole: Level,
    /// Each level with the start of its bytes.
    levels: Box<[(usize, Level)]>,
    /// The highest stored level.
    top: u32,
}

fn decode_fields(
    fields: &[u8],
    levels: u8,
    payload_len: usize,
) -> Result<Option<Parameters>, Corrupt> {
    if levels == 0 && fields.is_empty() && payload_len == 0 {
        return Ok(None);
    }
    let mut input = Reader::new(fields);
    let space = NumberSpace::read(&mut input)?;
    if levels == 0 || u32::from(levels) > space.bits() || usize::from(levels) > LEVELS_MAX {
        return Err(input.corrupt("a number of levels that numbers have"));
    }
    let whole = Level::read(&mut input)?;
    let mut end = whole.len;
    let mut places = Vec::new();
    for _ in 0..levels {
        let level = Level::read(&mut input)?;
        places.push((end, level));
        end = end.checked_add(level.len).ok_or(input.corrupt("levels that fit in memory"))?;
    }
    input.end()?;
    if end != payload_len {
        return Err(input.corrupt("levels as long as the payload"));
    }
    let kept = places.iter().rposition(|(_, level)| level.len > 0).unwrap_or(0);
    Ok(Some(Parameters { space, whole, levels: places.into(), top: kept as u32 }))
}

/// A Rosetta filter over checked bytes.
#[derive(Clone, Debug)]
pub struct Rosetta<B> {
    bytes: B,
    /// None: the filter has no keys.
    parameters: Option<Parameters>,
}

impl<B: AsRef<[u8]>> Rosetta<B> {
    /// Checks bytes that [`RosettaBuilder`] made.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let parts = tail::open(bytes.as_ref(), TAG, VERSION)?;
        let parameters = decode_fields(parts.fields, parts.parameter, parts.payload.len())?;
        Ok(Rosetta { bytes, parameters })
    }

    /// Returns the size of each level in bytes, last level first.
    pub fn level_bytes(&self) -> Vec<usize> {
        let levels = self.parameters.iter().flat_map(|parameters| parameters.levels.iter());
        levels.map(|(_, level)| level.len).collect()
    }

    /// Whether a node may have keys below it. True for a level that is not stored.
    #[inline]
    fn may_hold<T: Trace>(
        &self,
        parameters: &Parameters,
        level: u32,
        node: u64,
        trace: &mut T,
    ) -> bool {
        let (from, Level { len, probes }) = parameters.levels[level as usize];
        let bytes = &self.bytes.as_ref()[from..from + len];
        len == 0 || is_marked(bytes, node_hash(level as usize, node), probes, trace)
    }
}

impl<B: AsRef<[u8]>> TableFilter for Rosetta<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        ROSETTA
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        let Some(parameters) = &self.parameters else { return false };
        let Some(number) = parameters.space.of_key(key.key()) else { return false };
        let whole = &self.bytes.as_ref()[..parameters.whole.len];
        (whole.is_empty() || is_marked(whole, key.hash(), parameters.whole.probes, trace))
            && (0..=parameters.top)
                .all(|level| self.may_hold(parameters, level, number >> level, trace))
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        if range.upper() == Some(range.lower()) {
            return self.may_contain_traced(&HashedKey::new(range.lower()), trace);
        }
        let Some(parameters) = &self.parameters else { return false };
        let Some((low, high)) = parameters.space.of_range(range) else { return false };
        let descent = Descent { top: parameters.top, bottom: 0, visits: VISITS_MAX };
        descent.may_overlap(low, high, &mut |level, node| {
            self.may_hold(parameters, level, node, trace)
        })
    }
}

#[cfg(test)]
mod tests;
