//! The last write of each key of a batch, in the order of keys.
//! ```text
//! batch    b=1  a=2  delete c  b=3        encoded as in `batch.rs`; only puts and deletes
//! sorted   a=2  b=3  delete c
//! order    8 bytes of the key behind the prefix that all keys share | index in the batch
//! ```
//! Invariant: keys ascend, and each occurs once, with its last write.

use crate::batch::{DELETE, INTO_KEYSPACE, PUT};
use crate::bytes::Cutter;
use crate::error::{Failure, Outcome};

/// A key and its value. None: a deletion.
type Write<'b> = (&'b [u8], Option<&'b [u8]>);

/// The last write of each key, sorted.
pub(crate) struct Sorted<'b> {
    pub(crate) puts: Vec<(&'b [u8], &'b [u8])>,
    pub(crate) deletes: Vec<&'b [u8]>,
}

impl<'b> Sorted<'b> {
    /// Sorts the writes of a buffer. The first one may direct them into a key space; it is skipped.
    pub(crate) fn of(bytes: &'b [u8]) -> Outcome<Sorted<'b>> {
        let writes = writes(bytes)?;
        let mut sorted = Sorted { puts: Vec::with_capacity(writes.len()), deletes: Vec::new() };
        let mut before = None;
        for place in order(&writes)? {
            let (key, value) = writes[place as usize];
            if before == Some(key) {
                continue;
            }
            before = Some(key);
            match value {
                Some(value) => sorted.puts.push((key, value)),
                None => sorted.deletes.push(key),
            }
        }
        Ok(sorted)
    }
}

fn writes(bytes: &[u8]) -> Outcome<Vec<Write<'_>>> {
    let (mut writes, mut cutter) = (Vec::new(), Cutter::new(bytes));
    while !cutter.is_at_end() {
        let start = cutter.at();
        let tag = cutter.byte()?;
        let (key, value) = cutter.row()?;
        match tag {
            PUT => writes.push((key, Some(value))),
            DELETE if value.is_empty() => writes.push((key, None)),
            INTO_KEYSPACE if start == 0 => {}
            _ => return Err(Failure::argument("batch: it has more than puts and deletes")),
        }
    }
    Ok(writes)
}

/// Indexes of the writes, by key. Of several writes of a key the last comes first.
fn order(writes: &[Write<'_>]) -> Outcome<impl Iterator<Item = u32>> {
    let count = u32::try_from(writes.len());
    let count = count.map_err(|_| Failure::argument("batch: it has more than 4 billion writes"))?;
    let common = common_prefix(writes);
    let mut order: Vec<(u64, u32)> =
        (0..count).map(|place| (head(writes[place as usize].0, common), place)).collect();
    order.sort_unstable_by(|one, other| {
        let key = |place: u32| writes[place as usize].0;
        let by_key = one.0.cmp(&other.0).then_with(|| key(one.1).cmp(key(other.1)));
        by_key.then(other.1.cmp(&one.1))
    });
    Ok(order.into_iter().map(|(_, place)| place))
}

/// The length of the prefix that all keys share.
fn common_prefix(writes: &[Write<'_>]) -> usize {
    let Some((first, _)) = writes.first() else { return 0 };
    writes.iter().fold(first.len(), |common, (key, _)| {
        let alike = first.iter().zip(*key).take(common).take_while(|(one, other)| one == other);
        alike.count()
    })
}

/// Bytes of a key from `from` on, as a number: a greater number means a greater key.
fn head(key: &[u8], from: usize) -> u64 {
    let rest = &key[from..];
    let mut head = [0; size_of::<u64>()];
    let len = rest.len().min(head.len());
    head[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bytes::push_row;

    fn push(bytes: &mut Vec<u8>, tag: u8, key: &[u8], value: &[u8]) {
        bytes.push(tag);
        push_row(bytes, key, value).expect("short");
    }

    #[test]
    fn the_last_write_of_each_key_is_left_as_in_a_map() {
        for (prefix, letters) in [("", 3), ("all keys begin with this", 4), ("", 256)] {
            let (mut bytes, mut map) = (Vec::new(), BTreeMap::new());
            push(&mut bytes, INTO_KEYSPACE, b"", &[0; 4]);
            let mut state = 1u64;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % below
            };
            for number in 0..2_000u32 {
                let mut key = prefix.as_bytes().to_vec();
                let len = random(12);
                key.extend((0..len).map(|_| random(letters) as u8));
                let value = (random(4) > 0).then(|| number.to_le_bytes().to_vec());
                let tag = if value.is_some() { PUT } else { DELETE };
                push(&mut bytes, tag, &key, value.as_deref().unwrap_or_default());
                map.insert(key, value);
            }
            let sorted = Sorted::of(&bytes).expect("puts and deletes");
            let puts = map.iter().filter_map(|(key, value)| Some((&key[..], value.as_deref()?)));
            assert!(sorted.puts.iter().copied().eq(puts));
            let deletes = map.iter().filter(|(_, value)| value.is_none());
            assert!(!sorted.deletes.is_empty());
            assert!(sorted.deletes.iter().copied().eq(deletes.map(|(key, _)| &key[..])));
        }
    }

    #[test]
    fn other_writes_are_errors() {
        let mut sound = Vec::new();
        push(&mut sound, PUT, b"key", b"value");
        for (tag, value) in [(INTO_KEYSPACE, &[0; 4][..]), (3, b"z"), (5, b"1"), (DELETE, b"v")] {
            let mut bytes = sound.clone();
            push(&mut bytes, tag, b"l", value);
            assert!(Sorted::of(&bytes).is_err(), "tag {tag}");
        }
        for end in 1..sound.len() {
            assert!(Sorted::of(&sound[..end]).is_err(), "{end} bytes are no write");
        }
        assert!(Sorted::of(&[]).expect("no writes").puts.is_empty());
    }
}
