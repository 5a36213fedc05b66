//! What a store requires of any storage: checked for the disk, with and without direct I/O, and for
//! the simulated disk.

use super::*;
use crate::storage::io_mode::{Access, Overlap};
use crate::storage::memory::Memory;
use crate::storage::traits::FolderWrapper;
use crate::storage::traits::StorageWrapper;

#[track_caller]
fn kind<T>(result: io::Result<T>) -> io::ErrorKind {
    result.err().expect("it fails").kind()
}

fn folders_are_as_of_a_disk(storage: &dyn Storage, root: &Path) -> Arc<dyn Folder> {
    let dir = root.join("a").join("b");
    assert_eq!(kind(storage.open_folder(&dir)), io::ErrorKind::NotFound);
    assert_eq!(kind(storage.list(&dir)), io::ErrorKind::NotFound);
    assert!(!storage.dir_exists(&dir));
    storage.create_dir(&dir).unwrap();
    storage.create_dir(&dir).unwrap();
    assert!(storage.dir_exists(&dir) && storage.dir_exists(&root.join("a")));
    assert_eq!(storage.list(&root.join("a")).unwrap(), ["b"]);
    let folder = storage.open_folder(&dir).unwrap();
    drop(folder.create("file").unwrap());
    assert_eq!(kind(storage.open_folder(&dir.join("file"))), io::ErrorKind::NotADirectory);
    folder.remove("file").unwrap();

    let inner = folder.make_folder("inner").unwrap();
    drop(inner.create("deep").unwrap());
    let again = folder.make_folder("inner").unwrap();
    assert_eq!(again.list().unwrap(), ["deep"]);
    assert_eq!(kind(folder.create("inner")), io::ErrorKind::AlreadyExists);
    assert!(folder.open("inner").is_err() && folder.remove("inner").is_err());
    assert!(folder.lock("inner").is_err());
    assert_eq!(folder.list().unwrap(), ["inner"]);
    again.link("deep", &*folder, "shallow").unwrap();
    again.remove("deep").unwrap();
    assert_eq!(folder.open("shallow").unwrap().size().unwrap(), 0);
    assert_eq!(kind(folder.make_folder("shallow")), io::ErrorKind::NotADirectory);
    folder.remove("shallow").unwrap();
    folder
}

fn names_lead_nowhere_else(folder: &dyn Folder) {
    for name in ["", ".", "..", "/", "../x", "inner/x", "x/", "/tmp/x", "x\0y"] {
        let said = [
            kind(folder.create(name)),
            kind(folder.open(name)),
            kind(folder.create_with(name, DIRECT)),
            kind(folder.open_with(name, DIRECT)),
            kind(folder.remove(name)),
            kind(folder.rename("x", name)),
            kind(folder.rename(name, "x")),
            kind(folder.link("x", folder, name)),
            kind(folder.link(name, folder, "x")),
            kind(folder.make_folder(name)),
            kind(folder.lock(name)),
        ];
        assert_eq!(said, [io::ErrorKind::InvalidInput; 11], "{name:?}");
    }
}

/// What a store requires of any storage. The simulated disk must behave the same.
fn long_parts_are_read(folder: &dyn Folder) {
    let bytes: Vec<u8> = (0..700_001_u32).map(|at| (at / 251) as u8).collect();
    let mut file = folder.create("long").unwrap();
    file.append(&bytes).unwrap();
    file.sync().unwrap();
    let file = folder.open("long").unwrap();
    for part in [0..bytes.len(), 3..400_000, 300_000..bytes.len(), 699_999..bytes.len(), 9..9] {
        let read = file.read(part.start as u64, part.len()).unwrap();
        assert!(*read == bytes[part.clone()], "{part:?}");
        let mut onto = b"trommel".to_vec();
        file.read_onto(part.start as u64, part.len(), &mut onto).unwrap();
        assert_eq!(onto.split_at(7), (&b"trommel"[..], &bytes[part.clone()]), "{part:?}");
    }
    for start in [1, 700_000, 700_001, 1 << 40] {
        assert_eq!(kind(file.read(start, bytes.len())), io::ErrorKind::UnexpectedEof);
        let mut onto = b"trommel".to_vec();
        assert_eq!(
            kind(file.read_onto(start, bytes.len(), &mut onto)),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(onto, b"trommel", "what was there stays, and nothing more");
        assert_eq!(kind(file.read_onto(0, usize::MAX / 2, &mut onto)), io::ErrorKind::OutOfMemory);
    }
    folder.remove("long").unwrap();
}

fn behaves_like_a_disk(storage: &dyn Storage, root: &Path) {
    let folder = folders_are_as_of_a_disk(storage, root);
    let mut file = folder.create("x").unwrap();
    file.append(b"tro").unwrap();
    file.append(b"mmel").unwrap();
    file.sync().unwrap();
    let opened = folder.open("x").unwrap();
    assert_eq!(opened.size().unwrap(), 7);
    let (mut head, mut tail) = ([0; 3], [0; 2]);
    opened.read_many(&mut [(0, &mut head[..]), (5, &mut tail[..])]).unwrap();
    assert_eq!((&head, &tail), (b"tro", b"el"));
    assert_eq!(kind(opened.read_at(6, &mut tail)), io::ErrorKind::UnexpectedEof);

    folder.link("x", &*folder, "y").unwrap();
    assert_eq!(kind(folder.link("x", &*folder, "y")), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(folder.create("y")), io::ErrorKind::AlreadyExists);
    assert_eq!(folder.open("x").unwrap().size().unwrap(), 7, "what is there is not touched");
    folder.rename("y", "z").unwrap();
    folder.remove("x").unwrap();
    assert_eq!(kind(folder.remove("x")), io::ErrorKind::NotFound);
    assert_eq!(kind(folder.open("x")), io::ErrorKind::NotFound);
    opened.read_at(0, &mut head).unwrap();
    folder.sync().unwrap();
    storage.sync_dir(&root.join("a")).unwrap();
    assert_eq!(folder.list().unwrap(), ["inner", "z"]);
    assert_eq!(folder.open("z").unwrap().size().unwrap(), 7);
    names_lead_nowhere_else(&*folder);
    long_parts_are_read(&*folder);

    let held = folder.lock("LOCK").unwrap();
    assert_eq!(kind(folder.lock("LOCK")), io::ErrorKind::WouldBlock);
    drop(held);
    drop(folder.lock("LOCK").unwrap());
    assert_eq!(folder.list().unwrap(), ["LOCK", "inner", "z"]);
    assert!(folder.free_space().unwrap() > 0);
}

#[test]
fn the_disk_behaves_like_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    behaves_like_a_disk(&Disk, folder.path());
}

const DIRECT: Access = Access { direct: true, overlap: Overlap::Ring, mapped: false };

/// A disk whose files all use direct I/O where possible.
struct Direct;

struct DirectFolder(Arc<dyn Folder>);

impl StorageWrapper for Direct {
    fn inner(&self) -> &dyn Storage {
        &Disk
    }
    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(DirectFolder(Disk.open_folder(dir)?)))
    }
}

impl FolderWrapper for DirectFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.0
    }
    fn create_with(&self, name: &str, _access: Access) -> io::Result<Box<dyn Append>> {
        self.0.create_with(name, DIRECT)
    }
    fn open_with(&self, name: &str, _access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.0.open_with(name, DIRECT)
    }
    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(DirectFolder(self.0.make_folder(name)?)))
    }
}

#[test]
fn the_disk_behaves_like_a_disk_with_direct_files() {
    for root in [std::env::temp_dir(), Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()] {
        let folder = tempfile::tempdir_in(root).unwrap();
        behaves_like_a_disk(&Direct, folder.path());
    }
}

#[test]
fn the_simulated_disk_behaves_like_a_disk() {
    behaves_like_a_disk(&Memory::new(), Path::new("/root"));
    behaves_like_a_disk(&Memory::new(), Path::new("relative"));
}
