//! Tests of blocks, against a plain list of entries.

use proptest::prelude::*;

use super::*;
use crate::entries::block_cursor::BlockCursor;
use crate::entries::compression::Compression;
use crate::entries::entry::{Kind, order};

type Owned = (Vec<u8>, u64, Kind, Vec<u8>);

fn entry((key, sequence, kind, value): &Owned) -> Entry<'_> {
    Entry { key, sequence: Sequence(*sequence), kind: *kind, value }
}

fn build(entries: &[Owned]) -> Vec<u8> {
    let mut builder = BlockBuilder::new();
    entries.iter().for_each(|owned| builder.add(&entry(owned)));
    let size = builder.size_bytes();
    let bytes = builder.finish();
    assert_eq!(size, bytes.len());
    assert!(builder.is_empty());
    bytes
}

/// Builds a block whose entries share less with the previous one than they could. No writer makes
/// such a block, but a disk may have one.
fn build_sharing_less(entries: &[Owned], less: &[usize]) -> Vec<u8> {
    let (mut restarts, mut heads, mut values) = (Writer::new(), Writer::new(), Writer::new());
    for (place, (key, sequence, kind, value)) in entries.iter().enumerate() {
        let before = place.checked_sub(1).map_or(&[][..], |before| &entries[before].0);
        let shared = if place.is_multiple_of(RESTART_INTERVAL) {
            restarts.u32(heads.len() as u32);
            restarts.u32(values.len() as u32);
            0
        } else {
            common_prefix(before, key).saturating_sub(less[place % less.len()])
        };
        let lens = [shared, key.len() - shared, value.len()];
        lens.iter().for_each(|len| heads.varint(*len as u64));
        heads.varint(sequence << KIND_BITS | *kind as u64);
        heads.bytes(&key[shared..]);
        values.bytes(value);
    }
    let mut block = Writer::new();
    block.u32((restarts.len() / RESTART_SIZE) as u32);
    block.u32(heads.len() as u32);
    [restarts, heads, values].iter().for_each(|part| block.bytes(part.as_slice()));
    block.finish()
}

/// Sorted entries, keys over a small alphabet so that prefixes and versions abound.
fn entries() -> impl Strategy<Value = Vec<Owned>> {
    let key = prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 0xff]), 0..12);
    let kind = prop::sample::select(vec![Kind::Put, Kind::Delete]);
    let value = prop::collection::vec(any::<u8>(), 0..20);
    prop::collection::vec((key, 0u64..40, kind, value), 1..120).prop_map(|mut list| {
        list.sort_by(|a, b| order((&a.0, Sequence(a.1)), (&b.0, Sequence(b.1))));
        list.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
        list
    })
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let owned = |key: &str, sequence, kind, value: &str| {
        (key.as_bytes().to_vec(), sequence, kind, value.as_bytes().to_vec())
    };
    let raw = build(&[
        owned("drum", 300, Kind::Put, "x"),
        owned("drum", 2, Kind::Delete, ""),
        owned("drums", 1, Kind::Put, "yz"),
    ]);
    let expected = [
        1, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // one restart, 18 bytes of heads
        0, 4, 1, 0xe0, 0x12, b'd', b'r', b'u', b'm', // 300 << 3 | put
        4, 0, 0, 17, // 2 << 3 | delete
        4, 1, 2, 8, b's', // 1 << 3 | put
        b'x', b'y', b'z', // the values
    ];
    assert_eq!(raw, expected);
    let mut sealed = Vec::new();
    seal(&raw, &mut Packer::new(Compression::None, None), PLACE, &mut sealed);
    assert_eq!(sealed[..raw.len()], expected);
    assert_eq!(sealed[raw.len()..], SEAL);
}

const PLACE: BlockPlace = BlockPlace { file: 6, offset: 4096 };
const SEAL: [u8; 5] = [0, 81, 233, 43, 211];

#[test]
fn a_block_is_sound_in_its_own_place_alone() {
    let raw = build(&[(b"key".to_vec(), 5, Kind::Put, b"value".to_vec())]);
    let mut sealed = Vec::new();
    seal(&raw, &mut Packer::new(Compression::None, None), PLACE, &mut sealed);
    assert!(unseal(&sealed, PLACE, None).is_ok());
    for offset in (0..4096).chain(4097..100_000).chain((13..30).map(|bits| 4096 + (1 << bits))) {
        assert!(unseal(&sealed, BlockPlace { offset, ..PLACE }, None).is_err(), "at {offset}");
    }
    for file in (0..6).chain(7..100_000).chain((17..60).map(|bits| 6 + (1 << bits))) {
        assert!(unseal(&sealed, BlockPlace { file, ..PLACE }, None).is_err(), "in {file}");
    }
}

#[test]
fn large_numbers_fit() {
    let long = vec![7u8; 70_000];
    let list = vec![
        (long.clone(), SEQUENCE_MAX.0, Kind::Put, vec![1; 300_000]),
        (long.clone(), 0, Kind::PutWithExpiry, vec![]),
    ];
    let block = Block::new(&build(&list)).unwrap();
    let found = block.get(&long, Sequence::MAX).unwrap();
    assert_eq!((found.0, found.2.len()), (SEQUENCE_MAX, 300_000));
    assert_eq!(block.get(&long, Sequence(5)).unwrap().1, Kind::PutWithExpiry);
}

#[test]
fn compressible_blocks_are_compressed() {
    let list: Vec<Owned> = (0..40u8).map(|i| (vec![i, 1], 5, Kind::Put, vec![i; 100])).collect();
    let raw = build(&list);
    let (mut packed, mut plain) = (Vec::new(), Vec::new());
    seal(&raw, &mut Packer::new(Compression::Lz4, None), PLACE, &mut packed);
    seal(&raw, &mut Packer::new(Compression::None, None), PLACE, &mut plain);
    assert!(packed.len() < raw.len() / 2 && plain.len() == raw.len() + 5);
    for sealed in [packed, plain] {
        let block = unseal(&sealed, PLACE, None).unwrap();
        assert_eq!((&block.memory.slice, block.entry_count()), (raw.as_slice(), 40));
        for len in 0..sealed.len() {
            assert!(unseal(&sealed[..len], PLACE, None).is_err(), "cut at {len}");
        }
        for at in 0..sealed.len() * 8 {
            let mut bytes = sealed.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(unseal(&bytes, PLACE, None).is_err(), "bit {at}");
        }
    }
}

impl Block {
    /// The newest entry of `key` with a sequence number of at most `at`.
    pub(crate) fn get(&self, key: &[u8], at: Sequence) -> Option<(Sequence, Kind, Range<usize>)> {
        let Sought { entry, .. } = self.seek(key, at).filter(|sought| sought.is_of_key)?;
        Some((entry.sequence, entry.kind, entry.value_at..entry.next.value))
    }
}

proptest! {
    #[test]
    fn get_finds_the_newest_entry_that_is_visible(list in entries()) {
        let block = Block::new(&build(&list)).unwrap();
        prop_assert_eq!(block.entry_count(), list.len());
        let mut keys: Vec<Vec<u8>> = list.iter().map(|owned| owned.0.clone()).collect();
        keys.extend(list.iter().map(|owned| [&owned.0[..], &[0]].concat()));
        keys.extend([vec![], vec![0xff; 20], vec![b'a'], vec![b'b'], vec![0, b'a']]);
        for key in &keys {
            for at in [0, 1, 5, 20, 39, u64::MAX] {
                let expected = list.iter().find(|owned| owned.0 == *key && owned.1 <= at);
                let found = block.get(key, Sequence(at));
                let found = found.map(|(sequence, kind, range)| {
                    (sequence.0, kind, block.bytes(range).to_vec())
                });
                let expected = expected.map(|owned| (owned.1, owned.2, owned.3.clone()));
                prop_assert_eq!(found, expected, "{:?} at {}", key, at);
            }
        }
    }

    #[test]
    fn cursors_go_where_the_list_goes(list in entries(), moves in prop::collection::vec((0u8..6, any::<prop::sample::Index>()), 1..60)) {
        let block = Block::new(&build(&list)).unwrap();
        let mut cursor = BlockCursor::new(block);
        let mut place: Option<usize> = None;
        for (action, index) in moves {
            let mut key = list[index.index(list.len())].0.clone();
            if index.index(3) == 0 {
                key.push(0);
            }
            let first_at = list.partition_point(|owned| owned.0 < key);
            match (action, place) {
                (0, _) => { cursor.seek(&key); place = Some(first_at) }
                (1, _) => { cursor.seek_before(&key); place = first_at.checked_sub(1) }
                (2, _) => { cursor.seek_first(); place = Some(0) }
                (3, _) => { cursor.seek_last(); place = list.len().checked_sub(1) }
                (4, Some(at)) if at < list.len() => { cursor.next(); place = Some(at + 1) }
                (5, Some(at)) if at < list.len() => { cursor.prev(); place = at.checked_sub(1) }
                _ => continue,
            }
            let expected = place.and_then(|at| list.get(at)).map(entry);
            prop_assert_eq!(cursor.entry(), expected);
        }
    }

    // A cursor used to land before the sought key. Then it returned keys outside of a range, or
    // never came to its end.
    #[test]
    fn what_shares_less_than_it_could_is_found_all_the_same(
        list in entries(), less in prop::collection::vec(0usize..4, 1..20),
    ) {
        let block = Block::new(&build_sharing_less(&list, &less)).unwrap();
        let mut cursor = BlockCursor::new(block.clone());
        let keys = list.iter().flat_map(|owned| [owned.0.clone(), [&owned.0[..], &[0]].concat()]);
        for key in keys.chain([vec![], vec![b'b']]) {
            cursor.seek(&key);
            prop_assert_eq!(cursor.entry(), list.iter().find(|owned| owned.0 >= key).map(entry));
            for at in [0, 5, 39] {
                let expected = list.iter().find(|owned| owned.0 == key && owned.1 <= at);
                let found = block.get(&key, Sequence(at)).map(|(sequence, ..)| sequence.0);
                prop_assert_eq!(found, expected.map(|owned| owned.1));
            }
        }
    }

    #[test]
    fn rubbish_is_an_error_or_a_block_that_can_be_read(
        list in entries(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = build(&list);
        for (index, value) in flips {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(block) = Block::new(&bytes) {
            list.iter().for_each(|owned| {
                block.get(&owned.0, Sequence(owned.1));
            });
            let mut cursor = BlockCursor::new(block.clone());
            cursor.seek_first();
            let mut count = 0;
            while cursor.entry().is_some() {
                count += 1;
                cursor.next();
            }
            prop_assert_eq!(count, block.entry_count());
            for owned in &list {
                cursor.seek(&owned.0);
                cursor.seek_before(&owned.0);
            }
            cursor.seek_last();
            while cursor.entry().is_some() {
                cursor.prev();
            }
        }
    }
}

proptest! {
    // Sequence numbers of every length, also at the end of a block: decoding by words must match
    // encoding by bytes.
    #[test]
    fn sequence_numbers_of_any_length_are_read(
        bits in prop::collection::vec((0u32..61, any::<u64>()), 1..40),
    ) {
        let list: Vec<Owned> = (0u8..)
            .zip(&bits)
            .map(|(key, (bits, number))| {
                (vec![key], number & ((1u64 << bits) - 1), Kind::Put, Vec::new())
            })
            .collect();
        let block = Block::new(&build(&list)).unwrap();
        let mut cursor = BlockCursor::new(block);
        cursor.seek_first();
        for owned in &list {
            prop_assert_eq!(cursor.entry(), Some(entry(owned)));
            cursor.next();
        }
        prop_assert_eq!(cursor.entry(), None);
    }
}
