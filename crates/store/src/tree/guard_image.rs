//! Images of a global filter's parts: files that save an opening from reading all runs.
//! ```text
//! written   part of a version -> NNNNNN.filter, synced -> edit: its range, file, checksum,
//!                                                         watermark, tables of the base
//! read      record -> bytes -> part -> + entries of flushes from the watermark on,
//!                                        from newer tables
//! ```
//! Each part has its own image. A merge of a key range writes images only of the parts that it has
//! built.
//!
//! Invariants: the image has every installed flush below the watermark. Its base covers exactly the
//! tables that the record names: those of the oldest run with keys of the part. So the tables
//! reveal an image of an older round. An image is never trusted and never fatal: if it does not
//! fit, its part is rebuilt from the runs.

use trommel_filters::{EmptyQueries, FlushNumber, GrfOptions, Part};

use crate::entries::checksum;
use crate::entries::key_bounds::KeyBounds;
use crate::error::{Error, Result};
use crate::files::names::image_name;
use crate::files::run::Run;
use crate::guard::allotment::even_bits;
use crate::guard::filter_recovery::FilterRecovery;
use crate::guard::parts::Parts;
use crate::guard::rebuild::{MadeFor, insert_run, rebuild_part};
use crate::guard::{Guard, locator};
use crate::plan::layout::{ImageRecord, Layout, TableRecord};
use crate::storage::exhausted::with_room;
use crate::storage::open_folder::OpenFolder;
use crate::storage::pauses::PausePoint;
use crate::storage::traits::{hole_bytes_above, zeroed};
use crate::sync::Arc;
use crate::tree::obsolete_files::Obsolete;
use crate::tree::open_tree::OpenTree;
use crate::tree::table_files::{DamagedFilter, TableFiles};
use crate::tree::version::Version;

/// Writes images of the newest version's parts that overlap a range, and records them in the
/// manifest. Skips parts whose image has all flushes. A failure leaves the store as it is.
pub(crate) fn write(tree: &OpenTree, range: &KeyBounds) -> Result<()> {
    write_those(tree, range, |layout, bounds| !is_known(layout, bounds))
}

/// Like `write`, but for all of these parts: they were rebuilt from the same tables.
pub(crate) fn write_anew(tree: &OpenTree, range: &KeyBounds) -> Result<()> {
    write_those(tree, range, |_, _| true)
}

fn write_those(
    tree: &OpenTree,
    range: &KeyBounds,
    is_wanted: impl Fn(&Layout, &KeyBounds) -> bool,
) -> Result<()> {
    let version = tree.current.hold();
    let Some(parts) = version.guard.parts().cloned() else { return Ok(()) };
    let layout = Arc::clone(&version.layout);
    // Only the parts are needed: writing them must not hold tables.
    drop(version);
    let mut records = Vec::new();
    let written = parts.within(range).try_for_each(|(bounds, part)| {
        let record = record_of(&layout, &bounds, part).filter(|_| is_wanted(&layout, &bounds));
        let Some(record) = record else { return Ok(()) };
        let queries = tree.empty_query_sample.known(part, &bounds);
        write_part(tree, part, &queries, record).map(|record| records.push(record))
    });
    if records.is_empty() {
        return written;
    }
    tree.env.pauses.at(PausePoint::ImageWritten);
    tree.installer().install_images(tree, records)?;
    tree.sweep_or_call();
    written
}

/// Writes the image of a part. Queries noted since the part was built are stored in the image only.
fn write_part(
    tree: &OpenTree,
    part: &Part,
    queries: &EmptyQueries,
    mut record: ImageRecord,
) -> Result<ImageRecord> {
    let mut bytes = Vec::new();
    tree.counters.time_guard(|| {
        part.write_image_with(queries, &mut bytes);
        (record.bytes, record.checksum) = (bytes.len() as u64, checksum::crc32c(&bytes));
    });
    record.file = tree.table_files.new_file();
    write_file(&tree.table_files, record.file, &bytes)?;
    Ok(record)
}

/// Whether the part's base covers these tables of the oldest run. It does not if a run became the
/// oldest without a merge.
fn has_base(part: &Part, tables: &[TableRecord]) -> bool {
    let first = FlushNumber(0);
    tables.iter().all(|table| table.span.lo() == first && part.base_end() > first)
}

/// Whether an existing image has all keys of a part.
fn is_known(layout: &Layout, bounds: &KeyBounds) -> bool {
    let files = layout.base_files(bounds);
    let known = image_of(layout, bounds).filter(|image| image.tables == files);
    let newer = layout.runs.split_last().map_or(&[][..], |(_, newer)| newer);
    known.is_some_and(|image| {
        let mut newer = newer.iter().flat_map(|run| run.within(bounds));
        newer.all(|table| table.span.hi() <= image.watermark)
    })
}

/// Returns the record of a part's image, except for the file. None: the part's base covers no
/// tables of this layout.
fn record_of(layout: &Layout, bounds: &KeyBounds, part: &Part) -> Option<ImageRecord> {
    let (watermark, tables) = (layout.next_flush, layout.base_files(bounds));
    if layout.runs.is_empty() || !has_base(part, layout.base_tables(bounds)) {
        return None;
    }
    let lower = bounds.from.clone();
    Some(ImageRecord { lower, file: 0, bytes: 0, checksum: 0, watermark, tables })
}

/// Writes the file of an image durably. After a failure nothing of it remains.
fn write_file(table_files: &TableFiles, file: u64, bytes: &[u8]) -> Result<()> {
    let name = image_name(file);
    let mut out = table_files.folder.create(&name)?;
    let mut write = || {
        out.append(bytes)?;
        out.sync()?;
        table_files.folder.handle().sync()
    };
    let written = write().map_err(Error::io(table_files.folder.path_of(&name)));
    // No edit names the file.
    written.inspect_err(|_| table_files.discard(Obsolete::Image(file)))
}

/// The most bytes of holes in an image. A file may have the right length although little was
/// written.
const HOLES_BYTES_MAX: u64 = 16 << 20;

/// Reads the bytes of an image, and checks its length and checksum.
pub(crate) fn read(folder: &OpenFolder, record: &ImageRecord) -> Result<Vec<u8>> {
    let name = image_name(record.file);
    let path = folder.path_of(&name);
    let damaged = |what: &str| Error::corrupt(&path, 0, what);
    let needed = "the manifest names it; this part of the filter is made anew from the tables";
    let file = with_room(|| folder.handle().open(&name)).map_err(Error::needed(&path, needed))?;
    let size = file.size().map_err(Error::io(&path))?;
    if size != record.bytes {
        return Err(damaged("the filter's image has not the length that the manifest names"));
    }
    let holes = hole_bytes_above(HOLES_BYTES_MAX, &*file, 0..size).map_err(Error::io(&path))?;
    if holes.is_some() {
        return Err(damaged("most of the filter's image is a hole"));
    }
    let zeros = usize::try_from(size).ok().and_then(|size| zeroed(size).ok());
    let mut bytes = zeros.ok_or_else(|| damaged("an image beyond memory"))?;
    file.read_at(0, &mut bytes).map_err(Error::io(&path))?;
    if checksum::crc32c(&bytes) != record.checksum {
        return Err(damaged("the filter's image has not the checksum that the manifest names"));
    }
    Ok(bytes)
}

/// The recovered guard of a store that is opened.
pub(crate) struct Recovered {
    pub(crate) guard: Guard,
    pub(crate) recovery: FilterRecovery,
    /// Damaged images.
    pub(crate) damage: Vec<DamagedFilter>,
}

impl Recovered {
    fn sound(guard: Guard, recovery: FilterRecovery) -> Self {
        Recovered { guard, recovery, damage: Vec::new() }
    }
}

/// Why an image cannot be used.
struct Unusable {
    why: String,
    /// The damage, with file and place. None: the image is sound, but of another state or other
    /// options.
    damage: Option<String>,
}

impl Unusable {
    fn unfit(why: &str) -> Self {
        Unusable { why: why.to_string(), damage: None }
    }

    fn unreadable(error: Error) -> Self {
        let what = error.to_string();
        let (why, damage) = match error {
            error if !error.tells_of_damage() => (what, None),
            Error::FileMissing { .. } => ("the image is missing".to_string(), Some(what)),
            _ => ("the image is damaged".to_string(), Some(what)),
        };
        Unusable { why, damage }
    }
}

/// Recovers the guard of `version`, whose own is still empty: from images and newer tables, or else
/// from the runs.
pub(crate) fn recover(table_files: &TableFiles, version: &Version) -> Result<Recovered> {
    match &version.guard {
        Guard::Locator(guard) if !version.runs.is_empty() => {
            let (guard, source) = locator::rebuild(
                guard.kind(),
                &table_files.options,
                (&version.layout, &version.runs),
            )?;
            let recovery = FilterRecovery::Rebuilt { why: source.to_string() };
            Ok(Recovered::sound(Guard::Locator(Arc::new(guard)), recovery))
        }
        Guard::Global(parts) if !version.runs.is_empty() => {
            recover_parts(table_files, version, (&Wanted::of(table_files, version, parts), None))
        }
        guard => Ok(Recovered::sound(guard.clone(), FilterRecovery::Nothing)),
    }
}

/// Like `recover`, for a tree that another process writes. `old`: an earlier version, whose guard
/// is reused where it fits.
pub(crate) fn follow(
    table_files: &TableFiles,
    version: &Version,
    old: &Version,
) -> Result<Recovered> {
    match (&version.guard, &old.guard) {
        (Guard::Global(parts), Guard::Global(known))
            if !version.runs.is_empty() && !old.runs.is_empty() =>
        {
            let wanted = Wanted::of(table_files, version, parts);
            let known = wanted.is_met_by(known.options()).then_some((old, known));
            recover_parts(table_files, version, (&wanted, known))
        }
        (Guard::Locator(_), known @ Guard::Locator(_))
            if version.layout.runs == old.layout.runs =>
        {
            Ok(Recovered::sound(known.clone(), FilterRecovery::Nothing))
        }
        (Guard::Locator(_), Guard::Locator(known)) if !version.runs.is_empty() => {
            let guard = locator::followed(
                known,
                &table_files.options,
                &old.runs,
                (&version.layout, &version.runs),
            )?;
            Ok(Recovered::sound(Guard::Locator(Arc::new(guard)), FilterRecovery::Nothing))
        }
        _ => recover(table_files, version),
    }
}

/// The options that parts must have in a store that is opened.
struct Wanted {
    options: GrfOptions,
    /// Whether the bits of parts depend on queries.
    is_divided: bool,
}

impl Wanted {
    /// Determines the options for a version whose parts are still empty.
    fn of(table_files: &TableFiles, version: &Version, empty: &Parts) -> Self {
        let (mut options, limit) = (*empty.options(), table_files.options.part_memory());
        if let Some(limit) = limit {
            let entries = version.layout.runs.iter().map(|run| run.entries()).sum();
            options.bits_per_key = even_bits(limit, entries, options.bits_per_key);
        }
        Wanted { options, is_divided: limit.is_some() }
    }

    fn is_met_by(&self, options: &GrfOptions) -> bool {
        let bits_per_key = match self.is_divided {
            true => options.bits_per_key,
            false => self.options.bits_per_key,
        };
        *options == GrfOptions { bits_per_key, ..self.options }
    }
}

/// Returns the part with these bounds in an older version, if its base covers the same tables.
fn known_part<'o>(
    (old, parts): (&Version, &'o Parts),
    version: &Version,
    bounds: &KeyBounds,
) -> Option<&'o Arc<Part>> {
    let same = |layout: &Layout| layout.base_files(bounds);
    let is_same = old.layout.next_flush <= version.layout.next_flush
        && same(&old.layout) == same(&version.layout);
    let found = parts.at(&bounds.from).filter(|(known, _)| known == bounds);
    found.filter(|_| is_same).map(|(_, part)| part)
}

fn recover_parts(
    table_files: &TableFiles,
    version: &Version,
    (wanted, old): (&Wanted, Option<(&Version, &Parts)>),
) -> Result<Recovered> {
    let (mut parts, mut damage, mut rebuilt, mut replayed_tables) = (Vec::new(), Vec::new(), 0, 0);
    let mut first_why = None;
    for bounds in version.layout.partitions() {
        let known = old.and_then(|old| known_part(old, version, &bounds).map(|it| (old.0, it)));
        let found = match known {
            Some((old, part)) => Ok((Part::clone(part), old.layout.next_flush)),
            None => usable_image(table_files, version, &bounds, wanted)
                .map(|(part, record)| (part, record.watermark)),
        };
        let part = match found {
            Ok((part, watermark)) => {
                let (part, replayed) = replay(part, watermark, version, &bounds)?;
                replayed_tables += replayed;
                part
            }
            Err(unusable) => {
                rebuilt += 1;
                first_why.get_or_insert(unusable.why);
                let damaged = image_of(&version.layout, &bounds).zip(unusable.damage);
                damage
                    .extend(damaged.map(|(image, what)| DamagedFilter { file: image.file, what }));
                rebuild_part(
                    &table_files.options,
                    (&wanted.options, &MadeFor::default()),
                    (&version.layout, &version.runs),
                    (&bounds, &version.layout.shape_within(&bounds)),
                )?
            }
        };
        parts.push((bounds.from, part));
    }
    let recovery = match first_why {
        None => FilterRecovery::Image { replayed_tables },
        Some(why) if rebuilt == parts.len() as u64 => FilterRecovery::Rebuilt { why },
        Some(why) => {
            FilterRecovery::Mixed { parts: parts.len() as u64, rebuilt, replayed_tables, why }
        }
    };
    let guard = Guard::Global(Parts::of(parts, version.layout.next_flush));
    Ok(Recovered { guard, recovery, damage })
}

fn image_of<'l>(layout: &'l Layout, bounds: &KeyBounds) -> Option<&'l ImageRecord> {
    layout.images.iter().find(|image| image.lower == bounds.from)
}

/// Returns the part of an image that fits this tree's oldest run and the options, with its record.
fn usable_image<'v>(
    table_files: &TableFiles,
    version: &'v Version,
    bounds: &KeyBounds,
    wanted: &Wanted,
) -> std::result::Result<(Part, &'v ImageRecord), Unusable> {
    let Some(record) = image_of(&version.layout, bounds) else {
        return Err(Unusable::unfit("there is no image"));
    };
    if record.tables != version.layout.base_files(bounds) {
        return Err(Unusable::unfit("the image is of an older round"));
    }
    let bytes = read(&table_files.folder, record).map_err(Unusable::unreadable)?;
    let part = Part::of_checked_image(bytes).map_err(|wrong| {
        let path = table_files.folder.path_of(&image_name(record.file));
        Unusable::unreadable(Error::corrupt(path, wrong.at as u64, wrong.what))
    })?;
    if !wanted.is_met_by(part.options()) {
        return Err(Unusable::unfit("the image was made with other options"));
    }
    if !has_base(&part, version.layout.base_tables(bounds)) {
        return Err(Unusable::unfit("the image is of an older round"));
    }
    Ok((part, record))
}

/// Adds the entries of all flushes from `watermark` on to a part that lacks them. Returns also how
/// many tables were read.
///
/// A merge may have put such entries into one table with entries that the image has. Each entry's
/// flush is on record. So exactly the entries from the watermark on are added, each with its own
/// flush as its code.
fn replay(
    mut part: Part,
    watermark: FlushNumber,
    version: &Version,
    bounds: &KeyBounds,
) -> Result<(Part, u64)> {
    let mut replayed = 0;
    let (_, newer) = version.runs.split_last().expect("an image has an oldest run");
    for table in newer.iter().rev().flat_map(|placed| placed.run.within(bounds)) {
        if table.span.hi() <= watermark {
            continue;
        }
        let Some(run) = table.clip(bounds)?.and_then(Run::of_table) else { continue };
        let shape = version.layout.shape_within(bounds);
        part = insert_run(&part, &run, (&version.layout, &shape), watermark)?;
        replayed += 1;
    }
    Ok((part, replayed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::keyspace_id::KeyspaceId;
    use crate::files::manifest::Manifest;
    use crate::plan::background::Background;
    use crate::plan::options::Options;
    use crate::plan::store_layout::StoreLayout;
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;
    use crate::write::engine::Engine;
    use std::path::{Path, PathBuf};
    use trommel_filters::{FlushNumber, PartBuilder};

    fn image_path(file: u64) -> PathBuf {
        Path::new("db").join(image_name(file))
    }

    fn open(disk: &Memory) -> Engine {
        let env = Environment::new().storage(Arc::new(disk.clone()));
        let options = Options::new().background(Background::Stepped);
        crate::open::open(Path::new("db"), &options, env).expect("opens")
    }

    /// Makes a store with one run and its image.
    fn store() -> (Memory, StoreLayout) {
        let disk = Memory::new();
        let engine = open(&disk);
        let mut batch = crate::entries::batch::Batch::new();
        batch.put("drum", "turns").put("sieve", "sifts");
        engine.commit.write(&engine, batch, true).expect("writes");
        engine.commit.writer().seal(&engine).expect("seals");
        engine.flush_sealed().expect("flushes");
        write(&engine, &KeyBounds::all()).expect("writes an image");
        drop(engine);
        let layout =
            Manifest::read(&OpenFolder::on(&disk, "db")).expect("reads").expect("is there");
        (disk, layout)
    }

    /// Returns how the filter is recovered if the manifest has this record of its image.
    fn recovery_with(disk: &Memory, layout: &StoreLayout, image: ImageRecord) -> String {
        let tree = Layout { images: vec![image], ..Layout::clone(layout.default_tree()) };
        let layout = layout.clone().with(KeyspaceId::DEFAULT, tree);
        Manifest::create(&OpenFolder::on(disk, "db"), layout).expect("writes");
        open(disk).filter_recovery.to_string()
    }

    #[test]
    fn an_image_of_other_tables_is_of_another_round() {
        let (disk, layout) = store();
        let image = layout.default_tree().images[0].clone();
        assert_eq!(recovery_with(&disk, &layout, image.clone()), "image");
        for tables in [vec![], vec![900], vec![image.tables[0], 900]] {
            let other = ImageRecord { tables, ..image.clone() };
            let recovery = recovery_with(&disk, &layout, other);
            assert_eq!(recovery, "rebuilt: the image is of an older round");
        }
    }

    // Bases of older stores end with the flushes of their run. They are right, too.
    #[test]
    fn a_base_without_keys_is_of_another_round() {
        let (disk, layout) = store();
        let image = layout.default_tree().images[0].clone();
        let keys = [b"drum".as_slice(), b"sieve"];
        let other_round = "rebuilt: the image is of an older round";
        for (keys, end, expected) in
            [(&keys[..], 1, "image"), (&keys[..], 2, "image"), (&[], 0, other_round)]
        {
            let mut builder = PartBuilder::new(&GrfOptions::default());
            keys.iter().for_each(|key| builder.push(key));
            let mut bytes = Vec::new();
            builder.finish(FlushNumber(end)).write_image(&mut bytes);
            let (checksum, len) = (checksum::crc32c(&bytes), bytes.len() as u64);
            disk.put_file(image_path(image.file), bytes);
            let image = ImageRecord { checksum, bytes: len, ..image.clone() };
            assert_eq!(recovery_with(&disk, &layout, image), expected);
        }
    }

    #[test]
    fn bytes_that_are_no_image_are_damage() {
        let (disk, layout) = store();
        let image = layout.default_tree().images[0].clone();
        let rubbish = b"no image, but with the right checksum";
        disk.put_file(image_path(image.file), rubbish.as_slice());
        let (checksum, bytes) = (checksum::crc32c(rubbish), rubbish.len() as u64);
        let image = ImageRecord { checksum, bytes, ..image };
        assert_eq!(recovery_with(&disk, &layout, image), "rebuilt: the image is damaged");
        assert_eq!(open(&disk).damaged_filters.len(), 1);
    }

    #[test]
    fn an_image_that_comes_too_late_is_not_named() {
        let (disk, layout) = store();
        let engine = open(&disk);
        let late =
            ImageRecord { file: 77, tables: vec![900], ..layout.default_tree().images[0].clone() };
        disk.put_file(image_path(77), b"late".as_slice());
        engine.installer().install_images(&engine, vec![late]).expect("nothing is wrong");
        engine.sweep();
        assert_eq!(engine.current.pin().layout.images, layout.default_tree().images);
        assert_eq!(disk.file(image_path(77)), None);
    }
}
