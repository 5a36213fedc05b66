//! A chunk of the overlay: the entries of some neighbouring lists, young ones apart from settled ones.
//! ```text
//! flush 63 --> young    60 61 62 63                    long fractions; few, so that a flush rewrites little
//!                |  when their runs were merged: fractions cut, codes widened to the run's span
//!                v
//!              settled  [0, 10) [10, 20) ... [50, 60)  short fractions; rewritten once for a run's worth of flushes
//! ```
//! Where entries crowd, fractions are longer: a list that is not split under skew tells its keys apart all the same.
//! Invariant: an entry's fraction is a prefix of its key's, and its code contains its flush number.

use super::base::LINE_BYTES;
use super::entry_budget::EntryBudget;
use super::place::{BUCKETS, FRACTION_BITS, LISTS_MAX, PLACE_BITS};
use super::runs::Runs;
use super::settled::{CODES_MAX, Code, Entry, Recoding, Settled};
use super::settled_writer::SettledWriter;
use super::young::{YOUNG_FLUSHES, YOUNG_MAX, Young, YoungWriter};
use crate::bits::simd::{Work, fastest, prefetch_lines};
use crate::fingerprint::cell::CELLS_MAX;
use crate::shape::{FlushNumber, Span};
use std::sync::Arc;

/// A young entry costs half as much again as a settled one: there are few for the keys of the base ...
const YOUNG_PER_KEYS: usize = 64;
/// ... or for the settled ones, now or in the end, which need not be rewritten as long as there is room.
const YOUNG_PER_SETTLED: usize = 8;
const YOUNG_MIN: usize = 32;

/// The entries of some neighbouring lists. None: no such entries.
#[derive(Clone, Default)]
pub(super) struct Chunk {
    pub(super) settled: Option<Arc<[u8]>>,
    pub(super) young: Option<Arc<[u32]>>,
}

/// How many entries a chunk has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkEntries {
    pub(super) kept: u64,
    /// Keys that are one entry with another key: their places and codes are equal.
    pub(super) merged: u64,
}

impl Chunk {
    #[inline(always)]
    pub(super) fn settled(&self) -> Option<Settled<'_>> {
        self.settled.as_deref().map(Settled::new)
    }

    #[inline(always)]
    pub(super) fn young(&self) -> Option<Young<'_>> {
        self.young.as_deref().map(Young::new)
    }

    /// Asks for what a flush reads of it: the young entries, and the codes of settled ones.
    #[inline(always)]
    pub(super) fn load(&self) {
        const YOUNG_LINES: usize = 8;
        if let Some(settled) = &self.settled {
            prefetch_lines(settled, settled.len().saturating_sub(2 * LINE_BYTES), 2);
            prefetch_lines(settled, 0, 1);
        }
        if let Some(young) = &self.young {
            prefetch_lines(young, 0, YOUNG_LINES);
        }
    }

    pub(super) fn entries(&self) -> ChunkEntries {
        let mut entries = ChunkEntries::default();
        if let Some(settled) = self.settled() {
            entries = ChunkEntries { kept: settled.len() as u64, merged: settled.merged() };
        }
        if let Some(young) = self.young() {
            entries.kept += young.len() as u64;
            entries.merged += young.merged();
        }
        entries
    }
}

/// What is known of a chunk's lists.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    pub(super) count: usize,
    /// The keys of the base beside them.
    pub(super) keys: usize,
    /// The entries that are to come before the base is built anew.
    pub(super) expected: usize,
    /// The bits that settled entries' fractions keep where entries are few.
    pub(super) settled_bits: usize,
}

/// What a flush adds to a chunk: spots (list, place), sorted, and their code.
pub(super) struct NewEntries<'a> {
    pub(super) spots: &'a [u32],
    pub(super) flush: FlushNumber,
}

/// Rewrites chunks for a version with some runs; keeps its buffers.
pub(super) struct ChunkWriter {
    runs: Runs,
    budget: EntryBudget,
    /// The origin of young entries that was seen last, and a bit for each number from it on whose flush was merged.
    settling: (u64, u64),
    /// Codes as settled entries have them, that were seen last and are as wide as the runs allow: neighbours have the same.
    fresh: Vec<u8>,
    young: YoungWriter,
    draft: Draft,
}

/// What is done with entries of merged runs: those at one of some spots get another span.
pub(super) struct Move<'a> {
    /// Where keys of the merge are: list, place; sorted.
    pub(super) spots: &'a [u32],
    pub(super) inputs: &'a [Span],
    pub(super) output: Span,
}

/// What becomes of settled entries' codes, and whether any gets another number.
struct Recodings {
    codes: [Recoding; CODES_MAX],
    changed: bool,
}

/// Settled entries that are being put together.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) codes: Vec<Code>,
    /// Entries that were settled before, and those that were not. Both sorted.
    old: Vec<Entry>,
    new: Vec<Entry>,
    pub(super) entries: Vec<Entry>,
    /// Keys that are one entry with another key.
    pub(super) merged: u64,
    /// Whether codes' numbers are written apart.
    apart: bool,
    pub(super) writer: SettledWriter,
}

impl ChunkWriter {
    pub(super) fn new(runs: Runs, budget: EntryBudget) -> Self {
        let settling = (0, merged_from(0, &runs));
        let (young, draft) = (YoungWriter::default(), Draft::default());
        ChunkWriter { runs, budget, settling, fresh: Vec::new(), young, draft }
    }

    /// For codes that are the runs' spans and nothing else, each with as few bits as its commonness allows.
    #[cold]
    #[inline(never)]
    pub(super) fn of_runs(budget: EntryBudget) -> Self {
        let mut writer = Self::new(Runs::default(), budget);
        writer.draft.apart = true;
        writer
    }

    /// The chunk with entries moved. None: there is nothing to move.
    pub(super) fn recode(&mut self, old: &Chunk, moved: &Move<'_>, lists: Lists) -> Option<Chunk> {
        let ages = old.young().map_or(0, |young| moved.ages(young.origin()));
        let young = old.young().filter(|young| young.has_any(ages));
        let nothing = NewEntries { spots: &[], flush: FlushNumber(0) };
        let settling = young.map(|young| (young, ages, self.bits(old, &nothing, lists)));
        let settled = self.draft.recode(old.settled(), settling, moved, lists.count)?;
        let young = match young {
            Some(young) => self.young.keep(&young, !ages, 0),
            None => old.young.clone(),
        };
        Some(Chunk { settled: Some(settled), young })
    }

    /// The chunk with `new` in it.
    pub(super) fn add(&mut self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> Chunk {
        let settled = self.settle(old, new, lists);
        let old = settled.as_ref().unwrap_or(old);
        if self.can_be_young(old, new, lists) {
            let young = self.young.add(old.young().as_ref(), new.spots, new.flush);
            return Chunk { settled: old.settled.clone(), young: Some(young) };
        }
        let span = self.runs.widened(Span::of_flush(new.flush));
        let code = Code { span, bits: self.bits(old, new, lists) };
        let young = old.young().map(|young| (young, !0));
        let settled = self.rewrite_settled(old, young, (new.spots, code), lists);
        Chunk { settled, young: None }
    }

    /// The chunk with codes as wide as the runs allow, its entries settled that can be. None: there is nothing to change.
    pub(super) fn collect_garbage(&mut self, old: &Chunk, lists: Lists) -> Option<Chunk> {
        let nothing = NewEntries { spots: &[], flush: FlushNumber(0) };
        self.settle(old, &nothing, lists)
    }

    /// As [`ChunkWriter::collect_garbage`]; `new` is to come, but is not added.
    fn settle(&mut self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> Option<Chunk> {
        let young = old.young();
        let ages = young.map_or(0, |young| self.settling(young.origin()));
        let settles = young.filter(|young| young.has_any(ages));
        let stale = old.settled().is_some_and(|settled| self.is_stale(&settled));
        if settles.is_none() && !stale {
            return None;
        }
        let code = Code { span: Span::of_flush(new.flush), bits: self.bits(old, new, lists) };
        let ready = settles.map(|young| (young, ages));
        let settled = self.rewrite_settled(old, ready, (&[], code), lists);
        let young = match settles {
            Some(young) => self.young.keep(&young, !ages, 0),
            None => old.young.clone(),
        };
        Some(Chunk { settled, young })
    }

    /// Whether codes can be widened.
    fn is_stale(&mut self, settled: &Settled<'_>) -> bool {
        let codes = settled.code_bytes();
        if self.fresh == codes {
            return false;
        }
        let stale = settled.codes().any(|code| self.runs.widened(code.span) != code.span);
        if !stale {
            self.fresh.clear();
            self.fresh.extend_from_slice(codes);
        }
        stale
    }

    /// Whether entries of a flush can be young: not if it was merged, if other young ones are of flushes too far away, or if
    /// there would be so many that their words cost more than settling them one by one.
    fn can_be_young(&self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> bool {
        let span = Span::of_flush(new.flush);
        let settled = old.settled().map_or(0, |settled| settled.len());
        let room = settled.max(lists.expected) / YOUNG_PER_SETTLED;
        let room = room.max(lists.keys / YOUNG_PER_KEYS);
        let room = room.clamp(YOUNG_MIN, YOUNG_MAX);
        let (origin, known) =
            old.young().map_or((new.flush.0, 0), |young| (young.origin(), young.len()));
        let near = new.flush.0.checked_sub(origin).is_some_and(|age| age < YOUNG_FLUSHES);
        near && known + new.spots.len() <= room && self.runs.widened(span) == span
    }

    /// A bit for each number from the origin on whose flush was merged with others.
    fn settling(&mut self, origin: u64) -> u64 {
        if self.settling.0 != origin {
            self.settling = (origin, merged_from(origin, &self.runs));
        }
        self.settling.1
    }

    /// The bits for the fractions of entries that settle: more where entries crowd. As a key of the tree is as likely asked
    /// for as any other, an entry among many deserves one for each doubling, as long as the budget has them.
    fn bits(&self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> u8 {
        let mut counts = [0u32; LISTS_MAX * BUCKETS];
        new.spots.iter().for_each(|spot| counts[(spot >> FRACTION_BITS) as usize] += 1);
        let mut merged = 0;
        if let Some(settled) = old.settled() {
            settled.count_buckets(&mut counts);
            merged += settled.merged();
        }
        if let Some(young) = old.young() {
            young.count_buckets(&mut counts);
            merged += young.merged();
        }
        // The neighbours of an average entry, now and when all have come.
        let all = u64::from(counts.iter().sum::<u32>()).max(1);
        let pairs = counts
            .iter()
            .map(|&count| u64::from(count) * u64::from(count))
            .sum::<u64>()
            .saturating_sub(all);
        let neighbours = (pairs as f64 / all as f64 * self.budget.growth) as usize;
        let crowd = neighbours / (CELLS_MAX / 4);
        let crowding = if neighbours >= 2 * CELLS_MAX { crowd.ilog2() as usize } else { 0 };
        let list_lens = counts.chunks_exact(BUCKETS).map(|list| list.iter().sum());
        let keys_per_entry = (all + merged) as f64 / all as f64;
        let longest = || list_lens.max().unwrap_or(0);
        let most = self.budget.fraction_bits(lists, keys_per_entry, longest);
        (lists.settled_bits + crowding).min(most).min(FRACTION_BITS) as u8
    }

    /// The settled entries with those young ones whose bit is set in `ages`, and with new ones (whose code tells the bits
    /// for young ones, too).
    fn rewrite_settled(
        &mut self,
        old: &Chunk,
        young: Option<(Young<'_>, u64)>,
        new: (&[u32], Code),
        lists: Lists,
    ) -> Option<Arc<[u8]>> {
        let (runs, draft) = (&self.runs, &mut self.draft);
        let lists = lists.count;
        fastest(RewriteSettled { settled: old.settled(), young, new, lists, runs, draft })
    }
}

/// A bit for each number from `origin` on whose flush was merged with others.
fn merged_from(origin: u64, runs: &Runs) -> u64 {
    let is_merged = |age: &u64| {
        let flush = Span::of_flush(FlushNumber(origin.saturating_add(*age)));
        runs.widened(flush) != flush
    };
    (0..YOUNG_FLUSHES).filter(is_merged).fold(0, |ages, age| ages | 1 << age)
}

/// Puts settled entries together; see [`ChunkWriter::rewrite_settled`].
struct RewriteSettled<'a> {
    settled: Option<Settled<'a>>,
    young: Option<(Young<'a>, u64)>,
    new: (&'a [u32], Code),
    lists: usize,
    runs: &'a Runs,
    draft: &'a mut Draft,
}

impl Work for RewriteSettled<'_> {
    type Output = Option<Arc<[u8]>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let RewriteSettled { settled, young, new: (spots, code), lists, runs, draft } = self;
        draft.clear();
        let recodings = settled.map(|settled| draft.take_codes_over(&settled, runs));
        if let Some((young, ages)) = young {
            draft.settle(&young, ages, code.bits, runs);
        }
        draft.add(spots, code);
        // Fractions that were cut can be out of order within a place.
        draft.merged += put_in_order(&mut draft.new);
        if let (Some(settled), Some(recodings)) = (settled, recodings) {
            let changed = recodings.changed || draft.codes.len() > CODES_MAX || draft.apart;
            let appended = if changed { None } else { draft.append(&settled) };
            if appended.is_some() {
                return appended;
            }
            draft.take_over(&settled, &recodings);
        }
        draft.merge();
        draft.write(lists)
    }
}

impl Draft {
    pub(super) fn clear(&mut self) {
        self.codes.clear();
        self.old.clear();
        self.new.clear();
        self.merged = 0;
    }

    /// How entries get the code `code`, which is added if it is new.
    #[inline(always)]
    pub(super) fn recoding(&mut self, code: Code) -> Recoding {
        let number = self.codes.iter().position(|known| *known == code).unwrap_or_else(|| {
            self.codes.push(code);
            self.codes.len() - 1
        });
        Recoding { cut: (FRACTION_BITS - usize::from(code.bits)) as u8, code: number as u16 }
    }

    /// Goes on with the codes of entries that have settled before, as wide as the runs allow.
    #[inline(always)]
    fn take_codes_over(&mut self, settled: &Settled<'_>, runs: &Runs) -> Recodings {
        self.merged += settled.merged();
        let mut recodings = Recodings { codes: [Recoding::default(); CODES_MAX], changed: false };
        for (number, code) in settled.codes().enumerate() {
            let recoding = self.recoding(Code { span: runs.widened(code.span), ..code });
            recodings.codes[number] = recoding;
            recodings.changed |= usize::from(recoding.code) != number;
        }
        recodings
    }

    /// The settled entries with the new ones behind, if no old one needs to be looked at.
    #[inline(always)]
    fn append(&mut self, settled: &Settled<'_>) -> Option<Arc<[u8]>> {
        self.writer.append(settled, &self.new, &self.codes, self.merged)
    }

    /// Goes on with entries that have settled before.
    #[inline(always)]
    fn take_over(&mut self, settled: &Settled<'_>, recodings: &Recodings) {
        settled.decode(&mut self.old);
        if recodings.changed {
            let codes = &recodings.codes;
            self.old.iter_mut().for_each(|entry| *entry = entry.recoded(codes[entry.code()]));
            // Codes that were widened can be out of order within a place.
            self.merged += put_in_order(&mut self.old);
        }
    }

    /// Adds those young entries whose bit is set in `ages`, with fractions of at most `bits` bits.
    #[inline(always)]
    fn settle(&mut self, young: &Young<'_>, ages: u64, bits: u8, runs: &Runs) {
        let mut recodings = [None; YOUNG_FLUSHES as usize];
        for list in 0..LISTS_MAX {
            let first = (list << PLACE_BITS) as u32;
            for &word in young.words(young.list(list)) {
                let age = Young::age_of(word);
                if ages >> age & 1 == 0 {
                    continue;
                }
                let recoding = recodings[age as usize].unwrap_or_else(|| {
                    let span = runs.widened(young.code_of(word));
                    self.recoding(Code { span, bits })
                });
                recodings[age as usize] = Some(recoding);
                self.new.push(Entry::new(first | Young::place_of(word)).recoded(recoding));
            }
        }
        self.merged += young.merged();
    }

    /// Adds entries of one code.
    #[inline(always)]
    fn add(&mut self, spots: &[u32], code: Code) {
        if !spots.is_empty() {
            let recoding = self.recoding(code);
            self.new.extend(spots.iter().map(|&spot| Entry::new(spot).recoded(recoding)));
        }
    }

    /// Puts old and new entries together, each once.
    #[inline(always)]
    fn merge(&mut self) {
        let Draft { old, new, entries, .. } = self;
        entries.clear();
        entries.reserve(old.len() + new.len());
        let mut at = 0;
        for &entry in &*new {
            let from = at;
            while at < old.len() && old[at] < entry {
                at += 1;
            }
            entries.extend_from_slice(&old[from..at]);
            at += usize::from(old.get(at) == Some(&entry));
            entries.push(entry);
        }
        entries.extend_from_slice(&old[at..]);
        self.merged += (old.len() + new.len() - entries.len()) as u64;
    }

    /// The settled entries; None: there are none.
    #[inline(always)]
    pub(super) fn write(&mut self, lists: usize) -> Option<Arc<[u8]>> {
        if self.entries.is_empty() {
            return None;
        }
        if self.apart {
            return Some(self.write_apart(lists));
        }
        self.join_codes();
        Some(self.writer.write(&self.entries, &self.codes, lists, self.merged))
    }

    /// Joins the oldest codes where there are too many. Forgetting is always safe.
    pub(super) fn join_codes(&mut self) {
        if self.codes.len() <= CODES_MAX {
            return;
        }
        let mut order: Vec<usize> = (0..self.codes.len()).collect();
        order.sort_unstable_by_key(|&code| self.codes[code]);
        let joined = self.codes.len() + 1 - CODES_MAX;
        let oldest = order[..joined].iter().map(|&code| self.codes[code]);
        let join = |one: Code, other: Code| Code {
            span: one.span.hull(other.span),
            bits: one.bits.min(other.bits),
        };
        let first = oldest.reduce(join).expect("there are codes");
        let kept = order[joined..].iter().map(|&code| self.codes[code]);
        let codes: Vec<Code> = std::iter::once(first).chain(kept).collect();
        let mut numbers = vec![0; order.len()];
        (joined..order.len()).for_each(|place| numbers[order[place]] = (place + 1 - joined) as u16);
        for entry in &mut self.entries {
            *entry = entry.recoded(Recoding { cut: 0, code: numbers[entry.code()] });
        }
        self.codes = codes;
        self.merged += put_in_order(&mut self.entries);
    }
}

/// Sorts entries, and keeps each once. Gives how many there were too many.
#[inline(always)]
pub(super) fn put_in_order(entries: &mut Vec<Entry>) -> u64 {
    if entries.windows(2).all(|pair| pair[0] < pair[1]) {
        return 0;
    }
    let before = entries.len();
    // Often there are doubles, but few are out of order.
    if !entries.is_sorted() {
        entries.sort_unstable();
    }
    entries.dedup();
    (before - entries.len()) as u64
}
