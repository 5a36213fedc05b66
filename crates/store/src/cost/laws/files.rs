//! Laws of cost for who reads files from end to end: as much as the files are long.
//! ```text
//! Counted -> Memory       bytes that are read        of 1x and of 10x rows, in tables and in a log
//! ```
//! Invariant: no byte of a file is read more often than `TIMES_MAX` says, however much there is.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Cost, Law, World};
use crate::{Append, Environment, Folder, Memory, ReadAt, Storage};

/// A disk that counts the bytes that are read from it.
#[derive(Clone)]
struct Counted {
    disk: Memory,
    bytes: Arc<AtomicU64>,
}

impl Storage for Counted {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        self.disk.dir_exists(dir)
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let folder = self.disk.open_folder(dir)?;
        Ok(Arc::new(CountedFolder { folder, bytes: Arc::clone(&self.bytes) }))
    }
}

struct CountedFolder {
    folder: Arc<dyn Folder>,
    bytes: Arc<AtomicU64>,
}

impl Folder for CountedFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        self.folder.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        let file = self.folder.open(name)?;
        Ok(Arc::new(CountedFile { file, bytes: Arc::clone(&self.bytes) }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.folder.link(from, into, to)
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        self.folder.make_folder(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.folder.lock(name)
    }

    fn free_space(&self) -> io::Result<u64> {
        self.folder.free_space()
    }

    fn as_any(&self) -> &dyn Any {
        self.folder.as_any()
    }
}

struct CountedFile {
    file: Arc<dyn ReadAt>,
    bytes: Arc<AtomicU64>,
}

impl ReadAt for CountedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_at(offset, buffer)
    }
}

/// Rows in tables, and as many in the log of a store that is closed.
fn closed_store(rows: u64) -> World {
    let mut world = World::new(|_| {});
    (0..rows).for_each(|n| world.put(b'm', n));
    world.db().compact().expect("merges");
    (0..rows).for_each(|n| world.put(b'n', n));
    world.db.take().expect("it is open").close().expect("closes");
    world
}

/// Bytes of the files of a store whose names end so.
fn file_bytes(world: &World, ending: &str) -> u64 {
    let names = world.disk.list("db".as_ref()).expect("lists").into_iter();
    let ours = names.filter(|name| name.ends_with(ending));
    let bytes = ours.map(|name| world.disk.file(Path::new("db").join(name)).map_or(0, |f| f.len()));
    bytes.sum::<usize>() as u64
}

type Call = fn(&Counted, &Environment);

/// Who reads which files from end to end, and how often at most.
const READERS: [(&str, Call, &str, u64); 4] = [
    (
        "verify_files",
        |_, environment| {
            assert!(crate::verify_files_with("db", environment).expect("reads").damage.is_empty());
        },
        "",
        3,
    ),
    (
        "dump",
        |disk, _| {
            crate::dump(disk, "db", &mut |_| std::ops::ControlFlow::Continue(())).expect("tells");
        },
        "",
        2,
    ),
    (
        "repair",
        |_, environment| {
            assert!(!crate::repair_with("db", environment).expect("reads").changed);
        },
        "",
        4,
    ),
    (
        "peek",
        |disk, _| drop(crate::tree::peek::peek_with(disk, "db".as_ref()).expect("looks")),
        "MANIFEST",
        2,
    ),
];

/// Bytes that are read, and what it costs.
fn cost_of(world: &mut World, call: Call) -> (u64, Cost) {
    let disk = Counted { disk: world.disk.clone(), bytes: Arc::default() };
    let environment = Environment { storage: Arc::new(disk.clone()), ..Environment::default() };
    let cost = world.cost(|_| call(&disk, &environment));
    (disk.bytes.load(Ordering::Relaxed), cost)
}

#[test]
fn who_reads_files_from_end_to_end_reads_no_more_than_they_have() {
    let mut worlds = [1000, 10_000].map(closed_store);
    for (name, call, ending, times) in READERS {
        let costs = worlds.each_mut().map(|world| {
            let (read, cost) = cost_of(world, call);
            let there = file_bytes(world, ending);
            assert!(read >= there, "{name}: {read} bytes of {there} are read");
            assert!(read <= times * there, "{name}: {read} bytes of {there} are read");
            cost
        });
        assert_eq!(costs[0].breaks(costs[1], Law::Linear), None, "{name}");
    }
}
