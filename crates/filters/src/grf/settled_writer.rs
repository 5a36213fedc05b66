//! Writes settled entries.
//! ```text
//! sorted entries --> counted per bucket --> smallest layout --> bytes (settled.rs)
//! ```
//! Invariant: what is written is read back by [`Settled`](super::settled::Settled).

use super::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX};
use super::settled::{CODES_MAX, Code, Entry, LAYOUT_BYTES, Layout};
use crate::bits::packed::{BitWriter, PACKED_BITS_MAX, write_packed};
use std::sync::Arc;

impl Layout {
    /// The smallest one for so many entries with these codes, of which those in each bucket are counted.
    fn smallest(entries: usize, codes: &[Code], counts: &[u32]) -> Layout {
        let list_len = |counts: &[u32]| counts.iter().map(|&count| count as usize).sum();
        let longest = counts.chunks_exact(BUCKETS).map(list_len).max().unwrap_or(0);
        let bits = || codes.iter().map(|code| u64::from(code.bits));
        let (most, least) = (bits().max().unwrap_or(0), bits().min().unwrap_or(0));
        let code_bits = u64::from(usize::BITS - (codes.len() - 1).leading_zeros());
        let wide = longest > usize::from(u8::MAX) || entries > usize::from(u16::MAX);
        let lists = counts.len() / BUCKETS;
        let word = most << 16 | (most - least) << 24 | code_bits << 32 | (lists as u64) << 48;
        let word = word | u64::from(wide) << 56;
        let layouts = (0..=BUCKET_BITS).map(|slot_bits| Layout(word | (slot_bits as u64) << 40));
        let tables = |layout: Layout| lists * layout.table_bytes();
        let smallest =
            layouts.min_by_key(|&layout| entries * layout.slot_bits() + 8 * tables(layout));
        let layout = smallest.expect("there are choices");
        Layout(layout.0 | (LAYOUT_BYTES + tables(layout)) as u64)
    }
}

/// The bytes that every number up to `most` fits in.
fn number_bytes(most: u64) -> usize {
    match most {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 4,
        _ => 8,
    }
}

/// Writes settled entries; keeps its buffers.
#[derive(Default)]
pub(super) struct SettledWriter {
    /// The entries of each bucket.
    counts: Vec<u32>,
    bytes: Vec<u8>,
}

impl SettledWriter {
    /// The bytes of sorted entries, each of which is there once; `merged` keys are one entry with another. Requires: an entry;
    /// at least one code, at most [`CODES_MAX`].
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        entries: &[Entry],
        codes: &[Code],
        lists: usize,
        merged: u64,
    ) -> Arc<[u8]> {
        debug_assert!(lists <= LISTS_MAX && codes.len() <= CODES_MAX);
        self.counts.clear();
        self.counts.resize(lists * BUCKETS, 0);
        entries.iter().for_each(|entry| self.counts[entry.bucket()] += 1);
        let layout = Layout::smallest(entries.len(), codes, &self.counts);
        self.bytes.clear();
        self.bytes.extend_from_slice(&layout.0.to_le_bytes());
        self.write_tables(layout);
        self.write_entries(entries, layout);
        self.write_codes(codes, merged);
        Arc::from(self.bytes.as_slice())
    }

    #[inline(always)]
    fn write_entries(&mut self, entries: &[Entry], layout: Layout) {
        let (bits, code_bits) = (layout.entry_bits(), layout.code_bits());
        let within = (1u64 << (layout.slot_bits() + FRACTION_BITS)) - 1;
        let cut = FRACTION_BITS - layout.fraction_bits();
        let packed = entries.iter().map(|entry| {
            let packed = (entry.0 >> Entry::CODE_BITS & within) >> cut;
            packed << code_bits | entry.code() as u64
        });
        self.bytes.reserve(bits * entries.len() / 8 + 8);
        if bits <= PACKED_BITS_MAX {
            write_packed(packed.map(|entry| entry as u32), bits, &mut self.bytes);
        } else {
            let mut out = BitWriter::new(&mut self.bytes);
            packed.for_each(|entry| out.push(entry, bits));
            out.finish();
        }
    }

    /// The first entry of each list, and where its slots end.
    fn write_tables(&mut self, layout: Layout) {
        let (first_bytes, end_bytes) = if layout.is_wide() { (4, 4) } else { (2, 1) };
        let mut first = 0u32;
        for list in self.counts.chunks_exact(BUCKETS) {
            self.bytes.extend_from_slice(&first.to_le_bytes()[..first_bytes]);
            let mut end = 0u32;
            for slot in list.chunks_exact(1 << layout.slot_bits()) {
                end += slot.iter().sum::<u32>();
                self.bytes.extend_from_slice(&end.to_le_bytes()[..end_bytes]);
            }
            first += end;
        }
    }

    /// Codes and footer.
    fn write_codes(&mut self, codes: &[Code], merged: u64) {
        let origin = codes.iter().map(|code| code.span.lo().0).min().unwrap_or(0);
        let most = codes.iter().map(|code| code.span.hi().0 - origin).max().unwrap_or(0);
        let len = number_bytes(most);
        for code in codes {
            let (lo, hi) = (code.span.lo().0, code.span.hi().0);
            self.bytes.extend_from_slice(&(lo - origin).to_le_bytes()[..len]);
            self.bytes.extend_from_slice(&(hi - lo).to_le_bytes()[..len]);
            self.bytes.push(code.bits);
        }
        self.bytes.extend_from_slice(&origin.to_le_bytes());
        self.bytes.extend_from_slice(&(codes.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&[len as u8, 0]);
        let merged = u32::try_from(merged).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&merged.to_le_bytes());
    }
}
