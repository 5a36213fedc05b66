//! A small file system of a test's own: in memory, and seen by the test's process alone.
//! ```text
//! test -> unshare -m -> sh: mount -t tmpfs -> this test again,
//!     which now finds the place in its environment and does the work
//! ```
//! Invariant: it goes with the process, whatever becomes of that.
#![allow(dead_code, reason = "each test that has file systems of its own uses a part of it")]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a file takes room in, and what is freed at once.
pub(crate) const PAGE_BYTES: u64 = 4096;

const PLACE: &str = "TROMMEL_FILE_SYSTEM";
/// What the script says when it has mounted: what comes then is the test's.
const MOUNTED: &str = "the file system is mounted";

/// Runs a test of this file again, on a file system of so many bytes. A path: this is the process
/// that was so started. None: the work was done, or this machine lets nobody mount: then that is
/// told.
pub(crate) fn on_file_system(test: &str, bytes: u64) -> Option<PathBuf> {
    if let Some(place) = std::env::var_os(PLACE) {
        return Some(place.into());
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let program = std::env::current_exe().expect("this program");
    let script = format!(
        "mount -t tmpfs -o size={bytes},mode=755 tmpfs \"$0\" && echo '{MOUNTED}' && exec \"$@\""
    );
    // As root; else as root of a namespace of one's own.
    for namespace in ["-m", "-Urm"] {
        let mut again = Command::new("unshare");
        again.args([namespace, "sh", "-c", &script]).arg(place.path()).arg(&program);
        again.args(["--exact", test, "--nocapture"]).env(PLACE, place.path());
        let Ok(output) = again.output() else { continue };
        let [stdout, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        if stdout.contains(MOUNTED) {
            assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{errors}");
            return None;
        }
    }
    eprintln!("SKIPPED: {test}: this machine lets nobody mount a file system");
    None
}

/// Writes zeros into a file, as many bytes as there is room for, at most `max`.
pub(crate) fn fill(path: &Path, max: u64) {
    let mut file = File::options().append(true).create(true).open(path).expect("makes a file");
    for _ in 0..max / PAGE_BYTES {
        match file.write_all(&[0; PAGE_BYTES as usize]) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

/// Makes a file shorter by some pages. False: it has none left.
pub(crate) fn free(path: &Path, pages: u64) -> bool {
    let file = File::options().write(true).open(path).expect("opens");
    let len = file.metadata().expect("has a length").len();
    file.set_len(len.saturating_sub(pages * PAGE_BYTES)).expect("cuts");
    len > 0
}
