//! Shows the contents of a store's files, fragment by fragment, and where they are damaged.
//! ```text
//! table      sections, properties, blocks and their entries      MANIFEST   edits, a line a change
//! log        predecessor, groups and their entries               image      its own description
//! ```
//! Invariants: files are only read, and none is trusted. Bytes that fail their checksum are not
//! shown, but reported with file and offset. The store may be open meanwhile. A file that
//! disappears then is left out.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

use trommel_filters::{Part, PartSize};

use crate::entries::block_cursor::BlockCursor;
use crate::entries::compression::form_name;
use crate::entries::entry::{Entry, Kind};
use crate::entries::expiry::{EXPIRY_BYTES, Expiry};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::tombstones::RangeDelete;
use crate::error::{Error, Result};
use crate::files::fragments::{Fragment, LogRecord, log_fragments, manifest_fragments};
use crate::files::log_check::LogCounts;
use crate::files::manifest::{MANIFEST_NAME, Manifest};
use crate::files::names::{file_number, image_name, table_name, wal_name};
use crate::files::record::{Records, read_all, read_header};
use crate::files::table::format::section_name;
use crate::files::table::parts::TableParts;
use crate::files::wal::Predecessor;
use crate::plan::layout::{CutsEdit, Edit, FlushRecord, ImageRecord, LastMerge, TableRecord};
use crate::plan::store_layout::{KeyspaceChange, StoreEdit, StoreLayout};
use crate::storage::exhausted::with_room;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage;
use crate::tools::dump_values::read_values;

/// The kinds of files of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// The manifest: which tables make up each tree.
    Manifest,
    /// A table: sorted entries.
    Table,
    /// A log: writes since the last flush.
    Log,
    /// An image of a global range filter's part.
    Filter,
    /// A value file: values apart.
    Value,
}

impl FileKind {
    /// Returns its common name.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Manifest => "manifest",
            FileKind::Table => "table",
            FileKind::Log => "log",
            FileKind::Filter => "filter",
            FileKind::Value => "value",
        }
    }

    /// Returns the kind of a file with this name. None: no file of a store has such a name.
    fn of_name(name: &str) -> Option<FileKind> {
        let has = |ending: &str| name.split('.').skip(1).any(|part| part == ending);
        let known = [
            (name.starts_with(MANIFEST_NAME), FileKind::Manifest),
            (has("table"), FileKind::Table),
            (has("wal"), FileKind::Log),
            (has("filter"), FileKind::Filter),
            (has("value"), FileKind::Value),
        ];
        known.into_iter().find_map(|(is_so, kind)| is_so.then_some(kind))
    }
}

/// An item of a dump. Offsets are those in the last `File` item's file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpItem<'a> {
    /// The beginning of a file. The following items belong to it.
    File {
        /// Its path.
        path: &'a Path,
        /// Its kind.
        kind: FileKind,
        /// Its length.
        bytes: u64,
        /// Whether the store needs it. None: unknown, since no readable manifest lies beside it.
        is_needed: Option<bool>,
    },
    /// Something that the file says.
    Note {
        /// Its offset.
        offset: u64,
        /// What the file says there.
        text: String,
    },
    /// An entry of a table or a log.
    Entry {
        /// The offset of its block or record.
        offset: u64,
        /// Its sequence number.
        sequence: u64,
        /// Its kind: put, delete, delete-range, put-expiring, merge, put-apart, put-apart-expiring.
        kind: &'static str,
        /// The time of expiry, if it expires.
        expiry: Option<Expiry>,
        /// Its key.
        key: &'a [u8],
        /// Its value. Empty for a deletion; for the deletion of a range, the key behind the range;
        /// for a value apart, the reference.
        value: &'a [u8],
    },
    /// Bytes that are not as they were written.
    Damage {
        /// Their offset.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
}

type Tell<'t> = dyn FnMut(DumpItem<'_>) -> ControlFlow<()> + 't;

/// Why a dump ends early.
enum End {
    /// The caller wants no more items.
    Enough,
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Failed(error)
    }
}

type Dumped = std::result::Result<(), End>;

/// Reports the contents of a file of a store, or of each file in a store's folder. Ends early when
/// `tell` breaks.
///
/// # Errors
/// `Io`: a file cannot be read. `Version`: another version of Trommel wrote it. `NotAStore`: the
/// folder has no files of a store. Damage is not an error: it is reported to `tell`.
pub fn dump(storage: &dyn Storage, path: impl AsRef<Path>, tell: &mut Tell<'_>) -> Result<()> {
    let path = path.as_ref();
    let dumped = match with_room(|| storage.open_folder(path)) {
        Err(error) if error.kind() == ErrorKind::NotADirectory => dump_one(storage, path, tell),
        _ => dump_all(&OpenFolder::open(storage, path)?, tell),
    };
    match dumped {
        Ok(()) | Err(End::Enough) => Ok(()),
        Err(End::Failed(error)) => Err(error),
    }
}

/// Dumps the files of a store's folder.
fn dump_all(folder: &OpenFolder, tell: &mut Tell<'_>) -> Dumped {
    let needed = Manifest::read(folder).ok().flatten().map(|layout| Needed::by(&layout));
    let names = folder.list()?;
    let files = names.iter().filter_map(|name| Some((name, FileKind::of_name(name)?)));
    let mut files: Vec<_> = files.collect();
    if files.is_empty() {
        return Err(Error::NotAStore { path: folder.path().to_path_buf() }.into());
    }
    files.sort_by_key(|(_, kind)| *kind as u8);
    for (name, kind) in files {
        match dump_file(folder, name, kind, needed.as_ref(), tell) {
            // The file was removed meanwhile.
            Err(End::Failed(Error::Io { source, .. })) if source.kind() == ErrorKind::NotFound => {}
            dumped => dumped?,
        }
    }
    Ok(())
}

/// Dumps a single file.
fn dump_one(storage: &dyn Storage, path: &Path, tell: &mut Tell<'_>) -> Dumped {
    let inside = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let folder = OpenFolder::open(storage, inside.unwrap_or(Path::new(".")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let known = FileKind::of_name(&name);
    let layout = known.and_then(|_| Manifest::read(&folder).ok()?);
    let needed = layout.map(|layout| Needed::by(&layout));
    let kind = known.map_or_else(|| kind_of_bytes(&folder, &name), Ok)?;
    dump_file(&folder, &name, kind, needed.as_ref(), tell)
}

/// Returns the kind of a file with any other name, by its first bytes. The rest count as tables,
/// whose magic is at the end.
fn kind_of_bytes(folder: &OpenFolder, name: &str) -> Result<FileKind> {
    let start = read_header(&*folder.open_file(name)?, &folder.path_of(name), 8)?;
    Ok(match start.as_slice() {
        b"TROMMELM" => FileKind::Manifest,
        b"TRMLWAL\0" => FileKind::Log,
        b"TRMLGRF\0" => FileKind::Filter,
        b"TRMLVAL\0" => FileKind::Value,
        _ => FileKind::Table,
    })
}

fn dump_file(
    folder: &OpenFolder,
    name: &str,
    kind: FileKind,
    needed: Option<&Needed>,
    tell: &mut Tell<'_>,
) -> Dumped {
    let (file, path) = (folder.open_file(name)?, &*folder.path_of(name));
    let bytes = file.size().map_err(Error::io(path))?;
    // Tables and logs tell which value files are needed; the manifest does not.
    let left_over =
        needed.filter(|_| kind != FileKind::Value).map(|needed| why_left_over(needed, name, kind));
    let is_needed = left_over.map(|why| why.is_none());
    say(tell, DumpItem::File { path, kind, bytes, is_needed })?;
    let Some(why) = left_over.flatten() else { return dump_contents(folder, name, kind, tell) };
    note(tell, 0, format!("no part of the store: {why}"))?;
    // Damage to a file that the store does not need costs nothing.
    dump_contents(folder, name, kind, &mut |item| match item {
        DumpItem::Damage { offset, what } => {
            tell(DumpItem::Note { offset, text: format!("not whole: {what}") })
        }
        other => tell(other),
    })
}

/// The files that a store needs.
struct Needed {
    tables: HashSet<u64>,
    images: HashSet<u64>,
    /// Logs below this one are not needed.
    live_log: u64,
}

impl Needed {
    fn by(layout: &StoreLayout) -> Self {
        let (tables, images) = (layout.table_files(), layout.image_files());
        Needed { tables, images, live_log: layout.logs.live }
    }
}

/// Returns why the store does not need a file beside its manifest. None: it needs the file.
fn why_left_over(needed: &Needed, name: &str, kind: FileKind) -> Option<&'static str> {
    let number = file_number(name);
    let is = |name_of: fn(u64) -> String| number.is_some_and(|number| name == name_of(number));
    let number = number.unwrap_or_default();
    match kind {
        FileKind::Manifest if name == MANIFEST_NAME => None,
        FileKind::Table if is(table_name) => (!needed.tables.contains(&number)).then_some(
            "the manifest does not name it. A flush or merge is writing it, or was cut short; or it was merged into another",
        ),
        FileKind::Log if is(wal_name) => {
            (number < needed.live_log).then_some("all that it holds is in tables")
        }
        FileKind::Filter if is(image_name) => {
            let is_named = needed.images.contains(&number);
            (!is_named).then_some("the manifest does not name it: there is a newer one, or none")
        }
        _ => Some("it never got the name of a file of the store, or was given another"),
    }
}

fn dump_contents(folder: &OpenFolder, name: &str, kind: FileKind, tell: &mut Tell<'_>) -> Dumped {
    // The number is part of the checksums of tables and logs.
    let number = name.split('.').next().and_then(|number| number.parse().ok());
    if number.is_none() && matches!(kind, FileKind::Table | FileKind::Log | FileKind::Value) {
        let what = "it is read by the number that its name begins with, and this has none";
        return damage(tell, 0, what);
    }
    let number = number.unwrap_or_default();
    if kind == FileKind::Table {
        return dump_table(&TableParts::read(folder, name, number)?, tell);
    }
    if kind == FileKind::Value {
        return read_values(folder, name, number, |offset, read| match read {
            Ok(text) => note(tell, offset, text),
            Err(what) => damage(tell, offset, what),
        });
    }
    let mut bytes = match read_all(folder, name) {
        Err(Error::Corrupt { offset, what, .. }) => return damage(tell, offset, what),
        read => read?,
    };
    if kind == FileKind::Log
        && let Some(end) = written_meanwhile(folder, (name, number), &bytes)?
    {
        bytes.truncate(end as usize);
    }
    match kind {
        FileKind::Manifest => dump_manifest(&bytes, tell),
        FileKind::Log => dump_log(&bytes, number, tell),
        FileKind::Filter | FileKind::Table | FileKind::Value => dump_filter(&bytes, tell),
    }
}

/// Returns where a log ended when `bytes` were read, if a record has been appended there since.
/// None: the log has not grown.
fn written_meanwhile(
    folder: &OpenFolder,
    (name, number): (&str, u64),
    bytes: &[u8],
) -> Result<Option<u64>> {
    let doubt = log_fragments(bytes, number).find_map(|fragment| match fragment {
        Fragment::Damaged { bytes, is_gap: true, .. } => Some(bytes.start),
        Fragment::Torn { bytes, are_zeros: false } => Some(bytes.start),
        _ => None,
    });
    let Some(at) = doubt else { return Ok(None) };
    let path = folder.path_of(name);
    let mut records = Records::of(folder.open_file(name)?, &path, number)?;
    Ok(records.at(at)?.map(|_| at))
}

fn say(tell: &mut Tell<'_>, item: DumpItem<'_>) -> Dumped {
    if tell(item).is_break() { Err(End::Enough) } else { Ok(()) }
}

fn note(tell: &mut Tell<'_>, offset: u64, text: impl Into<String>) -> Dumped {
    say(tell, DumpItem::Note { offset, text: text.into() })
}

fn damage(tell: &mut Tell<'_>, offset: u64, what: impl Into<String>) -> Dumped {
    say(tell, DumpItem::Damage { offset, what: what.into() })
}

/// Reports each fragment. `whole` reports those that could be read.
fn dump_fragments<T>(
    fragments: impl Iterator<Item = Result<Fragment<T>>>,
    is_log: bool,
    tell: &mut Tell<'_>,
    mut whole: impl FnMut(u64, T, &mut Tell<'_>) -> Dumped,
) -> Dumped {
    for fragment in fragments {
        match fragment? {
            Fragment::Whole { offset, item } => whole(offset, item, tell)?,
            Fragment::Damaged { bytes, what, entries, .. } => {
                let lost = entries.filter(|&entries| entries > 0);
                let lost = lost.map_or_else(String::new, |lost| format!(" ({lost} entries)"));
                damage(tell, bytes.start, what + &lost)?;
            }
            Fragment::Torn { bytes, are_zeros: true } if is_log && bytes.start > 0 => {
                let len = bytes.end - bytes.start;
                let what = format!("{len} zeros at the end: allocated ahead, or lost in a crash");
                note(tell, bytes.start, what)?;
            }
            Fragment::Torn { bytes, .. } => {
                let len = bytes.end - bytes.start;
                let what = format!("{len} bytes without a valid record at the end");
                damage(tell, bytes.start, format!("{what}: a crash may have torn them"))?;
            }
        }
    }
    Ok(())
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Put => "put",
        Kind::Delete => "delete",
        Kind::DeleteRange => "delete-range",
        Kind::PutWithExpiry => "put-expiring",
        Kind::Merge => "merge",
        Kind::PutApart => "put-apart",
        Kind::PutApartWithExpiry => "put-apart-expiring",
    }
}

fn tell_entry(tell: &mut Tell<'_>, offset: u64, entry: &Entry<'_>) -> Dumped {
    let &Entry { key, sequence, kind, value } = entry;
    let expiry = kind.has_expiry().then(|| Expiry::of_stored(value));
    let behind = if expiry.is_some() { EXPIRY_BYTES } else { 0 };
    let value = value.get(behind..).unwrap_or_default();
    let (sequence, kind) = (sequence.0, kind_name(kind));
    say(tell, DumpItem::Entry { offset, sequence, kind, expiry, key, value })
}

/// Reports a table, continuing after any damage.
fn dump_table(parts: &TableParts, tell: &mut Tell<'_>) -> Dumped {
    table_heads(parts, tell)?;
    dump_tombstones(parts, tell)?;
    dump_fragments(parts.blocks(), false, tell, |offset, (number, block, form), tell| {
        let (packing, bytes) = (form_name(form).unwrap_or_default(), block.raw().len());
        note(tell, offset, format!("data block {number}: {packing}, {bytes} bytes in memory"))?;
        let mut cursor = BlockCursor::new(block);
        cursor.seek_first();
        while let Some(entry) = cursor.entry() {
            tell_entry(tell, offset, &entry)?;
            cursor.next();
        }
        Ok(())
    })
}

fn table_heads(parts: &TableParts, tell: &mut Tell<'_>) -> Dumped {
    for (offset, what) in parts.damage.iter().filter_map(Error::as_damage) {
        damage(tell, offset, what)?;
    }
    for section in &parts.sections {
        let (name, tag, len) = (section_name(section.tag), section.tag, section.len);
        note(tell, section.offset, format!("section {tag:#x}, {name}: {len} bytes"))?;
    }
    let Some(known) = &parts.properties else { return Ok(()) };
    let (least, greatest) = known.sequences;
    let (first, last) = (known.first_key.escape_ascii(), known.last_key.escape_ascii());
    let text = format!(
        "{} entries, {} of them deletions; {} bytes of keys and values; sequence numbers {} to {}; keys {first} to {last}",
        known.entries, known.deletes, known.raw_bytes, least.0, greatest.0
    );
    note(tell, 0, text)
}

/// Reports deletions of ranges, each cut where another one begins or ends.
fn dump_tombstones(parts: &TableParts, tell: &mut Tell<'_>) -> Dumped {
    let (Some(offset), Some(tombstones)) = (parts.tombstones_at(), &parts.tombstones) else {
        return Ok(());
    };
    tombstones.pieces().try_for_each(|RangeDelete { from, to, sequence }| {
        tell_entry(tell, offset, &Entry { key: from, sequence, kind: Kind::DeleteRange, value: to })
    })
}

fn dump_log(bytes: &[u8], number: u64, tell: &mut Tell<'_>) -> Dumped {
    let mut counts = LogCounts::default();
    dump_fragments(log_fragments(bytes, number).map(Ok), true, tell, |offset, record, tell| {
        let group = match record {
            LogRecord::Predecessor(Predecessor { wal, valid_bytes, last }) => {
                let name = wal_name(wal);
                let follows = || format!("follows {name}, of which {valid_bytes} bytes count");
                let text = if wal == 0 { "the first log".to_string() } else { follows() };
                let after = last.map_or(String::new(), |last| format!("; after write {}", last.0));
                return note(tell, offset, text + &after);
            }
            LogRecord::Group(group) => group,
        };
        let (first, count) = (group.first.0, group.entries.len());
        let durable = group.durable_bytes;
        let what = format!("group of {count} writes from number {first} on");
        note(tell, offset, format!("{what}; {durable} bytes were durable before"))?;
        counts.add_group(count);
        group.entries.iter().try_for_each(|entry| tell_entry(tell, offset, entry))
    })?;
    let LogCounts { groups, entries, .. } = counts;
    note(tell, bytes.len() as u64, format!("in all {groups} groups of {entries} entries"))
}

fn dump_manifest(bytes: &[u8], tell: &mut Tell<'_>) -> Dumped {
    dump_fragments(manifest_fragments(bytes).map(Ok), false, tell, |offset, edit, tell| {
        let lines = edit_lines(&edit);
        note(tell, offset, format!("edit with {} changes", lines.len()))?;
        lines.into_iter().try_for_each(|line| note(tell, offset, line))
    })
}

/// Describes what an edit changes, one line a change.
fn edit_lines(edit: &StoreEdit) -> Vec<String> {
    let numbers = [
        ("logs are needed from", edit.live_wal),
        ("newest log that was made", edit.newest_wal),
        ("next key space", edit.next_keyspace.map(u64::from)),
    ];
    let mut lines = number_lines(&numbers);
    lines.extend(edit.gone.iter().map(|gone| {
        let (file, last) = (gone.next_file, gone.last_sequence.0);
        format!("dropped key spaces had files below {file} and writes up to {last}")
    }));
    for (keyspace, edit) in &edit.keyspaces {
        if *keyspace != KeyspaceId::DEFAULT {
            lines.push(format!("of key space {}:", keyspace.0));
        }
        lines.extend(edit.change.iter().map(change_line));
        lines.extend(edit.options.iter().map(|(name, text)| format!("option {name}: {text}")));
        lines.extend(tree_lines(&edit.tree));
    }
    lines
}

fn change_line(change: &KeyspaceChange) -> String {
    match change {
        KeyspaceChange::Created { name } => format!("it is made, with the name {name}"),
        KeyspaceChange::Renamed { name } => format!("its name is {name}"),
        KeyspaceChange::Dropped => "it is gone".into(),
    }
}

fn number_lines(numbers: &[(&str, Option<u64>)]) -> Vec<String> {
    numbers.iter().filter_map(|(name, n)| Some(format!("{name}: {}", (*n)?))).collect()
}

/// Describes what an edit changes in one tree.
fn tree_lines(edit: &Edit) -> Vec<String> {
    let numbers = [
        ("flushes are forgotten below", edit.forget_below.map(|flush| flush.0)),
        ("next file", edit.next_file),
        ("next flush", edit.next_flush.map(|flush| flush.0)),
        ("newest sequence number in tables", edit.last_sequence.map(|sequence| sequence.0)),
    ];
    let mut lines: Vec<String> =
        edit.removed.iter().map(|file| format!("table {file:06} leaves")).collect();
    lines.extend(edit.added.iter().map(table_line));
    lines.extend(edit.flushes.iter().map(|FlushRecord { flush, first }| {
        format!("flush {} begins with sequence number {}", flush.0, first.0)
    }));
    lines.extend(number_lines(&numbers));
    lines.extend(edit.images.iter().map(image_line));
    lines.extend(edit.cuts.iter().map(cuts_line));
    lines.extend(edit.last_merge.iter().map(last_merge_line));
    lines
}

fn table_line(table: &TableRecord) -> String {
    let TableRecord { file, run, level, span, entries, file_entries, bytes, .. } = table;
    let of_file = if table.is_trimmed { format!(" of {file_entries}") } else { String::new() };
    let (lo, hi) = (span.lo().0, span.hi().0);
    let (from, to) = (table.from.escape_ascii(), table.to.escape_ascii());
    format!(
        "table {file:06} joins run {run} in level {level}: flushes [{lo}, {hi}), {entries}{of_file} entries, {bytes} bytes, keys [{from}, {to})"
    )
}

fn image_line(image: &ImageRecord) -> String {
    let ImageRecord { lower, file, bytes, checksum, watermark, tables } = image;
    let (watermark, lower) = (watermark.0, lower.escape_ascii());
    format!(
        "filter {file:06}: part from [{lower}] on, {bytes} bytes, checksum {checksum:#010x}, flushes below {watermark}, base of tables {tables:?}"
    )
}

fn cuts_line(edit: &CutsEdit) -> String {
    let cuts: Vec<String> = edit.cuts.iter().map(|cut| cut.escape_ascii().to_string()).collect();
    let from = edit.within.from.escape_ascii();
    let to = edit.within.to.as_ref().map_or_else(String::new, |to| to.escape_ascii().to_string());
    format!("in [{from}, {to}) new partitions begin at [{}]", cuts.join(", "))
}

fn last_merge_line(merge: &LastMerge) -> String {
    let LastMerge { oldest, inputs, done_to, .. } = merge;
    let up_to = format!(" up to {}", done_to.escape_ascii());
    let up_to = if done_to.is_empty() { "" } else { &up_to };
    format!("the merge of runs {inputs:?} into run {oldest} is done{up_to}")
}

fn dump_filter(bytes: &[u8], tell: &mut Tell<'_>) -> Dumped {
    let part = match Part::read_image(bytes) {
        Ok(part) => part,
        Err(wrong) => return damage(tell, wrong.at as u64, wrong.what),
    };
    let (options, size) = (part.options(), part.size());
    let (bits, ratio) = (options.bits_per_key, options.size_ratio);
    let fingerprints = format!("{:?}", options.fingerprints).to_lowercase();
    let of_points = options.point_bits;
    let made = format!("{bits} bits per key ({of_points} for points alone), size ratio {ratio}");
    note(tell, 0, format!("{made}, fingerprints {fingerprints}"))?;
    let PartSize { base_entries, base_bytes, overlay_entries, overlay_bytes } = size;
    let base = format!("base: {base_entries} keys of flushes below {}", part.base_end().0);
    note(tell, 0, format!("{base}, {base_bytes} bytes in memory"))?;
    let overlay = format!("overlay: {overlay_entries} entries of flushes since");
    note(tell, 0, format!("{overlay}, {overlay_bytes} bytes in memory"))
}
