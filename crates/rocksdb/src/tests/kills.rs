//! A process that writes is killed; what it knows to be written is found through the door.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rocksdb::WriteBatch;

use super::{Numbers, count, options, wait};
use crate::{Db, RocksDb};

const FOLDER: &str = "TROMMEL_KILLED_FOLDER";
const ROUNDS: u64 = 10;

fn key(at: u64) -> Vec<u8> {
    format!("user{:06}", Numbers(at).next() % 1_000_000).into_bytes()
}

fn acknowledged(folder: &Path) -> u64 {
    let mut bytes = [0; 8];
    let file = fs::File::open(folder.join("acknowledged"));
    match file.and_then(|file| file.read_exact_at(&mut bytes, 0)) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

/// The process that is killed. As a test it does nothing.
#[test]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mut at = acknowledged(folder);
    let file = fs::File::create(folder.join("acknowledged")).expect("a file");
    file.write_all_at(&at.to_le_bytes(), 0).expect("written");
    let db = Db::open(&options(), folder.join("db")).expect("it opens");
    loop {
        let mut batch = WriteBatch::default();
        (at..at + 3).for_each(|at| batch.put(key(at), at.to_le_bytes()));
        db.write(batch).expect("written");
        at += 3;
        db.put(key(at), b"single").expect("written");
        assert!(db.get(key(at)).expect("read").is_some());
        at += 1;
        file.write_all_at(&at.to_le_bytes(), 0).expect("written");
    }
}

#[test]
fn all_that_was_acknowledged_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    for round in 0..ROUNDS {
        let mut child = Command::new(&program)
            .args(["--exact", "tests::kills::the_process_that_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let least = acknowledged(folder.path()) + 500;
        std::thread::sleep(Duration::from_millis(100 + 70 * (round % 5)));
        while acknowledged(folder.path()) < least {
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(child.try_wait().expect("its state"), None, "it writes on");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        check(folder.path());
    }
}

fn check(folder: &Path) {
    let acknowledged = acknowledged(folder);
    let db = Db::open(&options(), folder.join("db")).expect("it opens");
    for _ in 0..2 {
        for at in 0..acknowledged {
            assert!(db.get(key(at)).expect("read").is_some(), "{at} of {acknowledged}");
        }
        for at in (0..acknowledged).step_by(7) {
            assert_eq!(count(&db, &key(at), &[&key(at)[..], b"\0"].concat()), 1);
        }
        wait(&db);
    }
    let before = db.door_state().denied;
    let written: HashSet<Vec<u8>> = (0..acknowledged + 4).map(key).collect();
    let others = (0..).map(|at| key(at + (1 << 40))).filter(|key| !written.contains(key));
    others.take(500).for_each(|key| assert_eq!(db.get(key).expect("read"), None));
    let state = db.door_state();
    assert!(state.denied > before + 250, "{before} before {state:?}");
    drop(db);
    let plain = RocksDb::open(&options(), folder.join("db")).expect("it opens");
    assert!(plain.get(key(0)).expect("read").is_some());
}
