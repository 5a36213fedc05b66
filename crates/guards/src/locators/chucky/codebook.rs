//! The codes of a bucket's combinations, chosen so that code and fingerprints fill the bucket.
//! ```text
//! frequent  | code | fingerprints     |   Huffman codes; longer where fingerprints leave more room
//! named     | 1111 1110 | number      |   a common prefix; fingerprints in the overflow table
//! others    | 1111 1110 | last number |   slots and fingerprints in the overflow table
//!
//! decode    first bits ──> table ──> symbol: slots, positions of fingerprints
//!           (long codes: by length, canonical)
//!           number     ──> decoding table: slots
//! recode    rank of the combination ──> recoding table ──> symbol or number
//! ```
//! Frequent combinations are the most likely ones that together make up nearly all buckets. Their
//! Huffman tree follows from the room that each leaves for a code. Codes that are never written
//! take the remaining room, so lengths are exactly these. The tables count as memory of the filter.
//! So small filters have fewer frequent combinations: those that are worth their entries in the
//! tables. The number of named combinations is limited, too.
//!
//! Invariant: the bits of an empty bucket are zero. A bucket stores its code and fingerprints xor
//! those of an empty one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use trommel_filters::bits::huffman::{canonical_codes, code_lengths};
use trommel_filters::{SlotSet, Trace, TreePlan};

use super::ChuckyTables;
use super::bucket::{
    BUCKET_SLOTS, BucketCodec, Decoded, Encoded, FINGERPRINT_BITS_MIN, Lanes, budget_bits,
};
use super::combinations::{Combination, likeliest};
use super::lengths::{CODE_BITS_MAX, CODE_ROOM, Frequent, code_bits, fittest};
use super::model::{level_shares, slot_shares};
use super::pages::BUCKET_BITS_MAX;
use super::recoding::Recoding;
use super::symbol::{BucketBits, Symbol};

/// NOV: the share of buckets that should have a frequent combination, in a large filter.
const FREQUENT_SHARE: f64 = 0.9999;
/// The maximum number of frequent combinations. If there are more, more buckets overflow.
const FREQUENT_MAX: usize = 1 << 14;
/// The maximum number of named combinations.
const NAMED_MAX: usize = 1 << 16;
/// Bytes in all tables per frequent combination, and per other named combination.
const FREQUENT_BYTES: f64 = 44.0;
const NAMED_BYTES: f64 = 17.0;
/// Bytes per bucket in the overflow table, and their weight when combinations are chosen. A look-up
/// in that table takes longer than reading both buckets of a key.
const OVERFLOW_BYTES: f64 = 48.0;
const OVERFLOW_WEIGHT: f64 = 32.0;
/// The maximum shares of a filter's memory: for named combinations; and for tables, as far as they
/// count. A filter of few keys exceeds its budget.
const NAMED_PART: f64 = 1.0 / 128.0;
const TABLES_PART: f64 = 1.0 / 8.0;
/// The assumed share that the waiting runs have of their level.
const WAITING_SHARE: f64 = 0.02;
/// Codes up to this length are decoded by one look-up.
const SHORT_CODE_BITS: u32 = 8;
/// The minimum size of a bucket: four fingerprints of minimum length, and room for fifteen codes.
const BUCKET_BITS_MIN: u32 = BUCKET_SLOTS as u32 * FINGERPRINT_BITS_MIN + 4;

/// In the table of first bits: the code is longer.
const LONG: u16 = u16::MAX;

/// The codes of one length above that of the table of first bits.
#[derive(Clone, Copy, Debug)]
struct LongCodes {
    /// The first 32 bits of a code of this length are below this, and do not begin a shorter code.
    end: u64,
    shift: u32,
    /// The symbol that code zero of this length would have; may wrap.
    symbol_of_zero: u32,
}

/// What determines the codes: filters of similar size share them.
#[derive(Clone, Debug, PartialEq)]
struct BookKey {
    runs_of_levels: Vec<u8>,
    waiting_runs: u8,
    size_ratio: u32,
    /// Bits per bucket, with its part of the tables, in sixteenths.
    bits_of_bucket: u32,
    /// The number of buckets, rounded down to a power of the fourth root of two.
    buckets_log: u32,
}

impl BookKey {
    fn of_plan(plan: &TreePlan, buckets: usize) -> BookKey {
        let bits = budget_bits(plan) / buckets as f64;
        BookKey {
            runs_of_levels: plan.runs_of_levels.clone(),
            waiting_runs: plan.waiting_runs,
            size_ratio: plan.size_ratio.max(2),
            bits_of_bucket: (bits * 16.0).min(f64::from(16 * BUCKET_BITS_MAX)) as u32,
            buckets_log: ((buckets as f64).log2() * 4.0) as u32,
        }
    }

    fn buckets(&self) -> f64 {
        (f64::from(self.buckets_log) / 4.0).exp2()
    }

    /// The memory of the filter, in bytes.
    fn budget_bytes(&self) -> f64 {
        self.buckets() * f64::from(self.bits_of_bucket) / 128.0
    }

    /// The size of all tables, if frequent combinations have this share of buckets.
    fn tables_bytes(&self, frequent: usize, named: usize, share: f64) -> f64 {
        frequent as f64 * FREQUENT_BYTES
            + named as f64 * NAMED_BYTES
            + (1.0 - share).max(0.0) * self.buckets() * OVERFLOW_BYTES
            + Recoding::likely_bytes(frequent) as f64
            + size_of::<CodeBook>() as f64
    }

    /// Bits per bucket that are left besides tables of this size.
    fn bucket_bits(&self, tables: f64) -> u32 {
        let tables = tables.min(self.budget_bytes() * TABLES_PART);
        let bits = f64::from(self.bits_of_bucket) / 16.0 - tables * 8.0 / self.buckets();
        (bits as u32).clamp(BUCKET_BITS_MIN, BUCKET_BITS_MAX)
    }

    /// The shares of slots: a level's share, divided among its runs. Waiting runs get little of it.
    fn shares(&self) -> Vec<f64> {
        let runs: Vec<u32> = self.runs_of_levels.iter().map(|&runs| u32::from(runs)).collect();
        let mut shares = slot_shares(f64::from(self.size_ratio), &runs);
        let newest = usize::from(self.runs_of_levels[0]);
        let usual = newest.saturating_sub(usize::from(self.waiting_runs));
        if (1..newest).contains(&usual) {
            let level = shares[0] * newest as f64;
            let of = |share: f64, runs: usize| level * share / runs as f64;
            shares[..usual].fill(of(1.0 - WAITING_SHARE, usual));
            shares[usual..newest].fill(of(WAITING_SHARE, newest - usual));
        }
        shares
    }
}

/// The codes of one plan.
#[derive(Debug)]
pub(super) struct CodeBook {
    key: BookKey,
    bucket_bits: u32,
    fingerprint_bits: Vec<u8>,
    last_slot: u8,
    short: [u16; 1 << SHORT_CODE_BITS],
    long: Vec<LongCodes>,
    symbols: Vec<Symbol>,
    /// The codes of symbols, padded with zeros to 32 bits.
    codes: Vec<u32>,
    /// Code and fingerprints of an empty bucket, and the positions of the fingerprints.
    blank: u128,
    oldest_shifts: [u8; BUCKET_SLOTS],
    /// The symbol that begins the codes of all combinations that are not frequent.
    escape: usize,
    /// Bits of the number after that code.
    number_bits: u32,
    /// The decoding table: combinations by number.
    named: Vec<Combination>,
    recoding: Recoding,
    /// The number of frequent combinations, and the probability that a bucket has one.
    frequent: (usize, f64),
}

/// The books in use: trees with the same plan share theirs.
static BOOKS: Mutex<Vec<Weak<CodeBook>>> = Mutex::new(Vec::new());

impl CodeBook {
    /// Returns the book of a plan whose filter has `buckets` buckets. Makes it unless it is shared
    /// already.
    pub(super) fn of_plan(plan: &TreePlan, buckets: usize) -> Arc<CodeBook> {
        let key = BookKey::of_plan(plan, buckets);
        let mut books = BOOKS.lock().unwrap_or_else(PoisonError::into_inner);
        books.retain(|book| book.strong_count() > 0);
        let known = books.iter().filter_map(Weak::upgrade).find(|book| book.key == key);
        known.unwrap_or_else(|| {
            let book = Arc::new(CodeBook::make(key));
            books.push(Arc::downgrade(&book));
            book
        })
    }

    fn make(key: BookKey) -> CodeBook {
        let shares = key.shares();
        let level_of: Vec<u8> = (0u8..=u8::MAX)
            .zip(&key.runs_of_levels)
            .flat_map(|(level, &runs)| std::iter::repeat_n(level, usize::from(runs)))
            .collect();
        let last_slot = u8::try_from(shares.len() - 1).expect("a plan has at most 256 slots");
        let names = (key.budget_bytes() * NAMED_PART / NAMED_BYTES) as usize;
        let mut named = likeliest(&shares, NAMED_MAX);
        let frequent = frequent_of(&named, last_slot, key.buckets());
        named.truncate(names.max(frequent.len()));
        let known: HashSet<Combination> = frequent.iter().copied().collect();
        let of_known = named.iter().filter(|(combination, _)| known.contains(combination));
        let share = of_known.map(|pair| pair.1).sum();
        let others = named.len().saturating_sub(frequent.len());
        let bucket_bits = key.bucket_bits(key.tables_bytes(frequent.len(), others, share));
        let fitted = Fitted::new(&key, bucket_bits, frequent, &level_of, named.len());
        let known: HashSet<Combination> = fitted.frequent.iter().copied().collect();
        let (frequent, others): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(combination, _)| known.contains(combination));
        let share = frequent.iter().map(|pair| pair.1).sum();
        let others = others.into_iter().map(|(combination, _)| combination).collect();
        CodeBook::assemble((key, bucket_bits), fitted, others, share, last_slot)
    }

    /// Builds the tables. `named`: the named combinations that are not frequent.
    fn assemble(
        (key, bucket_bits): (BookKey, u32),
        fitted: Fitted,
        named: Vec<Combination>,
        share: f64,
        last_slot: u8,
    ) -> CodeBook {
        let Fitted { frequent, fingerprint_bits, escape_bits } = fitted;
        let mut lengths: Vec<u32> = frequent
            .iter()
            .map(|slots| code_bits_of(bucket_bits, *slots, &fingerprint_bits))
            .collect();
        lengths.push(escape_bits);
        let escape_source = frequent.len();
        lengths.extend(idle_lengths(&lengths));
        let order = canonical_order(&lengths);
        let sorted: Vec<u32> = order.iter().map(|&nth| lengths[nth]).collect();
        let codes = canonical_codes(&sorted);
        let aligned = |(code, bits): (&u64, &u32)| (*code as u32) << (u32::BITS - bits);
        let symbol = |&nth: &usize| match frequent.get(nth) {
            Some(slots) => Symbol::new(*slots, &fingerprint_bits),
            None => Symbol::none(last_slot),
        };
        let symbols: Vec<Symbol> = order.iter().map(symbol).collect();
        let place = |source| order.iter().position(|&nth| nth == source).expect("all are ordered");
        let (blank, escape) = (place(0), place(escape_source));
        let frequent_symbols =
            (0u32..).zip(&order).filter_map(|(nth, &source)| Some((*frequent.get(source)?, nth)));
        let numbers = (symbols.len() as u32..).zip(&named).map(|(nth, slots)| (*slots, nth));
        let numbered = frequent_symbols.chain(numbers).collect();
        let recoding = Recoding::new(fingerprint_bits.len(), numbered);
        CodeBook {
            last_slot,
            short: short_table(&sorted, &codes),
            long: long_codes(&sorted, &codes),
            blank: filled(aligned((&codes[blank], &sorted[blank])), bucket_bits),
            oldest_shifts: symbols[blank].shifts(),
            codes: codes.iter().zip(&sorted).map(aligned).collect(),
            escape,
            number_bits: bucket_bits - escape_bits,
            frequent: (frequent.len(), share),
            fingerprint_bits,
            symbols,
            named,
            recoding,
            key,
            bucket_bits,
        }
    }

    /// Returns the symbol whose code begins the bucket.
    #[inline(always)]
    fn symbol(&self, value: impl BucketBits) -> usize {
        let head = value.head(self.bucket_bits);
        let short = self.short[(head >> (32 - SHORT_CODE_BITS)) as usize];
        if short != LONG { usize::from(short) } else { self.long_symbol(head) }
    }

    #[cold]
    #[inline(never)]
    fn long_symbol(&self, head: u32) -> usize {
        let length = self.long.iter().find(|length| u64::from(head) < length.end);
        let length = length.expect("the codes of a tree leave no bits without a meaning");
        length.symbol_of_zero.wrapping_add(head >> length.shift) as usize
    }

    /// Adds the slots of the fingerprints that are a prefix of `fingerprint`. False: the bucket has
    /// overflowed.
    ///
    /// The most frequent buckets, with all entries in the last slot, once had a path of their own:
    /// one comparison for all four lanes. They are two of five buckets, which cannot be predicted,
    /// and mispredictions cost more than the path saved. With 100,000 keys
    /// (`examples/chucky_probe`) a probe took 58 ns with that path, and 49 ns without.
    #[inline(always)]
    fn symbol_matches<T: Trace>(
        &self,
        nth: usize,
        value: impl BucketBits,
        fingerprint: u32,
        slots: &mut SlotSet,
        trace: &mut T,
    ) -> bool {
        let symbol = &self.symbols[nth];
        trace.touch(std::ptr::from_ref(symbol) as usize, size_of::<Symbol>());
        if nth == self.escape {
            return false;
        }
        symbol.matches(value, fingerprint, slots);
        true
    }

    /// Returns the code of a symbol, padded with zeros to the size of a bucket.
    #[inline(always)]
    fn code(&self, symbol: usize) -> u128 {
        filled(self.codes[symbol], self.bucket_bits)
    }

    /// Decodes a bucket with fingerprints. None: it has overflowed.
    #[inline(always)]
    fn read(&self, value: impl BucketBits) -> Option<Lanes> {
        let symbol = self.symbol(value);
        (symbol != self.escape).then(|| self.symbols[symbol].read(value))
    }

    /// Returns the slots of an overflowed bucket. None: its combination has no name.
    fn named(&self, value: u128) -> Option<Combination> {
        let number = value & !(u128::MAX << self.number_bits);
        usize::try_from(number).ok().and_then(|number| self.named.get(number)).copied()
    }

    /// The number of frequent combinations, and the probability that a bucket has one.
    pub(super) fn frequent(&self) -> (usize, f64) {
        self.frequent
    }

    /// The memory of its parts.
    pub(super) fn tables(&self) -> ChuckyTables {
        let codes = size_of_val(&*self.symbols) + size_of_val(&*self.codes);
        ChuckyTables {
            frequent_combinations: self.frequent.0,
            huffman_bytes: size_of::<CodeBook>() + size_of_val(&*self.long) + codes,
            decoding_bytes: size_of_val(&*self.named),
            recoding_bytes: self.recoding.size_bytes(),
        }
    }

    fn size_bytes(&self) -> usize {
        let ChuckyTables { huffman_bytes, decoding_bytes, recoding_bytes, .. } = self.tables();
        huffman_bytes + decoding_bytes + recoding_bytes + self.fingerprint_bits.len()
    }
}

/// Moves a code to the top of a bucket's bits, with zeros below.
#[inline(always)]
fn filled(code: u32, bucket_bits: u32) -> u128 {
    match bucket_bits.checked_sub(u32::BITS) {
        Some(more) => u128::from(code) << more,
        None => u128::from(code >> (u32::BITS - bucket_bits)),
    }
}

/// Returns the frequent ones of combinations, which come most likely first, for a filter of
/// `buckets` buckets. The combination of an empty bucket is always included.
fn frequent_of(named: &[(Combination, f64)], last_slot: u8, buckets: f64) -> Vec<Combination> {
    let (mut sum, mut frequent) = (0.0, vec![[last_slot; BUCKET_SLOTS]]);
    for (combination, share) in named {
        let saved = share * buckets * OVERFLOW_BYTES * OVERFLOW_WEIGHT;
        if sum >= FREQUENT_SHARE || frequent.len() == FREQUENT_MAX || saved < FREQUENT_BYTES {
            break;
        }
        sum += share;
        if *combination != frequent[0] {
            frequent.push(*combination);
        }
    }
    frequent
}

fn code_bits_of(bucket_bits: u32, slots: Combination, fingerprint_bits: &[u8]) -> u32 {
    let lengths = slots.map(|slot| u32::from(fingerprint_bits[usize::from(slot)]));
    code_bits(bucket_bits, lengths).expect("the lengths were fitted")
}

/// Frequent combinations, and fingerprint lengths that fit next to their codes.
struct Fitted {
    frequent: Vec<Combination>,
    /// Fingerprint bits of each slot.
    fingerprint_bits: Vec<u8>,
    /// The length of the prefix of all other codes.
    escape_bits: u32,
}

impl Fitted {
    /// Finds the lengths. If buckets are too small for so many frequent combinations, the least
    /// likely eighth is dropped until they fit. The empty combination always fits.
    fn new(
        key: &BookKey,
        bucket_bits: u32,
        mut frequent: Vec<Combination>,
        level_of: &[u8],
        named: usize,
    ) -> Fitted {
        // One more number, for combinations without a name.
        let number_bits = (named + 1).next_power_of_two().ilog2();
        let escape_bits = bucket_bits.saturating_sub(number_bits).clamp(1, CODE_BITS_MAX);
        let most = (bucket_bits - 1) / BUCKET_SLOTS as u32;
        let shares = level_shares(f64::from(key.size_ratio), key.runs_of_levels.len());
        loop {
            let by_levels = Frequent::new(bucket_bits, frequent.iter(), level_of);
            let left = CODE_ROOM - (CODE_ROOM >> escape_bits);
            let lengths = fittest(&by_levels, &shares, FINGERPRINT_BITS_MIN, most, left);
            if let Some(lengths) = lengths {
                let of_slot = |&level: &u8| lengths[usize::from(level)] as u8;
                let fingerprint_bits = level_of.iter().map(of_slot).collect();
                return Fitted { frequent, fingerprint_bits, escape_bits };
            }
            assert!(frequent.len() > 1, "{bucket_bits} bits hold no four fingerprints");
            frequent.truncate(frequent.len() * 7 / 8);
        }
    }
}

/// Returns the lengths of codes that fill the remaining room: the binary digits of that room. With
/// them the weights of the Huffman tree are powers of two with sum one, and its codes have exactly
/// their lengths.
fn idle_lengths(lengths: &[u32]) -> Vec<u32> {
    let taken: u64 = lengths.iter().map(|bits| CODE_ROOM >> bits).sum();
    let left = CODE_ROOM.checked_sub(taken).expect("the lengths were fitted");
    let mut lengths_and_idle = lengths.to_vec();
    let digits = (0..=CODE_BITS_MAX).filter(|bits| left & CODE_ROOM >> bits != 0);
    lengths_and_idle.extend(digits);
    let weights: Vec<f64> =
        lengths_and_idle.iter().map(|&bits| (-f64::from(bits)).exp2()).collect();
    let coded = code_lengths(&weights);
    assert_eq!(coded, lengths_and_idle, "codes do not fill their buckets");
    coded[lengths.len()..].to_vec()
}

/// Returns indexes in the order of lengths. Equal lengths keep their order, most likely first.
fn canonical_order(lengths: &[u32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&nth| lengths[nth]);
    order
}

/// Returns a table from first bits to the symbol, for codes that are no longer than its index.
fn short_table(lengths: &[u32], codes: &[u64]) -> [u16; 1 << SHORT_CODE_BITS] {
    let mut table = [LONG; 1 << SHORT_CODE_BITS];
    for (symbol, (&bits, &code)) in (0u16..).zip(lengths.iter().zip(codes)) {
        let Some(free) = SHORT_CODE_BITS.checked_sub(bits) else { break };
        let first = (code << free) as usize;
        table[first..first + (1 << free)].fill(symbol);
    }
    table
}

/// Returns the longer codes, by length.
fn long_codes(lengths: &[u32], codes: &[u64]) -> Vec<LongCodes> {
    let mut long = Vec::new();
    for same in (0..lengths.len()).collect::<Vec<_>>().chunk_by(|&a, &b| lengths[a] == lengths[b]) {
        let (first, last, bits) = (same[0], same[same.len() - 1], lengths[same[0]]);
        if bits > SHORT_CODE_BITS {
            long.push(LongCodes {
                end: (codes[last] + 1) << (32 - bits),
                shift: 32 - bits,
                symbol_of_zero: (first as u32).wrapping_sub(codes[first] as u32),
            });
        }
    }
    long
}

/// Level ids as combinations: Chucky's encoding.
#[derive(Clone, Debug)]
pub struct Combinations(Arc<CodeBook>);

impl Combinations {
    /// The codes.
    pub(super) fn book(&self) -> &Arc<CodeBook> {
        &self.0
    }
}

impl BucketCodec for Combinations {
    fn new(plan: &TreePlan, buckets: usize) -> Self {
        Combinations(CodeBook::of_plan(plan, buckets))
    }

    #[inline(always)]
    fn bucket_bits(&self) -> u32 {
        self.0.bucket_bits
    }

    #[inline(always)]
    fn fingerprint_bits(&self, slot: u8) -> u32 {
        u32::from(self.0.fingerprint_bits[usize::from(slot)])
    }

    #[inline(always)]
    fn last_slot(&self) -> u8 {
        self.0.last_slot
    }

    #[inline(always)]
    fn decode(&self, value: u128) -> Decoded {
        let value = value ^ self.0.blank;
        // Shifts of a single word take one instruction each.
        let whole = match self.0.bucket_bits {
            ..=u64::BITS => self.0.read(value as u64),
            _ => self.0.read(value),
        };
        whole.map_or_else(|| Decoded::Overflowed(self.0.named(value)), Decoded::Whole)
    }

    #[inline(always)]
    fn encode(&self, lanes: &Lanes) -> Encoded {
        let book = &*self.0;
        let number = book.recoding.get(lanes.slots).map(|number| number as usize);
        if let Some(symbol) = number.filter(|&number| number < book.symbols.len()) {
            let fingerprints = match book.bucket_bits {
                ..=u64::BITS => u128::from(book.symbols[symbol].write_word(&lanes.fingerprints)),
                _ => book.symbols[symbol].write(&lanes.fingerprints),
            };
            let value = (book.code(symbol) | fingerprints) ^ book.blank;
            return Encoded { value, overflowed: false };
        }
        let number = number.map_or(book.named.len(), |number| number - book.symbols.len());
        let value = (book.code(book.escape) | number as u128) ^ book.blank;
        Encoded { value, overflowed: true }
    }

    #[inline(always)]
    fn oldest_shifts(&self) -> [u8; BUCKET_SLOTS] {
        self.0.oldest_shifts
    }

    #[inline(always)]
    fn matches<T: Trace>(
        &self,
        value: impl BucketBits,
        fingerprint: u32,
        slots: &mut SlotSet,
        trace: &mut T,
    ) -> bool {
        let value = value ^ BucketBits::low_of(self.0.blank);
        self.0.symbol_matches(self.0.symbol(value), value, fingerprint, slots, trace)
    }

    fn size_bytes(&self) -> usize {
        self.0.size_bytes()
    }
}
