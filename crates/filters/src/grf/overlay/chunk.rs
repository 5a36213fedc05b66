//! A chunk of the overlay: the entries of consecutive lists, as an LSM-tree of two tiers.
//! ```text
//! flush 63 --> young    60 61 62 63            few: a flush rewrites little
//!                |  when they are many and their runs were merged, or too many
//!                v
//!              old      [0, 10) ... [50, 60)   few codes; rewritten once per run
//! ```
//! A rewrite widens codes as far as the runs of its version allow. Where entries crowd, fractions
//! are longer. So lists need no splitting: keys stay distinct under skew.
//!
//! Invariant: an entry's fraction is a prefix of its key's, and its code contains the key's flush
//! number.

use alloc::vec::Vec;

use crate::base::shape::{FlushNumber, Span};
use crate::bits::simd::{fastest, prefetch_lines};
use crate::fingerprint::cell::CELLS_MAX;
use crate::grf::base::place::{BUCKETS, FRACTION_BITS, LISTS_MAX};
use crate::grf::overlay::entry_budget::{EntryBudget, Lists};
use crate::grf::overlay::packed::{CODES_MAX, Code, Entry, Packed, Recoding};
use crate::grf::overlay::packed_writer::PackedEntriesWriter;
use crate::grf::overlay::runs::Runs;
use crate::grf::sizes::{LINE_BYTES, OLD, TIERS, YOUNG};
use alloc::sync::Arc;

/// One in this many entries, present or expected, may be young. Flushes then stay young until ten
/// of the 90 of a round are merged. Beyond this, adding to young entries costs about as much
/// rewriting as adding to old ones.
const YOUNG_PER_OLD: usize = 8;
/// Rewriting this few entries always costs less than rewriting old ones.
const YOUNG_MIN: usize = 32;

/// The average share of young entries just before the base is rebuilt.
pub(crate) const YOUNG_SHARE: f64 = 0.5 / YOUNG_PER_OLD as f64;

/// The entries of consecutive lists, by tier. None: the tier is empty.
#[derive(Clone, Default)]
pub(crate) struct Chunk {
    pub(crate) tiers: [Option<Arc<[u8]>>; TIERS],
}

/// The number of entries in a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkEntries {
    pub(crate) kept: u64,
    /// Keys that share an entry with another key, as their places and codes are equal.
    pub(crate) merged: u64,
}

impl Chunk {
    #[inline(always)]
    pub(crate) fn tier(&self, tier: usize) -> Option<Packed<'_>> {
        self.tiers[tier].as_deref().map(Packed::new)
    }

    /// Returns the non-empty tiers.
    #[inline(always)]
    pub(crate) fn packed(&self) -> impl Iterator<Item = Packed<'_>> {
        self.tiers.iter().flatten().map(|bytes| Packed::new(bytes))
    }

    /// Prefetches what a flush reads: the young entries, and the number of old ones.
    #[inline(always)]
    pub(crate) fn load(&self) {
        const YOUNG_LINES: usize = 8;
        if let Some(old) = &self.tiers[OLD] {
            prefetch_lines(old, 0, 1);
        }
        if let Some(young) = &self.tiers[YOUNG] {
            prefetch_lines(young, 0, YOUNG_LINES);
            prefetch_lines(young, young.len().saturating_sub(2 * LINE_BYTES), 2);
        }
    }

    pub(crate) fn entries(&self) -> ChunkEntries {
        self.packed().fold(ChunkEntries::default(), |entries, packed| ChunkEntries {
            kept: entries.kept + packed.len() as u64,
            merged: entries.merged + packed.merged(),
        })
    }
}

/// The entries that a flush adds to a chunk: sorted spots (list, place), and the flush number.
pub(crate) struct NewEntries<'a> {
    pub(crate) spots: &'a [u32],
    pub(crate) flush: FlushNumber,
}

/// Rewrites chunks for a version's runs; reuses its buffers.
pub(crate) struct ChunkWriter {
    runs: Runs,
    budget: EntryBudget,
    draft: Draft,
}

/// Moves entries of merged runs: those at the given spots get another span.
pub(crate) struct Move<'a> {
    /// The spots (list, place) of the merge's keys, sorted.
    pub(crate) spots: &'a [u32],
    pub(crate) inputs: &'a [Span],
    pub(crate) output: Span,
}

/// The new codes of packed entries, and whether any code's number changes.
struct Recodings {
    codes: [Recoding; CODES_MAX],
    changed: bool,
}

/// Packed entries under construction.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) codes: Vec<Code>,
    /// The entries that the tier had before, and the new ones; both sorted.
    old: Vec<Entry>,
    new: Vec<Entry>,
    pub(crate) entries: Vec<Entry>,
    /// Keys that share an entry with another key.
    pub(crate) merged: u64,
    /// Whether the numbers of codes are stored separately.
    apart: bool,
    pub(crate) writer: PackedEntriesWriter,
}

impl ChunkWriter {
    pub(crate) fn new(runs: Runs, budget: EntryBudget) -> Self {
        ChunkWriter { runs, budget, draft: Draft::default() }
    }

    /// A writer for codes that are the spans of runs, in bits according to their frequency.
    #[cold]
    #[inline(never)]
    pub(crate) fn of_runs(budget: EntryBudget) -> Self {
        let mut writer = Self::new(Runs::default(), budget);
        writer.draft.apart = true;
        writer
    }

    /// Returns the chunk with entries moved. None: no entry moves.
    pub(crate) fn recode(&mut self, old: &Chunk, moved: &Move<'_>, lists: Lists) -> Option<Chunk> {
        let mut chunk = None;
        for tier in 0..TIERS {
            let packed = old.tier(tier);
            let recoded = packed.and_then(|packed| self.draft.recode(&packed, moved, lists.count));
            if let Some(recoded) = recoded {
                chunk.get_or_insert_with(|| old.clone()).tiers[tier] = Some(recoded);
            }
        }
        chunk
    }

    /// Returns the chunk with codes as wide as the runs allow, and with young entries of merged
    /// runs moved to the old tier. None: nothing changes.
    pub(crate) fn collect_garbage(&mut self, chunk: &Chunk, lists: Lists) -> Option<Chunk> {
        let (old, young) = (chunk.tier(OLD), chunk.tier(YOUNG));
        let stale = [old, young].map(|tier| tier.is_some_and(|tier| self.is_stale(&tier)));
        let nothing = (&[][..], Code { span: Span::of_flush(FlushNumber(0)), bits: 0 });
        match stale {
            [_, true] => Some(Chunk { tiers: [self.rewrite([old, young], nothing, lists), None] }),
            [true, false] => {
                let old = self.rewrite([old, None], nothing, lists);
                Some(Chunk { tiers: [old, chunk.tiers[YOUNG].clone()] })
            }
            [false, false] => None,
        }
    }

    /// Whether any code can be widened.
    fn is_stale(&self, packed: &Packed<'_>) -> bool {
        packed.codes().any(|code| self.runs.widened(code.span) != code.span)
    }

    /// Returns the chunk with the entries of `new`.
    pub(crate) fn add(&mut self, chunk: &Chunk, new: &NewEntries<'_>, lists: Lists) -> Chunk {
        let span = self.runs.widened(Span::of_flush(new.flush));
        let new_entries = (new.spots, Code { span, bits: self.bits(chunk, new, lists) });
        let (old, mut young) = (chunk.tier(OLD), chunk.tier(YOUNG));
        let mut old_bytes = chunk.tiers[OLD].clone();
        let room = old.map_or(0, |old| old.len()).max(lists.expected) / YOUNG_PER_OLD;
        let room = room.max(YOUNG_MIN);
        // Entries that do not fit into the young tier move to the old one together with it, so that
        // old entries are rewritten once.
        let moves = |young: Packed<'_>| 2 * young.len() >= room && self.is_stale(&young);
        if new.spots.len() <= room && young.is_some_and(moves) {
            old_bytes = self.rewrite([old, young.take()], (&[], new_entries.1), lists);
        }
        if young.map_or(0, |young| young.len()) + new.spots.len() <= room {
            let young = self.rewrite([young, None], new_entries, lists);
            return Chunk { tiers: [old_bytes, young] };
        }
        Chunk { tiers: [self.rewrite([old, young], new_entries, lists), None] }
    }

    /// Returns the fraction bits of new entries: more where entries crowd. All keys of the tree are
    /// equally likely to be queried. So each doubling of an entry's neighbours deserves one more
    /// bit, as far as the budget allows.
    fn bits(&self, old: &Chunk, new: &NewEntries<'_>, lists: Lists) -> u8 {
        let mut counts = [0u32; LISTS_MAX * BUCKETS];
        new.spots.iter().for_each(|spot| counts[(spot >> FRACTION_BITS) as usize] += 1);
        let mut merged = 0;
        for packed in old.packed() {
            packed.count_buckets(&mut counts);
            merged += packed.merged();
        }
        // The neighbours of an average entry, now and once all entries have come.
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

    /// Merges the entries of both sources and new ones into one tier, with codes as wide as the
    /// runs allow.
    fn rewrite(
        &mut self,
        sources: [Option<Packed<'_>>; TIERS],
        new: (&[u32], Code),
        lists: Lists,
    ) -> Option<Arc<[u8]>> {
        let (runs, draft) = (&self.runs, &mut self.draft);
        fastest(
            #[inline(always)]
            move || draft.rewrite(sources, new, (lists.count, runs)),
        )
    }
}

impl Draft {
    pub(crate) fn clear(&mut self) {
        self.codes.clear();
        self.old.clear();
        self.new.clear();
        self.merged = 0;
    }

    /// See [`ChunkWriter::rewrite`].
    #[inline(always)]
    fn rewrite(
        &mut self,
        [old, young]: [Option<Packed<'_>>; TIERS],
        (spots, code): (&[u32], Code),
        (lists, runs): (usize, &Runs),
    ) -> Option<Arc<[u8]>> {
        self.clear();
        let recodings = old.map(|old| self.take_codes_over(&old, runs));
        if let Some(young) = young {
            let recodings = self.take_codes_over(&young, runs);
            self.take_over(&young, &recodings);
        }
        self.add(spots, code);
        // Truncated fractions can be out of order within a place.
        self.merged += put_in_order(&mut self.new);
        if young.is_some() {
            self.merge();
            core::mem::swap(&mut self.new, &mut self.entries);
        }
        self.old.clear();
        if let (Some(old), Some(recodings)) = (old, recodings) {
            let changed = recodings.changed || self.codes.len() > CODES_MAX || self.apart;
            let appended = if changed { None } else { self.append(&old) };
            if appended.is_some() {
                return appended;
            }
            self.take_over(&old, &recodings);
        }
        self.merge();
        self.write(lists)
    }

    /// Returns the recoding to `code`, which is added to the codes if it is new.
    #[inline(always)]
    pub(crate) fn recoding(&mut self, code: Code) -> Recoding {
        let number = self.codes.iter().position(|known| *known == code).unwrap_or_else(|| {
            self.codes.push(code);
            self.codes.len() - 1
        });
        Recoding { cut: (FRACTION_BITS - usize::from(code.bits)) as u8, code: number as u16 }
    }

    /// Takes over the codes of a tier's entries, as wide as the runs allow.
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

    /// Returns the packed entries merged with the new ones. None: old entries must be decoded.
    #[inline(always)]
    fn append(&mut self, packed: &Packed<'_>) -> Option<Arc<[u8]>> {
        self.writer.append(packed, &self.new, &self.codes, self.merged)
    }

    /// Takes over a tier's entries.
    #[inline(always)]
    fn take_over(&mut self, packed: &Packed<'_>, recodings: &Recodings) {
        packed.decode(&mut self.old);
        if recodings.changed {
            let codes = &recodings.codes;
            self.old.iter_mut().for_each(|entry| *entry = entry.recoded(codes[entry.code()]));
            // Widened codes can be out of order within a place.
            self.merged += put_in_order(&mut self.old);
        }
    }

    /// Adds entries of one code.
    #[inline(always)]
    fn add(&mut self, spots: &[u32], code: Code) {
        if !spots.is_empty() {
            let recoding = self.recoding(code);
            self.new.extend(spots.iter().map(|&spot| Entry::new(spot).recoded(recoding)));
        }
    }

    /// Merges old and new entries without duplicates.
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

    /// Returns the packed entries. None: there are none.
    #[inline(always)]
    pub(crate) fn write(&mut self, lists: usize) -> Option<Arc<[u8]>> {
        if self.entries.is_empty() {
            return None;
        }
        if self.apart {
            return Some(self.write_with_codes_apart(lists));
        }
        self.join_codes();
        Some(self.writer.write(&self.entries, &self.codes, lists, self.merged))
    }

    /// Joins the oldest codes if there are too many. Widening a code is always safe.
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
        let codes: Vec<Code> = core::iter::once(first).chain(kept).collect();
        // Joined entries are truncated to the fraction bits of their common code.
        let cut = FRACTION_BITS as u8 - first.bits;
        let mut recodings = vec![Recoding { cut, code: 0 }; order.len()];
        for place in joined..order.len() {
            recodings[order[place]] = Recoding { cut: 0, code: (place + 1 - joined) as u16 };
        }
        for entry in &mut self.entries {
            *entry = entry.recoded(recodings[entry.code()]);
        }
        self.codes = codes;
        self.merged += put_in_order(&mut self.entries);
    }
}

/// Sorts entries and removes duplicates. Returns the number of duplicates.
#[inline(always)]
pub(crate) fn put_in_order(entries: &mut Vec<Entry>) -> u64 {
    if entries.windows(2).all(|pair| pair[0] < pair[1]) {
        return 0;
    }
    let before = entries.len();
    // Duplicates are frequent, but few entries are out of order.
    if !entries.is_sorted() {
        entries.sort_unstable();
    }
    entries.dedup();
    (before - entries.len()) as u64
}
