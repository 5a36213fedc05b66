//! Filter files beside a closed database.
//! ```text
//! trommel-door-<id>.filter
//!   magic | version | state of the folder | id, name of the family | keys scanned, added
//!         | marks | words of hashes | image of the part | checksum
//! state of the folder   checksums of CURRENT and the manifest; names and sizes of logs and tables
//! ```
//! Whoever opens a database for writing begins a new manifest and a new log.
//!
//! Invariant: a filter is used only if the folder is as its writer left it. In all other cases
//! there is no filter.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trommel_filters::hash::checksum;
use trommel_filters::{Corrupt, Part, Reader, Writer};

use crate::filter::Filter;
use crate::hashes::Hashes;
use crate::keys::SortedKeys;
use crate::pause::{Rule, is_broken};

const MAGIC: &[u8; 8] = b"TRMLROX\0";
const VERSION: u32 = 1;
const WORD_BYTES: usize = size_of::<u64>();
const CURRENT: &str = "CURRENT";
const PREFIX: &str = "trommel-door-";
const SUFFIX: &str = ".filter";
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// A filter as it is stored in a file.
pub(crate) struct Kept {
    part: Part,
    marks: SortedKeys,
    hashes: Option<Hashes>,
    scanned: u64,
    added: u64,
}

impl Kept {
    /// Makes the filter, for readers from sequence number `since` on. None: it was built with other
    /// bits per key.
    pub(crate) fn into_filter(self, since: u64, bits_per_key: f64) -> Option<Filter> {
        let is_same = self.part.options().bits_per_key == bits_per_key;
        let counts = (self.scanned, self.added);
        let filter = || Filter::of_parts(self.part, self.marks, counts, since);
        is_same.then(filter).map(|filter| filter.with_hashes(self.hashes))
    }
}

/// Reads the filters of all families, by id and name, if the folder is unchanged since they were
/// written.
pub(crate) fn read_all(database: &Path) -> HashMap<(u32, String), Kept> {
    let Ok(state) = state_of(database) else { return HashMap::new() };
    let bytes = files(database).into_iter().filter_map(|file| fs::read(file).ok());
    bytes.filter_map(|bytes| read(&bytes, state).ok()).collect()
}

/// Writes the filters of a closed database. One that cannot be written is rebuilt by a scan.
/// `current`: the file `CURRENT` while the database was open.
pub(crate) fn write_all<'f>(
    database: &Path,
    current: Option<Vec<u8>>,
    filters: impl Iterator<Item = (u32, &'f str, &'f Filter)>,
) {
    let Ok(state) = state_of(database) else { return };
    if current_of(database) != current {
        return; // Somebody else has opened it: the state may be theirs.
    }
    for (id, name, filter) in filters {
        let file = database.join(format!("{PREFIX}{id}{SUFFIX}"));
        let unfinished = database.join(format!("{PREFIX}{id}.unfinished"));
        let bytes = write((id, name), filter, state);
        if fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, file)).is_err() {
            drop(fs::remove_file(unfinished));
        }
    }
}

/// Removes all filter files.
pub(crate) fn remove_all(database: &Path) {
    // One that remains is not used, since the state of the folder changes.
    files(database).into_iter().for_each(|file| drop(fs::remove_file(file)));
}

/// The file that names the manifest; each opening for writing begins another manifest.
pub(crate) fn current_of(database: &Path) -> Option<Vec<u8>> {
    fs::read(database.join(CURRENT)).ok()
}

fn files(database: &Path) -> Vec<PathBuf> {
    let is_ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    let entries = fs::read_dir(database).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    ours.map(|entry| entry.path()).collect()
}

/// A number that changes as soon as anybody opens the database for writing.
fn state_of(database: &Path) -> io::Result<u64> {
    let mut parts: Vec<(String, u64, u64)> = Vec::new();
    for entry in fs::read_dir(database)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_whole = name == CURRENT || name.starts_with("MANIFEST-");
        let is_data = [".log", ".sst", ".blob"].iter().any(|end| name.ends_with(end));
        if is_whole || is_data {
            let content = if is_whole { checksum(&fs::read(entry.path())?) } else { 0 };
            parts.push((name, entry.metadata()?.len(), content));
        }
    }
    if parts.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    parts.sort_unstable();
    let mut bytes = Writer::new();
    for (name, len, content) in parts {
        bytes.string(name.as_bytes());
        bytes.u64(len);
        bytes.u64(content);
    }
    Ok(checksum(bytes.as_slice()))
}

fn write((id, name): (u32, &str), filter: &Filter, state: u64) -> Vec<u8> {
    let mut out = Writer::new();
    out.bytes(MAGIC);
    out.u32(VERSION);
    out.u64(state);
    out.u32(id);
    out.string(name.as_bytes());
    out.u64(filter.scanned);
    out.u64(filter.added);
    out.varint(filter.marks().len() as u64);
    filter.marks().iter().for_each(|key| out.string(key));
    let mut words = Vec::new();
    let hashes = filter.hashes().into_iter().flat_map(Hashes::words);
    hashes.for_each(|word| words.extend(word.to_le_bytes()));
    out.string(&words);
    let mut part = Vec::new();
    filter.part().write_image(&mut part);
    out.string(&part);
    let sum = checksum(out.as_slice());
    out.u64(sum);
    out.finish()
}

fn read(bytes: &[u8], state: u64) -> Result<((u32, String), Kept), Corrupt> {
    let wrong = |what| Corrupt { at: 0, what };
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(wrong("a whole file"))?;
    if checksum(&bytes[..end]).to_le_bytes() != bytes[end..] {
        return Err(wrong("the checksum of a filter"));
    }
    let mut input = Reader::new(&bytes[..end]);
    if input.bytes(MAGIC.len())? != MAGIC || input.u32()? != VERSION {
        return Err(wrong("a filter of this version"));
    }
    if input.u64()? != state && !is_broken(Rule::Folder) {
        return Err(wrong("the folder as it was left"));
    }
    let id = input.u32()?;
    let name = String::from_utf8(input.string()?.to_vec()).map_err(|_| wrong("a name"))?;
    let (scanned, added) = (input.u64()?, input.u64()?);
    let mut marks = SortedKeys::default();
    for _ in 0..input.len()? {
        marks.push(input.string()?);
    }
    let (words, _) = input.string()?.as_chunks::<WORD_BYTES>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let hashes = (!words.is_empty()).then(|| Hashes::of_words(words));
    let part = Part::read_image(input.string()?)?;
    input.end()?;
    Ok(((id, name), Kept { part, marks, hashes, scanned, added }))
}
