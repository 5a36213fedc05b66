//! A writing process is killed. All writes that it has acknowledged are found through the door.
//! ```text
//! acknowledged   how many keys are written (8) | how often the database was closed (8)
//! ```

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rocksdb::{SstFileWriter, TransactionDBOptions, WriteBatch, WriteBatchWithTransaction};

use super::{Numbers, count, options, wait};
use crate::{Base, Db, DoorDb, OptimisticTransactionDb, RocksDb, TransactionDb};

const FOLDER: &str = "TROMMEL_KILLED_FOLDER";
const TRANSACTS: &str = "TROMMEL_KILLED_TRANSACTS";
const LOCKS: &str = "TROMMEL_KILLED_LOCKS";
const CLOSES: &str = "TROMMEL_KILLED_CLOSES";
const ROUNDS: u64 = 10;

fn key(at: u64) -> Vec<u8> {
    format!("user{:06}row{at:06}", Numbers(at).next() % 1_000_000).into_bytes()
}

/// A key that was present for a moment only.
fn gone(at: u64) -> Vec<u8> {
    [&key(at)[..], b" gone"].concat()
}

/// Numbers in a file that another process can read after this one is killed.
struct Told {
    file: fs::File,
}

impl Told {
    fn open(folder: &Path) -> Told {
        let mut options = fs::File::options();
        options.read(true).write(true).create(true).truncate(false);
        Told { file: options.open(folder.join("acknowledged")).expect("a file") }
    }

    fn number(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        match self.file.read_exact_at(&mut bytes, 8 * place) {
            Ok(()) => u64::from_le_bytes(bytes),
            Err(_) => 0,
        }
    }

    fn tell(&self, place: u64, number: u64) {
        self.file.write_all_at(&number.to_le_bytes(), 8 * place).expect("written");
    }

    fn acknowledged(&self) -> u64 {
        self.number(0)
    }

    fn closed(&self) -> u64 {
        self.number(1)
    }
}

/// A round of writes that a process repeats. Returns how many keys it has added.
trait Writes {
    fn write(&self, at: u64, scratch: &Path) -> u64;
}

/// Adds six keys in different ways, and some that are gone in the end.
impl Writes for Db {
    fn write(&self, at: u64, scratch: &Path) -> u64 {
        let mut batch = WriteBatch::default();
        (at..at + 3).for_each(|at| batch.put(key(at), at.to_le_bytes()));
        (at..at + 2).for_each(|at| batch.put(gone(at), b"gone"));
        self.write(batch).expect("written");
        self.put(key(at + 3), b"single").expect("written");
        self.merge(key(at + 4), b"merged").expect("written");
        self.delete(gone(at)).expect("written");
        let family = self.cf_handle("default").expect("it is there");
        let end = [&gone(at + 1)[..], b"\0"].concat();
        self.delete_range_cf(&family, gone(at + 1), end).expect("written");
        if at.is_multiple_of(60) {
            let file = scratch.join(format!("{at}.sst"));
            let options = options();
            let mut writer = SstFileWriter::create(&options);
            writer.open(&file).expect("it opens");
            writer.put(key(at + 5), b"ingested").expect("written");
            writer.finish().expect("written");
            self.ingest_external_file(vec![&file]).expect("taken");
        } else {
            self.put(key(at + 5), b"single").expect("written");
        }
        if at.is_multiple_of(3000) {
            self.flush().expect("flushed");
        }
        6
    }
}

/// Adds four keys by transactions and a batch, and one that is gone in the end.
macro_rules! write_in_transactions {
    ($kind:ty) => {
        impl Writes for $kind {
            fn write(&self, at: u64, _scratch: &Path) -> u64 {
                let transaction = self.transaction();
                transaction.put(key(at), b"committed").expect("written");
                transaction.merge(key(at + 1), b"merged").expect("written");
                transaction.put(gone(at), b"gone").expect("written");
                transaction.commit().expect("nobody else writes");
                let other = self.transaction();
                other.delete(gone(at)).expect("written");
                other.put(key(at + 2), b"committed").expect("written");
                other.commit().expect("nobody else writes");
                let mut batch = WriteBatchWithTransaction::<true>::default();
                batch.put(key(at + 3), b"batch");
                self.write(batch).expect("written");
                4
            }
        }
    };
}

write_in_transactions!(OptimisticTransactionDb);
write_in_transactions!(TransactionDb);

/// Writes until it is killed. `closes`: also closes the database after every 300 keys.
fn write_on<B: Base>(folder: &Path, closes: bool, open: impl Fn(PathBuf) -> DoorDb<B>) -> !
where
    DoorDb<B>: Writes,
{
    let told = Told::open(folder);
    let mut at = told.acknowledged();
    loop {
        let db = open(folder.join("db"));
        if closes {
            wait(&db);
        }
        let end = if closes { at + 300 } else { u64::MAX };
        while at < end {
            let more = Writes::write(&db, at, folder);
            for at in at..at + more {
                assert!(db.get(key(at)).expect("read").is_some(), "{at}, just written");
            }
            assert_eq!(db.get(gone(at)).expect("read"), None);
            at += more;
            told.tell(0, at);
        }
        told.tell(1, told.closed() + 1);
        drop(db);
    }
}

/// The process that is killed. As a test it does nothing.
#[test]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let closes = std::env::var_os(CLOSES).is_some();
    if std::env::var_os(TRANSACTS).is_some() {
        let open = |path| OptimisticTransactionDb::open(&options(), path).expect("it opens");
        write_on(folder, closes, open)
    }
    if std::env::var_os(LOCKS).is_some() {
        let locks = TransactionDBOptions::default();
        let open = |path| TransactionDb::open(&options(), &locks, path).expect("it opens");
        write_on(folder, closes, open)
    }
    write_on(folder, closes, |path| Db::open(&options(), path).expect("it opens"))
}

fn start(folder: &Path, variables: &[&str]) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "tests::kills::the_process_that_is_killed"]);
    command.env(FOLDER, folder).stdout(Stdio::null());
    variables.iter().for_each(|name| drop(command.env(name, "yes").get_envs()));
    command.spawn().expect("it starts")
}

/// Waits until the process has come this far.
fn wait_until(child: &mut Child, is_there: impl Fn() -> bool) {
    while !is_there() {
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(child.try_wait().expect("its state"), None, "it writes on");
    }
}

fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("ended");
}

fn kill_while_it_writes(variables: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..ROUNDS {
        let mut child = start(folder.path(), variables);
        let told = Told::open(folder.path());
        let least = told.acknowledged() + 500;
        std::thread::sleep(Duration::from_millis(100 + 70 * (round % 5)));
        wait_until(&mut child, || told.acknowledged() >= least);
        kill(child);
        check(folder.path());
    }
}

#[test]
fn all_that_was_acknowledged_is_found() {
    kill_while_it_writes(&[]);
}

#[test]
fn all_that_was_committed_is_found() {
    kill_while_it_writes(&[TRANSACTS]);
    kill_while_it_writes(&[LOCKS]);
}

/// Closing writes the filters. However many are there, no answer is wrong.
#[test]
fn all_that_was_acknowledged_is_found_when_it_was_killed_while_it_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut images = HashSet::new();
    for round in 0..3 * ROUNDS {
        let variables: &[&str] =
            if round.is_multiple_of(2) { &[CLOSES] } else { &[CLOSES, TRANSACTS] };
        let mut child = start(folder.path(), variables);
        let told = Told::open(folder.path());
        let closed = told.closed();
        wait_until(&mut child, || told.closed() > closed);
        std::thread::sleep(Duration::from_micros(300 * (round % 20)));
        kill(child);
        let files = fs::read_dir(folder.path().join("db")).expect("it is there");
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        images.insert(names.filter(|name| name.ends_with(".filter")).count());
        check(folder.path());
    }
    assert!(images.len() > 1, "some were killed before their filter was there, some later");
}

fn check(folder: &Path) {
    let acknowledged = Told::open(folder).acknowledged();
    let db = Db::open(&options(), folder.join("db")).expect("it opens");
    for _ in 0..2 {
        for at in 0..acknowledged {
            assert!(db.get(key(at)).expect("read").is_some(), "{at} of {acknowledged}");
        }
        for at in (0..acknowledged).step_by(7) {
            assert_eq!(count(&db, &key(at), &[&key(at)[..], b"\0"].concat()), 1);
            assert_eq!(db.get(gone(at)).expect("read"), None, "{at} of {acknowledged}");
        }
        wait(&db);
    }
    let before = db.door_state().denied;
    // Writes that were not acknowledged may be found, too.
    let written: HashSet<Vec<u8>> = (0..acknowledged + 6).map(key).collect();
    let others = (0..).map(|at| key(at + (1 << 40))).filter(|key| !written.contains(key));
    others.take(500).for_each(|key| assert_eq!(db.get(key).expect("read"), None));
    let state = db.door_state();
    assert!(state.denied > before + 250, "{before} before {state:?}");
    drop(db);
    let plain = RocksDb::open(&options(), folder.join("db")).expect("it opens");
    assert!(plain.get(key(0)).expect("read").is_some());
}
