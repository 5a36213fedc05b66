//! A store, what can lie in the place of its files, and every call that opens one.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use trommel::storage::Disk;
use trommel::tools::{dump, peek, repair};
use trommel::{Background, Db, Error, FollowOptions, GuardKind, Options, SyncPolicy};

/// Far more than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const ROWS: u32 = 400;

pub(crate) fn options() -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(3)
        .block_bytes(256)
        .block_cache_bytes(0)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

pub(crate) fn value(row: u32) -> Vec<u8> {
    format!("value {row}").into_bytes()
}

/// A store that is closed, with tables, an image of its filter, and a log.
pub(crate) fn make_store(path: &Path) {
    let db = Db::open(path, options()).expect("opens");
    for row in 0..ROWS {
        db.put(row.to_be_bytes(), value(row)).expect("puts");
        if row % 100 == 99 {
            db.flush().expect("flushes");
        }
    }
    db.compact().expect("merges");
    for row in 0..20u32 {
        db.put(row.to_be_bytes(), value(row)).expect("puts");
    }
    db.flush().expect("flushes");
    db.put(0u32.to_be_bytes(), value(0)).expect("puts");
    db.close().expect("closes");
    for kind in [".table", ".filter", ".wal"] {
        assert!(
            names(path).iter().any(|name| name.ends_with(kind)),
            "no {kind}: {:?}",
            names(path)
        );
    }
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry"));
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn newest(dir: &Path, kind: &str) -> String {
    let ours = names(dir).into_iter().filter(|name| name.ends_with(kind));
    ours.max().unwrap_or_else(|| panic!("no {kind}"))
}

/// Every file below a folder, with its bytes.
pub(crate) fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir)
        .into_iter()
        .map(|name| (name.clone(), fs::read(dir.join(&name)).unwrap_or_default()))
        .collect()
}

pub(crate) fn copy_store(from: &Path, to: &Path) {
    fs::create_dir(to).expect("makes a folder");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("copies");
    }
}

/// What can lie in the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    LinkToTheSameBytes,
    LinkToAFolder,
    LinkToNothing,
    LinkToZeros,
    Pipe,
    Socket,
    Device,
    Folder,
}

pub(crate) const THINGS: [Thing; 8] = [
    Thing::LinkToTheSameBytes,
    Thing::LinkToAFolder,
    Thing::LinkToNothing,
    Thing::LinkToZeros,
    Thing::Pipe,
    Thing::Socket,
    Thing::Device,
    Thing::Folder,
];

impl Thing {
    /// Puts it in place of a file; what it links to lies outside. False: this process may not make
    /// one.
    pub(crate) fn put(self, path: &Path, outside: &Path) -> bool {
        let name = path.file_name().expect("a name");
        if let Ok(bytes) = fs::read(path) {
            fs::write(outside.join(name), bytes).expect("writes");
            fs::remove_file(path).expect("removes");
        } else {
            fs::write(outside.join(name), "somebody's").expect("writes");
        }
        let node = |kind, device| mknodat(CWD, path, kind, Mode::RUSR | Mode::WUSR, device).is_ok();
        match self {
            Thing::LinkToTheSameBytes => symlink(outside.join(name), path).expect("links"),
            Thing::LinkToAFolder => symlink(outside, path).expect("links"),
            Thing::LinkToNothing => symlink(outside.join("nothing"), path).expect("links"),
            Thing::LinkToZeros => symlink("/dev/zero", path).expect("links"),
            Thing::Pipe => return node(FileType::Fifo, 0),
            Thing::Device => return node(FileType::CharacterDevice, makedev(1, 5)),
            Thing::Socket => drop(UnixListener::bind(path).expect("binds")),
            Thing::Folder => fs::create_dir(path).expect("makes a folder"),
        }
        true
    }

    /// How errors call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Thing::Pipe => "a pipe",
            Thing::Socket => "a socket",
            Thing::Device => "a device",
            Thing::Folder => "a folder",
            _ => "a symbolic link",
        }
    }
}

/// What `f` gives, if it gives something in time and does not panic.
pub(crate) fn in_time<T: Send + 'static>(case: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    std::thread::spawn(move || done.send(catch_unwind(AssertUnwindSafe(f))));
    match result.recv_timeout(PATIENCE) {
        Ok(Ok(given)) => given,
        Ok(Err(_)) => panic!("{case}: a panic"),
        Err(_) => panic!("{case}: it hangs"),
    }
}

pub(crate) type CallResult = Result<String, Error>;

pub(crate) fn open_and_read(path: &Path) -> CallResult {
    let db = Db::open(path, options())?;
    let mut rows = 0;
    for row in 0..ROWS {
        let found = db.get(row.to_be_bytes())?;
        assert!(found.is_none_or(|found| *found == *value(row)), "row {row} is wrong");
        rows += 1;
    }
    db.put("late", "value")?;
    db.flush()?;
    db.verify()?;
    db.close()?;
    Ok(format!("{rows} rows"))
}

pub(crate) fn follow_and_read(path: &Path) -> CallResult {
    let follower = Db::follow(path, FollowOptions::new().options(options()))?;
    for row in 0..ROWS {
        let found = follower.get(row.to_be_bytes())?;
        assert!(found.is_none_or(|found| *found == *value(row)), "row {row} is wrong");
    }
    follower.catch_up()?;
    follower.close()?;
    Ok(format!("{ROWS} rows"))
}

pub(crate) fn peek_at(path: &Path) -> CallResult {
    peek(path).map(|tree| format!("{} runs", tree.runs.len()))
}

pub(crate) fn dump_all(path: &Path) -> CallResult {
    let mut items = 0;
    dump(&Disk, path, &mut |_| {
        items += 1;
        if items < 100_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(format!("{items} items"))
}

pub(crate) fn repair_it(path: &Path) -> CallResult {
    repair(path).map(|report| format!("{report:?}"))
}

/// A call of a folder, and what it tells.
type Call = (&'static str, fn(&Path) -> CallResult);

pub(crate) const CALLS: [Call; 5] = [
    ("open", open_and_read as fn(&Path) -> CallResult),
    ("follow", follow_and_read),
    ("peek", peek_at),
    ("dump", dump_all),
    ("repair", repair_it),
];

/// A folder with a sound store, one for what lies outside, and where copies go.
pub(crate) struct TestFolders {
    pub(crate) root: tempfile::TempDir,
    copies: u32,
}

impl TestFolders {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        make_store(&root.path().join("sound"));
        fs::create_dir(root.path().join("outside")).expect("makes a folder");
        TestFolders { root, copies: 0 }
    }

    pub(crate) fn sound(&self) -> PathBuf {
        self.root.path().join("sound")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    /// A copy of the store.
    pub(crate) fn copy(&mut self) -> PathBuf {
        self.copies += 1;
        let copy = self.root.path().join(format!("copy{}", self.copies));
        copy_store(&self.sound(), &copy);
        copy
    }
}

pub(crate) fn names_it(error: &Error, name: &str) -> bool {
    error.to_string().contains(name)
}
