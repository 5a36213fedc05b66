//! Ribbon filters of prefixes of several lengths, for composite keys such as `user…time…`.
//! ```text
//! levels 12+21+all            user01234567time12345678
//! level 0, ribbon filter of   user01234567
//! level 1                     user01234567time12345
//! level 2                     user01234567time12345678
//!
//! key              are each of its prefixes and the whole key present?
//! range            level by level: is any of the range's prefixes present?
//!
//! bytes   | filter of level 0 | of level 1 | ... | fields | tail |
//! ```
//! So an empty range is refuted even within a present user, with as many bits as its prefixes take,
//! however far apart users are. Ordered fingerprints pay for that distance. The range must be
//! short: after 64 probes of levels the answer is "maybe". `alphabet.rs` skips byte strings that
//! cannot be keys.
//!
//! Rosetta (Luo et al., SIGMOD 2020) probes levels in the same way. Its levels are the bits of
//! numbers; here they are the named parts of keys, and there are no others.
//!
//! Theory: a level with r bits per prefix lets 2^-r of the absent ones through.
//!
//! Invariant: each stored level has the prefix of every key that has one.

use std::ops::Range;

use trommel_filters::hash::{HashUse, hash_key};
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, KeyRange, OutOfOrder, Reader, Ribbon, RibbonBuilder, Signature,
    TableFilter, TableFilterBuilder, TableKind, Trace, TuningOption, Writer, read_tuning,
};

use crate::range::base::number::common_bytes;
use crate::range::base::tail;
use alphabet::{AlphabetBuilder, Alphabets, PLACES_MAX};
pub(crate) use candidates::candidates;
use levels::LEVELS_MAX;
pub use levels::{PrefixLevel, PrefixLevels};
use walk::Walk;

mod alphabet;
mod candidates;
mod levels;
mod walk;

/// `prefix-ribbon`: ribbon filters of prefixes of several lengths.
pub const PREFIX_RIBBON: &dyn FilterKind = &TableKind::new(
    "prefix-ribbon",
    |options| Box::new(PrefixRibbonBuilder::new(options.bits_per_key, options.tuning.get())),
    |bytes| Ok(Box::new(PrefixRibbon::read(bytes)?)),
)
.with_tag(TAG)
.with_ranges()
.with_tuning_options(&[TuningOption {
    name: "prefix_levels",
    limits: "numbers of first bytes, separators, whole keys, with + between: 12+21+all, sep:/+all",
    help: "prefix-ribbon: parts of keys. Short ranges within one of them are answered",
    read: |tuning, text| read_tuning(tuning, text, |own: &mut PrefixLevels, levels| *own = levels),
    write: |tuning| tuning.get::<PrefixLevels>().to_string(),
}]);

const VERSION: u8 = 1;
const TAG: u16 = 19;

/// A level and the hashes of its prefixes.
#[derive(Clone, Debug)]
struct Hashes {
    level: PrefixLevel,
    /// Without consecutive duplicates, as keys come in order.
    of_prefixes: Vec<u64>,
}

/// Builds ribbon filters of prefixes.
#[derive(Clone, Debug)]
pub struct PrefixRibbonBuilder {
    levels: Vec<Hashes>,
    alphabets: AlphabetBuilder,
    /// The length of the longest prefix in bytes.
    places: usize,
    bits_per_key: f64,
    keys: usize,
    /// The key that was added last, if any.
    before: Vec<u8>,
}

impl PrefixRibbonBuilder {
    /// An empty builder.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn new(bits_per_key: f64, levels: PrefixLevels) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        let hashes = |&level: &PrefixLevel| Hashes { level, of_prefixes: Vec::new() };
        PrefixRibbonBuilder {
            levels: levels.as_slice().iter().map(hashes).collect(),
            alphabets: AlphabetBuilder::default(),
            places: 0,
            bits_per_key,
            keys: 0,
            before: Vec::new(),
        }
    }
}

impl TableFilterBuilder for PrefixRibbonBuilder {
    /// Adds a key. Never fails: keys out of order only take more memory.
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        if self.keys > 0 && key == self.before {
            return Ok(());
        }
        self.keys += 1;
        // Keys come in order, so most of their bytes were seen in the previous key.
        self.alphabets.add(key, common_bytes(key, &self.before));
        self.before.clear();
        self.before.extend_from_slice(key);
        for Hashes { level, of_prefixes } in &mut self.levels {
            let Some(prefix) = level.of(key) else { continue };
            if *level != PrefixLevel::WholeKey {
                self.places = self.places.max(prefix.len());
            }
            let hash = hash_key(prefix, HashUse::Table);
            if of_prefixes.last() != Some(&hash) {
                of_prefixes.push(hash);
            }
        }
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let signature = Signature { tag: TAG, version: VERSION, parameter: 0 };
        if self.keys == 0 {
            return tail::seal(signature, vec![], &[]);
        }
        let mut alphabets = Writer::new();
        self.alphabets.finish(self.places).write(&mut alphabets);
        let alphabets = alphabets.finish();
        let counts: Vec<u64> = self.levels.iter().map(|it| it.of_prefixes.len() as u64).collect();
        let asked = self.keys as f64 * self.bits_per_key.clamp(0.0, 1000.0);
        let fields_len = 1 + LEVEL_BYTES * counts.len() + alphabets.len();
        let frame = ((tail::FIXED_BYTES + fields_len) * 8) as f64;
        // A small filter exceeds its budget rather than become useless.
        let shares = levels::divide(&counts, (asked - frame).max(asked * 0.875));
        let (mut payload, mut fields) = (Vec::new(), Writer::new());
        fields.u8(counts.len() as u8);
        for (Hashes { level, of_prefixes }, bits) in self.levels.into_iter().zip(shares) {
            let image = if bits > 0.0 { ribbon(&of_prefixes, bits) } else { vec![] };
            let (columns, trailer) = image.split_at(image.len().saturating_sub(TRAILER_BYTES));
            level.encode().into_iter().for_each(|byte| fields.u8(byte));
            fields.u32(u32::try_from(columns.len()).expect("a level has less than 4 GiB"));
            fields.u8(u8::from(!trailer.is_empty()));
            fields.bytes(trailer);
            payload.extend_from_slice(columns);
        }
        fields.bytes(&alphabets);
        tail::seal(signature, payload, &fields.finish())
    }
}

fn ribbon(hashes: &[u64], bits: f64) -> Vec<u8> {
    let mut builder = RibbonBuilder::new(bits);
    hashes.iter().for_each(|&hash| builder.add_hash(hash));
    builder.finish()
}

/// Bytes per level among the fields: its rule, its size, whether it is stored. (A ribbon's trailer
/// is part of its bits.)
const LEVEL_BYTES: usize = 2 + 4 + 1;
const TRAILER_BYTES: usize = Ribbon::TRAILER_BYTES;

/// A level of a filter that was read.
#[derive(Clone, Debug)]
struct KeptLevel {
    level: PrefixLevel,
    /// None: the level is not stored.
    filter: Option<(Range<usize>, Ribbon<()>)>,
}

/// The parameters of a filter with keys.
#[derive(Clone, Debug)]
struct Parameters {
    levels: Vec<KeptLevel>,
    alphabets: Alphabets,
}

fn decode_fields(fields: &[u8], payload: &[u8]) -> Result<Option<Parameters>, Corrupt> {
    if fields.is_empty() && payload.is_empty() {
        return Ok(None);
    }
    let mut input = Reader::new(fields);
    let (count, mut levels, mut end) = (input.u8()?, Vec::new(), 0_usize);
    if usize::from(count) > LEVELS_MAX {
        return Err(input.corrupt("as many levels as there may be"));
    }
    for _ in 0..count {
        let level = PrefixLevel::decode([input.u8()?, input.u8()?]);
        let level = level.ok_or_else(|| input.corrupt("a level of prefixes that is known"))?;
        let range = end..end.saturating_add(input.u32()? as usize);
        let columns = payload.get(range.clone());
        let columns = columns.ok_or_else(|| input.corrupt("levels as long as the payload"))?;
        let filter = match input.u8()? {
            0 => None,
            _ => Some(Ribbon::read_apart(columns, input.bytes(TRAILER_BYTES)?)?),
        };
        end = range.end;
        levels.push(KeptLevel { level, filter: filter.map(|filter| (range, filter.over(()))) });
    }
    let alphabets = Alphabets::read(&mut input)?;
    input.end()?;
    if end != payload.len() {
        return Err(input.corrupt("levels as long as the payload"));
    }
    Ok(Some(Parameters { levels, alphabets }))
}

/// Ribbon filters of prefixes over checked bytes.
#[derive(Clone, Debug)]
pub struct PrefixRibbon<B> {
    bytes: B,
    /// None: the filter has no keys.
    parameters: Option<Parameters>,
}

impl<B: AsRef<[u8]>> PrefixRibbon<B> {
    /// Checks bytes that [`PrefixRibbonBuilder`] made.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let parts = tail::open(bytes.as_ref(), TAG, VERSION)?;
        if parts.parameter != 0 {
            return Err(Corrupt { at: parts.payload.len(), what: "no parameter" });
        }
        let parameters = decode_fields(parts.fields, parts.payload)?;
        Ok(PrefixRibbon { bytes, parameters })
    }

    /// Returns the levels, each with its bits per prefix. 0: the level was not worth storing.
    pub fn levels(&self) -> Vec<(PrefixLevel, f64)> {
        let levels = self.parameters.iter().flat_map(|parameters| &parameters.levels);
        let columns = |it: &KeptLevel| it.filter.as_ref().map_or(0.0, |(_, it)| it.columns());
        levels.map(|kept| (kept.level, columns(kept))).collect()
    }

    /// False: no key has this prefix of the level.
    #[inline]
    fn may_have<T: Trace>(&self, kept: &KeptLevel, hash: impl Fn() -> u64, trace: &mut T) -> bool {
        kept.filter.as_ref().is_none_or(|(range, filter)| {
            let bytes = &self.bytes.as_ref()[range.clone()];
            filter.over(bytes).may_contain_hash_traced(hash(), trace)
        })
    }
}

impl<B: AsRef<[u8]>> TableFilter for PrefixRibbon<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        PREFIX_RIBBON
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        let Some(parameters) = &self.parameters else { return false };
        parameters.levels.iter().all(|kept| match kept.level {
            PrefixLevel::WholeKey => self.may_have(kept, || key.hash(), trace),
            prefix => prefix.of(key.key()).is_none_or(|prefix| {
                self.may_have(kept, || hash_key(prefix, HashUse::Table), trace)
            }),
        })
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        let Some(parameters) = &self.parameters else { return false };
        let (lower, upper) = (range.lower(), range.upper());
        if upper == Some(lower) {
            return self.may_contain_traced(&HashedKey::new(lower), trace);
        }
        // The common prefix of all keys in the range.
        let shared = &lower[..upper.map_or(0, |upper| common_bytes(lower, upper))];
        let mut may_have = |kept: &KeptLevel, prefix: &[u8]| {
            self.may_have(kept, || hash_key(prefix, HashUse::Table), trace)
        };
        let has_prefixes = parameters.levels.iter().all(|kept| match kept.level {
            PrefixLevel::WholeKey => true,
            prefix => prefix.of(shared).is_none_or(|prefix| may_have(kept, prefix)),
        });
        has_prefixes
            && parameters.alphabets.may_begin(shared)
            && (shared.len() >= PLACES_MAX
                || Walk::new(parameters, lower, upper, &mut may_have).may_go_on(shared.len()))
    }
}

#[cfg(test)]
mod tests;
