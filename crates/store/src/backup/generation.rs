//! A generation: the files of a store at one moment, and the objects that hold them.
//! ```text
//! generation-000003   magic | version | number, sequence, time | files | checksum
//! file                name in the store | object | length | checksum of the object
//! ```
//! Invariant: if a record exists, all objects that it names exist.

use trommel_filters::{Corrupt, Reader, Writer};

use super::object_store::ObjectStore;
use super::stored;
use crate::entries::checksum;
use crate::error::{Error, Result};
use crate::files::manifest::MANIFEST_NAME;
use crate::files::names::file_number;
use crate::tools::own_numbers;

const MAGIC: [u8; 8] = *b"TRMLBACK";
/// The version of the format of records.
pub(super) const VERSION: u32 = 1;
const PREFIX: &str = "generation-";
/// Enough for a record of some millions of files.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// A backup of a store as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// The number of the generation. Later generations have greater numbers.
    pub number: u64,
    /// The number of the last write in it.
    pub sequence: u64,
    /// The time when it was begun, in milliseconds since the start of 1970.
    pub milliseconds: u64,
    /// The store's files.
    pub files: Vec<StoredFile>,
}

/// A file of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredFile {
    /// The file's name in the store.
    pub name: String,
    /// The object with the file's bytes. Generations share objects.
    pub object: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The CRC-32C of these bytes.
    pub checksum: u32,
}

/// A decoded record.
#[derive(Debug, PartialEq, Eq)]
enum Decoded {
    Known(Generation),
    /// Another version wrote it.
    OfVersion(u32),
}

impl Generation {
    /// Returns the total bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Whether a later generation of the store has fewer writes: it has lost the last ones of this,
    /// and given their numbers to others.
    pub(super) fn is_replaced(&self, all: &[Generation]) -> bool {
        let is_after = |later: &Generation| later.number > self.number;
        let has_fewer = |later: &Generation| {
            later.sequence < self.sequence && own_numbers::are_near(later.sequence, self.sequence)
        };
        all.iter().any(|it| is_after(it) && has_fewer(it))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(&MAGIC);
        out.u32(VERSION);
        let numbers = [self.number, self.sequence, self.milliseconds, self.files.len() as u64];
        numbers.into_iter().for_each(|number| out.varint(number));
        for file in &self.files {
            out.string(file.name.as_bytes());
            out.string(file.object.as_bytes());
            out.varint(file.bytes);
            out.u32(file.checksum);
        }
        out.u32(checksum::crc32c(out.as_slice()));
        out.finish()
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Decoded, Corrupt> {
        let mut input = Reader::new(bytes);
        if input.bytes(MAGIC.len())? != MAGIC {
            return Err(Corrupt { at: 0, what: "no record of a generation" });
        }
        let version = input.u32()?;
        if version != VERSION {
            return Ok(Decoded::OfVersion(version));
        }
        if !stored::is_sound(bytes) {
            return Err(input.corrupt("the checksum of the record does not match"));
        }
        let (number, sequence, milliseconds) = (input.varint()?, input.varint()?, input.varint()?);
        let mut files = Vec::new();
        for _ in 0..input.varint()? {
            let (name, object) = (stored::text(&mut input)?, stored::text(&mut input)?);
            let (bytes, checksum) = (input.varint()?, input.u32()?);
            if !is_name_of_a_store(&name) || !is_name(&object) {
                return Err(input.corrupt("a name that no file of a store has"));
            }
            files.push(StoredFile { name, object, bytes, checksum });
        }
        input.u32()?;
        input.end()?;
        Ok(Decoded::Known(Generation { number, sequence, milliseconds, files }))
    }

    pub(super) fn store(&self, objects: &dyn ObjectStore) -> Result<()> {
        stored::put(objects, &name(self.number), &self.encode())
    }
}

/// Whether a restored file may have this name. So no file leaves its folder.
fn is_name_of_a_store(name: &str) -> bool {
    is_name(name) && (name == MANIFEST_NAME || file_number(name).is_some())
}

fn is_name(name: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.';
    !name.is_empty() && name.chars().all(plain) && name.trim_matches('.') == name
}

/// Returns the name of a generation's record.
pub(super) fn name(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

/// Returns the number of the generation whose record has this name. None: it is not the name of a
/// record.
pub(super) fn number_of(record: &str) -> Option<u64> {
    let number = record.strip_prefix(PREFIX)?.parse().ok()?;
    (record == name(number)).then_some(number)
}

/// Returns the numbers of all generations with a record, ascending.
pub(super) fn numbers(objects: &dyn ObjectStore) -> Result<Vec<u64>> {
    let names = objects.list(PREFIX).map_err(Error::io(objects.place()))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|(it, _)| number_of(it)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns all generations, oldest first.
pub(super) fn all(objects: &dyn ObjectStore) -> Result<Vec<Generation>> {
    numbers(objects)?.into_iter().map(|number| one(objects, number)).collect()
}

/// Returns the generations that changes lead on from, oldest first.
pub(super) fn leading_on(all: &[Generation]) -> impl Iterator<Item = &Generation> {
    all.iter().filter(|it| !it.is_replaced(all))
}

/// Reads the generation with this number. Requires: its record exists.
pub(super) fn one(objects: &dyn ObjectStore, number: u64) -> Result<Generation> {
    let name = name(number);
    let (bytes, path) =
        (stored::get(objects, &name, RECORD_BYTES_MAX)?, stored::path_of(objects, &name));
    let decoded = Generation::decode(&bytes)
        .map_err(|wrong| Error::corrupt(&path, wrong.at as u64, wrong.what))?;
    let generation = match decoded {
        Decoded::Known(generation) => generation,
        Decoded::OfVersion(found) => return Err(Error::Version { path, found, known: VERSION }),
    };
    if generation.number != number {
        return Err(Error::corrupt(path, 0, "the record of another generation"));
    }
    Ok(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation() -> Generation {
        let file = |name: &str, object: &str| StoredFile {
            name: name.into(),
            object: object.into(),
            bytes: 300,
            checksum: 0x0403_0201,
        };
        let files = vec![
            file("000012.table", "000012-300-9ab3c1d2.table"),
            file(MANIFEST_NAME, "own-000003-MANIFEST"),
        ];
        Generation { number: 3, sequence: 300, milliseconds: 1, files }
    }

    #[test]
    fn golden_bytes_of_a_record() {
        let bytes = generation().encode();
        let expected = [
            &b"TRMLBACK"[..],
            &[1, 0, 0, 0, 3, 0xac, 2, 1, 2],
            b"\x0c000012.table\x19000012-300-9ab3c1d2.table",
            &[0xac, 2, 1, 2, 3, 4],
            b"\x08MANIFEST\x13own-000003-MANIFEST",
            &[0xac, 2, 1, 2, 3, 4],
        ];
        let expected = expected.concat();
        assert_eq!(bytes[..bytes.len() - 4], expected);
        assert_eq!(bytes[bytes.len() - 4..], checksum::crc32c(&expected).to_le_bytes());
        assert_eq!(Generation::decode(&bytes), Ok(Decoded::Known(generation())));
    }

    #[test]
    fn damaged_records_are_refused_and_other_versions_named() {
        let bytes = generation().encode();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            let decoded = Generation::decode(&damaged);
            assert!(!matches!(decoded, Ok(Decoded::Known(_))), "byte {place}");
            assert_eq!(
                matches!(decoded, Ok(Decoded::OfVersion(_))),
                (8..12).contains(&place),
                "byte {place}"
            );
        }
        (0..bytes.len()).for_each(|len| {
            assert!(
                !matches!(Generation::decode(&bytes[..len]), Ok(Decoded::Known(_))),
                "{len} bytes"
            );
        });
    }

    #[test]
    fn no_file_leaves_the_folder_that_it_is_restored_to() {
        for name in
            ["../000012.table", "a/000012.table", "", "..", "LOCK", "notes.txt", "/MANIFEST"]
        {
            let mut hostile = generation();
            hostile.files[0].name = name.into();
            assert!(Generation::decode(&hostile.encode()).is_err(), "{name}");
        }
        for object in ["../x", "", ".", "a b"] {
            let mut hostile = generation();
            hostile.files[0].object = object.into();
            assert!(Generation::decode(&hostile.encode()).is_err(), "{object}");
        }
    }
}
