//! Follows the manifest of a store that another process writes, and reads what is new in it.
//! ```text
//! MANIFEST   first edit | edit | edit, read up to here | edit | edit | half an edit
//! the same file          its first and its last edit that were read are still there
//! another one            it is read as a whole
//! ```
//! Invariants: nothing is written. A half written edit is ignored. The layout is one that the store
//! had after some edit. An edit may have been refused by a failed write. If it would then show a
//! wrong state, it counts only once another edit follows it, or the caller proves it.

use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::manifest::{
    FORMAT_VERSION, HEADER_BYTES, MANIFEST_NAME, SALT, check_header, decode,
};
use crate::files::record::{HEAD_SIZE, Records, record_size};
use crate::plan::store_layout::{KeyspaceChange, KeyspaceLayout, StoreEdit, StoreLayout};
use crate::storage::exhausted::with_room;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// A record that was read, which identifies its file.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Mark {
    offset: u64,
    head: [u8; HEAD_SIZE],
}

impl Mark {
    /// Returns the mark of the record at an offset. `None`: the file is shorter.
    fn of(file: &dyn ReadAt, offset: u64) -> Option<Mark> {
        let mut head = [0; HEAD_SIZE];
        file.read_at(offset, &mut head).ok()?;
        Some(Mark { offset, head })
    }
}

/// What was read of a manifest.
pub(crate) struct ManifestTail {
    layout: StoreLayout,
    /// The offset of the next edit.
    at: u64,
    first: Mark,
    last: Mark,
    /// `Some` if the next edit does not count yet. A write after this number proves it.
    held_back: Option<Sequence>,
}

impl ManifestTail {
    /// Reads the whole manifest. `None`: the folder has none.
    pub(crate) fn read(folder: &OpenFolder) -> Result<Option<Self>> {
        let path = folder.path_of(MANIFEST_NAME);
        match with_room(|| folder.handle().open(MANIFEST_NAME)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            opened => ManifestTail::whole(folder, &opened.map_err(Error::io(path))?).map(Some),
        }
    }

    fn whole(folder: &OpenFolder, file: &Arc<dyn ReadAt>) -> Result<Self> {
        let path = folder.path_of(MANIFEST_NAME);
        check_header(&**file, &path, &[FORMAT_VERSION])?;
        let first = HEADER_BYTES as u64;
        let mut tail = ManifestTail {
            layout: StoreLayout::default(),
            at: first,
            first: Mark::default(),
            last: Mark::default(),
            held_back: None,
        };
        tail.read_on(folder, file, false)?;
        if tail.at == first {
            let what = "the first edit is missing; it is written before the file gets its name";
            return Err(Error::corrupt(path, first, what));
        }
        Ok(tail)
    }

    /// The layout after all edits that were read.
    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.layout
    }

    /// Returns a number if there is an edit that does not count yet. A write after this number
    /// proves it.
    pub(crate) fn held_back(&self) -> Option<Sequence> {
        self.held_back
    }

    /// Reads what is new. `proved`: the edit that was held back counts. False: nothing changed.
    pub(crate) fn follow(&mut self, folder: &OpenFolder, proved: bool) -> Result<bool> {
        let file = folder.open_file(MANIFEST_NAME)?;
        let proved = proved && self.held_back.is_some();
        self.held_back = None;
        if self.is_of(&*file) {
            return self.read_on(folder, &file, proved);
        }
        let other = ManifestTail::whole(folder, &file)?;
        let has_one = other.first == other.last && other.held_back.is_none();
        let doubt = has_one.then(|| doubt_of_layout(&self.layout, &other.layout)).flatten();
        if let Some(until) = doubt.filter(|_| !proved) {
            self.held_back = Some(until);
            return Ok(false);
        }
        *self = other;
        Ok(true)
    }

    /// Whether a file is the one that was read. A file that replaced it begins with an edit of the
    /// whole layout.
    fn is_of(&self, file: &dyn ReadAt) -> bool {
        [self.first, self.last].iter().all(|mark| Mark::of(file, mark.offset) == Some(*mark))
    }

    fn read_on(
        &mut self,
        folder: &OpenFolder,
        file: &Arc<dyn ReadAt>,
        proved: bool,
    ) -> Result<bool> {
        let path = folder.path_of(MANIFEST_NAME);
        let mut records = Records::of(Arc::clone(file), &path, SALT)?;
        let (begin, first) = (self.at, HEADER_BYTES as u64);
        while let Some(payload) = records.at(self.at)? {
            let at = self.at;
            let edit = decode(payload)
                .map_err(|wrong| Error::corrupt(&path, at, format!("edit, {wrong}")))?;
            let next = at + record_size(payload.len());
            let doubt = doubt_of_edit(&self.layout, &edit).filter(|_| at > first && !proved);
            if let Some(until) = doubt
                && records.at(next)?.is_none()
            {
                self.held_back = Some(until);
                break;
            }
            self.apply(&edit).map_err(|wrong| Error::corrupt(&path, at, wrong))?;
            self.last = Mark::of(&**file, at).unwrap_or_default();
            if at == first {
                self.first = self.last;
            }
            self.at = next;
        }
        let is_new = self.at > begin;
        if is_new {
            self.layout.check().map_err(|wrong| Error::corrupt(&path, begin, wrong))?;
        }
        Ok(is_new)
    }

    fn apply(&mut self, edit: &StoreEdit) -> std::result::Result<(), &'static str> {
        // Tables of the whole layout are checked only once.
        if self.at == HEADER_BYTES as u64 {
            self.layout = std::mem::take(&mut self.layout).followed_by(edit)?;
            return Ok(());
        }
        let change = self.layout.change_by(edit)?;
        self.layout.make(change);
        Ok(())
    }
}

/// Returns `Some` if the edit changes more than where entries lie. Then it must not count if it was
/// refused. A write after this number proves it.
fn doubt_of_edit(layout: &StoreLayout, edit: &StoreEdit) -> Option<Sequence> {
    let loaded = edit.unlogged.filter(|unlogged| *unlogged > layout.logs.unlogged);
    let changes = edit.keyspaces.iter().filter_map(|(_, edit)| edit.change.as_ref());
    let is_lost = |change: &KeyspaceChange| !matches!(change, KeyspaceChange::Created { .. });
    loaded.or_else(|| changes.into_iter().any(is_lost).then_some(Sequence::MAX))
}

/// Does the same for an edit that replaces the whole layout.
fn doubt_of_layout(before: &StoreLayout, after: &StoreLayout) -> Option<Sequence> {
    let loaded = Some(after.logs.unlogged).filter(|it| *it > before.logs.unlogged);
    let stays = |(id, keyspace): (&_, &KeyspaceLayout)| {
        after.keyspaces.get(id).is_some_and(|then| then.record.name == keyspace.record.name)
    };
    loaded.or_else(|| (!before.keyspaces.iter().all(stays)).then_some(Sequence::MAX))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::entries::keyspace_id::KeyspaceId;
    use crate::files::manifest::Manifest;
    use crate::plan::layout::Edit;
    use crate::plan::store_layout::KeyspaceEdit;
    use crate::storage::memory::Memory;
    use crate::storage::traits::Storage as _;

    const PATH: &str = "db/MANIFEST";

    fn made() -> (Memory, OpenFolder, Manifest, ManifestTail) {
        let disk = Memory::new();
        disk.create_dir(Path::new("db")).expect("makes the folder");
        let folder = OpenFolder::on(&disk, "db");
        let manifest = Manifest::create(&folder, StoreLayout::default()).expect("creates");
        let tail = ManifestTail::read(&folder).expect("reads").expect("is there");
        (disk, folder, manifest, tail)
    }

    fn numbers(next_file: u64) -> StoreEdit {
        let edit = Edit { next_file: Some(next_file), ..Edit::default() };
        StoreEdit::of_tree(KeyspaceId::DEFAULT, edit)
    }

    fn change(id: u32, change: KeyspaceChange) -> StoreEdit {
        let edit = KeyspaceEdit { change: Some(change), ..KeyspaceEdit::default() };
        StoreEdit { keyspaces: vec![(KeyspaceId(id), edit)], ..StoreEdit::default() }
    }

    #[test]
    fn edits_are_read_once_and_half_of_one_is_none_yet() {
        let (disk, folder, mut manifest, mut tail) = made();
        assert!(!tail.follow(&folder, false).expect("reads"));
        manifest.append(&numbers(5)).expect("appends");
        let before = disk.file(PATH).expect("is there").len();
        manifest.append(&numbers(9)).expect("appends");
        let whole = disk.file(PATH).expect("is there");
        for end in before..whole.len() {
            disk.put_file(PATH, &whole[..end]);
            assert_eq!(tail.follow(&folder, false).expect("reads"), end == before, "{end}");
            assert_eq!(tail.layout().next_file(), 5);
        }
        disk.put_file(PATH, whole);
        assert!(tail.follow(&folder, false).expect("reads"));
        assert_eq!(tail.layout(), manifest.layout());
    }

    #[test]
    fn another_file_is_read_as_a_whole() {
        let (_, folder, mut manifest, mut tail) = made();
        for round in 1..4 {
            manifest.append(&numbers(10 * round)).expect("appends");
            manifest.append(&numbers(10 * round + 1)).expect("appends");
            if round == 2 {
                assert!(tail.follow(&folder, false).expect("reads"));
            }
            manifest.keep().expect("begins anew");
            manifest.append(&numbers(10 * round + 2)).expect("appends");
            assert!(tail.follow(&folder, false).expect("reads"));
            assert_eq!(tail.layout(), manifest.layout());
        }
    }

    #[test] // It may have been refused: then the next file lacks it.
    fn an_edit_that_loads_or_takes_away_counts_when_it_is_followed_or_proved() {
        let loads = StoreEdit { unlogged: Some(Sequence(7)), ..numbers(4) };
        let name = || "other".to_string();
        let edits = [
            (loads, Some(Sequence(7))),
            (change(1, KeyspaceChange::Dropped), Some(Sequence::MAX)),
            (change(1, KeyspaceChange::Renamed { name: "new".into() }), Some(Sequence::MAX)),
            (numbers(4), None),
        ];
        for (edit, doubt) in edits {
            for is_alone in [false, true] {
                let (_, folder, mut manifest, mut tail) = made();
                let made = change(1, KeyspaceChange::Created { name: name() });
                manifest.append(&made).expect("appends");
                assert!(tail.follow(&folder, false).expect("reads"), "one that is made counts");
                manifest.append(&edit).expect("appends");
                if is_alone {
                    manifest.keep().expect("begins anew");
                }
                let counts = doubt.is_none();
                assert_eq!(tail.follow(&folder, false).expect("reads"), counts);
                assert_eq!(tail.held_back(), doubt);
                assert_eq!(tail.layout() == manifest.layout(), counts);
                if is_alone && !counts {
                    assert!(tail.follow(&folder, true).expect("reads"), "it was proved");
                } else {
                    manifest.append(&numbers(6)).expect("appends");
                    assert!(tail.follow(&folder, false).expect("reads"));
                }
                assert_eq!((tail.layout(), tail.held_back()), (manifest.layout(), None));
            }
        }
    }
}
