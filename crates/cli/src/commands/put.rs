//! `put`: sets the value of a key.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use trommel::GuardKind;

use crate::args::key::KeyArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::read;
use crate::process::failure::{Failure, Outcome, Status};

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// The value.
    #[arg(required_unless_present = "file")]
    value: Option<String>,
    /// The file that has the value, of up to 1 TiB: it is never in memory as a whole.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["value", "ttl"])]
    file: Option<PathBuf>,
    /// How long the key has this value, like 30s, 15m, 12h or 7d; then it has none. [default: for
    /// ever]
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    ttl: Option<Duration>,
}

pub(crate) fn run(arguments: &PutArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let hex = arguments.key.hex;
    let key = read(&arguments.key.key, hex)?;
    let bytes = match &arguments.file {
        Some(file) => put_file(arguments, &key, file)?,
        None => {
            let value = read(arguments.value.as_deref().unwrap_or_default(), hex)?;
            let db = arguments.key.store.open_or_create(GuardKind::Open)?;
            match arguments.ttl {
                Some(ttl) => db.put_ttl(&key, &value, ttl)?,
                None => db.put(&key, &value)?,
            }
            db.close()?;
            value.len() as u64
        }
    };
    if json {
        writeln!(out, "{}", json!({ "key": json_bytes(&key, hex), "value_bytes": bytes }))?;
    }
    Ok(Status::Fine)
}

/// Sets the value of a key to the contents of a file. Returns their length in bytes.
fn put_file(arguments: &PutArgs, key: &[u8], path: &Path) -> Result<u64, Failure> {
    let of_file = |error: io::Error| Failure::Data(format!("{}: {error}", path.display()));
    let file = FixedFile::open(path).map_err(of_file)?;
    let bytes = file.bytes_left;
    let db = arguments.key.store.open_or_create(GuardKind::Open)?;
    db.put_reader(key, bytes, file)?;
    db.close()?;
    Ok(bytes)
}

/// A file of known length. Reading its end fails if there is more by then.
struct FixedFile {
    file: File,
    bytes_left: u64,
    path: PathBuf,
}

impl FixedFile {
    /// Opens a file. What has no length is copied into a temporary file: a pipe, or a file of
    /// /proc, which seems empty.
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        let mut bytes_left = about.len();
        if !about.is_file() || bytes_left == 0 {
            let mut copy = tempfile::tempfile()?;
            bytes_left = io::copy(&mut file, &mut copy)?;
            copy.rewind()?;
            file = copy;
        }
        Ok(FixedFile { file, bytes_left, path: path.into() })
    }
}

impl Read for FixedFile {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(room)?;
        self.bytes_left = self.bytes_left.saturating_sub(read as u64);
        if self.bytes_left == 0 && self.file.read(&mut [0])? > 0 {
            let grown = format!("{} has grown while it was read", self.path.display());
            return Err(io::Error::other(grown));
        }
        Ok(read)
    }
}

/// Parses a time like 500ms, 30s, 15m, 12h or 7d.
fn ttl(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("a time like 500ms, 30s, 15m, 12h or 7d".into()),
    };
    let number: u64 = number.parse().map_err(|_| "a time like 30s or 7d".to_string())?;
    let all = number.checked_mul(milliseconds).ok_or("more time than there can be")?;
    Ok(Duration::from_millis(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // The value was what the file began with, and nobody was told.
    fn a_file_that_grows_while_it_is_read_is_no_value() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("log");
        std::fs::write(&path, "one\n").expect("written");
        let read = |file: &mut FixedFile| {
            let mut value = vec![0; file.bytes_left as usize];
            file.read_exact(&mut value).map(|()| value)
        };
        assert_eq!(read(&mut FixedFile::open(&path).expect("opens")).expect("reads"), b"one\n");
        let mut file = FixedFile::open(&path).expect("opens");
        std::fs::write(&path, "one\ntwo\n").expect("written");
        let error = read(&mut file).expect_err("it has grown").to_string();
        assert!(error.contains("log has grown while"), "{error}");
    }

    #[test]
    fn times_have_units() {
        assert_eq!(ttl("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(
            (ttl("30s"), ttl("2d")),
            (Ok(Duration::from_secs(30)), Ok(Duration::from_secs(172_800)))
        );
        for wrong in ["30", "s", "-1s", "1w", "99999999999999999999s", "18446744073709551615d"] {
            assert!(ttl(wrong).is_err(), "{wrong}");
        }
    }
}
