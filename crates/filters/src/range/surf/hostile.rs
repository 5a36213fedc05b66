//! Arbitrary sections with a valid trailer: nothing panics, and every walk ends.
//! ```text
//! sections: any bytes | trailer: consistent counts with their checksum
//! ```
//! Invariant: answers are arbitrary, but there always is one.

use core::hint::black_box;

use crate::base::filter::{TableFilter, TableFilterBuilder};
use crate::base::query::KeyRange;
use crate::range::surf::layout::{Counts, Layout, TRAILER_BYTES};
use crate::range::surf::suffix::SuffixBits;
use crate::range::surf::suffix::SurfKind;
use crate::range::surf::{Surf, SurfBuilder, SurfOptions, SurfSuffix};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Often small, sometimes as large as possible.
    fn count(&mut self) -> u32 {
        match self.next() % 8 {
            0 => u32::MAX - (self.next() % 3) as u32,
            1 => self.next() as u32,
            _ => (self.next() % 5) as u32,
        }
    }
}

fn ask_everything(surf: &Surf<Vec<u8>>, random: &mut Random) {
    for _ in 0..20 {
        let len = random.next() as usize % 12;
        let mut keys =
            [0, 1].map(|_| -> Vec<u8> { (0..len).map(|_| random.next() as u8).collect() });
        keys.sort();
        let [low, high] = &keys;
        black_box((surf.may_contain(low), surf.lower_bound(high)));
        for upper in [None, Some(&high[..])] {
            let range = KeyRange::new(low, upper).expect("sorted");
            black_box((surf.may_overlap(&range), surf.count(&range)));
        }
        let mut cursor = surf.cursor();
        cursor.seek(low);
        for step in 0..20 {
            black_box((cursor.key(), cursor.is_whole()));
            if (random.next() ^ step).is_multiple_of(3) { cursor.prev() } else { cursor.next() }
        }
    }
}

#[test]
fn sections_of_any_bytes_are_walked_without_harm() {
    let mut random = Random(7);
    for round in 0..120u32 {
        let suffix = SurfSuffix::Bits { hash: round % 9, real: round % 23 };
        let options = SurfOptions { suffix, size_ratio: [0, 3, 64, u32::MAX][round as usize % 4] };
        let mut builder = SurfBuilder::new(SurfKind::Mixed, 0.0, &options);
        let mut keys: Vec<u64> = (0..400).map(|_| random.next() >> (round % 40)).collect();
        keys.sort_unstable();
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted"));
        let mut image = builder.finish();
        let sections = image.len() - TRAILER_BYTES;
        let harmed = if round % 2 == 0 { sections } else { 40 };
        for _ in 0..harmed {
            let at = random.next() as usize % sections;
            image[at] = if round % 3 == 0 { 0xff } else { random.next() as u8 };
        }
        let surf = Surf::read(image).expect("its trailer is whole");
        ask_everything(&surf, &mut random);
        let mut cursor = surf.cursor();
        cursor.seek_first();
        // Slots only grow during the walk, so it takes no more steps than there are slots.
        let steps_max = 400 * 257 * 9;
        let forward = (0..steps_max).take_while(|_| {
            cursor.next();
            cursor.prefix().is_some()
        });
        assert!(forward.count() < steps_max, "round {round}: no end");
    }
}

#[test]
fn trailers_of_any_counts_are_refused_or_harmless() {
    let mut random = Random(11);
    let mut read = 0;
    for _ in 0..40_000 {
        let mut counts = Counts {
            keys: u64::from(random.count()),
            height: random.count(),
            dense_levels: random.count(),
            dense_nodes: random.count(),
            dense_leaves: random.count(),
            sparse_first: random.count(),
            sparse_nodes: random.count(),
            sparse_labels: random.count(),
        };
        if random.next().is_multiple_of(2) {
            let inner = u64::from(counts.sparse_nodes).wrapping_sub(u64::from(counts.sparse_first));
            let edges = u64::from(counts.dense_leaves) + u64::from(counts.sparse_labels);
            counts.keys = edges.wrapping_sub(inner);
        }
        let suffix = SuffixBits { hash: random.count() % 65, real: random.count() % 65 };
        let trailer = Layout::trailer_of(SurfKind::Mixed, counts, suffix);
        let len = match counts.image_len_if_small(suffix) {
            Some(len) if !random.next().is_multiple_of(4) => len,
            _ => TRAILER_BYTES + random.next() as usize % 300,
        };
        let body = (TRAILER_BYTES..len).map(|_| random.next() as u8);
        let image: Vec<u8> = body.chain(trailer).collect();
        if let Ok(surf) = Surf::read(image) {
            read += 1;
            ask_everything(&surf, &mut random);
        }
    }
    assert!(read > 20, "only {read} were read: do they fit at all?");
}
