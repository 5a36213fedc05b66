//! A chunk of the overlay: the entries of some neighbouring lists, recent ones apart from packed
//! ones.
//! ```text
//! flush 63 --> recent    60 61 62 63               long fractions; few: a flush rewrites little
//!                |  when their runs were merged: fractions cut, codes widened to the run's span
//!                v
//!              packed  [0, 10) [10, 20) ... [50, 60)  short fractions; rewritten once a run
//! ```
//! Where entries crowd, fractions are longer: a list that is not split under skew tells its keys
//! apart all the same. Invariant: an entry's fraction is a prefix of its key's, and its code
//! contains its flush number.

use crate::base::shape::{FlushNumber, Span};
use crate::bits::simd::{fastest, prefetch_lines};
use crate::fingerprint::cell::CELLS_MAX;
use crate::grf::base::place::{BUCKETS, FRACTION_BITS, LISTS_MAX, PLACE_BITS};
use crate::grf::overlay::entry_budget::{EntryBudget, Lists};
use crate::grf::overlay::packed::{CODES_MAX, Code, Entry, Packed, Recoding};
use crate::grf::overlay::packed_writer::PackedEntriesWriter;
use crate::grf::overlay::recent::{RECENT_FLUSHES, RECENT_MAX, Recent, RecentWriter};
use crate::grf::overlay::runs::Runs;
use crate::grf::sizes::LINE_BYTES;
use std::sync::Arc;

/// A recent entry costs half as much again as a packed one: there are few for the keys of the base
/// ...
const RECENT_PER_KEYS: usize = 64;
/// ... or for the packed ones, now or in the end, which need not be rewritten as long as there is
/// room.
const RECENT_PER_PACKED: usize = 24;
const RECENT_MIN: usize = 32;

/// The share of recent entries, about, just before the base is built anew, where each of its keys
/// has so many newer ones: of lists whose runs are merged ten at a time.
pub(crate) fn recent_share(newer: f64) -> f64 {
    const NOT_MERGED: f64 = 0.085;
    let room = (1.0 / RECENT_PER_PACKED as f64).max(1.0 / (RECENT_PER_KEYS as f64 * newer));
    room.min(NOT_MERGED)
}

/// The entries of some neighbouring lists. None: no such entries.
#[derive(Clone, Default)]
pub(crate) struct Chunk {
    pub(crate) packed: Option<Arc<[u8]>>,
    pub(crate) recent: Option<Arc<[u32]>>,
}

/// How many entries a chunk has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkEntries {
    pub(crate) kept: u64,
    /// Keys that are one entry with another key: their places and codes are equal.
    pub(crate) merged: u64,
}

impl Chunk {
    #[inline(always)]
    pub(crate) fn packed(&self) -> Option<Packed<'_>> {
        self.packed.as_deref().map(Packed::new)
    }

    #[inline(always)]
    pub(crate) fn recent(&self) -> Option<Recent<'_>> {
        self.recent.as_deref().map(Recent::new)
    }

    /// Asks for what a flush reads of it: the recent entries, and the codes of packed ones.
    #[inline(always)]
    pub(crate) fn load(&self) {
        const RECENT_LINES: usize = 8;
        if let Some(packed) = &self.packed {
            prefetch_lines(packed, packed.len().saturating_sub(2 * LINE_BYTES), 2);
            prefetch_lines(packed, 0, 1);
        }
        if let Some(recent) = &self.recent {
            prefetch_lines(recent, 0, RECENT_LINES);
        }
    }

    pub(crate) fn entries(&self) -> ChunkEntries {
        let mut entries = ChunkEntries::default();
        if let Some(packed) = self.packed() {
            entries = ChunkEntries { kept: packed.len() as u64, merged: packed.merged() };
        }
        if let Some(recent) = self.recent() {
            entries.kept += recent.len() as u64;
            entries.merged += recent.merged();
        }
        entries
    }
}

/// What a flush adds to a chunk: spots (list, place), sorted, and their code.
pub(crate) struct NewEntries<'a> {
    pub(crate) spots: &'a [u32],
    pub(crate) flush: FlushNumber,
}

/// Rewrites chunks for a version with some runs; keeps its buffers.
pub(crate) struct ChunkWriter {
    runs: Runs,
    budget: EntryBudget,
    /// The origin of recent entries that was seen last, and a bit for each number from it on whose
    /// flush was merged.
    packing: (u64, u64),
    /// Codes as packed entries have them, that were seen last and are as wide as the runs allow:
    /// neighbours have the same.
    fresh: Vec<u8>,
    recent: RecentWriter,
    draft: Draft,
}

/// What is done with entries of merged runs: those at one of some spots get another span.
pub(crate) struct Move<'a> {
    /// Where keys of the merge are: list, place; sorted.
    pub(crate) spots: &'a [u32],
    pub(crate) inputs: &'a [Span],
    pub(crate) output: Span,
}

/// What becomes of packed entries' codes, and whether any gets another number.
struct Recodings {
    codes: [Recoding; CODES_MAX],
    changed: bool,
}

/// Packed entries that are being put together.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) codes: Vec<Code>,
    /// Entries that were packed before, and those that were not. Both sorted.
    old: Vec<Entry>,
    new: Vec<Entry>,
    pub(crate) entries: Vec<Entry>,
    /// Keys that are one entry with another key.
    pub(crate) merged: u64,
    /// Whether codes' numbers are written apart.
    apart: bool,
    pub(crate) writer: PackedEntriesWriter,
}

impl ChunkWriter {
    pub(crate) fn new(runs: Runs, budget: EntryBudget) -> Self {
        let packing = (0, merged_from(0, &runs));
        let (recent, draft) = (RecentWriter::default(), Draft::default());
        ChunkWriter { runs, budget, packing, fresh: Vec::new(), recent, draft }
    }

    /// For codes that are the runs' spans and nothing else, each with as few bits as its commonness
    /// allows.
    #[cold]
    #[inline(never)]
    pub(crate) fn of_runs(budget: EntryBudget) -> Self {
        let mut writer = Self::new(Runs::default(), budget);
        writer.draft.apart = true;
        writer
    }

    /// The chunk with entries moved. None: there is nothing to move.
    pub(crate) fn recode(&mut self, old: &Chunk, moved: &Move<'_>, lists: Lists) -> Option<Chunk> {
        let ages = old.recent().map_or(0, |recent| moved.ages(recent.origin()));
        let recent = old.recent().filter(|recent| recent.has_any(ages));
        let nothing = NewEntries { spots: &[], flush: FlushNumber(0) };
        let packing = recent.map(|recent| (recent, ages, self.bits(old, &nothing, lists)));
        let packed = self.draft.recode(old.packed(), packing, moved, lists.count)?;
        let recent = match recent {
            Some(recent) => self.recent.keep(&recent, !ages, 0),
            None => old.recent.clone(),
        };
        Some(Chunk { packed: Some(packed), recent })
    }

    /// The chunk with `new` in it.
    pub(crate) fn add(&mut self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> Chunk {
        let packed = self.pack(old, new, lists);
        let old = packed.as_ref().unwrap_or(old);
        if self.can_be_recent(old, new, lists) {
            let recent = self.recent.add(old.recent().as_ref(), new.spots, new.flush);
            return Chunk { packed: old.packed.clone(), recent: Some(recent) };
        }
        let span = self.runs.widened(Span::of_flush(new.flush));
        let code = Code { span, bits: self.bits(old, new, lists) };
        let recent = old.recent().map(|recent| (recent, !0));
        let packed = self.rewrite_packed(old, recent, (new.spots, code), lists);
        Chunk { packed, recent: None }
    }

    /// The chunk with codes as wide as the runs allow, packing the entries that can be. None: there
    /// is nothing to change.
    pub(crate) fn collect_garbage(&mut self, old: &Chunk, lists: Lists) -> Option<Chunk> {
        let nothing = NewEntries { spots: &[], flush: FlushNumber(0) };
        self.pack(old, &nothing, lists)
    }

    /// As [`ChunkWriter::collect_garbage`]; `new` is to come, but is not added.
    fn pack(&mut self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> Option<Chunk> {
        let recent = old.recent();
        let ages = recent.map_or(0, |recent| self.packing(recent.origin()));
        let packs = recent.filter(|recent| recent.has_any(ages));
        let stale = old.packed().is_some_and(|packed| self.is_stale(&packed));
        if packs.is_none() && !stale {
            return None;
        }
        let code = Code { span: Span::of_flush(new.flush), bits: self.bits(old, new, lists) };
        let ready = packs.map(|recent| (recent, ages));
        let packed = self.rewrite_packed(old, ready, (&[], code), lists);
        let recent = match packs {
            Some(recent) => self.recent.keep(&recent, !ages, 0),
            None => old.recent.clone(),
        };
        Some(Chunk { packed, recent })
    }

    /// Whether codes can be widened.
    fn is_stale(&mut self, packed: &Packed<'_>) -> bool {
        let codes = packed.code_bytes();
        if self.fresh == codes {
            return false;
        }
        let stale = packed.codes().any(|code| self.runs.widened(code.span) != code.span);
        if !stale {
            self.fresh.clear();
            self.fresh.extend_from_slice(codes);
        }
        stale
    }

    /// Whether entries of a flush can be recent. They cannot if the flush was merged, or if other
    /// recent entries are of flushes too far away. Nor can they if they are so many that their
    /// words cost more than packing them one by one.
    fn can_be_recent(&self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> bool {
        let span = Span::of_flush(new.flush);
        let packed = old.packed().map_or(0, |packed| packed.len());
        let room = packed.max(lists.expected) / RECENT_PER_PACKED;
        let room = room.max(lists.keys / RECENT_PER_KEYS);
        let room = room.clamp(RECENT_MIN, RECENT_MAX);
        let (origin, known) =
            old.recent().map_or((new.flush.0, 0), |recent| (recent.origin(), recent.len()));
        let near = new.flush.0.checked_sub(origin).is_some_and(|age| age < RECENT_FLUSHES);
        near && known + new.spots.len() <= room && self.runs.widened(span) == span
    }

    /// A bit for each number from the origin on whose flush was merged with others.
    fn packing(&mut self, origin: u64) -> u64 {
        if self.packing.0 != origin {
            self.packing = (origin, merged_from(origin, &self.runs));
        }
        self.packing.1
    }

    /// The bits for the fractions of entries to be packed: more where entries crowd. All keys of
    /// the tree are equally likely to be asked for. An entry among many therefore deserves a bit
    /// for each doubling, as long as the budget allows.
    fn bits(&self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> u8 {
        let mut counts = [0u32; LISTS_MAX * BUCKETS];
        new.spots.iter().for_each(|spot| counts[(spot >> FRACTION_BITS) as usize] += 1);
        let mut merged = 0;
        if let Some(packed) = old.packed() {
            packed.count_buckets(&mut counts);
            merged += packed.merged();
        }
        if let Some(recent) = old.recent() {
            recent.count_buckets(&mut counts);
            merged += recent.merged();
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
        let crowding = if neighbours >= 2 * CELLS_MAX { crowd.ilog2() } else { 0 };
        let list_lens = counts.chunks_exact(BUCKETS).map(|list| list.iter().sum());
        let keys_per_entry = (all + merged) as f64 / all as f64;
        let longest = || list_lens.max().unwrap_or(0);
        let most = self.budget.fraction_bits(lists, keys_per_entry, longest);
        let bits = (lists.packed_bits + f64::from(crowding)).min(most) + lists.dither;
        (bits as u8).min(FRACTION_BITS as u8)
    }

    /// The packed entries with those recent ones whose bit is set in `ages`, and with new ones. The
    /// new ones' code tells the bits for the recent ones, too.
    fn rewrite_packed(
        &mut self,
        old: &Chunk,
        recent: Option<(Recent<'_>, u64)>,
        new: (&[u32], Code),
        lists: Lists,
    ) -> Option<Arc<[u8]>> {
        let (runs, draft, packed) = (&self.runs, &mut self.draft, old.packed());
        fastest(
            #[inline(always)]
            move || draft.rewrite(packed, recent, new, (lists.count, runs)),
        )
    }
}

/// A bit for each number from `origin` on whose flush was merged with others.
fn merged_from(origin: u64, runs: &Runs) -> u64 {
    let is_merged = |age: &u64| {
        let flush = Span::of_flush(FlushNumber(origin.saturating_add(*age)));
        runs.widened(flush) != flush
    };
    (0..RECENT_FLUSHES).filter(is_merged).fold(0, |ages, age| ages | 1 << age)
}

impl Draft {
    pub(crate) fn clear(&mut self) {
        self.codes.clear();
        self.old.clear();
        self.new.clear();
        self.merged = 0;
    }

    /// Puts packed entries together; see [`ChunkWriter::rewrite_packed`].
    #[inline(always)]
    fn rewrite(
        &mut self,
        packed: Option<Packed<'_>>,
        recent: Option<(Recent<'_>, u64)>,
        (spots, code): (&[u32], Code),
        (lists, runs): (usize, &Runs),
    ) -> Option<Arc<[u8]>> {
        self.clear();
        let recodings = packed.map(|packed| self.take_codes_over(&packed, runs));
        if let Some((recent, ages)) = recent {
            self.pack(&recent, ages, code.bits, runs);
        }
        self.add(spots, code);
        // Fractions that were cut can be out of order within a place.
        self.merged += put_in_order(&mut self.new);
        if let (Some(packed), Some(recodings)) = (packed, recodings) {
            let changed = recodings.changed || self.codes.len() > CODES_MAX || self.apart;
            let appended = if changed { None } else { self.append(&packed) };
            if appended.is_some() {
                return appended;
            }
            self.take_over(&packed, &recodings);
        }
        self.merge();
        self.write(lists)
    }

    /// How entries get the code `code`, which is added if it is new.
    #[inline(always)]
    pub(crate) fn recoding(&mut self, code: Code) -> Recoding {
        let number = self.codes.iter().position(|known| *known == code).unwrap_or_else(|| {
            self.codes.push(code);
            self.codes.len() - 1
        });
        Recoding { cut: (FRACTION_BITS - usize::from(code.bits)) as u8, code: number as u16 }
    }

    /// Goes on with the codes of entries that were packed before, as wide as the runs allow.
    #[inline(always)]
    fn take_codes_over(&mut self, packed: &Packed<'_>, runs: &Runs) -> Recodings {
        self.merged += packed.merged();
        let mut recodings = Recodings { codes: [Recoding::default(); CODES_MAX], changed: false };
        for (number, code) in packed.codes().enumerate() {
            let recoding = self.recoding(Code { span: runs.widened(code.span), ..code });
            recodings.codes[number] = recoding;
            recodings.changed |= usize::from(recoding.code) != number;
        }
        recodings
    }

    /// The packed entries with the new ones behind, if no old one needs to be looked at.
    #[inline(always)]
    fn append(&mut self, packed: &Packed<'_>) -> Option<Arc<[u8]>> {
        self.writer.append(packed, &self.new, &self.codes, self.merged)
    }

    /// Goes on with entries that were packed before.
    #[inline(always)]
    fn take_over(&mut self, packed: &Packed<'_>, recodings: &Recodings) {
        packed.decode(&mut self.old);
        if recodings.changed {
            let codes = &recodings.codes;
            self.old.iter_mut().for_each(|entry| *entry = entry.recoded(codes[entry.code()]));
            // Codes that were widened can be out of order within a place.
            self.merged += put_in_order(&mut self.old);
        }
    }

    /// Adds those recent entries whose bit is set in `ages`, with fractions of at most `bits` bits.
    #[inline(always)]
    fn pack(&mut self, recent: &Recent<'_>, ages: u64, bits: u8, runs: &Runs) {
        let mut recodings = [None; RECENT_FLUSHES as usize];
        for list in 0..LISTS_MAX {
            let first = (list << PLACE_BITS) as u32;
            for &word in recent.words(recent.list(list)) {
                let age = Recent::age_of(word);
                if ages >> age & 1 == 0 {
                    continue;
                }
                let recoding = recodings[age as usize].unwrap_or_else(|| {
                    let span = runs.widened(recent.code_of(word));
                    self.recoding(Code { span, bits })
                });
                recodings[age as usize] = Some(recoding);
                self.new.push(Entry::new(first | Recent::place_of(word)).recoded(recoding));
            }
        }
        self.merged += recent.merged();
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

    /// The packed entries; None: there are none.
    #[inline(always)]
    pub(crate) fn write(&mut self, lists: usize) -> Option<Arc<[u8]>> {
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
    pub(crate) fn join_codes(&mut self) {
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
pub(crate) fn put_in_order(entries: &mut Vec<Entry>) -> u64 {
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
