//! Reads files of keys.
//! ```text
//! lines     one key each; empty ones are none
//! u64le     numbers of eight bytes, little-endian
//! SOSD      count (u64) | numbers of eight bytes (_uint32 in the name: of four), little-endian
//! ```
//! Invariant: a malformed file is an error that says what is wrong. Numbers become keys of eight
//! bytes.

use std::path::Path;

use crate::error::{LabError, Result};
use crate::keys::dist::FileFormat;
use crate::keys::key_list::{KeyList, SortedKeys};

/// The end of the names of SOSD's files with four-byte numbers.
const SOSD_U32: &str = "_uint32";
const SOSD_HEAD_BYTES: usize = 8;

/// Returns the distinct keys of a file, and how many the file has.
pub(crate) fn read_file(path: &Path, format: FileFormat) -> Result<(SortedKeys, usize)> {
    let wrong = |problem: String| LabError::KeyFile { path: path.to_path_buf(), problem };
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    if bytes.is_empty() {
        return Err(wrong("the file is empty".into()));
    }
    match format {
        FileFormat::U64le if bytes.len() % 8 != 0 => {
            let problem = format!("{} bytes are not a whole number of 8-byte keys", bytes.len());
            Err(wrong(problem))
        }
        FileFormat::U64le => Ok(of_numbers(numbers_of_8(&bytes))),
        FileFormat::Lines => lines(&bytes).map_err(wrong),
    }
}

/// Returns the distinct keys of a binary file of SOSD, and how many the file has.
pub(crate) fn read_sosd(path: &Path) -> Result<(SortedKeys, usize)> {
    let wrong = |problem: String| LabError::KeyFile { path: path.to_path_buf(), problem };
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let Some((head, body)) = bytes.split_first_chunk::<SOSD_HEAD_BYTES>() else {
        let problem = format!("{} bytes: a file of SOSD begins with a count of eight", bytes.len());
        return Err(wrong(problem));
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let key_bytes: usize = if name.ends_with(SOSD_U32) { 4 } else { 8 };
    let count = u64::from_le_bytes(*head);
    if count.checked_mul(key_bytes as u64) != Some(body.len() as u64) {
        let problem = format!(
            "it should have {count} keys of {key_bytes} bytes, as its first eight bytes and its name say, but has {} bytes for them \
             (names of files with keys of four bytes end in {SOSD_U32})",
            body.len()
        );
        return Err(wrong(problem));
    }
    if count == 0 {
        return Err(wrong("it has no keys".into()));
    }
    let numbers = match key_bytes {
        4 => body.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word).into()).collect(),
        _ => numbers_of_8(body),
    };
    Ok(of_numbers(numbers))
}

/// Requires: a whole number of eight-byte numbers.
fn numbers_of_8(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn of_numbers(numbers: Vec<u64>) -> (SortedKeys, usize) {
    let count = numbers.len();
    (SortedKeys::from_integers(numbers), count)
}

/// Reads the lines that are not empty.
fn lines(bytes: &[u8]) -> std::result::Result<(SortedKeys, usize), String> {
    let mut list = KeyList::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&0) {
            return Err(format!(
                "line {number} has a zero byte: this is no text (try --file-format u64le)"
            ));
        }
        if line.len() > trommel::limits::KEY_BYTES_MAX {
            let max = trommel::limits::KEY_BYTES_MAX;
            return Err(format!("line {number} has {} bytes: a key has at most {max}", line.len()));
        }
        if !line.is_empty() {
            list.push(line);
        }
    }
    Ok((SortedKeys::from_list(&list), list.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with this name and content as a file of SOSD.
    fn sosd(name: &str, content: &[u8]) -> Result<(SortedKeys, usize)> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        read_sosd(&path)
    }

    #[test]
    fn files_of_sosd_are_read_in_both_widths() {
        let long: Vec<u8> = [3u64, 1 << 40, 7, 7].into_iter().flat_map(u64::to_le_bytes).collect();
        let (keys, read) = sosd("books_200M_uint64", &long).expect("three keys");
        assert!(keys.iter().eq([7u64, 1 << 40].map(u64::to_be_bytes).iter()));
        assert_eq!(read, 3, "one of them twice");
        let short: Vec<u8> = [2u32, 0, 9, 5].into_iter().flat_map(u32::to_le_bytes).collect();
        let (keys, read) = sosd("books_200M_uint32", &short).expect("two keys");
        assert!(keys.iter().eq([5u64, 9].map(u64::to_be_bytes).iter()) && read == 2);
    }

    #[test]
    fn bad_files_of_sosd_say_what_is_wrong() {
        let numbers: Vec<u8> = [2u64, 5, 9].into_iter().flat_map(u64::to_le_bytes).collect();
        let endless = [&u64::MAX.to_le_bytes()[..], &[0; 16]].concat();
        for (name, content, word) in [
            ("empty", &[][..], "0 bytes"),
            ("short", &numbers[..7], "7 bytes"),
            ("cut", &numbers[..23], "2 keys of 8 bytes"),
            ("long", &[&numbers[..], &[0]].concat(), "17 bytes for them"),
            ("wrong_uint32", &numbers, "2 keys of 4 bytes"),
            ("endless", &endless, "18446744073709551615 keys"),
            ("none", &[0; 8], "no keys"),
        ] {
            let message = sosd(name, content).expect_err(word).to_string();
            assert!(message.contains(word) && message.contains(name), "{message}");
        }
        assert!(read_sosd(Path::new("/nowhere/keys")).is_err());
    }
}
