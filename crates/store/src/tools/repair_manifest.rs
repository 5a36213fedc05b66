//! Reads a manifest in any state.
//! ```text
//! edit | edit | edit            all are readable: the layout
//! edit | #### | edit | edit     the readable edits: which tables joined the tree, which left
//! ```
//! Invariant: a file number is never used twice. So a table that left in any edit is not in the
//! tree, unless that edit adds pieces of it again.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use crate::entries::entry::{NUMBER_MAX, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::fragments::{Fragment, manifest_fragments};
use crate::files::manifest::{FORMAT_VERSION, HEADER_BYTES, MAGIC, MANIFEST_NAME};
use crate::files::record::{read_all, version_in};
use crate::plan::layout::{Edit, TableRecord};
use crate::plan::options::keyspace::Kept;
use crate::plan::store_layout::{GoneNumbers, KeyspaceChange, StoreEdit, StoreLayout};
use crate::storage::open_folder::OpenFolder;

/// Larger version numbers count as damage: no Trommel has had them.
const VERSION_BELIEVED: u32 = 255;

/// Everything that could be read of a manifest.
#[derive(Default)]
pub(crate) struct FoundManifest {
    /// Whether the file exists.
    pub(crate) is_there: bool,
    /// The layout, if the whole file except a torn end is readable.
    pub(crate) layout: Option<StoreLayout>,
    /// Whether the file ends in bytes without a record, after a crash or by damage to the last
    /// edit.
    pub(crate) is_torn: bool,
    /// The end of its last record.
    pub(crate) end: u64,
    /// The damage, with offsets.
    pub(crate) damage: Vec<(u64, String)>,
    /// The names of key spaces, as far as readable edits say.
    pub(crate) names: BTreeMap<KeyspaceId, String>,
    /// The options that key spaces keep, as far as readable edits say.
    pub(crate) options: BTreeMap<KeyspaceId, Kept>,
    /// Numbers that are not given, as far as readable edits say.
    pub(crate) gone: GoneNumbers,
    /// No key space has this number or a larger one, as far as edits are readable.
    pub(crate) next_keyspace: u32,
    /// The key space of each table.
    owners: BTreeMap<u64, KeyspaceId>,
    /// Every table that joined the tree in a readable edit, as the last such edit describes it.
    /// Several records are pieces of one trimmed table.
    pub(crate) added: BTreeMap<u64, Vec<TableRecord>>,
    /// Every table that left the tree and of which no piece was added again.
    pub(crate) removed: HashSet<u64>,
    /// The newest sequence number that the manifest names.
    pub(crate) last_sequence: Sequence,
}

impl FoundManifest {
    /// Reads the manifest in a folder.
    ///
    /// # Errors
    /// `Io`, and `Version` if it names another version that may exist. Damage is no error here.
    pub(crate) fn read(folder: &OpenFolder) -> Result<FoundManifest> {
        let bytes = match read_all(folder, MANIFEST_NAME) {
            Ok(bytes) => bytes,
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(FoundManifest::default());
            }
            Err(error) => return Err(error),
        };
        check_version(&bytes, &folder.path_of(MANIFEST_NAME))?;
        Ok(FoundManifest::of(&bytes))
    }

    fn of(bytes: &[u8]) -> FoundManifest {
        let end = bytes.len() as u64;
        let mut found = FoundManifest { is_there: true, end, ..Default::default() };
        let mut layout = Some(StoreLayout::default());
        let mut edits = 0;
        for fragment in manifest_fragments(bytes) {
            match fragment {
                Fragment::Whole { offset, item: edit } => {
                    let applied = layout.take().map(|layout| layout.followed_by(&edit));
                    match applied {
                        Some(Ok(next)) => layout = Some(next),
                        Some(Err(wrong)) => found.damage.push((offset, wrong.to_string())),
                        None => {}
                    }
                    edits += 1;
                    edit.trees().for_each(|(id, edit)| found.follow(id, edit));
                    found.follow_keyspaces(&edit);
                }
                Fragment::Damaged { bytes, what, .. } => {
                    found.damage.push((bytes.start, what));
                    layout = None;
                }
                Fragment::Torn { bytes, .. } => (found.is_torn, found.end) = (true, bytes.start),
            }
        }
        if edits == 0 {
            found.damage.push((0, "no edit can be read".into()));
        }
        if let Some(Err(wrong)) = layout.as_ref().map(StoreLayout::check) {
            found.damage.push((HEADER_BYTES as u64, wrong.to_string()));
        }
        found.layout = layout.filter(|_| found.damage.is_empty());
        found
    }

    fn follow_keyspaces(&mut self, edit: &StoreEdit) {
        for (id, edit) in &edit.keyspaces {
            match &edit.change {
                Some(KeyspaceChange::Created { name } | KeyspaceChange::Renamed { name }) => {
                    self.names.insert(*id, name.clone());
                }
                Some(KeyspaceChange::Dropped) => {
                    self.names.remove(id);
                    self.options.remove(id);
                    let of_it = self.owners.iter().filter(|(_, owner)| *owner == id);
                    for &file in of_it.map(|(file, _)| file) {
                        self.added.remove(&file);
                        self.removed.insert(file);
                    }
                }
                None => {}
            }
            if !edit.options.is_empty() {
                self.options.entry(*id).or_default().extend(edit.options.iter().cloned());
            }
            self.next_keyspace = self.next_keyspace.max(id.0.saturating_add(1));
        }
        self.next_keyspace = self.next_keyspace.max(edit.next_keyspace.unwrap_or_default());
        let is_believed =
            |gone: &GoneNumbers| gone.next_file.max(gone.last_sequence.0) <= NUMBER_MAX;
        self.gone = self.gone.max(edit.gone.filter(is_believed).unwrap_or_default());
    }

    /// A merge of a key range removes tables from the tree. The same edit adds their remaining
    /// pieces.
    fn follow(&mut self, id: KeyspaceId, edit: &Edit) {
        let last = edit.last_sequence.filter(|last| last.0 <= NUMBER_MAX);
        self.last_sequence = self.last_sequence.max(last.unwrap_or_default());
        for file in &edit.removed {
            self.added.remove(file);
            self.removed.insert(*file);
        }
        for table in &edit.added {
            self.removed.remove(&table.file);
            self.owners.insert(table.file, id);
            self.added.entry(table.file).or_default().push(table.clone());
        }
    }

    /// Returns the records of a trimmed table, or its only record, or None.
    pub(crate) fn pieces_of(&self, file: u64) -> Vec<Option<&TableRecord>> {
        let pieces = self.added.get(&file).map_or(&[][..], Vec::as_slice);
        match pieces.iter().all(|piece| piece.is_trimmed) && !pieces.is_empty() {
            true => pieces.iter().map(Some).collect(),
            false => vec![pieces.first()],
        }
    }

    /// Whether a readable edit names the table.
    pub(crate) fn knows(&self, file: u64) -> bool {
        self.added.contains_key(&file) || self.removed.contains(&file)
    }
}

/// Refuses a store of another version, since its repair would be guesswork.
fn check_version(bytes: &[u8], path: &Path) -> Result<()> {
    let is_another = |version: &u32| *version != FORMAT_VERSION;
    let believed = |version: &u32| (1..=VERSION_BELIEVED).contains(version);
    match version_in(bytes, MAGIC).filter(is_another).filter(believed) {
        Some(found) => {
            Err(Error::Version { path: path.to_path_buf(), found, known: FORMAT_VERSION })
        }
        None => Ok(()),
    }
}
