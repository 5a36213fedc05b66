//! Tests of the log: round trips, and the distinction between torn and damaged logs.

use super::*;
use crate::entries::memtable_writes::GROUP_BYTES;
use crate::storage::memory::Memory;
use crate::storage::traits::Storage;

type Written<'a> = (Kind, &'a [u8], &'a [u8]);

fn encoded(first: u64, entries: &[Written<'_>]) -> Vec<u8> {
    encoded_of(first, &entries.iter().map(in_default).collect::<Vec<_>>())
}

fn in_default<'e>(&(kind, key, value): &Written<'e>) -> LoggedWrite<'e> {
    (KeyspaceId::DEFAULT, kind, key, value)
}

fn encoded_of(first: u64, entries: &[LoggedWrite<'_>]) -> Vec<u8> {
    let mut out = Writer::new();
    [9, first, entries.len() as u64].into_iter().for_each(|number| out.varint(number));
    encode_writes(&mut out, first, entries.iter().copied().zip(first..));
    out.finish()
}

const MIXED: [Written<'_>; 4] = [
    (Kind::Put, b"key", b"value"),
    (Kind::Delete, b"", b""),
    (Kind::Put, b"key", b""),
    (Kind::DeleteRange, b"a", b"b"),
];

const DIR: &str = "db";
const NONE: Predecessor = Predecessor { wal: 0, valid_bytes: 0, last: None };
/// Bytes of header and predecessor record: the offset of the first group.
const GROUPS_AT: u64 = HEADER_SIZE as u64 + 16 + 2;

type Groups = Vec<(u64, usize)>;

fn replayed(disk: &Memory, number: u64, valid: Option<u64>) -> (Groups, Result<()>) {
    let mut groups = Vec::new();
    let result = replay(&OpenFolder::on(disk, DIR), number, valid, &mut |batch| {
        groups.push((batch.first.0, batch.entries.len()));
        Ok(())
    });
    (groups, result.map(drop))
}

fn log_path(number: u64) -> PathBuf {
    Path::new(DIR).join(wal_name(number))
}

fn log_of(disk: &Memory, number: u64, firsts: &[u64]) -> Wal {
    disk.create_dir(Path::new(DIR)).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    // Removes the log of an earlier call.
    let _ = disk.remove(&log_path(number));
    let mut wal =
        Wal::create((&OpenFolder::on(disk, DIR), Access::default()), number, NONE).unwrap();
    for &first in firsts {
        wal.append(Sequence(first), MIXED.len(), MIXED.iter().map(in_default).zip(first..))
            .unwrap();
    }
    wal
}

#[test]
fn the_bytes_are_those_of_the_format() {
    assert_eq!(header(), *b"TRMLWAL\0\x07\0\0\0");
    let expected = [
        9, // durable bytes
        0xac, 0x02, 4, // first sequence 300, four entries
        0, 3, b'k', b'e', b'y', 5, b'v', b'a', b'l', b'u', b'e', // put
        1, 0, // delete the empty key
        0, 3, b'k', b'e', b'y', 0, // put an empty value
        2, 1, b'a', 1, b'b', // delete [a, b)
    ];
    assert_eq!(encoded(300, &MIXED), expected);
}

#[test]
fn what_is_encoded_is_decoded() {
    let bytes = encoded(300, &MIXED);
    let batch = WalBatch::decode(&bytes).unwrap();
    assert_eq!((batch.durable_bytes, batch.first), (9, Sequence(300)));
    let decoded: Vec<_> = batch.entries.iter().map(|e| (e.kind, e.key, e.value)).collect();
    assert_eq!(decoded, MIXED);
    let sequences: Vec<_> = batch.entries.iter().map(|entry| entry.sequence.0).collect();
    assert_eq!(sequences, [300, 301, 302, 303]);
    assert_eq!(WalBatch::decode(&encoded(5, &[])).unwrap().entries, []);
}

#[test]
fn entries_of_key_spaces_are_told_apart() {
    let [put, delete, empty, _] = MIXED;
    let of = |number, (kind, key, value): Written<'static>| (KeyspaceId(number), kind, key, value);
    let writes = [of(0, put), of(3, delete), of(3, empty), of(0, delete), of(300, put)];
    let bytes = encoded_of(7, &writes);
    let expected = [
        9, 7, 5, // durable bytes, first sequence, five entries
        0, 3, b'k', b'e', b'y', 5, b'v', b'a', b'l', b'u', b'e', // of the default one
        64, 3, 1, 0, 0, 3, b'k', b'e', b'y', 0, // two of key space 3
        64, 0, 1, 0, // one of the default one
        64, 0xac, 2, 0, 3, b'k', b'e', b'y', 5, b'v', b'a', b'l', b'u', b'e', // of 300
    ];
    assert_eq!(bytes, expected);
    let batch = WalBatch::decode(&bytes).unwrap();
    let decoded: Vec<_> = batch.writes().map(|(it, e)| (it, e.kind, e.key, e.value)).collect();
    assert_eq!(decoded, writes);
    assert!(!batch.repeats);
    for len in 0..bytes.len() {
        assert!(WalBatch::decode(&bytes[..len]).is_err(), "cut at {len}");
    }
    let put = [0, 1, b'k', 1, b'v'];
    let group = |items: &[u8]| [&[0, 7, 1], items, &put].concat();
    assert!(WalBatch::decode(&group(&[65])).unwrap().repeats);
    for nonsense in
        [&[64, 1, 64, 2][..], &[64, 1, 65], &[65, 65], &[64, 0x80, 0x80, 0x80, 0x80, 0x10]]
    {
        assert!(WalBatch::decode(&group(nonsense)).is_err(), "{nonsense:?}");
    }
    assert!(WalBatch::decode(&[&group(&[])[..], &[65]].concat()).is_err(), "behind the entries");
}

#[test]
fn numbers_that_are_in_no_log_are_passed_over() {
    let put = |keyspace| (KeyspaceId(keyspace), Kind::Put, &b"k"[..], &b"v"[..]);
    let writes = [(put(0), 7), (put(0), 8), (put(3), 308), (put(3), 309)];
    let mut out = Writer::new();
    [9, 7, 4].into_iter().for_each(|number| out.varint(number));
    encode_writes(&mut out, 7, writes.into_iter());
    let bytes = out.finish();
    let item = [0, 1, b'k', 1, b'v'];
    let gap = [66, 0xab, 2, 64, 3];
    assert_eq!(bytes, [&[9, 7, 4][..], &item, &item, &gap, &item, &item].concat());
    let batch = WalBatch::decode(&bytes).unwrap();
    let numbers: Vec<_> = batch.writes().map(|(it, e)| (it.0, e.sequence.0)).collect();
    assert_eq!((numbers, batch.next()), (vec![(0, 7), (0, 8), (3, 308), (3, 309)], Sequence(310)));
    for len in 0..bytes.len() {
        assert!(WalBatch::decode(&bytes[..len]).is_err(), "cut at {len}");
    }
    let group = |first: &[u8], gap: &[u8]| [first, &[2], &item, gap, &item].concat();
    assert!(WalBatch::decode(&group(&[0, 7], &[66, 1])).is_ok());
    for nonsense in [&[66, 0][..], &[66, 1, 66, 1], &[64, 3, 66, 1]] {
        assert!(WalBatch::decode(&group(&[0, 7], nonsense)).is_err(), "{nonsense:?}");
    }
    let far = [66, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert!(WalBatch::decode(&group(&[0, 7], &far)).is_err(), "no store gives such numbers");
    assert!(WalBatch::decode(&[&[0, 7, 1, 66, 1][..], &item].concat()).is_err(), "before all");
    assert!(WalBatch::decode(&[&[0, 7, 1][..], &item, &[66, 1]].concat()).is_err(), "behind all");
}

#[test]
fn bytes_that_are_no_batch_are_errors() {
    let bytes = encoded(300, &MIXED);
    for len in 0..bytes.len() {
        assert!(WalBatch::decode(&bytes[..len]).is_err(), "cut at {len}");
    }
    assert!(WalBatch::decode(&[&bytes[..], &[0]].concat()).is_err());
    assert!(WalBatch::decode(&[0, 0, 1, 9, 1, b'k']).is_err(), "an unknown kind");
    let mut out = Writer::new();
    out.varint(0);
    out.varint(1);
    out.varint(u64::MAX);
    out.bytes(&[1, 0, 1, 0]);
    assert!(WalBatch::decode(out.as_slice()).is_err(), "a count that is a lie");
    let last = encoded(NUMBER_MAX + 1, &MIXED[..2]);
    assert!(WalBatch::decode(&last).is_err(), "sequence numbers that no store has");
    let two = [0, 0, 2, 64, 5, 1, 1, b'a', 1, 1, b'b'];
    assert!(WalBatch::decode(&two).is_ok());
    let again = [&two[..8], &[64, 5], &two[8..]].concat();
    assert!(WalBatch::decode(&again).is_err(), "a key space that goes on is named again");
    let default = [0, 0, 1, 64, 0, 1, 1, b'a'];
    assert!(WalBatch::decode(&default).is_err(), "the first one is named");
    let long = vec![0; KEY_BYTES_MAX + 1];
    assert!(WalBatch::decode(&encoded(1, &[(Kind::Delete, &long, b"")])).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(
        proptest::prop_oneof![6 => 0u8..8, 1 => 64u8..67], 0..60)
    ) {
        if let Ok(batch) = WalBatch::decode(&bytes) {
            let writes = batch.writes();
            let writes: Vec<_> = writes.map(|(space, e)| ((space, e.kind, e.key, e.value), e.sequence.0)).collect();
            let mut again = Writer::new();
            let numbers = [batch.durable_bytes, batch.first.0, writes.len() as u64];
            numbers.into_iter().for_each(|number| again.varint(number));
            encode_writes(&mut again, batch.first.0, writes.into_iter());
            proptest::prop_assert_eq!(again.finish(), bytes);
        }
    }
}

#[test]
fn a_false_count_of_entries_takes_no_memory() {
    let mut out = Writer::new();
    [9, 1, 1 << 19].into_iter().for_each(|number| out.varint(number));
    out.bytes(&[0xff; 1 << 20]);
    let payload = out.finish();
    let refused = || assert!(WalBatch::decode(&payload).is_err(), "no entry has such a kind");
    let taken = allocation_counter::measure(refused).bytes_max;
    assert!(taken < payload.len() as u64 / 4, "{taken} bytes for {}", payload.len());
}

#[test]
fn a_log_is_replayed() {
    let disk = Memory::new();
    let mut wal = log_of(&disk, 7, &[1, 5]);
    let (groups, result) = replayed(&disk, 7, None);
    result.unwrap();
    assert_eq!(groups, [(1, 4), (5, 4)]);
    assert_eq!(wal.valid_bytes(), GROUPS_AT, "no group is durable yet");
    wal.sync_alone().unwrap();
    assert_eq!(disk.file(log_path(7)).unwrap().len() as u64, wal.valid_bytes());
    assert_eq!(predecessor(&OpenFolder::on(&disk, DIR), 7).unwrap(), Some(NONE));
}

#[test]
fn a_crash_loses_a_suffix_and_never_half_a_group() {
    for seed in 0..300 {
        let disk = Memory::new();
        log_of(&disk, 7, &[1]).sync_alone().unwrap();
        let mut wal = log_of(&disk, 8, &[]);
        if seed % 2 == 0 {
            wal.sync_alone().unwrap();
        }
        for group in 0..5 {
            let writes = MIXED.iter().map(in_default).zip(group * 4..);
            wal.append(Sequence(group * 4), MIXED.len(), writes).unwrap();
        }
        let after = disk.crash(seed);
        assert_eq!(replayed(&after, 7, None).0.len(), 1);
        let (groups, result) = replayed(&after, 8, None);
        result.expect("a torn tail is silent");
        let expected: Groups = (0..groups.len() as u64).map(|group| (group * 4, 4)).collect();
        assert_eq!(groups, expected);
    }
}

#[test]
fn a_log_that_another_follows_has_all_its_bytes_and_no_more_count() {
    let disk = Memory::new();
    log_of(&disk, 7, &[1]);
    let first_group_ends = disk.file(log_path(7)).unwrap().len() as u64;
    let mut wal = log_of(&disk, 7, &[1, 5]);
    wal.sync_alone().unwrap();
    assert_eq!(replayed(&disk, 7, Some(first_group_ends)).0, [(1, 4)]);
    assert_eq!(replayed(&disk, 7, Some(wal.valid_bytes())).0, [(1, 4), (5, 4)]);
    disk.truncate(log_path(7), first_group_ends);
    let (_, result) = replayed(&disk, 7, Some(wal.valid_bytes()));
    assert!(matches!(result, Err(Error::Corrupt { .. })), "{result:?}");
}

#[test]
fn damage_and_other_versions_are_told_apart() {
    let disk = Memory::new();
    log_of(&disk, 7, &[1, 5]);
    disk.flip_bit(log_path(7), GROUPS_AT + 20, 0);
    assert_eq!(replayed(&disk, 7, None).0, [], "nothing was durable: a crash may leave that");
    let mut wal = log_of(&disk, 7, &[1, 5]);
    wal.sync_alone().unwrap();
    wal.mark_end(Sequence(9)).unwrap();
    disk.flip_bit(log_path(7), GROUPS_AT + 20, 0);
    match replayed(&disk, 7, None).1 {
        Err(Error::Corrupt { path, offset: GROUPS_AT, .. }) => assert_eq!(path, log_path(7)),
        other => panic!("{other:?}"),
    }
    let mut bytes = disk.file(log_path(7)).unwrap();
    bytes[8] = 4;
    disk.put_file(log_path(7), bytes);
    let result = replayed(&disk, 7, None).1;
    assert!(matches!(result, Err(Error::Version { found: 4, known: 7, .. })), "{result:?}");
    disk.put_file(log_path(7), b"another kind of file".as_slice());
    assert!(matches!(replayed(&disk, 7, None).1, Err(Error::Corrupt { .. })));
    disk.put_file(log_path(7), b"TRML".as_slice());
    assert_eq!(replayed(&disk, 7, None).0, []);
    assert_eq!(predecessor(&OpenFolder::on(&disk, DIR), 7).unwrap(), None);
    assert!(matches!(replayed(&disk, 9, None).1, Err(Error::Io { .. })));
}

#[test]
fn a_memtable_is_written_back_in_the_order_of_writing() {
    let disk = Memory::new();
    disk.create_dir(Path::new(DIR)).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    let memtable = Memtable::new(1 << 16);
    for (number, key) in [(3, "c"), (4, "a"), (9, "b"), (10, "a")] {
        memtable.insert(key.as_bytes(), Sequence(number), Kind::Put, b"v");
    }
    let before = Predecessor { wal: 6, valid_bytes: 0, last: None };
    let memtables = [(KeyspaceId::DEFAULT, Arc::new(memtable))];
    Wal::create_from((&OpenFolder::on(&disk, DIR), Access::default()), 7, before, &memtables)
        .unwrap();
    let disk = disk.crash_hard();
    assert_eq!(replayed(&disk, 7, None).0, [(3, 2), (9, 2), (11, 0)]);
    assert_eq!(predecessor(&OpenFolder::on(&disk, DIR), 7).unwrap(), Some(before));
}

// The whole memtable used to be one group. Above 4 GiB no record could hold it, and the store took
// no more writes.
#[test]
fn a_large_memtable_is_written_back_in_groups_of_bounded_length() {
    const VALUE_BYTES: usize = 100 << 10;
    let disk = Memory::new();
    disk.create_dir(Path::new(DIR)).unwrap();
    let memtable = Memtable::new(1 << 16);
    for number in 0..50u64 {
        let key = (number * 7 % 50).to_be_bytes();
        memtable.insert(&key, Sequence(1 + number), Kind::Put, &vec![7; VALUE_BYTES]);
    }
    memtable.insert(b"a", Sequence(51), Kind::DeleteRange, b"b");
    let memtables = [(KeyspaceId::DEFAULT, Arc::new(memtable))];
    Wal::create_from((&OpenFolder::on(&disk, DIR), Access::default()), 7, NONE, &memtables)
        .unwrap();
    let (groups, result) = replayed(&disk, 7, None);
    result.unwrap();
    let long = groups.iter().find(|(_, len)| len * VALUE_BYTES > GROUP_BYTES + 2 * VALUE_BYTES);
    assert_eq!(long, None, "{groups:?}");
    assert_eq!(groups.iter().map(|(_, len)| len).sum::<usize>(), 51);
    assert_eq!(groups.last(), Some(&(52, 0)), "it says that all before was durable");
    // They may have been one batch: a part of it alone must not count as the whole.
    disk.flip_bit(log_path(7), GROUPS_AT + 2 * GROUP_BYTES as u64, 0);
    assert!(matches!(replayed(&disk, 7, None).1, Err(Error::Corrupt { .. })));
}
