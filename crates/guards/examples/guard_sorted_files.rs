//! Guards plain sorted files, as another storage engine would: probes a small filter first, and
//! opens the file only if it says "maybe".
//! ```text
//! cargo run -p trommel-guards --example guard_sorted_files
//!
//! write    lines in order ──> words-0.txt                 a builder gets every line, too;
//!                         └─> words-0.filter              its bytes go to a second file
//! query    filter: may the file have this key, or a key of this range?
//!          no: it has none. maybe: open it and look
//! ```
//! A filter's errors are one-sided: "no" is proof, "maybe" proves nothing. So filters never change
//! an answer; they only save opening files. A filter knows nothing of files: it takes keys and
//! gives bytes, it takes bytes and gives answers. Keys are any bytes, ordered bytewise.
//!
//! Whoever stores a filter's bytes must also store a checksum of them. A filter can tell that bytes
//! are not its own, but not every flipped bit. A filter that cannot be read is left out, and its
//! file is opened for every query.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use trommel_filters::{AlignedBytes, FilterOptions, KeyRange, read_filter};
use trommel_guards::kinds;

/// A sorted file with a key per line, and its filter if that could be read.
struct Guarded {
    path: PathBuf,
    filter: Option<Box<dyn trommel_filters::AnyFilter>>,
}

/// Writes the file and, next to it, its filter. Requires: ascending keys without line breaks.
fn write_guarded(path: &Path, keys: &[String]) -> io::Result<()> {
    // Any kind will do; this one also answers ranges. More bits per key: fewer files opened in
    // vain.
    let mut builder = FilterOptions::new(kinds::GAP, 16.0).builder();
    let mut file = BufWriter::new(File::create(path)?);
    for key in keys {
        builder.add(key.as_bytes()).map_err(io::Error::other)?;
        writeln!(file, "{key}")?;
    }
    file.flush()?;
    fs::write(path.with_extension("filter"), builder.finish())
}

impl Guarded {
    fn open(path: PathBuf) -> io::Result<Guarded> {
        // The bytes name the kind of filter. Damaged bytes are an error: then there is no filter.
        let filter = read_filter(
            AlignedBytes::from_slice(&fs::read(path.with_extension("filter"))?),
            &kinds::TABLE_FILTERS,
        )
        .ok();
        Ok(Guarded { path, filter })
    }

    fn may_contain(&self, key: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(key.as_bytes()))
    }

    fn may_overlap(&self, keys: &RangeInclusive<&str>) -> bool {
        let range = KeyRange::new(keys.start().as_bytes(), Some(keys.end().as_bytes()));
        // None: the bounds are out of order, so the range is empty.
        let Some(range) = range else { return false };
        self.filter.as_ref().is_none_or(|filter| filter.may_overlap(&range))
    }

    /// Returns the file's first key that `wanted` accepts.
    fn look(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Option<String>> {
        let mut lines = BufReader::new(File::open(&self.path)?).lines();
        lines.find(|line| line.as_ref().map_or(true, |key| wanted(key))).transpose()
    }
}

/// Queries all files, and prints which of them were opened.
fn ask(
    what: &str,
    files: &[Guarded],
    may_have: impl Fn(&Guarded) -> bool,
    wanted: impl Fn(&str) -> bool,
) -> io::Result<()> {
    let (mut opened, mut found) = (0, None);
    for file in files.iter().filter(|file| may_have(file)) {
        opened += 1;
        found = file.look(&wanted)?;
        if found.is_some() {
            break;
        }
    }
    let answer = found.map_or("nothing".to_owned(), |key| format!("'{key}'"));
    println!("{what}: {answer}, {opened} of {} files opened", files.len());
    Ok(())
}

fn main() -> io::Result<()> {
    const FILES: usize = 8;
    let folder = std::env::temp_dir().join(format!("guard-sorted-files-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for file in 0..FILES {
        // Files have different users with similar names. Their key ranges overlap, so bounds alone
        // would not help.
        let keys: Vec<String> =
            (0..5000).map(|user| format!("user{:08}", (user * FILES + file) * 37)).collect();
        let path = folder.join(format!("words-{file}.txt"));
        write_guarded(&path, &keys)?;
        files.push(Guarded::open(path)?);
    }
    let bytes: usize = files.iter().flat_map(|file| &file.filter).map(|it| it.size_bytes()).sum();
    println!("{FILES} files of 5000 keys, {bytes} bytes of filters");

    for key in ["user00000370", "user00000371", "user00740000"] {
        ask(key, &files, |file| file.may_contain(key), |line| line == key)?;
    }
    for (from, to) in [("user00000371", "user00000380"), ("user00000371", "user00000410")] {
        let range = from..=to;
        let within = |line: &str| range.contains(&line);
        ask(&format!("{from} to {to}"), &files, |file| file.may_overlap(&range), within)?;
    }
    fs::remove_dir_all(&folder)
}
