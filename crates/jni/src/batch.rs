//! Batches: writes that become visible together.
//! ```text
//! tag | key length | value length | key | value         1 to 5: as `Batch::from_packed` reads them
//! 6 following writes go into a key space: the value is its index in the list of handles, a u32 in
//!   little-endian order
//! 7 only if the key has this value     8 only if the key has no value
//! ```
//! Invariant: malformed bytes are an error, and nothing is written.

use std::time::Duration;

use jni_sys::{jboolean, jbyteArray, jint, jlongArray};
use trommel::{Batch, Keyspace};

use crate::border::Handle;
use crate::bytes::{Cutter, Room};
use crate::error::{Failure, Outcome};
use crate::reader::Reader;

pub(crate) const PUT: u8 = 1;
pub(crate) const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;
const PUT_TTL: u8 = 4;
const MERGE: u8 = 5;
pub(crate) const INTO_KEYSPACE: u8 = 6;
const ONLY_IF: u8 = 7;
const ONLY_IF_ABSENT: u8 = 8;

/// Parses the writes of a buffer.
fn batch_of(bytes: &[u8], keyspaces: &[&Keyspace]) -> Outcome<Batch> {
    let (mut batch, mut cutter) = (Batch::new(), Cutter::new(bytes));
    while !cutter.is_at_end() {
        let start = cutter.at();
        let malformed = |what: &str| Failure::malformed(start, what.into());
        let tag = cutter.byte()?;
        let (key, value) = cutter.row()?;
        match tag {
            PUT => batch.put(key, value),
            DELETE if value.is_empty() => batch.delete(key),
            DELETE_RANGE => batch.delete_range(key, value),
            PUT_TTL => {
                let (lifetime, value) =
                    value.split_first_chunk().ok_or_else(|| malformed("a lifetime has 8 bytes"))?;
                batch.put_ttl(key, value, Duration::from_nanos(u64::from_le_bytes(*lifetime)))
            }
            MERGE => batch.merge(key, value),
            INTO_KEYSPACE => {
                let place = value.try_into().map(|place| u32::from_le_bytes(place) as usize);
                let keyspace = place.ok().and_then(|place| keyspaces.get(place));
                batch.to(keyspace.ok_or_else(|| malformed("there is no such key space"))?)
            }
            ONLY_IF => batch.only_if(key, Some(value)),
            ONLY_IF_ABSENT if value.is_empty() => batch.only_if(key, None),
            _ => return Err(malformed("no write begins so")),
        };
    }
    Ok(batch)
}

native! {
    "write" fn write(
        env,
        of: Handle<Reader>,
        writes: jbyteArray,
        len: jint,
        keyspaces: jlongArray,
        is_synced: jboolean,
    ) -> () {
        let mut room = Room::new();
        let (reader, writes) = (of.get()?, env.bytes(&mut room, writes, len)?);
        let handles: Vec<Handle<Reader>> =
            env.numbers(keyspaces)?.into_iter().map(|it| Handle::of_number(it as u64)).collect();
        let keyspaces: Vec<&Keyspace> = handles
            .iter()
            .map(|handle| handle.get()?.keyspace_of(reader.opening))
            .collect::<Outcome<_>>()?;
        let batch = batch_of(writes, &keyspaces)?;
        match is_synced {
            true => reader.db.write_synced(batch)?,
            false => reader.db.write(batch)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::push_row;

    fn write(tag: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        push_row(&mut bytes, key, value).expect("short");
        bytes
    }

    #[test]
    fn what_the_store_reads_is_read_as_the_store_does() {
        let lifetime = 3600u64.to_le_bytes();
        let bytes = [
            write(PUT, b"a", b"1"),
            write(DELETE, b"b", b""),
            write(DELETE_RANGE, b"c", b"d"),
            write(PUT_TTL, b"e", &[&lifetime[..], b"5"].concat()),
            write(MERGE, b"f", b"6"),
        ]
        .concat();
        let own = batch_of(&bytes, &[]).expect("well formed");
        let stores = Batch::from_packed(&bytes).expect("well formed");
        assert_eq!(format!("{own:?}"), format!("{stores:?}"));
        let expecting = [write(ONLY_IF, b"k", b"v"), write(ONLY_IF_ABSENT, b"l", b"")].concat();
        assert_eq!(batch_of(&expecting, &[]).expect("well formed").len(), 0);
    }

    #[test]
    fn other_bytes_are_errors() {
        let sound = write(PUT, b"key", b"value");
        for end in 1..sound.len() {
            assert!(batch_of(&sound[..end], &[]).is_err(), "{end} bytes are no write");
        }
        for wrong in [
            write(0, b"k", b""),
            write(9, b"k", b""),
            write(DELETE, b"k", b"v"),
            write(ONLY_IF_ABSENT, b"k", b"v"),
            write(PUT_TTL, b"k", b"7 bytes"),
            write(INTO_KEYSPACE, b"", &[0; 4]),
            write(INTO_KEYSPACE, b"", b"3"),
        ] {
            assert!(batch_of(&wrong, &[]).is_err(), "{wrong:?}");
        }
    }
}
