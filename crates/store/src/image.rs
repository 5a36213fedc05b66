//! The filter's image: a file that spares reading all runs when the store is opened.
//! ```text
//! written   part of a version -> NNNNNN.filter, synced -> edit: file, checksum, watermark, tables of the base
//! read      record -> bytes -> part -> + entries of flushes from the watermark on, from newer tables
//! ```
//! Invariants: every installed flush below the watermark is in the image; its base stands for exactly the tables that
//! the record names, which are the oldest run's. So an image of an older round is known by its tables. It is never
//! trusted and never fatal: what does not fit is made anew from the runs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use trommel_filters::{GrfOptions, Part};

use crate::core::{Core, DamagedFilter};
use crate::environment::PausePoint;
use crate::error::{Error, Result};
use crate::guard::{Guard, Parts};
use crate::layout::{ImageRecord, Layout};
use crate::located;
use crate::merging::{insert_entries, rebuild_guard};
use crate::output::Shelf;
use crate::stats::FilterRecovery;
use crate::storage::Storage;
use crate::sync::Arc;
use crate::version::Version;

/// The name of an image's file.
pub(crate) fn image_name(file: u64) -> String {
    format!("{file:06}.filter")
}

pub(crate) fn image_path(dir: &Path, file: u64) -> PathBuf {
    dir.join(image_name(file))
}

/// Writes the image of the newest version, if there is no such image yet, and has the manifest name it. A failure
/// leaves the store as it is.
pub(crate) fn write(core: &Core) -> Result<()> {
    let version = core.current.hold();
    let Some(part) = version.guard.part().map(Arc::clone) else { return Ok(()) };
    let Some(mut record) = record_of(&version.layout, &part) else { return Ok(()) };
    if version.layout.image.as_ref().is_some_and(|old| old.is_as_new_as(&record)) {
        return Ok(());
    }
    // The part alone is written: nobody's tables are kept for it.
    drop(version);
    let start = Instant::now();
    let mut bytes = Vec::new();
    part.write_image(&mut bytes);
    record.file = core.shelf.new_file();
    (record.bytes, record.checksum) = (bytes.len() as u64, crc32c::crc32c(&bytes));
    core.counters.guard_worked(start.elapsed());
    write_file(&core.shelf, record.file, &bytes)?;
    core.env.pauses.at(PausePoint::ImageWritten);
    core.installer().install_image(core, record)
}

/// What the manifest is to say about the part of a version, but for the file. None: no table stands for its base.
fn record_of(layout: &Layout, part: &Part) -> Option<ImageRecord> {
    let oldest = layout.runs.last()?;
    let (watermark, tables) = (layout.next_flush, oldest.files());
    let has_base = part.base_end() == oldest.span().hi();
    has_base.then_some(ImageRecord { file: 0, bytes: 0, checksum: 0, watermark, tables })
}

/// Writes an image's file, durably. On a failure nothing stays of it.
fn write_file(shelf: &Shelf, file: u64, bytes: &[u8]) -> Result<()> {
    let path = image_path(&shelf.dir, file);
    let write = || {
        let mut out = shelf.storage.create(&path)?;
        out.append(bytes)?;
        out.sync()?;
        shelf.storage.sync_dir(&shelf.dir)
    };
    write().map_err(Error::io(&path)).inspect_err(|_| {
        // What cannot be removed is removed when the store is opened: no edit names it.
        let _ = shelf.storage.remove(&path);
    })
}

/// The bytes of an image, as they were written.
pub(crate) fn read(storage: &dyn Storage, dir: &Path, record: &ImageRecord) -> Result<Vec<u8>> {
    let path = image_path(dir, record.file);
    let damaged = |what: &str| Error::corrupt(&path, 0, what);
    let file = storage.open(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => damaged("the file of the filter's image is missing"),
        _ => Error::io(&path)(error),
    })?;
    let size = file.size().map_err(Error::io(&path))?;
    if size != record.bytes {
        return Err(damaged("the filter's image has not the length that the manifest names"));
    }
    let size = usize::try_from(size).map_err(|_| damaged("an image beyond memory"))?;
    let mut bytes = vec![0; size];
    file.read_at(0, &mut bytes).map_err(Error::io(&path))?;
    if crc32c::crc32c(&bytes) != record.checksum {
        return Err(damaged("the filter's image has not the checksum that the manifest names"));
    }
    Ok(bytes)
}

/// The guard of a store that is being opened, and how it came to be.
pub(crate) struct Recovered {
    pub(crate) guard: Guard,
    pub(crate) recovery: FilterRecovery,
    /// Of the image.
    pub(crate) damage: Option<DamagedFilter>,
}

/// Why an image is not used.
enum Unusable {
    /// It is of another store's state or options.
    Unfit(&'static str),
    /// It cannot be read.
    Unreadable(Error),
}

/// The guard of `version`, whose own is still empty: from the image and newer tables, or else from the runs.
pub(crate) fn recover(shelf: &Shelf, version: &Version) -> Result<Recovered> {
    let recovered = |guard, recovery, damage| Recovered { guard, recovery, damage };
    if let (Guard::Located(guard), false) = (&version.guard, version.runs.is_empty()) {
        let (guard, told_from) = located::rebuild(guard.kind(), &shelf.options, version)?;
        let why = told_from.to_string();
        let guard = Guard::Located(Arc::new(guard));
        return Ok(recovered(guard, FilterRecovery::Rebuilt { why }, None));
    }
    let wanted = match version.guard.part() {
        Some(part) if !version.runs.is_empty() => part.options(),
        _ => return Ok(recovered(version.guard.clone(), FilterRecovery::Nothing, None)),
    };
    let (why, damage) = match usable_image(shelf, version, wanted) {
        Ok((part, record)) => {
            let (part, replayed_tables) = replay(part, record, version)?;
            let guard = Guard::Global(Parts::of_one(part));
            return Ok(recovered(guard, FilterRecovery::Image { replayed_tables }, None));
        }
        Err(Unusable::Unfit(why)) => (why.to_string(), None),
        Err(Unusable::Unreadable(error @ Error::Corrupt { .. })) => {
            let image = version.layout.image.as_ref();
            let what = error.to_string();
            let damage = image.map(|image| DamagedFilter { file: image.file, what });
            ("the image is damaged".to_string(), damage)
        }
        Err(Unusable::Unreadable(error)) => (error.to_string(), None),
    };
    Ok(recovered(rebuild_guard(&shelf.options, version)?, FilterRecovery::Rebuilt { why }, damage))
}

/// The image, if it is one of this tree's oldest run and of these options.
fn usable_image<'v>(
    shelf: &Shelf,
    version: &'v Version,
    wanted: &GrfOptions,
) -> std::result::Result<(Part, &'v ImageRecord), Unusable> {
    let Some(record) = &version.layout.image else {
        return Err(Unusable::Unfit("there is no image"));
    };
    let oldest = version.layout.runs.last();
    let Some(oldest) = oldest.filter(|oldest| oldest.files() == record.tables) else {
        return Err(Unusable::Unfit("the image is of an older round"));
    };
    let bytes = read(&*shelf.storage, &shelf.dir, record).map_err(Unusable::Unreadable)?;
    let part = Part::of_checked_image(bytes).map_err(|wrong| {
        let path = image_path(&shelf.dir, record.file);
        Unusable::Unreadable(Error::corrupt(path, wrong.at as u64, wrong.what))
    })?;
    if part.options() != wanted {
        return Err(Unusable::Unfit("the image was made with other options"));
    }
    if part.base_end() != oldest.span().hi() {
        return Err(Unusable::Unfit("the image is of an older round"));
    }
    Ok((part, record))
}

/// The part with the entries of all flushes that the image does not know, and how many tables were read for them.
///
/// A merge may have put such entries into one table with entries that the image knows. Each entry's flush is on
/// record, so just those from the watermark on are added, with their own flush as their code.
fn replay(mut part: Part, record: &ImageRecord, version: &Version) -> Result<(Part, u64)> {
    let mut replayed = 0;
    let (_, newer) = version.runs.split_last().expect("an image has an oldest run");
    for table in newer.iter().rev().flat_map(|placed| placed.run.tables()) {
        if table.span.hi() > record.watermark {
            let mut cursor = table.table.cursor().fill_cache(false);
            let (path, layout) = (table.table.path(), &version.layout);
            part = insert_entries(&part, &mut cursor, path, layout, record.watermark)?;
            replayed += 1;
        }
    }
    Ok((part, replayed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::manifest::Manifest;
    use crate::memory::Memory;
    use crate::options::{Background, Options};
    use trommel_filters::{FlushNumber, PartBuilder};

    fn open(disk: &Memory) -> Core {
        let env = Environment { storage: Arc::new(disk.clone()), ..Environment::default() };
        let options = Options { background: Background::Stepped, ..Options::default() };
        crate::recovery::open(Path::new("db"), &options, env).expect("opens")
    }

    /// A store with one run and its image.
    fn store() -> (Memory, Layout) {
        let disk = Memory::new();
        let core = open(&disk);
        let mut batch = crate::batch::Batch::new();
        batch.put("drum", "turns").put("sieve", "sifts");
        core.commit.write(&core, batch, true).expect("writes");
        core.commit.seal(&core).expect("seals");
        core.flush_sealed().expect("flushes");
        write(&core).expect("writes an image");
        drop(core);
        let layout = Manifest::read(&disk, Path::new("db")).expect("reads").expect("is there");
        (disk, layout)
    }

    /// How the filter is recovered if the manifest says this of its image.
    fn recovery_with(disk: &Memory, layout: &Layout, image: ImageRecord) -> String {
        let layout = Layout { image: Some(image), ..layout.clone() };
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        Manifest::create(&storage, Path::new("db"), &layout).expect("writes");
        open(disk).filter_recovery.to_string()
    }

    #[test]
    fn an_image_of_other_tables_is_of_another_round() {
        let (disk, layout) = store();
        let image = layout.image.clone().expect("has an image");
        assert_eq!(recovery_with(&disk, &layout, image.clone()), "image");
        for tables in [vec![], vec![900], vec![image.tables[0], 900]] {
            let other = ImageRecord { tables, ..image.clone() };
            let recovery = recovery_with(&disk, &layout, other);
            assert_eq!(recovery, "rebuilt: the image is of an older round");
        }
    }

    #[test]
    fn a_base_that_ends_before_its_run_is_of_another_round() {
        let (disk, layout) = store();
        let image = layout.image.clone().expect("has an image");
        let old = read(&disk, Path::new("db"), &image).expect("reads");
        let end = Part::read_image(&old).expect("an image").base_end();
        for (end, expected) in
            [(end, "image"), (FlushNumber(end.0 + 1), "rebuilt: the image is of an older round")]
        {
            let mut builder = PartBuilder::new(&GrfOptions::default());
            [b"drum".as_slice(), b"sieve"].into_iter().for_each(|key| builder.push(key));
            let mut bytes = Vec::new();
            builder.finish(end).write_image(&mut bytes);
            let (checksum, len) = (crc32c::crc32c(&bytes), bytes.len() as u64);
            disk.put_file(image_path(Path::new("db"), image.file), bytes);
            let image = ImageRecord { checksum, bytes: len, ..image.clone() };
            assert_eq!(recovery_with(&disk, &layout, image), expected);
        }
    }

    #[test]
    fn bytes_that_are_no_image_are_damage() {
        let (disk, layout) = store();
        let image = layout.image.clone().expect("has an image");
        let rubbish = b"no image, but with the right checksum";
        disk.put_file(image_path(Path::new("db"), image.file), rubbish.as_slice());
        let (checksum, bytes) = (crc32c::crc32c(rubbish), rubbish.len() as u64);
        let image = ImageRecord { checksum, bytes, ..image };
        assert_eq!(recovery_with(&disk, &layout, image), "rebuilt: the image is damaged");
        assert_eq!(open(&disk).damaged_filters.len(), 1);
    }

    #[test]
    fn an_image_that_comes_too_late_is_not_named() {
        let (disk, layout) = store();
        let core = open(&disk);
        let late = ImageRecord { file: 77, tables: vec![900], ..layout.image.clone().expect("is") };
        disk.put_file(image_path(Path::new("db"), 77), b"late".as_slice());
        core.installer().install_image(&core, late).expect("nothing is wrong");
        assert_eq!(core.current.pin().layout.image, layout.image);
        assert_eq!(disk.file(image_path(Path::new("db"), 77)), None);
    }
}
