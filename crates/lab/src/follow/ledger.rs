//! The ledger of successful attempts: a file that the writer appends to and followers read.
//! ```text
//! number u64 | attempt u64 | number | attempt | ...      one for each attempt that went well
//! ```
//! Invariant: a record is appended after its write, and none is missing. If a killed process did
//! not append its last record, the next writer does.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const NAME: &str = "ledger";
/// The file that tells all processes to end.
pub(super) const END: &str = "end";
/// Replaces the number of the attempt in the last record, which says that the store is closed.
pub(super) const LAST_OF_ALL: u64 = 0;
const RECORD_BYTES: usize = 16;

/// A successful attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// The sequence number of its last write.
    pub(super) sequence: u64,
    pub(super) attempt: u64,
}

/// A reader of the ledger, and how far it has read.
pub(super) struct Ledger {
    path: PathBuf,
    read: u64,
}

impl Ledger {
    pub(super) fn open(folder: &Path) -> Ledger {
        Ledger { path: folder.join(NAME), read: 0 }
    }

    /// Returns the records appended since the last call.
    pub(super) fn next(&mut self) -> Vec<Done> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut bytes)
        });
        if read.is_err() {
            return Vec::new();
        }
        let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
        self.read += (records.len() * RECORD_BYTES) as u64;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let done = |record: &[u8; RECORD_BYTES]| Done {
            sequence: number(&record[..8]),
            attempt: number(&record[8..]),
        };
        records.iter().map(done).collect()
    }

    /// Returns all records.
    pub(super) fn all(mut self) -> Vec<Done> {
        self.next()
    }
}

/// The ledger, open for appending.
pub(super) struct Appender(File);

impl Appender {
    pub(super) fn open(folder: &Path) -> std::io::Result<Appender> {
        let file = File::options().create(true).append(true).open(folder.join(NAME))?;
        Ok(Appender(file))
    }

    pub(super) fn add(&mut self, done: Done) -> std::io::Result<()> {
        let mut record = done.sequence.to_le_bytes().to_vec();
        record.extend_from_slice(&done.attempt.to_le_bytes());
        self.0.write_all(&record)
    }
}
