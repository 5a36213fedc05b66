//! The manifest: a log of edits, one record each. `docs/format.md` has the byte tables.
//! ```text
//! MANIFEST   header | the whole layout as one edit | edit | edit | ...
//! edit       of any number of trees, and of the logs
//! ```
//! Invariants: an edit is synced before a version shows it. After a failed append the end of the
//! file is unknown, so the next edit goes into a new file. That file is renamed over the old one.
//! The same happens when the file has grown.

use std::path::{Path, PathBuf};

use trommel_filters::{Corrupt, FlushNumber, Reader, Span, Writer};

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::record::{RecordWriter, all_before, read_header, read_records, version_in};
use crate::plan::layout::{CutsEdit, Edit, FlushRecord, ImageRecord, LastMerge, TableRecord};
use crate::plan::store_layout::{
    GoneNumbers, KeyspaceChange, KeyspaceEdit, StoreChange, StoreEdit, StoreLayout,
};
use crate::storage::exhausted::with_room;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt};

/// The format version of all files of a store. A store of another version is refused.
pub const FORMAT_VERSION: u32 = 8;
/// The readable versions. Each older one is a subset of the present one.
pub const READ_VERSIONS: [u32; 2] = [7, FORMAT_VERSION];
/// The name of the file that makes a folder a store.
pub(crate) const MANIFEST_NAME: &str = "MANIFEST";
pub(crate) const MANIFEST_NEW_NAME: &str = "MANIFEST.new";
/// A file continues until it has this many bytes and either twice its first length or this many
/// edits. An edit may look at all tables when it is read. Without a limit of edits, opening would
/// take time quadratic in them.
const GROWN_BYTES: u64 = 64 << 10;
const EDITS_MAX: u64 = 1000;
pub(crate) const MAGIC: &[u8; 8] = b"TROMMELM";
pub(crate) const HEADER_BYTES: usize = MAGIC.len() + size_of::<u32>();
pub(crate) const SALT: u64 = 0;

const TAG_REMOVED: u8 = 1;
const TAG_ADDED: u8 = 2;
const TAG_FLUSH: u8 = 3;
const TAG_FORGET_BELOW: u8 = 4;
const TAG_LIVE_WAL: u8 = 5;
const TAG_NEXT_FILE: u8 = 6;
const TAG_NEXT_FLUSH: u8 = 7;
const TAG_LAST_SEQUENCE: u8 = 8;
const TAG_IMAGE: u8 = 9;
const TAG_CUTS: u8 = 10;
const TAG_LAST_MERGE: u8 = 11;
const TAG_NEWEST_WAL: u8 = 12;
/// The next fields belong to this key space; fields before the first such tag, to the default one.
const TAG_KEYSPACE: u8 = 13;
const TAG_CREATED: u8 = 14;
const TAG_RENAMED: u8 = 15;
const TAG_DROPPED: u8 = 16;
const TAG_OPTION: u8 = 17;
const TAG_NEXT_KEYSPACE: u8 = 18;
const TAG_GONE: u8 = 19;
const TAG_UNLOGGED: u8 = 20;

pub(crate) fn header() -> [u8; HEADER_BYTES] {
    header_of(FORMAT_VERSION)
}

fn header_of(version: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[MAGIC.len()..].copy_from_slice(&version.to_le_bytes());
    header
}

/// The manifest of an open store.
pub(crate) struct Manifest {
    folder: OpenFolder,
    /// The layout after all appended edits.
    layout: StoreLayout,
    /// `None` at first and after a failure. Then the next edit begins a new file.
    writer: Option<RecordWriter>,
    /// The length of the file when it had only the whole layout.
    begun_bytes: u64,
    /// Edits appended since then.
    edits: u64,
    /// `Some` if an edit failed to be written, so the file may or may not have it. Lists the tables
    /// that such edits add.
    doubtful: Option<Vec<u64>>,
    /// False: a power failure may lose what was read.
    is_durable: bool,
}

impl Manifest {
    /// Closes the file. Requires: no edit follows.
    pub(crate) fn let_go_of_files(&mut self) {
        self.writer = None;
    }

    /// Reads the layout. `None`: the folder has no manifest.
    pub(crate) fn read(folder: &OpenFolder) -> Result<Option<StoreLayout>> {
        Manifest::read_versions(folder, &[FORMAT_VERSION])
    }

    /// As `read`, and accepts these versions.
    pub(crate) fn read_versions(
        folder: &OpenFolder,
        versions: &[u32],
    ) -> Result<Option<StoreLayout>> {
        let path = folder.path_of(MANIFEST_NAME);
        let version = match with_room(|| folder.handle().open(MANIFEST_NAME)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path)(error)),
            Ok(file) => check_header(&*file, &path, versions)?,
        };
        let (mut layout, mut edits) = (StoreLayout::default(), 0);
        let mut apply = |offset, payload: &[u8]| {
            let edit = decode(payload)
                .map_err(|wrong| Error::corrupt(&path, offset, format!("edit, {wrong}")))?;
            let after = std::mem::take(&mut layout).followed_by(&edit);
            layout = after.map_err(|wrong| Error::corrupt(&path, offset, wrong))?;
            edits += 1;
            Ok(())
        };
        read_records(folder, MANIFEST_NAME, SALT, &header_of(version), &all_before, &mut apply)?;
        if edits == 0 {
            let what = "the first edit is missing; it is written before the file gets its name";
            return Err(Error::corrupt(path, HEADER_BYTES as u64, what));
        }
        layout.check().map_err(|wrong| Error::corrupt(&path, HEADER_BYTES as u64, wrong))?;
        Ok(Some(layout))
    }

    /// Continues a manifest that was read. The first edit begins a new file, since the old one may
    /// have a torn end.
    pub(crate) fn open(folder: &OpenFolder, layout: StoreLayout) -> Self {
        let (folder, writer, doubtful, is_durable) = (folder.clone(), None, None, false);
        Manifest { folder, layout, writer, begun_bytes: 0, edits: 0, doubtful, is_durable }
    }

    /// Creates a manifest with the whole layout.
    pub(crate) fn create(folder: &OpenFolder, layout: StoreLayout) -> Result<Self> {
        let mut manifest = Manifest::open(folder, layout);
        manifest.keep()?;
        Ok(manifest)
    }

    /// The layout after all edits so far.
    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.layout
    }

    /// Begins a new file with the whole layout. After an error the layout is unchanged.
    pub(crate) fn keep(&mut self) -> Result<()> {
        self.check_numbers(self.layout.check_numbers())?;
        let writer = self.write_new(&self.layout)?;
        self.replace(writer, &StoreEdit::default())
    }

    /// Makes what was read durable, since its writer may have been killed before it was. Does
    /// nothing after the first edit.
    pub(crate) fn make_durable(&mut self) -> Result<()> {
        if self.writer.is_some() { Ok(()) } else { self.keep() }
    }

    /// Whether all that was read, and all edits that succeeded, are durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Makes `edit` durable. After an error the next open may or may not find the edit. Then keep
    /// all files that it [may name](Self::may_name), and try again.
    pub(crate) fn append(&mut self, edit: &StoreEdit) -> Result<()> {
        let misfit =
            |wrong| Error::corrupt(self.folder.path_of(MANIFEST_NAME), 0, format!("edit: {wrong}"));
        let change = self.layout.change_by(edit).map_err(misfit)?;
        self.check_numbers(change.check_numbers())?;
        self.write(edit, &change)?;
        self.layout.make(change);
        Ok(())
    }

    /// Begins a new file if the old one has grown, which encodes all key spaces; else encodes only
    /// those of the edit.
    fn write(&mut self, edit: &StoreEdit, change: &StoreChange) -> Result<()> {
        if !self.writer.as_ref().is_some_and(|writer| self.goes_on(writer.len())) {
            let mut after = self.layout.clone();
            after.make(change.clone());
            match self.write_new(&after) {
                Ok(writer) => return self.replace(writer, edit),
                // A full disk may have room for the edit, but not for a new file.
                Err(error) => self.writer.is_some().then_some(()).ok_or(error)?,
            }
        }
        let record = encode_record(edit, &self.folder)?;
        let mut writer = self.writer.take().expect("looked at above");
        self.doubt(edit);
        writer.append(&record)?;
        writer.sync()?;
        self.edits += 1;
        self.settle(writer);
        Ok(())
    }

    /// Whether a file of `len` bytes may continue.
    fn goes_on(&self, len: u64) -> bool {
        len < GROWN_BYTES || self.edits < EDITS_MAX && len < 2 * self.begun_bytes
    }

    /// Whether the file may have an edit that adds this table, although writing it failed.
    pub(crate) fn may_name(&self, table: u64) -> bool {
        self.doubtful.iter().flatten().any(|doubtful| *doubtful == table)
    }

    fn doubt(&mut self, edit: &StoreEdit) {
        self.doubtful.get_or_insert_default().extend(edit.added());
    }

    /// Records that the file has exactly the newest version.
    fn settle(&mut self, writer: RecordWriter) {
        self.writer = Some(writer);
        (self.doubtful, self.is_durable) = (None, true);
    }

    /// Whether the file certainly has the newest version.
    pub(crate) fn is_certain(&self) -> bool {
        self.doubtful.is_none()
    }

    /// Continues with a new file that includes `edit`.
    fn replace(&mut self, writer: RecordWriter, edit: &StoreEdit) -> Result<()> {
        self.writer = None;
        self.doubt(edit);
        self.folder.rename(MANIFEST_NEW_NAME, MANIFEST_NAME)?;
        self.folder.sync()?;
        (self.begun_bytes, self.edits) = (writer.len(), 0);
        self.settle(writer);
        Ok(())
    }

    /// Refuses to write a layout that an opening would reject.
    fn check_numbers(&self, checked: std::result::Result<(), &'static str>) -> Result<()> {
        let path = || self.folder.path_of(MANIFEST_NAME);
        checked.map_err(|wrong| Error::corrupt(path(), 0, wrong))
    }

    /// Writes a durable new file with the whole layout, under its temporary name.
    fn write_new(&self, layout: &StoreLayout) -> Result<RecordWriter> {
        let record = encode_record(&layout.as_edit(), &self.folder)?;
        self.write_file(&record).inspect_err(|_| {
            // On a full disk the file would take space. Nothing reads it under this name.
            let _ = self.folder.remove(MANIFEST_NEW_NAME);
        })
    }

    fn write_file(&self, record: &[u8]) -> Result<RecordWriter> {
        let file = self.folder.create_anew(MANIFEST_NEW_NAME)?;
        let path = self.folder.path_of(MANIFEST_NEW_NAME);
        let mut writer = RecordWriter::begin(file, path, SALT, &header())?;
        writer.append(record)?;
        writer.sync()?;
        Ok(writer)
    }
}

/// Appends an edit to a manifest of `len` bytes that no store uses yet, and makes the file durable:
/// these numbers are never given. Requires: the file ends behind an edit.
pub(crate) fn leave_out(
    numbers: GoneNumbers,
    (file, path, len): (Box<dyn Append>, PathBuf, u64),
) -> Result<()> {
    let edit = StoreEdit { gone: Some(numbers), ..StoreEdit::default() };
    let mut writer = RecordWriter::go_on((file, len), path, SALT);
    writer.append(&encode(&edit))?;
    writer.sync()
}

/// Returns the version of a header, if it is one of `versions`.
pub(crate) fn check_header(file: &dyn ReadAt, path: &Path, versions: &[u32]) -> Result<u32> {
    match version_in(&read_header(file, path, HEADER_BYTES)?, MAGIC) {
        Some(found) if versions.contains(&found) => Ok(found),
        Some(found) => {
            Err(Error::Version { path: path.to_path_buf(), found, known: FORMAT_VERSION })
        }
        None => Err(Error::corrupt(path, 0, "this is no manifest of a Trommel store")),
    }
}

fn encode_record(edit: &StoreEdit, folder: &OpenFolder) -> Result<Vec<u8>> {
    let record = encode(edit);
    let path = folder.path_of(MANIFEST_NAME);
    check_record(record.len(), edit.added().count()).map_err(Error::io(path)).map(|()| record)
}

/// Fails if the edit is too long for a record, since it has too many tables.
fn check_record(len: usize, tables: usize) -> std::io::Result<()> {
    let max = u32::MAX as usize;
    let what = || format!("an edit of {len} bytes, with {tables} tables: it may have {max}");
    if len <= max { Ok(()) } else { Err(std::io::Error::other(what() + "; let tables be larger")) }
}

fn encode(edit: &StoreEdit) -> Vec<u8> {
    let mut out = Writer::new();
    encode_number(TAG_LIVE_WAL, edit.live_wal, &mut out);
    encode_number(TAG_NEWEST_WAL, edit.newest_wal, &mut out);
    encode_number(TAG_UNLOGGED, edit.unlogged.map(|last| last.0), &mut out);
    encode_number(TAG_NEXT_KEYSPACE, edit.next_keyspace.map(u64::from), &mut out);
    if let Some(GoneNumbers { next_file, last_sequence }) = edit.gone {
        encode_number(TAG_GONE, Some(next_file), &mut out);
        out.varint(last_sequence.0);
    }
    for (place, (keyspace, edit)) in edit.keyspaces.iter().enumerate() {
        if place > 0 || *keyspace != KeyspaceId::DEFAULT {
            encode_number(TAG_KEYSPACE, Some(u64::from(keyspace.0)), &mut out);
        }
        encode_keyspace(edit, &mut out);
    }
    out.finish()
}

fn encode_keyspace(edit: &KeyspaceEdit, out: &mut Writer) {
    match &edit.change {
        Some(KeyspaceChange::Created { name }) => encode_text(TAG_CREATED, name, out),
        Some(KeyspaceChange::Renamed { name }) => encode_text(TAG_RENAMED, name, out),
        Some(KeyspaceChange::Dropped) => out.u8(TAG_DROPPED),
        None => {}
    }
    for (name, text) in &edit.options {
        encode_text(TAG_OPTION, name, out);
        out.string(text.as_bytes());
    }
    encode_tree(&edit.tree, out);
}

fn encode_text(tag: u8, text: &str, out: &mut Writer) {
    out.u8(tag);
    out.string(text.as_bytes());
}

fn encode_number(tag: u8, value: Option<u64>, out: &mut Writer) {
    if let Some(value) = value {
        out.u8(tag);
        out.varint(value);
    }
}

fn encode_tree(edit: &Edit, out: &mut Writer) {
    let mut number = |tag: u8, value: Option<u64>| encode_number(tag, value, out);
    edit.removed.iter().for_each(|&file| number(TAG_REMOVED, Some(file)));
    number(TAG_FORGET_BELOW, edit.forget_below.map(|flush| flush.0));
    number(TAG_NEXT_FILE, edit.next_file);
    number(TAG_NEXT_FLUSH, edit.next_flush.map(|flush| flush.0));
    number(TAG_LAST_SEQUENCE, edit.last_sequence.map(|sequence| sequence.0));
    for record in &edit.flushes {
        out.u8(TAG_FLUSH);
        out.varint(record.flush.0);
        out.varint(record.first.0);
    }
    for table in &edit.added {
        out.u8(TAG_ADDED);
        encode_table(table, out);
    }
    for image in &edit.images {
        out.u8(TAG_IMAGE);
        encode_image(image, out);
    }
    if let Some(cuts) = &edit.cuts {
        out.u8(TAG_CUTS);
        encode_cuts(cuts, out);
    }
    if let Some(merge) = &edit.last_merge {
        out.u8(TAG_LAST_MERGE);
        encode_last_merge(merge, out);
    }
}

fn encode_cuts(edit: &CutsEdit, out: &mut Writer) {
    out.string(&edit.within.from);
    // No range ends before the first key, so an empty string means that there is no end.
    out.string(edit.within.to.as_deref().unwrap_or(&[]));
    out.varint(edit.cuts.len() as u64);
    edit.cuts.iter().for_each(|cut| out.string(cut));
}

fn encode_last_merge(merge: &LastMerge, out: &mut Writer) {
    let numbers = [merge.oldest, merge.span.lo().0, merge.span.hi().0, merge.entries];
    numbers.into_iter().for_each(|number| out.varint(number));
    encode_numbers(&merge.inputs, out);
    out.string(&merge.done_to);
}

fn encode_numbers(numbers: &[u64], out: &mut Writer) {
    out.varint(numbers.len() as u64);
    numbers.iter().for_each(|&number| out.varint(number));
}

fn encode_image(image: &ImageRecord, out: &mut Writer) {
    out.string(&image.lower);
    let numbers = [image.file, image.bytes, u64::from(image.checksum), image.watermark.0];
    numbers.into_iter().for_each(|number| out.varint(number));
    encode_numbers(&image.tables, out);
}

fn encode_table(table: &TableRecord, out: &mut Writer) {
    let span = [table.span.lo().0, table.span.hi().0];
    let numbers = [table.file, table.run, table.level as u64, span[0], span[1]];
    numbers.into_iter().for_each(|number| out.varint(number));
    out.u8(u8::from(table.is_trimmed));
    let numbers = [table.skipped, table.entries, table.file_entries, table.bytes];
    numbers.into_iter().for_each(|number| out.varint(number));
    out.string(&table.from);
    out.string(&table.to);
}

type Decoded<T> = std::result::Result<T, Corrupt>;

pub(crate) fn decode(bytes: &[u8]) -> Decoded<StoreEdit> {
    let mut input = Reader::new(bytes);
    let mut store = StoreEdit::default();
    let mut keyspace = KeyspaceId::DEFAULT;
    while input.left() > 0 {
        match input.u8()? {
            TAG_LIVE_WAL => store.live_wal = Some(input.varint()?),
            TAG_NEWEST_WAL => store.newest_wal = Some(input.varint()?),
            TAG_UNLOGGED => store.unlogged = Some(Sequence(input.varint()?)),
            TAG_GONE => {
                let (next_file, last) = (input.varint()?, Sequence(input.varint()?));
                store.gone = Some(GoneNumbers { next_file, last_sequence: last });
            }
            TAG_NEXT_KEYSPACE => store.next_keyspace = Some(decode_keyspace_id(&mut input)?),
            TAG_KEYSPACE => {
                keyspace = KeyspaceId(decode_keyspace_id(&mut input)?);
                store.keyspaces.push((keyspace, KeyspaceEdit::default()));
            }
            tag => {
                if store.keyspaces.is_empty() {
                    store.keyspaces.push((keyspace, KeyspaceEdit::default()));
                }
                let (_, edit) = store.keyspaces.last_mut().expect("there is one");
                decode_of_keyspace(tag, edit, &mut input)?;
            }
        }
    }
    Ok(store)
}

fn decode_keyspace_id(input: &mut Reader<'_>) -> Decoded<u32> {
    u32::try_from(input.varint()?).map_err(|_| input.corrupt("a key space"))
}

fn decode_text(input: &mut Reader<'_>) -> Decoded<String> {
    let text = std::str::from_utf8(input.string()?).map(String::from);
    text.map_err(|_| input.corrupt("text in UTF-8"))
}

fn decode_of_keyspace(tag: u8, edit: &mut KeyspaceEdit, input: &mut Reader<'_>) -> Decoded<()> {
    let change = match tag {
        TAG_CREATED => KeyspaceChange::Created { name: decode_text(input)? },
        TAG_RENAMED => KeyspaceChange::Renamed { name: decode_text(input)? },
        TAG_DROPPED => KeyspaceChange::Dropped,
        TAG_OPTION => {
            edit.options.push((decode_text(input)?, decode_text(input)?));
            return Ok(());
        }
        _ => return decode_field(tag, &mut edit.tree, input),
    };
    match edit.change.replace(change) {
        Some(_) => Err(input.corrupt("one change of a key space")),
        None => Ok(()),
    }
}

fn decode_field(tag: u8, edit: &mut Edit, input: &mut Reader<'_>) -> Decoded<()> {
    match tag {
        TAG_REMOVED => edit.removed.push(input.varint()?),
        TAG_ADDED => edit.added.push(decode_table(input)?),
        TAG_FLUSH => {
            let flush = FlushNumber(input.varint()?);
            edit.flushes.push(FlushRecord { flush, first: Sequence(input.varint()?) });
        }
        TAG_FORGET_BELOW => edit.forget_below = Some(FlushNumber(input.varint()?)),
        TAG_NEXT_FILE => edit.next_file = Some(input.varint()?),
        TAG_NEXT_FLUSH => edit.next_flush = Some(FlushNumber(input.varint()?)),
        TAG_LAST_SEQUENCE => edit.last_sequence = Some(Sequence(input.varint()?)),
        TAG_IMAGE => edit.images.push(decode_image(input)?),
        TAG_CUTS => edit.cuts = Some(decode_cuts(input)?),
        TAG_LAST_MERGE => edit.last_merge = Some(decode_last_merge(input)?),
        _ => return Err(input.corrupt("a tag of an edit")),
    }
    Ok(())
}

// Below, fields stand in the order of their bytes, since they are evaluated in that order.

fn decode_table(input: &mut Reader<'_>) -> Decoded<TableRecord> {
    Ok(TableRecord {
        file: input.varint()?,
        run: input.varint()?,
        level: match input.varint()? {
            level @ 0..=64 => level as usize,
            _ => return Err(input.corrupt("a level of at most 64")),
        },
        span: decode_span(input)?,
        is_trimmed: match input.u8()? {
            0 => false,
            1 => true,
            _ => return Err(input.corrupt("whether a table is trimmed")),
        },
        skipped: input.varint()?,
        entries: input.varint()?,
        file_entries: input.varint()?,
        bytes: input.varint()?,
        from: input.string()?.to_vec(),
        to: input.string()?.to_vec(),
    })
}

fn decode_span(input: &mut Reader<'_>) -> Decoded<Span> {
    let (lo, hi) = (FlushNumber(input.varint()?), FlushNumber(input.varint()?));
    Span::new(lo, hi).ok_or_else(|| input.corrupt("a span that is not empty"))
}

fn decode_cuts(input: &mut Reader<'_>) -> Decoded<CutsEdit> {
    let (from, to) = (input.string()?.to_vec(), input.string()?.to_vec());
    let within = KeyBounds { from, to: (!to.is_empty()).then_some(to) };
    let count = input.len()?;
    let cuts = (0..count).map(|_| input.string().map(<[u8]>::to_vec)).collect::<Decoded<_>>()?;
    Ok(CutsEdit { within, cuts })
}

fn decode_last_merge(input: &mut Reader<'_>) -> Decoded<LastMerge> {
    Ok(LastMerge {
        oldest: input.varint()?,
        span: decode_span(input)?,
        entries: input.varint()?,
        inputs: decode_numbers(input)?,
        done_to: input.string()?.to_vec(),
    })
}

fn decode_numbers(input: &mut Reader<'_>) -> Decoded<Vec<u64>> {
    (0..input.varint()?).map(|_| input.varint()).collect()
}

fn decode_image(input: &mut Reader<'_>) -> Decoded<ImageRecord> {
    Ok(ImageRecord {
        lower: input.string()?.to_vec(),
        file: input.varint()?,
        bytes: input.varint()?,
        checksum: u32::try_from(input.varint()?)
            .map_err(|_| input.corrupt("a checksum of 32 bits"))?,
        watermark: FlushNumber(input.varint()?),
        tables: decode_numbers(input)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::tests::table;

    fn image(file: u64, watermark: u64) -> ImageRecord {
        let (checksum, watermark) = (u32::MAX, FlushNumber(watermark));
        let (lower, bytes, tables) = (b"k".to_vec(), 300, vec![7, 8]);
        ImageRecord { lower, file, bytes, checksum, watermark, tables }
    }

    fn full_edit() -> StoreEdit {
        let edit = Edit {
            removed: vec![3, 300],
            added: vec![
                table(7, 7, 2, 0, 9),
                TableRecord {
                    is_trimmed: true,
                    skipped: 3,
                    file_entries: 9,
                    ..table(8, 8, 0, 9, 10)
                },
            ],
            flushes: vec![FlushRecord { flush: FlushNumber(9), first: Sequence(1000) }],
            forget_below: Some(FlushNumber(8)),
            next_file: Some(13),
            next_flush: Some(FlushNumber(10)),
            last_sequence: Some(Sequence(u64::MAX >> 8)),
            images: vec![image(11, 10)],
            cuts: Some(cuts()),
            last_merge: Some(last_merge()),
        };
        let tree = Edit { removed: vec![4], ..Edit::default() };
        let options = vec![("guard".into(), "grf".into()), ("bits_per_key".into(), "14".into())];
        let change = Some(KeyspaceChange::Created { name: "events".into() });
        let made = KeyspaceEdit { change, options, tree };
        let gone = KeyspaceEdit { change: Some(KeyspaceChange::Dropped), ..Default::default() };
        let change = Some(KeyspaceChange::Renamed { name: "users".into() });
        let renamed = KeyspaceEdit { change, ..Default::default() };
        let mut store = StoreEdit::of_tree(KeyspaceId::DEFAULT, edit);
        let others = [(KeyspaceId(300), made), (KeyspaceId(2), gone), (KeyspaceId(3), renamed)];
        store.keyspaces.extend(others);
        let gone = Some(GoneNumbers { next_file: 300, last_sequence: Sequence(70) });
        let numbers = (Some(301), Some(12), Some(13));
        let (next_keyspace, live_wal, newest_wal) = numbers;
        let unlogged = Some(Sequence(600));
        StoreEdit { next_keyspace, live_wal, newest_wal, unlogged, gone, ..store }
    }

    fn cuts() -> CutsEdit {
        let within = KeyBounds { from: b"c".to_vec(), to: None };
        CutsEdit { within, cuts: vec![b"e".to_vec(), b"g".to_vec()] }
    }

    fn last_merge() -> LastMerge {
        let span = Span::new(FlushNumber(3), FlushNumber(9)).expect("not empty");
        let (inputs, done_to) = (vec![7, 6], b"m".to_vec());
        LastMerge { oldest: 8, inputs, done_to, span, entries: 300 }
    }

    #[test]
    fn an_edit_is_read_as_it_was_written() {
        let edit = full_edit();
        let bytes = encode(&edit);
        assert_eq!(decode(&bytes).expect("decodes"), edit);
        for len in 0..bytes.len() {
            // A prefix either fails to decode or is another edit, but never panics.
            assert_ne!(decode(&bytes[..len]).ok(), Some(edit.clone()));
        }
    }

    #[test]
    fn golden_bytes_of_an_edit() {
        let edit = Edit {
            removed: vec![3],
            added: vec![table(7, 6, 1, 2, 4)],
            next_file: Some(300),
            images: vec![image(11, 4)],
            cuts: Some(cuts()),
            last_merge: Some(last_merge()),
            ..Edit::default()
        };
        let made = KeyspaceEdit {
            change: Some(KeyspaceChange::Created { name: "ab".into() }),
            options: vec![("g".into(), "xy".into())],
            tree: Edit { removed: vec![4], ..Edit::default() },
        };
        let gone = KeyspaceEdit { change: Some(KeyspaceChange::Dropped), ..Default::default() };
        let mut edit = StoreEdit::of_tree(KeyspaceId::DEFAULT, edit);
        edit.keyspaces.extend([(KeyspaceId(5), made), (KeyspaceId(3), gone)]);
        let edit = StoreEdit { newest_wal: Some(299), next_keyspace: Some(6), ..edit };
        let expected = [
            12, 0xab, 2, 18, 6, // newest log, next key space
            1, 3, 6, 0xac, 2, // removed, next file
            2, 7, 6, 1, 2, 4, 0, 0, 2, 2, 100, 1, b'a', 1, b'z', // added
            9, 1, b'k', 11, 0xac, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 4, 2, 7, 8, // image
            10, 1, b'c', 0, 2, 1, b'e', 1, b'g', // cuts
            11, 8, 3, 9, 0xac, 2, 2, 7, 6, 1, b'm', // merge by key ranges
            13, 5, 14, 2, b'a', b'b', 17, 1, b'g', 2, b'x', b'y', 1, 4, // another one is made
            13, 3, 16, // one is dropped
        ];
        assert_eq!(encode(&edit), expected);
    }

    /// Reads a manifest with these edits.
    fn read_back(edits: &[StoreEdit]) -> Result<Option<StoreLayout>> {
        let (disk, dir) = (crate::storage::memory::Memory::new(), Path::new("db"));
        crate::storage::traits::Storage::create_dir(&disk, dir).expect("makes the folder");
        let (folder, path) = (OpenFolder::on(&disk, dir), dir.join(MANIFEST_NAME));
        let file = folder.create(MANIFEST_NAME).expect("creates");
        let mut writer = RecordWriter::begin(file, path, SALT, &header()).expect("begins");
        edits.iter().for_each(|edit| writer.append(&encode(edit)).expect("appends"));
        Manifest::read(&folder)
    }

    #[test]
    fn where_a_grown_file_cannot_begin_anew_it_goes_on() {
        for n in 0.. {
            let disk = crate::storage::memory::Memory::new();
            crate::storage::traits::Storage::create_dir(&disk, Path::new("db"))
                .expect("makes the folder");
            let folder = OpenFolder::on(&disk, "db");
            let mut layout = StoreLayout::default();
            let mut manifest = Manifest::create(&folder, layout.clone()).expect("writes");
            let file_bytes = || disk.file("db/MANIFEST").expect("is there").len() as u64;
            let mut append = |disk_fails: bool| {
                let edit = Edit { next_file: Some(layout.next_file() + 1), ..Edit::default() };
                let edit = StoreEdit::of_tree(KeyspaceId::DEFAULT, edit);
                let next = layout.clone().followed_by(&edit).expect("fits");
                if disk_fails {
                    disk.fail_at(n, crate::storage::memory::Fault::NoSpace);
                }
                let appended = manifest.append(&edit);
                layout = if appended.is_ok() { next } else { layout.clone() };
                appended
            };
            while file_bytes() < GROWN_BYTES {
                append(false).expect("writes");
            }
            let grown = file_bytes();
            let failed = append(true);
            if failed.is_err() {
                assert!(n >= 3, "operation {n} is not of the new file: {failed:?}");
                return;
            }
            assert!(file_bytes() > grown, "operation {n}: it has begun anew");
            append(false).expect("writes");
            assert!(file_bytes() < grown, "it begins anew when it can");
            assert_eq!(Manifest::read(&folder).expect("reads"), Some(layout));
        }
    }

    #[test]
    fn absurd_edits_are_damage_and_no_panic() {
        let base = Edit {
            added: vec![table(7, 7, 1, 0, 9)],
            next_file: Some(20),
            next_flush: Some(FlushNumber(9)),
            ..Edit::default()
        };
        let base = StoreEdit::of_tree(KeyspaceId::DEFAULT, base);
        assert!(read_back(std::slice::from_ref(&base)).is_ok());
        let one_cut = CutsEdit { cuts: vec![b"b".to_vec()], ..cuts() };
        let miscounted = TableRecord { file_entries: 1, ..table(8, 8, 0, 0, 9) };
        let absurd = [
            Edit { next_file: Some(u64::MAX), ..Edit::default() },
            Edit { next_file: Some(7), ..Edit::default() },
            Edit { next_flush: Some(FlushNumber(u64::MAX)), ..Edit::default() },
            Edit { next_flush: Some(FlushNumber(8)), ..Edit::default() },
            Edit { last_sequence: Some(Sequence(u64::MAX)), ..Edit::default() },
            Edit { added: vec![table(8, 8, 2, 9, u64::MAX)], ..Edit::default() },
            // Tables of a run must not overlap.
            Edit { added: vec![table(8, 7, 1, 0, 9)], ..Edit::default() },
            Edit { removed: vec![99], ..Edit::default() },
            Edit { images: vec![image(20, 9)], ..Edit::default() },
            Edit { images: vec![image(11, 10)], ..Edit::default() },
            Edit { cuts: Some(one_cut), ..Edit::default() },
            Edit { added: vec![miscounted], ..Edit::default() },
        ];
        let absurd = absurd.map(|edit| StoreEdit::of_tree(KeyspaceId::DEFAULT, edit));
        let of_store = [
            StoreEdit { live_wal: Some(21), ..StoreEdit::default() },
            StoreEdit { newest_wal: Some(20), ..StoreEdit::default() },
            StoreEdit::of_tree(KeyspaceId(3), Edit::default()),
        ];
        for edit in absurd.into_iter().chain(of_store) {
            let read = read_back(&[base.clone(), edit.clone()]);
            assert!(matches!(read, Err(Error::Corrupt { .. })), "{edit:?}: {read:?}");
        }
    }
}

#[cfg(test)]
mod nonsense_tests;
