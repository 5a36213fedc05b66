//! Runs the command as a user would.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A temporary folder to work in.
pub(crate) struct Workplace {
    folder: tempfile::TempDir,
}

/// How a command ended, and what it said.
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Workplace { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), bytes).expect("written");
        self.path(name)
    }

    /// Runs `trommel` with arguments that are split at spaces, in the temporary folder.
    pub(crate) fn run(&self, arguments: &str) -> Ended {
        self.run_with_input(arguments, b"")
    }

    pub(crate) fn run_with_input(&self, arguments: &str, input: &[u8]) -> Ended {
        let mut child = self.command(arguments).spawn().expect("started");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("ended");
        // A command that stops early closes its input: that is no failure of the test.
        let _ = writer.join().expect("the writer does not panic");
        Ended::from(output)
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trommel"));
        command.args(arguments.split_whitespace()).current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The largest file of a store whose name ends so.
    pub(crate) fn largest_file(&self, store: &str, ending: &str) -> PathBuf {
        let files = std::fs::read_dir(self.path(store)).expect("a folder");
        let files = files.map(|file| file.expect("a file").path());
        let size = |path: &PathBuf| path.metadata().map_or(0, |about| about.len());
        let ending_so = files.filter(|path| path.to_string_lossy().ends_with(ending));
        ending_so.max_by_key(size).expect("a file with that ending")
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Ended {
            status: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Ended {
    /// Asserts the exit status; gives standard output.
    #[track_caller]
    pub(crate) fn with_status(self, status: i32) -> String {
        assert_eq!(self.status, status, "out: {}\nerr: {}", self.out, self.err);
        self.out
    }

    /// Asserts the exit status, and that standard error has all the words and standard output
    /// nothing.
    #[track_caller]
    pub(crate) fn fails(self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "out: {}\nerr: {}", self.out, self.err);
        let missing: Vec<_> = words.iter().filter(|word| !self.err.contains(**word)).collect();
        assert!(missing.is_empty(), "{missing:?} are not in: {}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        assert_eq!(self.out, "");
    }

    /// Asserts that standard output is one JSON value; gives it.
    #[track_caller]
    pub(crate) fn json(self, status: i32) -> serde_json::Value {
        assert_eq!(self.status, status, "out: {}\nerr: {}", self.out, self.err);
        serde_json::from_str(&self.out).expect("one JSON value and nothing else")
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never comes: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Flips one bit of a file.
pub(crate) fn flip_bit(path: &Path, byte: usize) {
    let mut bytes = std::fs::read(path).expect("read");
    bytes[byte] ^= 0x10;
    std::fs::write(path, bytes).expect("written");
}

/// Of the smallest text of a picture (SVG), in pixels, where it fills a window of 500 pixels that
/// has margins.
pub(crate) fn smallest_text(svg: &str) -> f64 {
    const ROOM: f64 = 480.0;
    let numbers = |name: &str| -> Vec<f64> {
        let values = svg.split(name).skip(1).filter_map(|rest| rest.split('"').next());
        values.filter_map(|value| value.parse().ok()).collect()
    };
    let sizes = numbers(" font-size=\"");
    assert!(!sizes.is_empty(), "texts have a size");
    sizes.into_iter().fold(f64::INFINITY, f64::min) * ROOM / numbers(" width=\"")[0]
}
