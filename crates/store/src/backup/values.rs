//! Shipped long values: each is an object of its own, whatever its length.
//! ```text
//! ship      reader of the store -> value-WRITE-LENGTH-MARK -> then the changes that name it
//! restore   object -> a value file, piece by piece -> checked -> its reference, with its batch
//! ```
//! Invariants: a name means one value of one write, so shipping the value again stores the same
//! bytes. An object is stored before changes name it; an object that no changes name is garbage.
//! Memory holds at most a piece of a value, or a whole value that is too short to stream.

use trommel_filters::{Corrupt, Reader, Writer};

use super::object_store::ObjectStore;
use super::stored::{self, StoredReader, Summed, path_of};
use crate::entries::entry::VALUE_BYTES_MAX;
use crate::entries::value_ref::VALUE_APART_BYTES_MAX;
use crate::error::{Error, Result};
use crate::files::value_files::PutValue;
use crate::read::changes::{LongValue, ReadWhole};
use crate::tools::progress::Steps;
use crate::tree::table_files::TableFiles;

pub(super) const PREFIX: &str = "value-";
/// The values apart that changes have. Others are objects of their own.
pub(super) const IN_CHANGES: ReadWhole = ReadWhole { value_below: 1 << 20, batch_bytes: 1 << 30 };
/// Values of at least this many bytes are restored as a stream, each into its own value file.
/// Shorter ones share files, as if they had been put.
const STREAMED_BYTES_MIN: u64 = 4 << 20;

/// The name of such an object, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueName {
    /// The number of the write.
    pub(super) sequence: u64,
    pub(super) bytes: u64,
    /// The checksum in the store's reference. Another store of the same origin may have a different
    /// value under the same number.
    pub(super) mark: u32,
}

impl ValueName {
    pub(super) fn of(name: &str) -> Option<ValueName> {
        let [sequence, bytes, mark] = name.strip_prefix(PREFIX)?.split('-').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let mark = u32::from_str_radix(mark, 16).ok()?;
        let parsed =
            ValueName { sequence: sequence.parse().ok()?, bytes: bytes.parse().ok()?, mark };
        (parsed.name() == name).then_some(parsed)
    }

    pub(super) fn name(self) -> String {
        format!("{PREFIX}{:020}-{}-{:08x}", self.sequence, self.bytes, self.mark)
    }
}

/// A long value, as changes describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShippedValue {
    pub(super) name: ValueName,
    /// The CRC-32C of the value.
    pub(super) checksum: u32,
}

impl ShippedValue {
    /// Encodes the value without the number of the write, which the change has.
    pub(super) fn encode(&self, out: &mut Writer) {
        out.varint(self.name.bytes);
        out.u32(self.name.mark);
        out.u32(self.checksum);
    }

    /// Decodes the value of a write.
    pub(super) fn decode(
        sequence: u64,
        input: &mut Reader<'_>,
    ) -> std::result::Result<ShippedValue, Corrupt> {
        let (bytes, mark, checksum) = (input.varint()?, input.u32()?, input.u32()?);
        if !(1..=VALUE_APART_BYTES_MAX).contains(&bytes) {
            return Err(input.corrupt("a long value of a length that none has"));
        }
        Ok(ShippedValue { name: ValueName { sequence, bytes, mark }, checksum })
    }

    fn expected(&self) -> (u64, u32) {
        (self.name.bytes, self.checksum)
    }

    /// Reads and checks the value. Returns its length.
    ///
    /// # Errors
    /// `Corrupt`: the bytes differ from those stored. `FileMissing`: the object does not exist.
    /// `Io`.
    pub(super) fn check(&self, objects: &dyn ObjectStore) -> Result<u64> {
        stored::read(objects, &self.name.name(), self.expected(), |_| Ok(()))?;
        Ok(self.name.bytes)
    }
}

/// Stores a long value.
pub(super) fn put(objects: &dyn ObjectStore, value: LongValue) -> Result<ShippedValue> {
    let LongValue { sequence, mark, reader } = value;
    let name = ValueName { sequence, bytes: reader.len(), mark };
    let (object, mut source) = (name.name(), Summed::new(reader));
    // An error while reading the value names the store, not the object.
    let put = objects.put(&object, name.bytes, &mut source);
    put.map_err(Error::io(path_of(objects, &object)))?;
    Ok(ShippedValue { name, checksum: source.checksum })
}

/// A restored value, checked.
pub(super) enum Fetched {
    /// The value is in a value file, which is held until the reference is written.
    Apart(PutValue),
    Whole(Vec<u8>),
}

/// Restores a value into a tree.
///
/// # Errors
/// As for [`check`](ShippedValue::check). `ValueTooLong`: the tree stores no values apart.
pub(super) fn fetch(
    objects: &dyn ObjectStore,
    value: &ShippedValue,
    to: &TableFiles,
    steps: &mut Steps<'_, '_>,
) -> Result<Fetched> {
    let (bytes, is_off) = (value.name.bytes, to.options.value_threshold == 0);
    let mut source = StoredReader::open(objects, &value.name.name(), value.expected())?;
    if is_off && bytes > VALUE_BYTES_MAX as u64 {
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        return Err(Error::ValueTooLong { len, max: VALUE_BYTES_MAX });
    }
    let mut fill = |room: &mut [u8]| {
        source.fill(room)?;
        steps.advance(room.len() as u64)
    };
    let fetched = match is_off || bytes < STREAMED_BYTES_MIN {
        true => {
            let mut whole = vec![0; bytes as usize];
            fill(&mut whole)?;
            Fetched::Whole(whole)
        }
        false => Fetched::Apart(to.values.put_from(bytes, fill)?),
    };
    source.end()?;
    Ok(fetched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_value_they_are_of() {
        let name = ValueName { sequence: 41, bytes: 300, mark: 0x0403_0201 };
        assert_eq!(name.name(), "value-00000000000000000041-300-04030201");
        assert_eq!(ValueName::of(&name.name()), Some(name));
        let others = [
            "value-41-300-04030201",
            "value-00000000000000000041-300-4030201",
            "value-00000000000000000041-0300-04030201",
            "value-00000000000000000041-300-04030201-1",
            "value-00000000000000000041-300",
            "value-words",
            "changes-00000000000000000041-300-04030201",
        ];
        others.iter().for_each(|name| assert_eq!(ValueName::of(name), None, "{name}"));
    }
}
