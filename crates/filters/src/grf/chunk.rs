//! A chunk of the overlay: the entries of some neighbouring lists, young ones apart from settled ones.
//! ```text
//! flush 63 --> young    60 61 62 63                    long fractions; few, so that a flush rewrites little
//!                |  when their runs were merged: fractions cut, codes widened to the run's span
//!                v
//!              settled  [0, 10) [10, 20) ... [50, 60)  short fractions; rewritten once for a run's worth of flushes
//! ```
//! Newer entries have longer fractions, as in the paper (section 4.3.2): the base knows least of them. Where entries
//! crowd, all fractions are longer: a list that is not split under skew tells its keys apart all the same.
//! Invariant: an entry's fraction is a prefix of its key's, and its code contains its flush number.

use super::runs::Runs;
use super::tier::{BUCKETS, CODES_MAX, Code, Entry, LISTS_MAX, Tier, TierWriter};
use crate::fingerprint::cell::CELLS_MAX;
use crate::shape::Span;
use std::sync::Arc;

/// Bits that the fractions of young entries have more than those of settled ones.
pub(super) const YOUNG_BITS: usize = 2;

/// The tiers of a chunk. None: no entries.
#[derive(Clone, Default)]
pub(super) struct Chunk {
    pub(super) settled: Option<Arc<[u8]>>,
    pub(super) young: Option<Arc<[u8]>>,
}

/// How many entries a chunk has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkEntries {
    pub(super) kept: u64,
    /// Keys that are one entry with another key: their places and codes are equal.
    pub(super) merged: u64,
}

impl Chunk {
    /// Settled entries, then young ones.
    #[inline(always)]
    pub(super) fn tiers(&self) -> [Option<Tier<'_>>; 2] {
        [self.settled.as_deref().map(Tier::new), self.young.as_deref().map(Tier::new)]
    }

    pub(super) fn entries(&self) -> ChunkEntries {
        let mut entries = ChunkEntries::default();
        for tier in self.tiers().into_iter().flatten() {
            entries.kept += tier.len() as u64;
            entries.merged += tier.merged();
        }
        entries
    }
}

/// How the fractions of a chunk are measured.
#[derive(Clone, Copy)]
pub(super) struct Fractions {
    pub(super) lists: usize,
    /// The bits in which fractions are handed in.
    pub(super) long_bits: usize,
    /// The bits that settled entries keep where they are few.
    pub(super) settled_bits: usize,
}

impl Fractions {
    /// The bits for new entries of lists of which the fullest has so many entries. As a key of the tree is as likely
    /// asked for as any other, an entry among many deserves more of them: one for each doubling.
    fn bits(&self, fullest: usize, more: usize) -> u8 {
        let average = fullest / BUCKETS; // few lists have fewer
        let crowding = (1 + average / CELLS_MAX).ilog2() as usize;
        (self.settled_bits + more + crowding).min(self.long_bits) as u8
    }
}

/// What a flush adds to a chunk: sorted entries without codes, and their code.
pub(super) struct NewEntries<'a> {
    pub(super) places: &'a [Entry],
    pub(super) code: Span,
}

/// Rewrites chunks; keeps its buffers.
#[derive(Default)]
pub(super) struct ChunkWriter {
    writer: TierWriter,
    settled: Draft,
    young: Draft,
}

/// A tier that is being put together.
#[derive(Default)]
struct Draft {
    codes: Vec<Code>,
    entries: Vec<Entry>,
    merged: u64,
}

impl Draft {
    fn clear(&mut self) {
        self.codes.clear();
        self.entries.clear();
        self.merged = 0;
    }

    /// The number of a code, which is added if it is new.
    fn code(&mut self, code: Code) -> usize {
        self.codes.iter().position(|known| *known == code).unwrap_or_else(|| {
            self.codes.push(code);
            self.codes.len() - 1
        })
    }

    /// Adds entries of one code.
    fn add(&mut self, places: &[Entry], code: Code, long_bits: usize) {
        if places.is_empty() {
            return;
        }
        let cut = long_bits - usize::from(code.bits);
        let number = self.code(code);
        self.entries.extend(places.iter().map(|place| place.recoded(cut, number)));
    }

    /// Adds a tier's entries, with codes as wide as the runs allow.
    fn take_over(&mut self, tier: &Tier<'_>, runs: &Runs, long_bits: usize) {
        let mut numbers = [0; CODES_MAX];
        for (number, code) in numbers.iter_mut().zip(tier.codes()) {
            *number = self.code(Code { span: runs.widened(code.span), ..code });
        }
        tier.decode(long_bits, |entry| {
            self.entries.push(entry.recoded(0, numbers[entry.code()]));
        });
        self.merged += tier.merged();
    }

    /// The tier; None: no entries.
    fn write(&mut self, writer: &mut TierWriter, fractions: &Fractions) -> Option<Arc<[u8]>> {
        if self.entries.is_empty() {
            return None;
        }
        self.join_codes();
        // Sorted stretches, one after the other, are what this sort is quick with.
        self.entries.sort();
        let before = self.entries.len();
        self.entries.dedup();
        let merged = self.merged + (before - self.entries.len()) as u64;
        let measures = (fractions.lists, fractions.long_bits);
        Some(writer.write(&self.entries, &self.codes, measures, merged))
    }

    /// Joins the oldest codes where there are too many. Forgetting is always safe.
    fn join_codes(&mut self) {
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
        (joined..order.len()).for_each(|place| numbers[order[place]] = place + 1 - joined);
        self.entries.iter_mut().for_each(|entry| *entry = entry.recoded(0, numbers[entry.code()]));
        self.codes = codes;
    }
}

impl ChunkWriter {
    /// The chunk with `new` in it, as a version with these runs needs it.
    pub(super) fn rewrite(
        &mut self,
        old: &Chunk,
        new: &NewEntries<'_>,
        runs: &Runs,
        fractions: &Fractions,
    ) -> Chunk {
        let [settled, young] = old.tiers();
        let long_bits = fractions.long_bits;
        let fullest = fullest_list(&[settled, young], new.places, fractions.lists);
        (self.settled.clear(), self.young.clear());
        if let Some(young) = &young {
            self.split_young(young, fractions.bits(fullest, 0), runs, long_bits);
        }
        let span = runs.widened(new.code);
        let (target, more) = if span.lo().next() == span.hi() {
            (&mut self.young, YOUNG_BITS)
        } else {
            (&mut self.settled, 0)
        };
        target.add(new.places, Code { span, bits: fractions.bits(fullest, more) }, long_bits);
        let kept = self.settled.entries.is_empty() && !is_stale(settled.as_ref(), runs);
        if let Some(settled) = settled.filter(|_| !kept) {
            self.settled.take_over(&settled, runs, long_bits);
        }
        let mut write = |draft: &mut Draft| draft.write(&mut self.writer, fractions);
        let young = write(&mut self.young);
        let settled = if kept { old.settled.clone() } else { write(&mut self.settled) };
        Chunk { settled, young }
    }

    /// Young entries whose runs were merged settle.
    fn split_young(&mut self, young: &Tier<'_>, bits: u8, runs: &Runs, long_bits: usize) {
        let mut targets = [(false, 0, 0); CODES_MAX];
        for (target, code) in targets.iter_mut().zip(young.codes()) {
            let span = runs.widened(code.span);
            *target = if span == code.span {
                (false, 0, self.young.code(code))
            } else {
                let code = Code { span, bits: code.bits.min(bits) };
                (true, long_bits - usize::from(code.bits), self.settled.code(code))
            };
        }
        young.decode(long_bits, |entry| {
            let (settles, cut, code) = targets[entry.code()];
            let draft = if settles { &mut self.settled } else { &mut self.young };
            draft.entries.push(entry.recoded(cut, code));
        });
        let stays = self.settled.entries.is_empty();
        if stays { &mut self.young } else { &mut self.settled }.merged = young.merged();
        // Cut fractions can put codes out of order.
        self.settled.entries.sort_unstable();
    }
}

/// The entries of the fullest list, with those to come.
fn fullest_list(tiers: &[Option<Tier<'_>>; 2], places: &[Entry], lists: usize) -> usize {
    let mut counts = [0; LISTS_MAX];
    places.iter().for_each(|place| counts[place.list()] += 1);
    for tier in tiers.iter().flatten() {
        (0..lists).for_each(|list| counts[list] += tier.list_len(list));
    }
    counts.into_iter().max().unwrap_or(0)
}

/// Whether a tier's codes can be widened.
pub(super) fn is_stale(tier: Option<&Tier<'_>>, runs: &Runs) -> bool {
    tier.is_some_and(|tier| tier.codes().any(|code| runs.widened(code.span) != code.span))
}
