//! Writes packed entries.
//! ```text
//! sorted entries --> counted by bucket --> smallest layout --> bytes (packed.rs)
//! ```
//! Invariant: [`Packed`](crate::grf::overlay::packed::Packed) reads back what is written.

use alloc::vec::Vec;

use crate::bits::packed::PackedWriter;
use crate::grf::base::place::{BUCKETS, LISTS_MAX};
use crate::grf::overlay::huffman::write_section;
use crate::grf::overlay::packed::{CODES_MAX, Code, Divisor, Entry, EntryNumbers, Packed};
use crate::grf::overlay::packed_layout::{Layout, smallest_layout};
use crate::grf::overlay::quotients::{Quotients, QuotientsWriter};
use crate::grf::sizes::Slot;
use alloc::sync::Arc;

/// The number of bytes that can hold every number up to `most`.
fn number_bytes(most: u64) -> usize {
    match most {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 4,
        _ => 8,
    }
}

/// Old entries, renumbered for another layout. Requires: its codes begin with the old ones, and its
/// fractions are at least as long.
struct OldEntries<'a> {
    numbers: EntryNumbers<'a>,
    by_codes: Divisor,
    codes: u64,
    longer: usize,
}

impl<'a> OldEntries<'a> {
    #[inline(always)]
    fn new(old: &Packed<'a>, layout: Layout<'_>) -> Self {
        OldEntries {
            numbers: old.numbers_from(&Slot::default(), 0),
            by_codes: Divisor::new(old.layout.codes()),
            codes: layout.codes(),
            longer: layout.fraction_bits() - old.layout.fraction_bits(),
        }
    }

    #[inline(always)]
    fn take(&mut self) -> u64 {
        let (place, code) = self.by_codes.divide(self.numbers.take());
        (place << self.longer) * self.codes + code
    }
}

/// The outputs of entries: quotients and remainders.
struct Halves<'a> {
    quotients: QuotientsWriter<'a>,
    entries: PackedWriter<'a>,
    bits: usize,
}

impl<'a> Halves<'a> {
    /// Requires: room for both, and zeroed quotients.
    #[inline(always)]
    fn new(layout: Layout<'_>, quotients: &'a mut [u8], entries: &'a mut [u8]) -> Self {
        let bits = layout.entry_bits();
        Halves {
            quotients: QuotientsWriter::new(quotients),
            entries: PackedWriter::new(entries, bits),
            bits,
        }
    }

    #[inline(always)]
    fn push(&mut self, entry: u64) {
        self.quotients.push((entry >> self.bits) as usize);
        self.entries.push(entry & ((1 << self.bits) - 1));
    }
}

/// Writes packed entries; reuses its buffers.
#[derive(Default)]
pub(crate) struct PackedEntriesWriter {
    /// The number of entries in each bucket.
    counts: Vec<u32>,
    quotients: Vec<u8>,
    packed: Vec<u8>,
    bytes: Vec<u8>,
}

impl PackedEntriesWriter {
    /// Returns the bytes of sorted entries without duplicates. `merged`: the number of keys that
    /// share an entry with another key. Requires: at least one entry, and 1 to [`CODES_MAX`] codes.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        entries: &[Entry],
        codes: &[Code],
        lists: usize,
        merged: u64,
    ) -> Arc<[u8]> {
        debug_assert!(lists <= LISTS_MAX && codes.len() <= CODES_MAX);
        self.count(lists, [], entries);
        let layout = smallest_layout(entries.len(), (codes, true), &self.counts);
        self.write_entries(entries, Layout(&layout));
        self.write_codes(codes, merged, false);
        Arc::from(self.bytes.as_slice())
    }

    /// Same as [`PackedEntriesWriter::write`], with the numbers of codes stored separately, in bits
    /// according to their frequency. Requires, too: code n is the nth most frequent, and each
    /// occurs.
    pub(crate) fn write_with_codes_apart(
        &mut self,
        entries: &[Entry],
        codes: &[Code],
        lists: usize,
        merged: u64,
    ) -> Arc<[u8]> {
        self.count(lists, [], entries);
        let layout = smallest_layout(entries.len(), (codes, false), &self.counts);
        let bare: Vec<Entry> = entries.iter().map(|entry| entry.bare()).collect();
        self.write_entries(&bare, Layout(&layout));
        let numbers: Vec<usize> = entries.iter().map(|entry| entry.code()).collect();
        let (mut rest, mut lists) = (&numbers[..], Vec::with_capacity(lists));
        for counts in self.counts.chunks_exact(BUCKETS) {
            let (list, others) = rest.split_at(counts.iter().sum::<u32>() as usize);
            lists.push(list);
            rest = others;
        }
        write_section(lists.into_iter(), codes.len(), &mut self.bytes);
        self.write_codes(codes, merged, true);
        Arc::from(self.bytes.as_slice())
    }

    /// Same as [`PackedEntriesWriter::write`], for old entries, whose codes keep their numbers, and
    /// sorted new ones. None: the old ones need another layout. Requires: at least one entry; as
    /// many lists as before; at most [`CODES_MAX`] codes.
    #[inline(always)]
    pub(crate) fn append(
        &mut self,
        old: &Packed<'_>,
        new: &[Entry],
        codes: &[Code],
        merged: u64,
    ) -> Option<Arc<[u8]>> {
        self.count(old.layout.lists(), old.slots(), new);
        let most = old.len() + new.len();
        let layout = smallest_layout(most, (codes, true), &self.counts);
        let layout = Layout(&layout);
        if layout.slot_bits() != old.layout.slot_bits() {
            return None;
        }
        self.make_room(most, layout);
        let entries = self.merge_entries(old, new, layout);
        self.begin(entries, layout);
        self.write_codes(codes, merged + (most - entries) as u64, false);
        Some(Arc::from(self.bytes.as_slice()))
    }

    /// Makes room for quotients and remainders of `entries` entries.
    #[inline(always)]
    fn make_room(&mut self, entries: usize, layout: Layout<'_>) {
        self.quotients.clear();
        self.quotients.resize(layout.quotient_bytes(entries), 0);
        self.packed.clear();
        self.packed.resize(layout.entry_bits() * entries / 8 + 8, 0);
    }

    /// Packs old and new entries without duplicates. Counts them, and by slot in `counts`.
    #[inline(always)]
    fn merge_entries(&mut self, old: &Packed<'_>, new: &[Entry], layout: Layout<'_>) -> usize {
        self.counts.fill(0);
        let mut entries = OldEntries::new(old, layout);
        let mut out = Halves::new(layout, &mut self.quotients, &mut self.packed);
        let (mut rest, width, mut all) = (new, 1 << layout.slot_bits(), 0);
        for (bucket, mut left) in old.slots() {
            let mut count = left;
            let mut next = |left| if left > 0 { entries.take() } else { u64::MAX };
            let mut current = next(left);
            while let Some((&entry, others)) = rest.split_first()
                && entry.bucket() < bucket + width
            {
                (rest, count) = (others, count + 1);
                let entry = layout.number_of(entry);
                while current < entry {
                    out.push(current);
                    left -= 1;
                    current = next(left);
                }
                if current == entry {
                    (left, count) = (left - 1, count - 1);
                    current = next(left);
                }
                out.push(entry);
            }
            while left > 0 {
                out.push(current);
                left -= 1;
                current = next(left);
            }
            (self.counts[bucket], all) = (count as u32, all + count);
        }
        out.entries.finish();
        all
    }

    /// Writes everything before the codes. Requires: entries are counted by bucket.
    #[inline(always)]
    fn write_entries(&mut self, entries: &[Entry], layout: Layout<'_>) {
        self.make_room(entries.len(), layout);
        let mut out = Halves::new(layout, &mut self.quotients, &mut self.packed);
        entries.iter().for_each(|&entry| out.push(layout.number_of(entry)));
        out.entries.finish();
        self.begin(entries.len(), layout);
    }

    /// Counts the entries of each bucket: those of `slots`, and `entries`.
    #[inline(always)]
    fn count(
        &mut self,
        lists: usize,
        slots: impl IntoIterator<Item = (usize, usize)>,
        entries: &[Entry],
    ) {
        self.counts.clear();
        self.counts.resize(lists * BUCKETS, 0);
        slots.into_iter().for_each(|(bucket, entries)| self.counts[bucket] = entries as u32);
        entries.iter().for_each(|entry| self.counts[entry.bucket()] += 1);
    }

    /// Writes the layout, the tables, the quotients with their samples, and `entries` remainders.
    #[inline(always)]
    fn begin(&mut self, entries: usize, layout: Layout<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&layout.of_entries(entries));
        let mut at = self.bytes.len();
        self.bytes.resize(layout.quotients_at(), 0);
        let (first_bytes, end_bytes) = (layout.first_bytes(), 1 << layout.end_log());
        let mut write = |number: u32, bytes: usize| {
            let tables = &mut self.bytes[at..];
            match bytes {
                1 => tables[0] = number as u8,
                2 => tables[..2].copy_from_slice(&(number as u16).to_le_bytes()),
                _ => tables[..4].copy_from_slice(&number.to_le_bytes()),
            }
            at += bytes;
        };
        let mut first = 0;
        for list in self.counts.chunks_exact(BUCKETS) {
            write(first, first_bytes);
            let mut end = 0;
            for slot in list.chunks_exact(1 << layout.slot_bits()) {
                slot.iter().for_each(|count| end += count);
                write(end, end_bytes);
            }
            first += end;
        }
        self.bytes.extend_from_slice(&self.quotients[..layout.quotient_bytes(entries)]);
        let samples = layout.samples(entries);
        if samples > 0 {
            // Reading a word includes the bytes behind it.
            self.quotients.resize(self.quotients.len() + size_of::<u64>(), 0);
            let quotients = Quotients { bytes: &self.quotients, at: 0 };
            self.bytes.extend(quotients.samples(samples).as_flattened());
        }
        let packed = (layout.entry_bits() * entries).div_ceil(8);
        self.bytes.extend_from_slice(&self.packed[..packed]);
    }

    /// Writes the codes and the footer.
    fn write_codes(&mut self, codes: &[Code], merged: u64, apart: bool) {
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
        self.bytes.extend_from_slice(&[len as u8, u8::from(apart)]);
        let merged = u32::try_from(merged).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&merged.to_le_bytes());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::base::shape::{FlushNumber, Span};
    use crate::grf::base::place::FRACTION_BITS;
    use crate::grf::overlay::packed_layout::LAYOUT_BYTES;

    pub(crate) const LISTS: usize = 3;

    pub(crate) fn mixed(number: u64) -> u64 {
        let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn code(number: u64, bits: usize) -> Code {
        let span = Span::new(FlushNumber(10 * number), FlushNumber(10 * number + 10));
        Code { span: span.expect("not empty"), bits: bits as u8 }
    }

    /// Entries of one code, sorted, without duplicates.
    fn entries(seed: u64, count: u64, code: usize, bits: usize) -> Vec<Entry> {
        let cut = FRACTION_BITS - bits;
        let spots = (0..count).map(|i| mixed(seed << 20 ^ i) as u32 % ((LISTS as u32) << 26));
        let spots = spots.map(|spot| spot >> cut << cut);
        let mut entries: Vec<Entry> =
            spots.map(|spot| Entry(Entry::new(spot).0 | code as u64)).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    #[test]
    fn full_chunks_of_long_fractions_are_packed() {
        for (lists, count) in [(LISTS_MAX, 4), (LISTS_MAX, 8), (1, 64)] {
            let codes: Vec<Code> = (0..count).map(|number| code(number, FRACTION_BITS)).collect();
            let spot = |i: u64| mixed(i) as u32 % ((lists as u32) << 26);
            let mut all: Vec<Entry> =
                (0..2000).map(|i| Entry(Entry::new(spot(i)).0 | (i % count))).collect();
            all.sort_unstable();
            all.dedup();
            let bytes = PackedEntriesWriter::default().write(&all, &codes, lists, 0);
            assert!(Packed::is_valid(&bytes, lists), "{lists} lists, {count} codes");
            let mut decoded = Vec::new();
            Packed::new(&bytes).decode(&mut decoded);
            assert_eq!(decoded, all, "{lists} lists, {count} codes");
        }
    }

    #[test]
    fn appending_is_writing_all() {
        let (mut writer, mut appended, mut alike) = (PackedEntriesWriter::default(), 0, 0);
        for (seed, (count, bits)) in [
            (0, 12),
            (1, 12),
            (40, 9),
            (40, 3),
            (90, 22),
            (200, 12),
            (700, 5),
            (3000, 13),
            (9000, 17),
        ]
        .into_iter()
        .enumerate()
        {
            let (mut all, mut codes) = (entries(99, 60 + count, 0, 12), vec![code(0, 12)]);
            let mut bytes = writer.write(&all, &codes, LISTS, 2);
            for turn in 1..12 {
                codes.push(code(turn, bits));
                let mut new = entries(seed as u64 * 16 + turn, count, turn as usize, bits);
                // Some of these exist already.
                new.extend(all.iter().step_by(17));
                new.sort_unstable();
                let merged = 5 * turn;
                let more = writer.append(&Packed::new(&bytes), &new, &codes, merged);
                let doubles = all.len() + new.len();
                all.extend(&new);
                all.sort_unstable();
                all.dedup();
                let doubles = (doubles - all.len()) as u64;
                let written = writer.write(&all, &codes, LISTS, merged + doubles);
                if let Some(more) = &more {
                    appended += 1;
                    // Duplicates are counted before they are found, which may lead to another
                    // layout.
                    if Packed::new(more).layout.0 == Packed::new(&written).layout.0 {
                        alike += 1;
                        assert!(more == &written, "{count} entries of {bits} bits, turn {turn}");
                    }
                }
                for bytes in more.iter().chain([&written]) {
                    assert!(Packed::is_valid(bytes, LISTS));
                    let (packed, mut decoded) = (Packed::new(bytes), vec![Entry(7)]);
                    packed.decode(&mut decoded);
                    assert_eq!((decoded, packed.merged()), (all.clone(), merged + doubles));
                }
                bytes = more.unwrap_or(written);
            }
        }
        assert!(appended > 40, "{appended} of 99");
        assert!(alike > 60, "{alike} of {appended} are laid out alike");
    }

    /// Such tables were once accepted, and reading the entries panicked.
    #[test]
    fn a_list_that_begins_within_another_one_is_damage() {
        let all = entries(5, 300, 0, 12);
        let bytes = PackedEntriesWriter::default().write(&all, &[code(0, 12)], LISTS, 0);
        assert!(Packed::is_valid(&bytes, LISTS));
        let table_bytes = Packed::new(&bytes).layout.table_bytes();
        for list in 1..LISTS {
            let mut damaged = bytes.to_vec();
            damaged[LAYOUT_BYTES + list * table_bytes] -= 1;
            assert!(!Packed::is_valid(&damaged, LISTS), "list {list}");
        }
    }
}
