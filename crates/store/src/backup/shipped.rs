//! The bytes of shipped changes.
//! ```text
//! changes-FROM-TO-TIME   magic | version | key spaces | marks | batches | checksum
//! key space              number, name, options, last write if it has no log
//! mark                   a write, and a time by which all writes up to it were begun
//! batch                  count | number, key space, kind, key, value | ...
//! long value             length and checksums in place of the value; an object has its bytes
//! ```
//! Invariants: an object has exactly the writes after FROM up to TO. Its key spaces are those of
//! the store at the time of shipping, since the change feed does not tell them.

use std::collections::{BTreeMap, BTreeSet};

use trommel_filters::{Corrupt, Reader, Writer};

use super::stored::{is_sound, text};
use super::values::ShippedValue;
use crate::entries::checksum;
use crate::entries::entry::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::entries::expiry::Expiry;
use crate::plan::store_layout::NAME_BYTES_MAX;
use crate::read::changes::{Change, ChangeBatch, ChangeKind};
use crate::tree::write_times::WriteTime;

const MAGIC: [u8; 8] = *b"TRMLCHNG";
/// The version of the format of shipped changes.
pub(super) const CHANGES_VERSION: u32 = 4;
/// The oldest version that can be read. It has no long values, and otherwise is as the third.
const CHANGES_VERSION_MIN: u32 = 2;
/// The oldest version with marks. The third has none, and is otherwise the same.
const MARKED_VERSION_MIN: u32 = 4;
/// This is added to the number of a put's kind if its value is long.
const LONG: u8 = 5;

type Decoded<T> = std::result::Result<T, Corrupt>;

/// A key space at the time of shipping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShippedSpace {
    pub(super) name: String,
    /// The options that the store kept, as texts by name.
    pub(super) options: BTreeMap<String, String>,
    /// None: the key space has a log, and its changes are shipped. Otherwise no write after this
    /// one went into it.
    pub(super) unlogged: Option<u64>,
}

/// The key spaces of a store, by their numbers.
pub(super) type ShippedSpaces = BTreeMap<u32, ShippedSpace>;

/// A batch whose long values are separate objects. These values are empty in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShippedBatch {
    pub(super) batch: ChangeBatch,
    /// The long values, by the numbers of their writes.
    pub(super) values: BTreeMap<u64, ShippedValue>,
}

/// The beginning of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The key spaces, and the marks in the order of their writes.
    Known(ShippedSpaces, Vec<WriteTime>),
    /// Another version wrote it.
    OfVersion(u32),
}

/// Batches that are collected into an object.
#[derive(Default)]
pub(super) struct Part {
    out: Writer,
    /// The number of the last write. 0: there is none yet.
    pub(super) last: u64,
}

impl Part {
    /// Returns the bytes of the batches.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn add(&mut self, ShippedBatch { batch, values }: &ShippedBatch) {
        self.last = batch.sequence();
        self.out.varint(batch.changes.len() as u64);
        for change in &batch.changes {
            self.out.varint(change.sequence);
            self.out.varint(u64::from(change.keyspace));
            self.add_kind(change, values.get(&change.sequence));
        }
    }

    fn add_kind(&mut self, Change { key, kind, .. }: &Change, long: Option<&ShippedValue>) {
        let (number, value): (u8, &[u8]) = match kind {
            ChangeKind::Put(value) => (0, value),
            ChangeKind::PutWithExpiry { value, .. } => (1, value),
            ChangeKind::Merge(operand) => (2, operand),
            ChangeKind::Delete => (3, &[]),
            ChangeKind::DeleteRange { to } => (4, to),
        };
        self.out.u8(if long.is_some() { number + LONG } else { number });
        self.out.string(key);
        match long {
            Some(long) => long.encode(&mut self.out),
            None => self.out.string(value),
        }
        if let ChangeKind::PutWithExpiry { expiry, .. } = kind {
            self.out.varint(expiry.milliseconds());
        }
    }

    pub(super) fn encode(self, spaces: &ShippedSpaces, marks: &[WriteTime]) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(&MAGIC);
        out.u32(CHANGES_VERSION);
        out.varint(spaces.len() as u64);
        for (number, space) in spaces {
            out.varint(u64::from(*number));
            out.string(space.name.as_bytes());
            out.varint(space.options.len() as u64);
            for text in space.options.iter().flat_map(|(name, text)| [name, text]) {
                out.string(text.as_bytes());
            }
            // 0: the key space has a log.
            out.varint(space.unlogged.map_or(0, |through| through.saturating_add(1)));
        }
        out.varint(marks.len() as u64);
        let mut before = 0;
        for mark in marks {
            out.varint(mark.sequence - before);
            out.varint(mark.milliseconds);
            before = mark.sequence;
        }
        out.bytes(self.out.as_slice());
        out.u32(checksum::crc32c(out.as_slice()));
        out.finish()
    }
}

/// Reads the beginning of an object. Its batches and its checksum follow.
pub(super) fn head(bytes: &[u8], input: &mut Reader<'_>) -> Decoded<Head> {
    if input.bytes(MAGIC.len())? != MAGIC {
        return Err(Corrupt { at: 0, what: "no changes that were shipped" });
    }
    let version = input.u32()?;
    if !(CHANGES_VERSION_MIN..=CHANGES_VERSION).contains(&version) {
        return Ok(Head::OfVersion(version));
    }
    if !is_sound(bytes) {
        return Err(input.corrupt("the checksum of shipped changes does not match"));
    }
    let (mut spaces, mut names) = (ShippedSpaces::new(), BTreeSet::new());
    for _ in 0..input.varint()? {
        let (number, space) = (number_of(input)?, space(input)?);
        let is_named = (1..=NAME_BYTES_MAX).contains(&space.name.len());
        let is_new = names.insert(space.name.clone()) && !spaces.contains_key(&number);
        if !is_named || !is_new {
            return Err(input.corrupt("a key space that cannot be"));
        }
        spaces.insert(number, space);
    }
    let marks = if version >= MARKED_VERSION_MIN { marks(input)? } else { Vec::new() };
    Ok(Head::Known(spaces, marks))
}

fn marks(input: &mut Reader<'_>) -> Decoded<Vec<WriteTime>> {
    let (mut marks, mut before) = (Vec::new(), 0u64);
    for _ in 0..input.varint()? {
        let (step, milliseconds) = (input.varint()?, input.varint()?);
        let sequence = before.checked_add(step).filter(|it| *it > before);
        before = sequence.ok_or_else(|| input.corrupt("marks out of order"))?;
        marks.push(WriteTime { sequence: before, milliseconds });
    }
    Ok(marks)
}

fn space(input: &mut Reader<'_>) -> Decoded<ShippedSpace> {
    let (name, mut options) = (text(input)?, BTreeMap::new());
    for _ in 0..input.varint()? {
        options.insert(text(input)?, text(input)?);
    }
    let unlogged = input.varint()?.checked_sub(1);
    Ok(ShippedSpace { name, options, unlogged })
}

fn number_of(input: &mut Reader<'_>) -> Decoded<u32> {
    let number = input.varint()?;
    u32::try_from(number).map_err(|_| input.corrupt("a key space that cannot be"))
}

/// Reads the next batch. None: no batch is left, only the checksum.
pub(super) fn next_batch(input: &mut Reader<'_>) -> Decoded<Option<ShippedBatch>> {
    if input.left() <= size_of::<u32>() {
        return Ok(None);
    }
    let (mut changes, mut values): (Vec<Change>, _) = (Vec::new(), BTreeMap::new());
    for _ in 0..input.varint()? {
        let (change, long) = change(input)?;
        if changes.last().is_some_and(|before| before.sequence >= change.sequence) {
            return Err(input.corrupt("writes out of order"));
        }
        values.extend(long.map(|long| (change.sequence, long)));
        changes.push(change);
    }
    match changes.is_empty() {
        true => Err(input.corrupt("a batch without writes")),
        false => Ok(Some(ShippedBatch { batch: ChangeBatch { changes }, values })),
    }
}

/// Reads a change. A long value is returned separately, and is empty in the change.
fn change(input: &mut Reader<'_>) -> Decoded<(Change, Option<ShippedValue>)> {
    let (sequence, keyspace, tag) = (input.varint()?, number_of(input)?, input.u8()?);
    let key = input.string()?.to_vec();
    let (number, value, long) = match tag {
        5 | 6 => (tag - LONG, Vec::new(), Some(ShippedValue::decode(sequence, input)?)),
        _ => (tag, input.string()?.to_vec(), None),
    };
    // The limit does not apply to long values, which are never read as a whole.
    let longest = if number == 4 { KEY_BYTES_MAX } else { VALUE_BYTES_MAX };
    if key.len() > KEY_BYTES_MAX || value.len() > longest {
        return Err(input.corrupt("a key or value that is too long"));
    }
    let kind = match number {
        0 => ChangeKind::Put(value),
        1 => {
            let expiry = Expiry::at_milliseconds(input.varint()?);
            ChangeKind::PutWithExpiry { value, expiry }
        }
        2 => ChangeKind::Merge(value),
        3 => ChangeKind::Delete,
        4 if key <= value => ChangeKind::DeleteRange { to: value },
        4 => return Err(input.corrupt("a range that ends before it begins")),
        _ => return Err(input.corrupt("a kind of change that is not known")),
    };
    Ok((Change { sequence, keyspace, keyspace_name: None, key, kind }, long))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::values::ValueName;

    fn spaces() -> ShippedSpaces {
        let space = |name: &str, options: &[(&str, &str)], unlogged| ShippedSpace {
            name: name.into(),
            options: options.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
            unlogged,
        };
        [
            (0, space("default", &[], None)),
            (3, space("cache", &[("block_bytes", "512"), ("log", "false")], Some(299))),
        ]
        .into()
    }

    fn batches() -> Vec<ShippedBatch> {
        let change = |sequence, keyspace, key: &[u8], kind| Change {
            sequence,
            keyspace,
            keyspace_name: None,
            key: key.to_vec(),
            kind,
        };
        let expiry = Expiry::at_milliseconds(300);
        let first = vec![
            change(41, 0, b"a", ChangeKind::Put(b"1".to_vec())),
            change(42, 3, b"b", ChangeKind::PutWithExpiry { value: b"2".to_vec(), expiry }),
        ];
        let second = vec![
            change(43, 0, b"c", ChangeKind::Merge(b"3".to_vec())),
            change(300, 0, b"", ChangeKind::Delete),
            change(301, 0, b"d", ChangeKind::DeleteRange { to: b"f".to_vec() }),
        ];
        let third = vec![
            change(302, 0, b"e", ChangeKind::Put(Vec::new())),
            change(303, 3, b"f", ChangeKind::PutWithExpiry { value: Vec::new(), expiry }),
        ];
        let long = |sequence| {
            let name = ValueName { sequence, bytes: 1 << 31, mark: 0x0403_0201 };
            (sequence, ShippedValue { name, checksum: 0x0807_0605 })
        };
        let batch = |changes, long: Vec<(u64, ShippedValue)>| ShippedBatch {
            batch: ChangeBatch { changes },
            values: long.into_iter().collect(),
        };
        vec![batch(first, vec![]), batch(second, vec![]), batch(third, vec![long(302), long(303)])]
    }

    fn marks() -> Vec<WriteTime> {
        let mark = |(sequence, milliseconds)| WriteTime { sequence, milliseconds };
        [(42, 1000), (301, 999), (303, 300)].map(mark).into()
    }

    fn encoded() -> Vec<u8> {
        let mut part = Part::default();
        batches().iter().for_each(|batch| part.add(batch));
        assert_eq!(part.last, 303);
        part.encode(&spaces(), &marks())
    }

    fn decoded(bytes: &[u8]) -> Decoded<(Head, Vec<ShippedBatch>)> {
        let mut input = Reader::new(bytes);
        let (head, mut all) = (head(bytes, &mut input)?, Vec::new());
        while let Head::Known(..) = head
            && let Some(batch) = next_batch(&mut input)?
        {
            all.push(batch);
        }
        Ok((head, all))
    }

    #[test]
    fn golden_bytes_of_changes() {
        let expected = [
            &b"TRMLCHNG"[..],
            &[4, 0, 0, 0, 2, 0],
            b"\x07default\x00\x00",
            b"\x03\x05cache\x02\x0bblock_bytes\x03512\x03log\x05false",
            &[0xac, 2],
            &[3, 42, 0xe8, 7, 0x83, 2, 0xe7, 7, 2, 0xac, 2],
            &[2, 41, 0, 0],
            b"\x01a\x011",
            &[42, 3, 1],
            b"\x01b\x012",
            &[0xac, 2, 3],
            &[43, 0, 2],
            b"\x01c\x013",
            &[0xac, 2, 0, 3, 0, 0],
            &[0xad, 2, 0, 4],
            b"\x01d\x01f",
            &[2, 0xae, 2, 0, 5],
            b"\x01e",
            &[0x80, 0x80, 0x80, 0x80, 8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xaf, 2, 3, 6],
            b"\x01f",
            &[0x80, 0x80, 0x80, 0x80, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0xac, 2],
        ];
        let (bytes, expected) = (encoded(), expected.concat());
        assert_eq!(bytes[..bytes.len() - 4], expected);
        assert_eq!(bytes[bytes.len() - 4..], checksum::crc32c(&expected).to_le_bytes());
        assert_eq!(decoded(&bytes), Ok((Head::Known(spaces(), marks()), batches())));
    }

    /// Corrects the checksum.
    fn mended(mut bytes: Vec<u8>) -> Vec<u8> {
        let (rest, sum) = bytes.split_last_chunk_mut::<4>().expect("it has a checksum");
        *sum = checksum::crc32c(rest).to_le_bytes();
        bytes
    }

    #[test]
    fn the_versions_before_are_read() {
        for (version, count) in [(2, 2), (3, 3)] {
            let mut part = Part::default();
            batches().iter().take(count).for_each(|batch| part.add(batch));
            let mut bytes = part.encode(&spaces(), &[]);
            bytes[8] = version;
            // The number of marks, in front of the first batch.
            let place = bytes.windows(4).position(|it| it == [0, 2, 41, 0]).expect("is there");
            bytes.remove(place);
            let shipped = (Head::Known(spaces(), Vec::new()), batches()[..count].to_vec());
            assert_eq!(decoded(&mended(bytes)), Ok(shipped), "version {version}");
        }
    }

    /// Their checksum is right, however. All that is required is that decoding ends.
    #[test]
    fn hostile_changes_end() {
        let bytes = encoded();
        for place in 12..bytes.len() - 4 {
            for byte in [0, 5, 6, 7, 0x7f, 0x80, 0xff] {
                let mut hostile = bytes.clone();
                hostile[place] = byte;
                let _ = decoded(&mended(hostile));
            }
            let _ = decoded(&mended(bytes[..place + 4].to_vec()));
        }
    }

    #[test]
    fn damaged_changes_are_refused_and_other_versions_named() {
        let bytes = encoded();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            let is_other = matches!(decoded(&damaged), Ok((Head::OfVersion(_), _)));
            let is_known = matches!(decoded(&damaged), Ok((Head::Known(..), _)));
            assert_eq!((is_known, is_other), (false, (8..12).contains(&place)), "byte {place}");
        }
        for len in 0..bytes.len() {
            let is_known = matches!(decoded(&bytes[..len]), Ok((Head::Known(..), _)));
            assert!(!is_known, "{len} bytes");
        }
    }

    /// Their checksum is right, however.
    #[test]
    fn what_no_store_ships_is_refused() {
        let refused = |spaces: &ShippedSpaces, batches: &[ShippedBatch]| {
            let mut part = Part::default();
            batches.iter().for_each(|batch| part.add(batch));
            decoded(&part.encode(spaces, &[])).expect_err("it cannot be").what
        };
        let twice = [marks()[0]; 2];
        let wrong = decoded(&Part::default().encode(&spaces(), &twice)).expect_err("out of order");
        assert_eq!(wrong.what, "marks out of order");
        let mut twice = spaces();
        twice.insert(4, twice[&3].clone());
        assert_eq!(refused(&twice, &[]), "a key space that cannot be");
        let mut nameless = spaces();
        nameless.entry(3).and_modify(|space| space.name.clear());
        assert_eq!(refused(&nameless, &[]), "a key space that cannot be");
        let mut turned = batches();
        turned[1].batch.changes.reverse();
        assert_eq!(refused(&spaces(), &turned), "writes out of order");
        let batch = ChangeBatch { changes: Vec::new() };
        let empty = ShippedBatch { batch, values: BTreeMap::new() };
        assert_eq!(refused(&spaces(), &[empty]), "a batch without writes");
        for bytes in [0, (1 << 40) + 1] {
            let mut absurd = batches();
            absurd[2].values.entry(302).and_modify(|long| long.name.bytes = bytes);
            assert_eq!(refused(&spaces(), &absurd), "a long value of a length that none has");
        }
    }
}
