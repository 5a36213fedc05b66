//! The keys of a write batch, decoded from its bytes.
//! ```text
//! sequence number (8) | count (4) | record | record | ...
//! record   tag | [family, varint] | length, key | [length, value]
//! ```
//! Invariant: a batch with an unknown record is an error, and never a batch with fewer keys.

const HEADER_BYTES: usize = 12;

/// What a record does to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The key may exist from now on.
    Write,
    /// The key may be gone from now on, or all keys up to another one.
    Delete,
}

/// The batch has a record of an unknown kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownRecord;

/// Calls `each` for each record with the family's id, the action and the key.
pub(crate) fn walk(
    bytes: &[u8],
    mut each: impl FnMut(u32, Act, &[u8]),
) -> Result<(), UnknownRecord> {
    let mut rest = bytes.get(HEADER_BYTES..).ok_or(UnknownRecord)?;
    while let Some((&tag, behind)) = rest.split_first() {
        rest = behind;
        // A tag determines: whether a family follows, the action, the fields behind the key.
        let (has_family, act, parts) = match tag {
            0x0 | 0x7 => (false, Act::Delete, 0),
            0x4 | 0x8 => (true, Act::Delete, 0),
            0xf => (false, Act::Delete, 1),
            0xe => (true, Act::Delete, 1),
            0x1 | 0x2 | 0x16 => (false, Act::Write, 1),
            0x5 | 0x6 | 0x17 => (true, Act::Write, 1),
            // Data for the log only; the name of a prepared transaction.
            0x3 | 0xa => {
                part(&mut rest)?;
                continue;
            }
            // The begin of a prepared transaction.
            0x9 | 0xd => continue,
            _ => return Err(UnknownRecord),
        };
        let family = if has_family { varint(&mut rest)? } else { 0 };
        let key = part(&mut rest)?;
        (0..parts).try_for_each(|_| part(&mut rest).map(drop))?;
        each(family, act, key);
    }
    Ok(())
}

fn varint(rest: &mut &[u8]) -> Result<u32, UnknownRecord> {
    let mut number = 0;
    for shift in (0..u32::BITS).step_by(7) {
        let (&byte, behind) = rest.split_first().ok_or(UnknownRecord)?;
        *rest = behind;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(UnknownRecord)
}

fn part<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], UnknownRecord> {
    let len = varint(rest)? as usize;
    let (part, behind) = rest.split_at_checked(len).ok_or(UnknownRecord)?;
    *rest = behind;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocksdb::WriteBatch;

    #[test]
    fn all_records_of_a_batch_are_seen() {
        let mut batch = WriteBatch::default();
        batch.put(b"a", vec![7; 300]);
        batch.merge(b"b", b"");
        batch.delete(b"c");
        batch.put_log_data(b"beside");
        batch.single_delete(b"d");
        batch.delete_range(b"e", b"f");
        batch.put(vec![b'k'; 200], b"v");
        let mut seen = Vec::new();
        let walked = walk(batch.data(), |family, act, key| seen.push((family, act, key.to_vec())));
        assert_eq!(walked, Ok(()));
        let long = vec![b'k'; 200];
        let of = |act, key: &[u8]| (0, act, key.to_vec());
        let expected = [
            of(Act::Write, b"a"),
            of(Act::Write, b"b"),
            of(Act::Delete, b"c"),
            of(Act::Delete, b"d"),
            of(Act::Delete, b"e"),
            of(Act::Write, &long),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_unknown_or_cut_is_known_as_such() {
        let mut batch = WriteBatch::default();
        batch.put(b"key", b"value");
        let bytes = batch.data();
        for len in 0..bytes.len() {
            let is_header = len == HEADER_BYTES;
            assert_eq!(walk(&bytes[..len], |_, _, _| {}).is_ok(), is_header, "{len} bytes");
        }
        for tag in (0xb..=0xc).chain([0x10, 0x11, 0x14, 0x18, 0x19, 0x7f, 0xff]) {
            let mut other = bytes.to_vec();
            other[HEADER_BYTES] = tag;
            assert_eq!(walk(&other, |_, _, _| {}), Err(UnknownRecord), "tag {tag}");
        }
    }
}
