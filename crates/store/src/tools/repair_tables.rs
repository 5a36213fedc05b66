//! Checks whole tables, and rewrites damaged ones without the damage.
//! ```text
//! table 12   block | #### | block | index | filter     sound: it stays
//!                 v                                    else: a new table gets the entries of all
//! table 31   block | block | index | filter            readable blocks; the others are lost
//! ```
//! Invariant: a damaged table is not changed, and its number is not used again.

use crate::entries::block::Block;
use crate::entries::block_cursor::BlockCursor;
use crate::entries::entry::{Entry, Sequence, order};
use crate::error::{Error, Result};
use crate::files::fragments::Fragment;
use crate::files::names::table_name;
use crate::files::table::Table;
use crate::files::table::parts::TableParts;
use crate::files::value_files::StoreValues;
use crate::plan::layout::{Layout, TableRecord};
use crate::sync::Arc;
use crate::tools::repair_report::{Loss, RepairReport};
use crate::tools::repair_values::{LostValue, has_lost_values, lost_value};
use crate::tools::verify::check_flush;
use crate::tree::run_writer::{RunOutput, RunWriter};
use crate::tree::table_files::TableFiles;

/// The result of repairing a table.
pub(crate) enum Mended {
    /// Every byte of the table is as it was written.
    Sound(Arc<Table>),
    /// Its readable entries are in new tables. There are none if nothing could be read.
    Rewritten(RunOutput),
}

impl Mended {
    /// Whether this is the table of the record: its keys lie within the record's bounds, and its
    /// flushes within the record's span.
    pub(crate) fn belongs(&self, layout: &Layout, record: &TableRecord) -> bool {
        let is_oldest = layout.runs.last().is_some_and(|oldest| oldest.id == record.run);
        let fits_flush = |sequence| check_flush(layout, record.span, is_oldest, sequence).is_ok();
        // The file of a trimmed table has other keys, too.
        let is_sound = matches!(self, Mended::Sound(_));
        let is_within = |from: &[u8], to: &[u8]| match is_sound && record.is_trimmed {
            true => *from <= *record.from && *record.to <= *to,
            false => *record.from <= *from && *to <= *record.to,
        };
        let fits = |table: &Arc<Table>| {
            let (least, greatest) = table.properties().sequences;
            let (from, to) = table.key_bounds();
            is_within(&from, &to) && fits_flush(least) && fits_flush(greatest)
        };
        match self {
            Mended::Sound(table) => {
                let is_piece = !record.is_trimmed || table.has_piece(record);
                fits(table) && table.entry_count() == record.file_entries && is_piece
            }
            Mended::Rewritten(output) => output.opened.values().all(fits),
        }
    }
}

/// Reads a whole table, and rewrites it if it is damaged. `record`: what the manifest says about
/// the table. If it was trimmed, only keys within the record's bounds are rewritten.
///
/// # Errors
/// `Io`, and `Version`. Damage is no error: it goes into the report.
pub(crate) fn mend(
    table_files: &Arc<TableFiles>,
    file: u64,
    record: Option<&TableRecord>,
    report: &mut RepairReport,
) -> Result<Mended> {
    let checked = table_files.open_table(file).and_then(|table| table.verify().map(|()| table));
    let values = &table_files.values.store;
    match checked {
        Ok(table) if has_lost_values(values, &table)? => {}
        Ok(table) => return Ok(Mended::Sound(table)),
        Err(Error::Corrupt { .. }) => {}
        Err(other) => return Err(other),
    }
    let parts = TableParts::read(&table_files.folder, &table_name(file), file)?;
    let within = record.filter(|record| record.is_trimmed);
    let tombstones = parts.tombstones.clone().unwrap_or_default();
    let tombstones = match within {
        Some(record) => tombstones.cut(Some(&record.from), Some(&record.to)),
        None => tombstones,
    };
    // A table of range deletions alone has an index without blocks.
    let is_readable = parts.block_count().is_some_and(|count| count > 0 || !tombstones.is_empty());
    let writer = RunWriter::new(table_files, tombstones).with_filter(parts.filter());
    let name = table_name(file);
    let mut copier = Copier { name, writer, values, last: None, within, report };
    if is_readable {
        parts.blocks().try_for_each(|fragment| copier.copy(fragment?))?;
        copier.lose_tombstones(&parts);
        copier.note_damage(&parts);
    } else {
        copier.lose_all(&parts, record.map(|record| record.entries));
    }
    Ok(Mended::Rewritten(copier.writer.finish()?))
}

/// Copies the readable entries of a table.
struct Copier<'a> {
    name: String,
    writer: RunWriter,
    values: &'a StoreValues,
    last: Option<(Vec<u8>, Sequence)>,
    /// The piece of a trimmed table that belongs to the tree.
    within: Option<&'a TableRecord>,
    report: &'a mut RepairReport,
}

impl Copier<'_> {
    fn copy(&mut self, block: Fragment<(usize, Block, u8)>) -> Result<()> {
        match block {
            Fragment::Whole { offset, item: (number, block, _) } => {
                let entries = block.entry_count() as u64;
                let copied = self.copy_entries(offset, BlockCursor::new(block))?;
                if copied < entries {
                    let what = format!("data block {number}: entries that are out of order");
                    self.lose(offset, what, Some(entries - copied));
                }
            }
            Fragment::Damaged { bytes, what, entries, .. } => self.lose(bytes.start, what, entries),
            Fragment::Torn { .. } => unreachable!("the index tells where blocks end"),
        }
        Ok(())
    }

    /// Copies the entries of a block as long as they are in order. Returns how many these are.
    fn copy_entries(&mut self, offset: u64, mut cursor: BlockCursor) -> Result<u64> {
        let mut copied = 0;
        cursor.seek_first();
        while let Some(entry) = cursor.entry().filter(|entry| self.goes_on(entry)) {
            if self.belongs(entry.key) {
                match lost_value(self.values, &entry)? {
                    Some(LostValue { file, what }) => {
                        self.report.lost_in_values.insert(file);
                        self.lose(offset, what, Some(1));
                    }
                    None => self.writer.add(&entry)?,
                }
            }
            let (key, sequence) = self.last.get_or_insert_default();
            entry.key.clone_into(key);
            *sequence = entry.sequence;
            copied += 1;
            cursor.next();
        }
        Ok(copied)
    }

    fn belongs(&self, key: &[u8]) -> bool {
        self.within.as_ref().is_none_or(|record| *record.from <= *key && *key < *record.to)
    }

    fn goes_on(&self, entry: &Entry<'_>) -> bool {
        let here = (entry.key, entry.sequence);
        self.last.as_ref().is_none_or(|(key, sequence)| order((key, *sequence), here).is_lt())
    }

    /// Each piece of a table is repaired separately, but its damage is reported once.
    fn lose(&mut self, offset: u64, what: String, entries: Option<u64>) {
        let loss = Loss { file: self.name.clone(), offset, what, entries };
        if !self.report.lost.contains(&loss) {
            self.report.lost.push(loss);
        }
    }

    /// Reports the whole table as lost: without the index it is unknown where blocks begin.
    fn lose_all(&mut self, parts: &TableParts, entries: Option<u64>) {
        let entries = parts.properties.as_ref().map(|known| known.entries).or(entries);
        let first = parts.damage.iter().find_map(Error::as_damage);
        let (offset, what) = first.unwrap_or((0, "it cannot be read"));
        let unfinished = match entries {
            None => "; a merge that was cut short leaves such a file, and then nothing is lost",
            Some(_) => "",
        };
        let what = format!("{what}; no entry of the table can be read{unfinished}");
        self.lose(offset, what, entries);
    }

    /// Keys that the lost ranges deleted may reappear.
    fn lose_tombstones(&mut self, parts: &TableParts) {
        if let Some(offset) = parts.tombstones_at().filter(|_| parts.tombstones.is_none()) {
            let what = "deletions of ranges; keys in them may be seen again".to_string();
            self.lose(offset, what, None);
        }
    }

    /// Notes damage that costs no entry.
    fn note_damage(&mut self, parts: &TableParts) {
        for note in parts.damage.iter().map(|error| format!("mended: {error}")) {
            if !self.report.notes.contains(&note) {
                self.report.notes.push(note);
            }
        }
    }
}
