//! REncoder: the last levels of a binary tree over the keys, eight levels per cache line (Wang et
//! al., ICDE 2023).
//! ```text
//! key as a number    | group 2 | group 1 | group 0 |   levels 16-23, 8-15, 0-7
//!                                                      (a node of level l lacks the last l bits)
//!                    hash of the bits above a group: the group's line
//! in the line        a tree of 512 bits: node 1 the root, 2 and 3 its children, ...
//!                    256 to 511 level 0 of the group
//!                    other bits of the hash permute and rotate its words, so that small
//!                    trees fill lines evenly
//! k lines per group; a node is present if its bit is set in all of them
//!
//! bytes   | line 0 | line 1 | ... | line n-1 | fields | tail |
//!           64       64             64
//! ```
//! Levels are stored from level 0 upwards, until half of all bits are set. Where many keys share
//! their high bits, the upper levels cost little, and more of them are stored. The number of nodes
//! per level determines the stored levels before any bit is set.
//!
//! Keys are the numbers of [`NumberSpace`]: eight bytes after the table's common prefix. If keys
//! are longer, or differ in length, range queries cannot tell keys with equal numbers apart. Half
//! of the set bits are then those of whole keys, which point queries probe, too.
//!
//! Invariant: the bits of each key are set at every stored level: no level relies on another one.
//! No lines: no keys.

use trommel_filters::hash::{mix, scaled};
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, KeyRange, OutOfOrder, RateLaw, Reader, Signature, TableFilter,
    TableFilterBuilder, TableKind, Trace, Tuning, TuningOption, Writer, read_tuning,
};

use crate::range::base::dyadic::Descent;
use crate::range::base::number::{NumberCollector, NumberSpace, Numbers, distinct_prefixes};
use crate::range::base::tail;

/// Measured (`guards/monkey.rs`) on ranges of 64 even keys, with the default plan. The rate of
/// points falls a little faster.
const SHORT_RANGES: RateLaw = RateLaw::of_slope(0.43).from(7.8);

/// `rencoder`: the same levels as `rosetta`, eight of them per cache line.
pub const RENCODER: &dyn FilterKind = &TableKind::new(
    "rencoder",
    |options| Box::new(RencoderBuilder::new(options.bits_per_key, options.tuning.get())),
    |bytes| Ok(Box::new(Rencoder::read(bytes)?)),
)
.with_tag(TAG)
.with_ranges()
.with_rate_law(SHORT_RANGES)
.with_tuning_options(&[TuningOption {
    name: "rencoder_probes",
    limits: "1 to 8",
    help: "rencoder: cache lines for a node. More: fewer false positives near stored keys, more for \
           long ranges",
    read: |tuning, text| {
        read_tuning(tuning, text, |plan: &mut RencoderPlan, probes| plan.probes = probes)
    },
    write: |tuning| tuning.get::<RencoderPlan>().probes.to_string(),
}]);

const VERSION: u8 = 1;
const TAG: u16 = 14;
const LINE_BYTES: usize = 64;
const LINE_BITS: usize = LINE_BYTES * 8;
const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();
/// Levels per line: as many as form a tree of its bits.
const GROUP_LEVELS: u32 = 8;
const _: () = assert!(LINE_BITS == 2 << GROUP_LEVELS);
const GROUPS_MAX: usize = 64 / GROUP_LEVELS as usize;
const PROBES_MAX: u32 = 8;
/// The maximum number of bit positions that one word yields for a whole key.
const WHOLE_PROBES_MAX: u32 = 7;
const PLACE_BITS: u32 = LINE_BITS.ilog2();
/// A range that meets more nodes than this is answered with "maybe".
const VISITS_MAX: u32 = 2048;
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Options of a REncoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RencoderPlan {
    /// Lines per group of levels, 1 to 8 (fewer if there are few bits). More: fewer false positives
    /// near stored keys, but fewer levels, so that long ranges take more probes.
    pub probes: u8,
}

impl Default for RencoderPlan {
    /// The smallest number without many false positives near stored keys, as measured
    /// (`examples/range_filters.rs`).
    fn default() -> Self {
        RencoderPlan { probes: 2 }
    }
}

impl Tuning for RencoderPlan {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let fits = (1..=8).contains(&self.probes);
        (!fits).then_some(("filter.rencoder.probes", "must be 1 to 8"))
    }
}

/// Builds a REncoder.
#[derive(Clone, Debug)]
pub struct RencoderBuilder {
    keys: NumberCollector,
    bits_per_key: f64,
    plan: RencoderPlan,
}

impl RencoderBuilder {
    /// An empty builder.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn new(bits_per_key: f64, plan: RencoderPlan) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        RencoderBuilder { keys: NumberCollector::default(), bits_per_key, plan }
    }
}

impl TableFilterBuilder for RencoderBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.keys.add(key)
    }

    fn finish(self) -> Vec<u8> {
        let key_count = self.keys.len();
        let signature =
            |levels: u32| Signature { tag: TAG, version: VERSION, parameter: levels as u8 };
        let Some(keys) = self.keys.finish() else {
            return tail::seal(signature(0), vec![], &[]);
        };
        let mut out = Writer::new();
        keys.space.write(&mut out);
        let asked = key_count as f64 * self.bits_per_key.clamp(0.0, 1000.0) / 8.0;
        let overhead = (tail::FIXED_BYTES + out.len() + 2) as f64;
        let lines = ((asked - overhead) / LINE_BYTES as f64).round().max(1.0) as usize;
        let marks = Marks::planned(&keys, lines, u32::from(self.plan.probes));
        out.u8(marks.probes as u8);
        out.u8(marks.whole_probes as u8);
        let mut bytes = vec![0; lines * LINE_BYTES];
        mark_levels(&mut bytes, &keys.numbers, marks);
        mark_whole_keys(&mut bytes, &keys.hashes, marks.whole_probes);
        tail::seal(signature(marks.levels), bytes, out.as_slice())
    }
}

/// The bits that are set for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    /// Bits per node.
    probes: u32,
    /// Bits per whole key.
    whole_probes: u32,
    /// The levels below this one are stored.
    levels: u32,
}

impl Marks {
    /// Plans as many levels as bring the share of set bits closest to one half.
    fn planned(keys: &Numbers, lines: usize, probes: u32) -> Marks {
        let bits_half_full = (lines * LINE_BITS) as f64 * std::f64::consts::LN_2;
        let key_count = keys.hashes.len() as f64;
        let places = (bits_half_full / key_count).round().max(1.0) as u32;
        let whole_probes = match keys.space.is_exact() {
            true => 0,
            false => (places / 2).clamp(1, WHOLE_PROBES_MAX),
        };
        let probes = probes.min(places.saturating_sub(whole_probes)).clamp(1, PROBES_MAX);
        let counts = distinct_prefixes(&keys.numbers, keys.space.bits());
        let mut set = key_count * f64::from(whole_probes);
        let fits = |&&count: &&u64| {
            let more = (count * u64::from(probes)) as f64;
            set += more;
            set - more / 2.0 <= bits_half_full
        };
        let levels = counts.iter().take_while(fits).count().max(1) as u32;
        Marks { probes, whole_probes, levels }
    }
}

/// The position of a tree: its line, and how its words are permuted and rotated.
#[derive(Clone, Copy, Debug, Default)]
struct TreePlace {
    line: usize,
    swap: usize,
    turn: u32,
}

impl TreePlace {
    #[inline]
    fn new(group_hash: u64, probe: u32, lines: usize) -> Self {
        let hash = mix(group_hash.wrapping_add(u64::from(probe).wrapping_mul(SPREAD)));
        let swap = (hash >> 6) as usize % LINE_WORDS;
        TreePlace { line: scaled(hash, lines), swap, turn: hash as u32 % u64::BITS }
    }

    /// Returns the byte of a node, and the bit in it.
    #[inline]
    fn of(self, node: usize) -> (usize, u32) {
        let word = (node / 64) ^ self.swap;
        let bit = (node as u32 + self.turn) % u64::BITS;
        (self.line * LINE_BYTES + word * size_of::<u64>() + bit as usize / 8, bit % 8)
    }
}

/// Returns the hash of a group's tree, from the bits above the group.
#[inline]
fn group_hash(group: u32, root: u64) -> u64 {
    mix(root.wrapping_add(u64::from(group + 1).wrapping_mul(SPREAD)))
}

/// Returns the index of a node in its group's tree, and the bits above the group.
#[inline]
fn in_group(level: u32, node: u64) -> (usize, u64) {
    let depth = GROUP_LEVELS - level % GROUP_LEVELS;
    let path = node as usize % (1 << depth);
    ((1 << depth) | path, node >> depth)
}

fn mark_levels(bytes: &mut [u8], numbers: &[u64], marks: Marks) {
    let lines = bytes.len() / LINE_BYTES;
    for group in 0..marks.levels.div_ceil(GROUP_LEVELS) {
        let levels = group * GROUP_LEVELS..((group + 1) * GROUP_LEVELS).min(marks.levels);
        let mut places = [TreePlace::default(); PROBES_MAX as usize];
        let places = &mut places[..marks.probes as usize];
        let mut root_before = None;
        for &number in numbers {
            let (_, root) = in_group(levels.start, number >> levels.start);
            if root_before != Some(root) {
                let hash = group_hash(group, root);
                let fresh = |(probe, place): (usize, &mut TreePlace)| {
                    *place = TreePlace::new(hash, probe as u32, lines);
                };
                places.iter_mut().enumerate().for_each(fresh);
                root_before = Some(root);
            }
            for level in levels.clone() {
                let (node, _) = in_group(level, number >> level);
                mark_node(bytes, places, node);
            }
        }
    }
}

#[inline]
fn mark_node(bytes: &mut [u8], places: &[TreePlace], node: usize) {
    for place in places {
        let (at, bit) = place.of(node);
        bytes[at] |= 1 << bit;
    }
}

/// Returns the line of a whole key, and its bit positions there.
#[inline]
fn whole_places(hash: u64, probes: u32, lines: usize) -> (usize, impl Iterator<Item = usize>) {
    let word = mix(hash);
    let place = move |nth| (word >> (nth * PLACE_BITS)) as usize % LINE_BITS;
    (scaled(hash, lines) * LINE_BYTES, (0..probes).map(place))
}

fn mark_whole_keys(bytes: &mut [u8], hashes: &[u64], probes: u32) {
    let lines = bytes.len() / LINE_BYTES;
    for &hash in hashes {
        let (line, places) = whole_places(hash, probes, lines);
        places.for_each(|place| bytes[line + place / 8] |= 1 << (place % 8));
    }
}

/// The trees that a query has fetched: the last one of each group, as the AND of its lines.
struct Fetched<'a> {
    lines: &'a [[u8; LINE_BYTES]],
    probes: u32,
    trees: [Option<(u64, [u64; LINE_WORDS])>; GROUPS_MAX],
}

impl Fetched<'_> {
    #[inline]
    fn may_hold<T: Trace>(&mut self, level: u32, node: u64, trace: &mut T) -> bool {
        let group = level / GROUP_LEVELS;
        let (node, root) = in_group(level, node);
        let tree = match self.trees[group as usize] {
            Some((fetched, tree)) if fetched == root => tree,
            _ => self.fetch(group, root, trace),
        };
        tree[node / 64] >> (node % 64) & 1 == 1
    }

    fn fetch<T: Trace>(&mut self, group: u32, root: u64, trace: &mut T) -> [u64; LINE_WORDS] {
        let mut tree = [u64::MAX; LINE_WORDS];
        let hash = group_hash(group, root);
        for probe in 0..self.probes {
            let place = TreePlace::new(hash, probe, self.lines.len());
            let line = &self.lines[place.line];
            trace.touch_bytes(line);
            let (words, _) = line.as_chunks::<8>();
            for (at, word) in tree.iter_mut().enumerate() {
                let stored = u64::from_le_bytes(words[at ^ place.swap]);
                *word &= stored.rotate_right(place.turn);
            }
        }
        self.trees[group as usize] = Some((root, tree));
        tree
    }
}

/// The parameters of a filter with keys.
#[derive(Clone, Debug)]
struct Parameters {
    space: NumberSpace,
    marks: Marks,
}

fn decode_fields(fields: &[u8], levels: u8, payload: &[u8]) -> Result<Option<Parameters>, Corrupt> {
    if levels == 0 && fields.is_empty() && payload.is_empty() {
        return Ok(None);
    }
    let mut input = Reader::new(fields);
    let space = NumberSpace::read(&mut input)?;
    let (probes, whole_probes) = (u32::from(input.u8()?), u32::from(input.u8()?));
    input.end()?;
    let levels = u32::from(levels);
    if !(1..=space.bits()).contains(&levels) {
        return Err(input.corrupt("a number of levels that numbers have"));
    }
    if !(1..=PROBES_MAX).contains(&probes) || whole_probes > WHOLE_PROBES_MAX {
        return Err(input.corrupt("numbers of bits for a node and for a key"));
    }
    if payload.is_empty() || !payload.len().is_multiple_of(LINE_BYTES) {
        return Err(input.corrupt("whole lines"));
    }
    Ok(Some(Parameters { space, marks: Marks { probes, whole_probes, levels } }))
}

/// A REncoder over checked bytes. Over [`AlignedBytes`](trommel_filters::AlignedBytes) a group of
/// levels takes one cache line per probe.
#[derive(Clone, Debug)]
pub struct Rencoder<B> {
    bytes: B,
    /// None: the filter has no keys.
    parameters: Option<Parameters>,
}

impl<B: AsRef<[u8]>> Rencoder<B> {
    /// Checks bytes that [`RencoderBuilder`] made.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let parts = tail::open(bytes.as_ref(), TAG, VERSION)?;
        let parameters = decode_fields(parts.fields, parts.parameter, parts.payload)?;
        Ok(Rencoder { bytes, parameters })
    }

    /// The number of stored levels.
    pub fn levels(&self) -> u32 {
        self.parameters.as_ref().map_or(0, |parameters| parameters.marks.levels)
    }

    fn fetched(&self, parameters: &Parameters) -> Fetched<'_> {
        let (lines, _) = self.bytes.as_ref().as_chunks::<LINE_BYTES>();
        // Fields and tail may be as long as a line.
        let behind = tail::FIXED_BYTES + parameters.space.written_bytes() + 2;
        let lines = &lines[..(self.bytes.as_ref().len() - behind) / LINE_BYTES];
        Fetched { lines, probes: parameters.marks.probes, trees: [None; GROUPS_MAX] }
    }
}

impl<B: AsRef<[u8]>> TableFilter for Rencoder<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        RENCODER
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        let Some(parameters) = &self.parameters else { return false };
        let Some(number) = parameters.space.of_key(key.key()) else { return false };
        let mut fetched = self.fetched(parameters);
        let probes = parameters.marks.whole_probes;
        if probes > 0 {
            let (at, mut places) = whole_places(key.hash(), probes, fetched.lines.len());
            let line = &fetched.lines[at / LINE_BYTES];
            trace.touch_bytes(line);
            if !places.all(|place| line[place / 8] >> (place % 8) & 1 == 1) {
                return false;
            }
        }
        (0..parameters.marks.levels).all(|level| fetched.may_hold(level, number >> level, trace))
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        if range.upper() == Some(range.lower()) {
            return self.may_contain_traced(&HashedKey::new(range.lower()), trace);
        }
        let Some(parameters) = &self.parameters else { return false };
        let Some((low, high)) = parameters.space.of_range(range) else { return false };
        let mut fetched = self.fetched(parameters);
        let descent = Descent { top: parameters.marks.levels - 1, bottom: 0, visits: VISITS_MAX };
        descent.may_overlap(low, high, &mut |level, node| fetched.may_hold(level, node, trace))
    }
}

#[cfg(test)]
mod tests;
