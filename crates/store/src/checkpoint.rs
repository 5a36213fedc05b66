//! A checkpoint: another store, in a folder of its own, that holds what this one holds at one moment.
//! ```text
//! this store    runs of a pinned version          memtables, up to the newest visible write
//!                 | second names, or copies         | written as one log
//! the folder    NNNNNN.table, NNNNNN.filter       NNNNNN.wal              then MANIFEST, last of all
//! ```
//! Invariants: the store is only read. The MANIFEST gets its name when all that it tells of is durable; a folder
//! with files and without it is no store and is refused. Whatever merges do meanwhile, the pinned version keeps its
//! tables; files never change once they are named, so that two stores may share them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::copying::{link_or_copy, make_folder};
use crate::core::Core;
use crate::entry::Sequence;
use crate::error::{Error, Result};
use crate::image::{image_name, image_path};
use crate::layout::Layout;
use crate::manifest::{MANIFEST_NAME, MANIFEST_NEW_NAME, Manifest};
use crate::memtable_writes::{Write, writes_up_to};
use crate::output::table_name;
use crate::recovery::{LOCK_NAME, lock_folder};
use crate::storage::Storage;
use crate::version::Version;
use crate::wal::{Predecessor, Wal, wal_name};

/// Bytes of one group of the log, about.
const GROUP_BYTES: usize = 1 << 20;

/// Makes a store in `dir` that holds all writes that are visible now.
pub(crate) fn checkpoint(core: &Core, dir: &Path) -> Result<()> {
    let storage = &*core.shelf.storage;
    let _lock = take_new_folder(storage, dir)?;
    let mut made = Made { storage, dir, names: Vec::new() };
    let filled = fill(core, &mut made);
    if filled.is_err() {
        made.remove();
    }
    filled
}

/// Makes the folder, or takes one that is empty. A lock's file may be there, from an attempt that failed.
fn take_new_folder(storage: &dyn Storage, dir: &Path) -> Result<Box<dyn Send + Sync>> {
    make_folder(storage, dir)?;
    let require_empty = || {
        let names = storage.list(dir).map_err(Error::io(dir))?;
        let is_empty = names.iter().all(|name| name == LOCK_NAME);
        if is_empty { Ok(()) } else { Err(Error::NotEmpty { path: dir.to_path_buf() }) }
    };
    // Asked first, so that a folder of something else gets no lock's file.
    require_empty()?;
    let lock = lock_folder(storage, dir)?;
    require_empty()?;
    Ok(lock)
}

/// What was made in the folder, in order.
struct Made<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    names: Vec<String>,
}

impl Made<'_> {
    /// The path of a file that is about to be made.
    fn path(&mut self, name: String) -> PathBuf {
        let path = self.dir.join(&name);
        self.names.push(name);
        path
    }

    fn sync(&self) -> Result<()> {
        self.storage.sync_dir(self.dir).map_err(Error::io(self.dir))
    }

    /// The manifest goes first, for good: else a power cut could bring it back without what it tells of. What stays is
    /// refused as no store, or is whole.
    fn remove(&self) {
        let is_manifest = |name: &&String| [MANIFEST_NEW_NAME, MANIFEST_NAME].contains(&&***name);
        let (manifests, others): (Vec<_>, Vec<_>) = self.names.iter().partition(is_manifest);
        let remove = |name: &String| self.storage.remove(&self.dir.join(name));
        for name in &manifests {
            let _ = remove(name);
        }
        if manifests.is_empty() || self.sync().is_ok() {
            for name in others.into_iter().rev() {
                let _ = remove(name);
            }
        }
    }
}

fn fill(core: &Core, made: &mut Made<'_>) -> Result<()> {
    // Rule 2: the number first, then the version, so that the version has all writes up to it. Tables that were
    // flushed in between may have later writes, and then the memtables have none up to the number.
    let last = core.snapshots.register().sequence();
    let version = core.current.hold();
    for table in version.files() {
        let (from, name) = (table.path(), table_name(table.file()));
        link_or_copy(made.storage, from, &made.path(name))?;
    }
    let mut layout = (*version.layout).clone();
    link_images(core, made, &mut layout)?;
    let number = core.shelf.new_file();
    (layout.live_wal, layout.next_file) = (number, number + 1);
    write_log(made, number, &version, last)?;
    made.sync()?;
    made.names.extend([MANIFEST_NEW_NAME, MANIFEST_NAME].map(String::from));
    Manifest::create(&core.shelf.storage, made.dir, &layout).map(drop)
}

/// The filter's images go along, but for those that others have taken the place of: these parts are read from the tables.
fn link_images(core: &Core, made: &mut Made<'_>, layout: &mut Layout) -> Result<()> {
    for image in std::mem::take(&mut layout.images) {
        let from = image_path(&core.shelf.dir, image.file);
        match link_or_copy(made.storage, &from, &made.path(image_name(image.file))) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            linked => {
                linked?;
                layout.images.push(image);
            }
        }
    }
    Ok(())
}

/// Writes what the memtables have up to `last`, durably, if there is anything.
fn write_log(made: &mut Made<'_>, number: u64, version: &Version, last: Sequence) -> Result<()> {
    let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
    let writes = writes_up_to(sealed.chain([&version.active.memtable]), last)?;
    if writes.is_empty() {
        return Ok(());
    }
    made.names.push(wal_name(number));
    let none = Predecessor { wal: 0, valid_bytes: 0 };
    let mut log = Wal::create(made.storage, made.dir, number, none)?;
    let mut rest = writes.as_slice();
    while !rest.is_empty() {
        let (group, later) = rest.split_at(group_len(rest));
        log.append(group[0].sequence, group.len(), group.iter().map(Write::parts))?;
        rest = later;
    }
    log.sync()?;
    log.mark_end(Sequence(last.0 + 1))?;
    log.sync()
}

/// How many of the writes follow each other without a gap and fit into one group. Requires: there is one.
fn group_len(writes: &[Write]) -> usize {
    let mut bytes = 0;
    let goes_on = |pair: &&[Write]| {
        bytes += pair[0].size_bytes();
        pair[0].sequence.0 + 1 == pair[1].sequence.0 && bytes < GROUP_BYTES
    };
    1 + writes.windows(2).take_while(goes_on).count()
}
