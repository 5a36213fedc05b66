//! An open folder of the simulated disk.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

use super::crash::Random;
use super::{File, Memory, MemoryAppender, MemoryReader, MemoryState, NameChange, apply_change};
use crate::storage::io_mode::{Access, Overlap};
use crate::storage::read_queue::{OneByOne, ReadQueue};
use crate::storage::traits::{Append, Folder, ReadAt, check_name};
use crate::sync::{Arc, MutexGuard};

/// A folder of the simulated disk. Folders are never renamed there.
pub(super) struct MemoryFolder {
    pub(super) disk: Memory,
    pub(super) dir: PathBuf,
}

impl MemoryFolder {
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.dir.join(name))
    }

    /// Counts an operation in the folder, and fails if it is supposed to.
    fn step(&self, needs_space: bool) -> io::Result<MutexGuard<'_, MemoryState>> {
        let mut state = self.disk.state();
        state.step(needs_space)?;
        state.require_dir(&self.dir)?;
        Ok(state)
    }
}

impl Folder for MemoryFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.step(false)?;
        let paths = state.names.keys().chain(state.dirs.iter());
        let inside = paths.filter(|path| path.parent() == Some(&self.dir));
        let names = inside.filter_map(|path| path.file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let path = self.path(name)?;
        let mut state = self.step(true)?;
        if state.is_taken(&path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let counted = Arc::new(self.disk.counted(&mut state)?);
        let file = File::default();
        state.change_names(vec![(path, Some(Arc::clone(&file)))]);
        let is_mapped = access.mapped && state.maps_files;
        Ok(Box::new(MemoryAppender { file, counted, is_mapped }))
    }

    fn open_with(&self, name: &str, _access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let path = self.path(name)?;
        let mut state = self.step(false)?;
        let file = state.find(&path)?;
        Ok(Arc::new(MemoryReader { file, counted: self.disk.counted(&mut state)? }))
    }

    /// Reads complete in an order that follows from the number of operations so far.
    fn read_queue(&self, _overlap: Overlap, _depth: usize) -> Box<dyn ReadQueue> {
        let mut random = Random(self.disk.operations());
        Box::new(OneByOne::choosing(move |count| random.below(count)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name)?;
        let mut state = self.step(false)?;
        state.find(&path)?;
        state.change_names(vec![(path, None)]);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        let mut state = self.step(true)?;
        let file = state.find(&from)?;
        if from != to {
            state.change_names(vec![(from, None), (to, Some(file))]);
        }
        Ok(())
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        let into = into.as_any().downcast_ref::<MemoryFolder>();
        let into = into.filter(|into| Arc::ptr_eq(&into.disk.state, &self.disk.state));
        let into = into.ok_or(io::ErrorKind::CrossesDevices)?;
        let (from, to) = (self.path(from)?, into.path(to)?);
        let mut state = self.step(true)?;
        let file = state.find(&from)?;
        state.require_dir(&into.dir)?;
        if state.is_taken(&to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.change_names(vec![(to, Some(file))]);
        Ok(())
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        let dir = self.path(name)?;
        let mut state = self.step(true)?;
        if state.names.contains_key(&dir) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        state.dirs.insert(dir.clone());
        Ok(Arc::new(MemoryFolder { disk: self.disk.clone(), dir }))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.step(true)?;
        state.sync_names(&self.dir);
        Ok(())
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        let path = self.path(name)?;
        let mut state = self.step(false)?;
        if state.dirs.contains(&path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !state.locks.insert(path.clone()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !state.names.contains_key(&path) {
            state.change_names(vec![(path.clone(), Some(File::default()))]);
        }
        Ok(Box::new(Lock { disk: self.disk.clone(), path }))
    }

    fn free_space(&self) -> io::Result<u64> {
        const PLENTY: u64 = 1 << 40;
        let state = self.step(false)?;
        Ok(if state.no_space { 0 } else { PLENTY })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Lock {
    disk: Memory,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

impl MemoryState {
    /// Makes the changes of names in a folder durable.
    fn sync_names(&mut self, dir: &Path) {
        let MemoryState { dirs, dirs_synced, .. } = self;
        dirs_synced.extend(dirs.iter().filter(|inside| inside.parent() == Some(dir)).cloned());
        for mut change in std::mem::take(&mut self.changes) {
            let inside = |(path, _): &mut (PathBuf, Option<File>)| path.parent() == Some(dir);
            let durable: NameChange = change.extract_if(.., inside).collect();
            apply_change(&mut self.names_synced, &durable);
            if !change.is_empty() {
                self.changes.push(change);
            }
        }
    }
}
