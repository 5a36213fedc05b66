//! Reads a LevelDB folder without changing it.
//! ```text
//! CURRENT --> MANIFEST-NNNNNN: version edits --> tables of the newest version, the log's number
//! NNNNNN.ldb, .sst: blocks <-- index <-- footer     NNNNNN.log: batches
//! all of them, merged: the newest entry of each key --> to the caller, unless it is a deletion
//! ```
//! RocksDB no longer reads these tables, and libraries that skip damaged blocks are unsuitable.
//!
//! Invariants: every checksum is compared. Anything unreadable is an error, except the torn end of
//! a log, which a crash leaves. Keys ascend. Memory holds the logs, and a block of each table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

type Result<T> = std::result::Result<T, String>;

/// Receives a key and its value.
pub(crate) type Taker<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Passes all entries to `take`, keys ascending.
pub(crate) fn read(folder: &Path, take: &mut Taker<'_>) -> Result<()> {
    let current = read_file(&folder.join("CURRENT"))?;
    let name = String::from_utf8_lossy(&current).trim_end().to_string();
    let manifest = read_file(&folder.join(&name))?;
    let version = Version::read(&manifest).map_err(|problem| format!("{name}: {problem}"))?;
    let mut sources: Vec<Source> = vec![Box::new(logged(folder, &version)?.into_iter().map(Ok))];
    for number in version.tables.keys() {
        sources.push(Box::new(Table::open(folder, *number)?));
    }
    merge(&mut sources, take)
}

/// Ordered by ascending key; of one key, the newest entry comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InternalKey {
    key: Vec<u8>,
    sequence: Reverse<u64>,
}

/// The internal key of an entry, and its value. None: a deletion.
type Entry = (InternalKey, Option<Vec<u8>>);
type Source = Box<dyn Iterator<Item = Result<Entry>>>;

fn merge(sources: &mut [Source], take: &mut Taker<'_>) -> Result<()> {
    let mut heads = BinaryHeap::new();
    for (place, source) in sources.iter_mut().enumerate() {
        let entry = source.next().transpose()?;
        heads.extend(entry.map(|(key, value)| Reverse((key, place, value))));
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(Reverse((InternalKey { key, .. }, place, value))) = heads.pop() {
        let entry = sources[place].next().transpose()?;
        heads.extend(entry.map(|(key, value)| Reverse((key, place, value))));
        match &last {
            Some(last) if *last == key => continue,
            Some(last) if *last > key => return Err("keys are out of order".into()),
            _ => {}
        }
        if let Some(value) = &value {
            take(&key, value)?;
        }
        last = Some(key);
    }
    Ok(())
}

/// The state that the edits of a manifest add up to.
#[derive(Debug, Default)]
struct Version {
    /// The level of each table, by the table's number.
    tables: BTreeMap<u64, u64>,
    /// The log with this number and later ones, and `previous_log`, are not in tables yet.
    log: u64,
    previous_log: u64,
}

const COMPARATOR: &[u8] = b"leveldb.BytewiseComparator";

impl Version {
    fn read(manifest: &[u8]) -> Result<Version> {
        let mut version = Version::default();
        for edit in records(manifest)? {
            let mut fields = Fields(&edit);
            while !fields.0.is_empty() {
                version.apply(&mut fields).ok_or("an edit that cannot be read")??;
            }
        }
        Ok(version)
    }

    /// Applies one field of an edit. None: the field is cut short.
    fn apply(&mut self, fields: &mut Fields<'_>) -> Option<Result<()>> {
        match fields.varint()? {
            1 => {
                let name = fields.string()?;
                if name != COMPARATOR {
                    let name = String::from_utf8_lossy(name).into_owned();
                    return Some(Err(format!("its keys are in another order: {name}")));
                }
            }
            2 => self.log = fields.varint()?,
            3 | 4 => drop(fields.varint()?),
            5 => drop((fields.varint()?, fields.string()?)),
            6 => {
                let (level, number) = (fields.varint()?, fields.varint()?);
                if self.tables.get(&number) == Some(&level) {
                    self.tables.remove(&number);
                }
            }
            7 => {
                let (level, number, _bytes) =
                    (fields.varint()?, fields.varint()?, fields.varint()?);
                let _bounds = (fields.string()?, fields.string()?);
                self.tables.insert(number, level);
            }
            9 => self.previous_log = fields.varint()?,
            tag => return Some(Err(format!("a field of kind {tag}, which LevelDB has not"))),
        }
        Some(Ok(()))
    }
}

/// Reads the entries of logs that are not in tables yet, sorted.
fn logged(folder: &Path, version: &Version) -> Result<BTreeMap<InternalKey, Option<Vec<u8>>>> {
    let mut entries = BTreeMap::new();
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for file in files {
        let name = file.map_err(|error| error.to_string())?.file_name();
        let name = name.to_string_lossy();
        let number = name.strip_suffix(".log").and_then(|number| number.parse::<u64>().ok());
        let is_needed = |number: u64| number >= version.log || number == version.previous_log;
        if !number.is_some_and(is_needed) {
            continue;
        }
        let batches = records(&read_file(&folder.join(&*name))?);
        for batch in batches.map_err(|problem| format!("{name}: {problem}"))? {
            let added = add_batch(&batch, &mut entries);
            added.ok_or_else(|| format!("{name}: a batch that cannot be read"))?;
        }
    }
    Ok(entries)
}

/// Adds the entries of a batch. None: it is cut short, or an entry has an unknown kind.
fn add_batch(batch: &[u8], entries: &mut BTreeMap<InternalKey, Option<Vec<u8>>>) -> Option<()> {
    let (head, rest) = batch.split_at_checked(12)?;
    let first = u64::from_le_bytes(*head.first_chunk()?);
    let count = u32::from_le_bytes(*head.last_chunk()?);
    let mut fields = Fields(rest);
    for place in 0..u64::from(count) {
        let kind = fields.byte()?;
        let key = fields.string()?.to_vec();
        let value = match kind {
            0 => None,
            1 => Some(fields.string()?.to_vec()),
            _ => return None,
        };
        entries.insert(InternalKey { key, sequence: Reverse(first + place) }, value);
    }
    fields.0.is_empty().then_some(())
}

/// Bytes of a block of a log or manifest, and of the header of each fragment of a record.
const LOG_BLOCK: usize = 32 << 10;
const LOG_HEAD: usize = 7;

/// Returns the records of a log or a manifest, without a torn end.
fn records(file: &[u8]) -> Result<Vec<Vec<u8>>> {
    let (mut records, mut whole) = (Vec::new(), Vec::new());
    let blocks = file.chunks(LOG_BLOCK);
    let last = blocks.len().saturating_sub(1);
    for (place, mut block) in blocks.enumerate() {
        while let Some((head, rest)) = block.split_at_checked(LOG_HEAD) {
            let len = usize::from(u16::from_le_bytes([head[4], head[5]]));
            if head[6] == 0 && len == 0 {
                // Preallocated space.
                break;
            }
            let Some((piece, behind)) = rest.split_at_checked(len) else {
                if place == last {
                    return Ok(records);
                }
                return Err("a record that goes beyond its block".into());
            };
            check(&[&head[6..], piece], *head.first_chunk().expect("seven bytes"))?;
            block = behind;
            match head[6] {
                1 | 2 => whole = piece.to_vec(),
                3 | 4 => whole.extend_from_slice(piece),
                _ => return Err("a record of an unknown kind".into()),
            }
            if [1, 4].contains(&head[6]) {
                records.push(std::mem::take(&mut whole));
            }
        }
    }
    Ok(records)
}

/// Compares a checksum. LevelDB masks stored ones (rotates them, adds a constant), so that a
/// checksum over bytes with checksums in them stays a good one.
fn check(parts: &[&[u8]], stored: [u8; 4]) -> Result<()> {
    let found = parts.iter().fold(0, |found, part| crc32c::crc32c_append(found, part));
    let masked = found.rotate_right(15).wrapping_add(0xa282_ead8);
    let is_right = masked == u32::from_le_bytes(stored);
    is_right.then_some(()).ok_or_else(|| "a checksum is wrong".into())
}

/// Reads a table from its first entry to its last.
struct Table {
    name: String,
    file: File,
    /// Blocks that are still to be read, the next one last.
    blocks: Vec<Handle>,
    /// Entries left of the current block, the next one last.
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The place of a block.
#[derive(Clone, Copy, Debug)]
struct Handle {
    offset: u64,
    bytes: u64,
}

const FOOTER: u64 = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

impl Table {
    fn open(folder: &Path, number: u64) -> Result<Table> {
        let names = ["ldb", "sst"].map(|ending| format!("{number:06}.{ending}"));
        let name = names.iter().find(|name| folder.join(name).exists());
        let name = name.ok_or_else(|| format!("{} is missing", names[0]))?.clone();
        let file = File::open(folder.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        let mut table = Table { name, file, blocks: Vec::new(), entries: Vec::new() };
        table.read_index().map_err(|problem| format!("{}: {problem}", table.name))?;
        Ok(table)
    }

    fn read_index(&mut self) -> Result<()> {
        let len = self.file.metadata().map_err(|error| error.to_string())?.len();
        let mut footer = [0; FOOTER as usize];
        let at = len.checked_sub(FOOTER).ok_or("it is too short")?;
        self.file.read_exact_at(&mut footer, at).map_err(|error| error.to_string())?;
        if u64::from_le_bytes(*footer.last_chunk().expect("48 bytes")) != MAGIC {
            return Err("it is no table of LevelDB".into());
        }
        let mut fields = Fields(&footer);
        let index = fields.handle().and_then(|_| fields.handle()).ok_or("its footer is wrong")?;
        for (_, handle) in self.block(index, len)? {
            let handle = Fields(&handle).handle().ok_or("its index is wrong")?;
            self.blocks.push(handle);
        }
        self.blocks.reverse();
        Ok(())
    }

    /// Reads and checks a block, and returns its entries.
    fn block(&self, handle: Handle, len: u64) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let Handle { offset, bytes } = handle;
        let end = offset.checked_add(bytes).and_then(|end| end.checked_add(5));
        if end.is_none_or(|end| end > len) {
            return Err(format!("a block at byte {offset} that goes beyond the file"));
        }
        let mut block = vec![0; bytes as usize + 5];
        self.file.read_exact_at(&mut block, offset).map_err(|error| error.to_string())?;
        let of_block = |problem: String| format!("the block at byte {offset}: {problem}");
        let (body, checksum) = block.split_last_chunk().expect("five bytes more");
        check(&[body], *checksum).map_err(of_block)?;
        let (&kind, body) = body.split_last().expect("one byte more");
        let unpacked = match kind {
            0 => body.to_vec(),
            1 => {
                let unpacked = snap::raw::Decoder::new().decompress_vec(body);
                unpacked.map_err(|error| of_block(error.to_string()))?
            }
            kind => return Err(of_block(format!("compression {kind} is not known here"))),
        };
        entries(&unpacked).ok_or_else(|| of_block("it cannot be read".into()))
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        while self.entries.is_empty() {
            let Some(handle) = self.blocks.pop() else { return Ok(None) };
            let len = self.file.metadata().map_err(|error| error.to_string())?.len();
            self.entries = self.block(handle, len)?;
            self.entries.reverse();
        }
        let (mut key, value) = self.entries.pop().expect("there is one");
        let tail = key.len().checked_sub(8).map(|at| key.split_off(at));
        let tail = tail.and_then(|tail| tail.first_chunk().copied()).ok_or("a key is too short")?;
        let tail = u64::from_le_bytes(tail);
        let value = match tail & 0xff {
            0 => None,
            1 => Some(value),
            kind => return Err(format!("an entry of kind {kind}, which LevelDB has not")),
        };
        Ok(Some((InternalKey { key, sequence: Reverse(tail >> 8) }, value)))
    }
}

impl Iterator for Table {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().map_err(|problem| format!("{}: {problem}", self.name)).transpose()
    }
}

/// Decodes the entries of a block. None: they cannot be decoded.
fn entries(block: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let (rest, restarts) = block.split_last_chunk()?;
    let restarts = u32::from_le_bytes(*restarts) as usize;
    let end = rest.len().checked_sub(restarts.checked_mul(4)?)?;
    let mut fields = Fields(&rest[..end]);
    let (mut entries, mut key) = (Vec::new(), Vec::new());
    while !fields.0.is_empty() {
        let lens = [fields.varint()?, fields.varint()?, fields.varint()?];
        let [shared, own, value] = lens.map(|len| usize::try_from(len).unwrap_or(usize::MAX));
        if shared > key.len() {
            return None;
        }
        key.truncate(shared);
        key.extend_from_slice(fields.bytes(own)?);
        entries.push((key.clone(), fields.bytes(value)?.to_vec()));
    }
    Some(entries)
}

/// Bytes that are decoded from front to back.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    /// Takes a number of seven bits a byte, low bits first.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.varint()?;
        self.bytes(usize::try_from(len).ok()?)
    }

    fn handle(&mut self) -> Option<Handle> {
        Some(Handle { offset: self.varint()?, bytes: self.varint()? })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a folder with tables and a log, and deletions in both. Also returns what it holds.
    /// `compressor`: 0 for none, 1 for Snappy.
    fn folder(compressor: u8) -> (tempfile::TempDir, BTreeMap<Vec<u8>, Vec<u8>>) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = || rusty_leveldb::Options {
            write_buffer_size: 64 << 10,
            compressor,
            ..Default::default()
        };
        let mut held = BTreeMap::new();
        for round in 0..3u64 {
            let mut db = rusty_leveldb::DB::open(folder.path(), options()).expect("opens");
            for i in 0..4000u64 {
                let key = [&(i * 7 % 4001).to_be_bytes()[5..], &[0xff, 1]].concat();
                if i % 5 == round {
                    db.delete(&key).expect("deletes");
                    held.remove(&key);
                } else {
                    let value = vec![i as u8; (i % 90) as usize];
                    db.put(&key, &value).expect("puts");
                    held.insert(key, value);
                }
            }
            db.put(b"", &[9; 10]).expect("puts");
            held.insert(Vec::new(), vec![9; 10]);
            db.put(b"large", &[9; 100_000]).expect("puts");
            held.insert(b"large".to_vec(), vec![9; 100_000]);
            db.put(b"torn", &[round as u8]).expect("puts");
            held.insert(b"torn".to_vec(), vec![round as u8]);
            db.flush().expect("flushes");
        }
        (folder, held)
    }

    fn all(folder: &Path) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut all = Vec::new();
        read(folder, &mut |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(all)
    }

    fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
        let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("there").path());
        let mut files: Vec<_> =
            files.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
        files.sort();
        files
    }

    #[test]
    fn all_entries_come_byte_by_byte_and_the_folder_stays_as_it_was() {
        for compressor in [0, 1] {
            let (folder, held) = folder(compressor);
            assert!(files(folder.path(), ".ldb").len() > 2, "tables");
            let contents =
                || files(folder.path(), "").into_iter().map(|file| (fs::read(&file).ok(), file));
            let before: Vec<_> = contents().collect();
            assert!(all(folder.path()).expect("sound").into_iter().eq(held));
            assert!(contents().eq(before), "nothing was written");
        }
    }

    #[test]
    fn damage_is_an_error_and_a_torn_end_of_the_log_is_none() {
        let (folder, held) = folder(0);
        let log = files(folder.path(), ".log").pop().expect("a log");
        let sound = fs::read(&log).expect("read");
        fs::write(&log, &sound[..sound.len() - 1]).expect("torn");
        let torn = all(folder.path()).expect("a crash leaves that");
        assert_eq!(torn.len(), held.len(), "an older value of the last key is left");
        fs::write(&log, &sound).expect("mended");
        for file in files(folder.path(), ".ldb") {
            let sound = fs::read(&file).expect("read");
            for place in [10, sound.len() / 2, sound.len() - 60, sound.len() - 3] {
                let mut damaged = sound.clone();
                damaged[place] ^= 0x10;
                fs::write(&file, &damaged).expect("damaged");
                let problem = all(folder.path()).expect_err("damaged");
                let name = file.file_name().expect("a name").to_string_lossy();
                assert!(problem.starts_with(&*name), "{place}: {problem}");
            }
            fs::remove_file(&file).expect("removed");
            assert!(all(folder.path()).expect_err("gone").contains("is missing"));
            fs::write(&file, &sound).expect("mended");
        }
        assert!(all(folder.path()).expect("sound").into_iter().eq(held));
    }
}
