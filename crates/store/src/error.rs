//! What can go wrong, told apart by what the caller can do.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of everything that touches the store.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and so what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused. Make room or mend the disk, then make the call again. An open store needs
    /// no more than that. Its threads try again what has failed, at the latest after ten seconds,
    /// and the next write leaves a log that has failed for a new one. In stepped mode the next step
    /// tries.
    #[error("{path}: {source}{hint}", path = path.display(), hint = hint(source))]
    Io {
        /// The file or folder that was asked for.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// The bytes are wrong. Restore the file from a copy; what it held cannot be trusted.
    #[error("{path} is damaged at byte {offset}: {what}", path = path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage was seen.
        offset: u64,
        /// What was expected there.
        what: String,
    },
    /// A file that the store needs is not there. Restore it from a copy; or have
    /// [`repair`](crate::repair) go on without it: it tells what is lost with it.
    /// [`verify_files`](crate::verify_files) tells all that is missing.
    #[error("{path} is missing: {what}", path = path.display())]
    FileMissing {
        /// The file.
        path: PathBuf,
        /// Who says that it must be there, and what is lost with it.
        what: String,
    },
    /// The folder holds files, but no store. Name another folder, or an empty one.
    #[error("{path} is not a Trommel store: it has files, but no MANIFEST", path = path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is to take a new store, and has files. Name a new folder, or an empty one.
    #[error("{path} is not empty: name a folder that is new or empty", path = path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no store, and none was to be made.
    #[error("{path}: there is no store here", path = path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// Another version of Trommel wrote this. Use that version, or load the data anew.
    #[error("{path} has format version {found}; this Trommel reads version {known}", path = path.display())]
    Version {
        /// The file that names the version.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this program reads.
        known: u32,
    },
    /// Another process, or another handle, has the store open. Close it first.
    #[error("{path} is open already, by another process, or by another handle in this one: close it first", path = path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The store was closed, while this handle, or a snapshot, scan or queue of it, lived on. Open
    /// it again.
    #[error("{path} was closed: open it again to use it", path = path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// This process is a child of the one that has opened the store, and may not use it: both would
    /// write one log. Nothing was done. A child opens stores of its own.
    #[error("{path} was opened before this process was forked: only the process that opened it can use it", path = path.display())]
    Forked {
        /// The folder.
        path: PathBuf,
    },
    /// A key is longer than a store takes.
    #[error("a key of {len} bytes: a key has at most {max} bytes")]
    KeyTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A value is longer than a store takes.
    #[error("a value of {len} bytes: a value has at most {max} bytes")]
    ValueTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A batch is longer than a store takes. Nothing was written. Write it in parts.
    #[error(
        "a batch of {len} bytes: a batch has at most {max} bytes of keys and values, a few for each write included"
    )]
    BatchTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// Entries to ingest are not in order, or have a key twice. Nothing was written. Sort them, and
    /// keep one of each key.
    #[error("keys to ingest must ascend: {key} comes after {before}", key = key.escape_ascii(), before = before.escape_ascii())]
    Unsorted {
        /// The key before.
        before: Vec<u8>,
        /// The key that is not behind it.
        key: Vec<u8>,
    },
    /// A range to delete ends before it begins. Nothing was written.
    #[error("a range to delete from {from} to {to}: it ends before it begins", from = from.escape_ascii(), to = to.escape_ascii())]
    InvertedRange {
        /// Where it begins.
        from: Vec<u8>,
        /// The first key behind it.
        to: Vec<u8>,
    },
    /// An option has a value that makes no sense.
    #[error("option {option}: {problem}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Background work failed, and this call would have to wait for it; reads go on. The store need
    /// not be opened again: the work is tried again, as told for [`Io`](Error::Io), and writes go
    /// on once it succeeds. So mend what the cause names (make room, where the disk is full), then
    /// make the call again. [`Stats::failure`](crate::Stats::failure) is None when all goes on.
    #[error("writing has stopped: {cause}")]
    Stopped {
        /// The failure.
        #[source]
        cause: Box<Error>,
    },
    /// A thread panicked while it worked for the store. Nothing is lost. The work is tried again.
    #[error("{who} has panicked")]
    Panicked {
        /// The work that the thread did.
        who: String,
    },
    /// Another thread is at a flush that must come first. Make the call again.
    #[error("a flush that must come first is under way elsewhere")]
    FlushUnderWay,
}

/// What would help, where that is known.
fn hint(source: &std::io::Error) -> &'static str {
    if is_exhausted(source) {
        return "; let the process have more (`ulimit -n`), or the store fewer (`max_open_files`)";
    }
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; make room, and try again: a store that is open goes on by itself"
        }
        _ => "",
    }
}

impl Error {
    /// Whether bytes are wrong, or a file is gone: here, or where background work met it. `verify`
    /// and [`verify_files`](crate::verify_files) tell all that is, and `repair` mends.
    pub fn tells_of_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } | Error::FileMissing { .. } => true,
            Error::Stopped { cause } => cause.tells_of_damage(),
            _ => false,
        }
    }

    /// Where bytes are wrong, and what is wrong there. None: the error is another.
    pub(crate) fn as_damage(&self) -> Option<(u64, &str)> {
        match self {
            Error::Corrupt { offset, what, .. } => Some((*offset, what)),
            _ => None,
        }
    }

    /// Background work failed with this error, and a call had to wait for it.
    pub(crate) fn stopped(cause: &Error) -> Error {
        Error::Stopped { cause: Box::new(cause.clone()) }
    }

    /// Someone panicked.
    pub(crate) fn panicked(who: impl Into<String>) -> Error {
        Error::Panicked { who: who.into() }
    }

    /// Wraps what the operating system said about `path`.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        // What is the store's own error is told as such.
        move |source| {
            let of_system = |source| Error::Io { path, source: Arc::new(source) };
            source.downcast().unwrap_or_else(of_system)
        }
    }

    /// As [`io`](Error::io), of a file that must be there: `needed` says why.
    pub(crate) fn needed(
        path: impl Into<PathBuf>,
        needed: impl Into<String>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let (path, what) = (path.into(), needed.into());
        move |source| match source.kind() {
            ErrorKind::NotFound => Error::FileMissing { path, what },
            _ => Error::Io { path, source: Arc::new(source) },
        }
    }

    /// Damage in `path` at `offset`.
    pub(crate) fn corrupt(path: impl Into<PathBuf>, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { path: path.into(), offset, what: what.into() }
    }

    /// Whether a file was not made since something else has its name.
    pub(crate) fn is_name_taken(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    }
}

/// Whether a descriptor was lacking.
pub(crate) fn is_exhausted(error: &std::io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_that_stopped_background_work_is_damage() {
        let damage = || Error::corrupt("db/000003.table", 7, "a checksum");
        assert!(damage().tells_of_damage() && Error::stopped(&damage()).tells_of_damage());
        assert_eq!(damage().to_string(), "db/000003.table is damaged at byte 7: a checksum");
        let full = Error::io("db/000003.table")(ErrorKind::StorageFull.into());
        assert!(!full.tells_of_damage());
        assert!(!Error::stopped(&full).tells_of_damage());
    }

    #[test]
    fn a_full_disk_is_told_with_what_helps() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let full = || Error::io("db/000003.table")(kind.into());
            let stopped = Error::stopped(&full());
            for told in [full(), stopped].map(|error| error.to_string()) {
                assert_eq!(told.matches("make room").count(), 1, "{told}");
                assert!(told.ends_with("goes on by itself"), "{told}");
            }
        }
        let refused = Error::io("db")(ErrorKind::PermissionDenied.into()).to_string();
        assert!(!refused.contains("make room"), "{refused}");
    }

    #[test] // It spoke of processes alone.
    fn a_store_that_is_open_may_be_so_in_this_process() {
        let told = Error::Locked { path: "db".into() }.to_string();
        assert!(told.contains("another process, or by another handle in this one"), "{told}");
    }

    #[test]
    fn a_file_that_must_be_there_and_is_not_is_told_by_its_name() {
        let of = |kind: ErrorKind| {
            Error::needed("db/000003.table", "the manifest names it")(kind.into())
        };
        let gone = of(ErrorKind::NotFound);
        assert_eq!(gone.to_string(), "db/000003.table is missing: the manifest names it");
        assert!(gone.tells_of_damage() && Error::stopped(&gone).tells_of_damage());
        assert!(matches!(of(ErrorKind::PermissionDenied), Error::Io { .. }));
    }
}
