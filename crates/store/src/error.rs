//! Errors, told apart by what the caller can do.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every operation on a store.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and where. Each variant says what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused. Make room or repair the disk, then make the call again. An open store
    /// needs no more than that. Its threads retry failed work after at most ten seconds, and the
    /// next write replaces a failed log. In stepped mode the next step retries.
    #[error("{path}: {source}{hint}", path = path.display(), hint = hint(source))]
    Io {
        /// The file or folder of the failed operation.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// The bytes are wrong. Restore the file from a copy: its content cannot be trusted.
    #[error("{path} is damaged at byte {offset}: {what}", path = path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage was found.
        offset: u64,
        /// What was expected there.
        what: String,
    },
    /// A file that the store needs is missing. Restore it from a copy, or let
    /// [`repair`](crate::tools::repair) continue without it: it tells what is lost.
    /// [`verify_files`](crate::tools::verify_files) tells everything that is missing.
    #[error("{path} is missing: {what}", path = path.display())]
    FileMissing {
        /// The file.
        path: PathBuf,
        /// Why the file must exist, and what is lost with it.
        what: String,
    },
    /// The folder holds files, but no store. Name another folder, or an empty one.
    #[error("{path} is not a Trommel store: it has files, but no MANIFEST", path = path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is for a new store, but has files. Name a new folder, or an empty one.
    #[error("{path} is not empty: name a folder that is new or empty", path = path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no store, and the call was not to create one.
    #[error("{path}: there is no store here", path = path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// Another version of Trommel wrote this. `trommel upgrade` rewrites older ones; a newer one
    /// needs its own version.
    #[error("{path} has format version {found}; this Trommel reads version {known}{advice}", path = path.display(), advice = of_version(*found, *known))]
    Version {
        /// The file that names the version.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this program reads.
        known: u32,
    },
    /// A part of a file needs a feature of this crate that the program was built without. Nothing
    /// is wrong with the file. Build the program with that feature.
    #[error("{path}: {what} needs the feature `{feature}`, which this program was built without: build it with that feature of the crate `trommel`", path = path.display())]
    FeatureMissing {
        /// The file.
        path: PathBuf,
        /// The part of it.
        what: Box<str>,
        /// The feature's name.
        feature: &'static str,
    },
    /// Another process, or another handle, has the store open. Close it first.
    #[error("{path} is open already, by another process, or by another handle in this one: close it first", path = path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The store was closed while this handle lived on, or its snapshot, scan or queue. Open it
    /// again.
    #[error("{path} was closed: open it again to use it", path = path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// This process is a forked child of the one that opened the store, and may not use it: both
    /// would write one log. Nothing was done. A child opens its own stores.
    #[error("{path} was opened before this process was forked: only the process that opened it can use it", path = path.display())]
    Forked {
        /// The folder.
        path: PathBuf,
    },
    /// A key is longer than a store accepts.
    #[error("a key of {len} bytes: a key has at most {max} bytes")]
    KeyTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A value is longer than a store accepts.
    #[error("a value of {len} bytes: a value has at most {max} bytes")]
    ValueTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A batch is longer than a store accepts. Nothing was written. Write it in parts.
    #[error(
        "a batch of {len} bytes: a batch has at most {max} bytes of keys and values, a few for each write included"
    )]
    BatchTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// Entries to ingest are out of order, or have a key twice. Nothing was written. Sort them, and
    /// keep one of each key.
    #[error("keys to ingest must ascend: {key} comes after {before}", key = key.escape_ascii(), before = before.escape_ascii())]
    Unsorted {
        /// The previous key.
        before: Vec<u8>,
        /// The key that does not come after it.
        key: Vec<u8>,
    },
    /// Bytes that should be packed writes are none. Nothing was written.
    #[error("packed writes are malformed at byte {offset}: {what}")]
    Malformed {
        /// Where the first write begins, or goes on, that is none.
        offset: usize,
        /// What is wrong there.
        what: String,
    },
    /// There is no key space of that name.
    #[error("there is no key space {name}; there are: {}", there.join(", "))]
    NoKeyspace {
        /// What was asked for.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// A key space of that name is there already. Nothing has changed.
    #[error("there is a key space {name} already")]
    KeyspaceExists {
        /// Its name.
        name: String,
    },
    /// The key space was dropped. Nothing was written.
    #[error("the key space {name} was dropped")]
    KeyspaceDropped {
        /// Its name; of a batch, its number.
        name: String,
    },
    /// Others have written a key since it was read, or its value has expired. Nothing was written.
    #[error("a key was written since it was read: {key}, in key space number {keyspace}", key = key.escape_ascii())]
    Conflict {
        /// The number of its key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// A transaction has locked a key that this call reads for update or writes, and kept it for
    /// longer than [`lock_timeout`](crate::options::OptionValues::lock_timeout); in stepped mode,
    /// at all. Nothing was written. Make the call again, unless the transaction is one's own: then
    /// end that first.
    #[error("{key}, in key space number {keyspace}, is locked by a transaction that has not ended in time", key = key.escape_ascii())]
    LockTimeout {
        /// The number of its key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// Who has locked a key waits, itself or by others, for a lock of the transaction that asks for
    /// it. Nothing was written. Drop the transaction, so that the others go on, and run it again.
    #[error("a deadlock: whoever has locked {key}, in key space number {keyspace}, waits for this transaction: drop it, and run it again", key = key.escape_ascii())]
    Deadlock {
        /// The number of its key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// A value that is to be added to is no number of 8 bytes. Nothing was written.
    #[error("{key} is no counter: its value has {len} bytes, and a counter 8", key = key.escape_ascii())]
    NoCounter {
        /// The key.
        key: Vec<u8>,
        /// Bytes of its value.
        len: usize,
    },
    /// Operands were merged into a key, and its key space is open without its merge operator. Open
    /// it with that one: [`Options::merge_operator`](crate::Options::merge_operator), or the
    /// options of [`Db::keyspace`](crate::Db::keyspace). Of a write: nothing was written.
    #[error("{path}: key space number {keyspace} has no merge operator here, and {key} needs it: open it with the one it was made with", path = path.display(), key = key.escape_ascii())]
    NoMergeOperator {
        /// The folder of the store.
        path: PathBuf,
        /// The number of the key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// The merge operator makes no value of a key and its operands. They are kept: mend the
    /// operator, or put or delete the key.
    #[error("{path}: no value can be made of {key}, in key space number {keyspace}: merge operator {what}", path = path.display(), key = key.escape_ascii())]
    MergeFailed {
        /// The folder of the store.
        path: PathBuf,
        /// The number of the key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Box<[u8]>,
        /// The operator's name, and why it fails.
        what: Box<str>,
    },
    /// Changes after a write cannot be told: logs that had some of them are gone, or changes were
    /// loaded past the logs. Or the store has never had that write: it is another one, or an older
    /// copy. Take a [snapshot](crate::Db::snapshot), [`sync`](crate::Db::sync), read the snapshot,
    /// and go on from its [number](crate::Snapshot::sequence). With a larger
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes) logs stay longer.
    ///
    /// Of a [`Follower`](crate::Follower): what a read needs was removed by the process that writes
    /// the store, and was not open here. [Catch up](crate::Follower::catch_up) and read anew. With
    /// a larger [`max_open_files`](crate::options::OptionValues::max_open_files) more stays open.
    #[error("{}", gone(*since, *first, file.as_deref()))]
    Gone {
        /// The write.
        since: u64,
        /// The first write that can be told.
        first: u64,
        /// The file that a follower needs. None: changes cannot be told.
        file: Option<Box<Path>>,
    },
    /// A range to delete ends before it begins. Nothing was written.
    #[error("a range to delete from {from} to {to}: it ends before it begins", from = from.escape_ascii(), to = to.escape_ascii())]
    InvertedRange {
        /// Where it begins.
        from: Vec<u8>,
        /// The key behind its end.
        to: Vec<u8>,
    },
    /// An option has an invalid value.
    #[error("option {option}: {problem}")]
    Option {
        /// The option's name.
        option: Cow<'static, str>,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Background work failed, and this call would have to wait for it. Reads continue. The store
    /// need not be reopened. The work is retried, as for [`Io`](Error::Io), and writes continue
    /// once it succeeds. So repair what the cause names (make room if the disk is full), then make
    /// the call again. Then [`Stats::failure`](crate::stats::Stats::failure) becomes None.
    #[error("writing has stopped: {cause}")]
    Stopped {
        /// The failure.
        #[source]
        cause: Box<Error>,
    },
    /// A thread panicked while it worked for the store. No acknowledged write is lost, and the work
    /// is retried.
    #[error("{who} has panicked")]
    Panicked {
        /// The thread, or its work.
        who: String,
    },
    /// The caller stopped a call whose progress it heard, or gave a wait up
    /// ([`giving_up`](crate::giving_up)). Nothing has changed.
    #[error("stopped by its caller, before it was done")]
    Cancelled,
    /// Another thread runs a flush that must come first. Make the call again.
    #[error("a flush that must come first is under way elsewhere")]
    FlushUnderWay,
}

/// Advice, where there is any.
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
    /// A number for each variant, for bindings and logs: it never changes, and no other variant
    /// will have it. Of [`Stopped`](Error::Stopped) its own, not its cause's.
    pub fn code(&self) -> u16 {
        match self {
            Error::Io { .. } => 1,
            Error::Corrupt { .. } => 2,
            Error::FileMissing { .. } => 3,
            Error::NotAStore { .. } => 4,
            Error::NotEmpty { .. } => 5,
            Error::Missing { .. } => 6,
            Error::Version { .. } => 7,
            Error::Locked { .. } => 8,
            Error::Closed { .. } => 9,
            Error::Forked { .. } => 10,
            Error::KeyTooLong { .. } => 11,
            Error::ValueTooLong { .. } => 12,
            Error::BatchTooLong { .. } => 13,
            Error::Unsorted { .. } => 14,
            Error::InvertedRange { .. } => 15,
            Error::Option { .. } => 16,
            Error::Stopped { .. } => 17,
            Error::Panicked { .. } => 18,
            Error::FlushUnderWay => 19,
            Error::Malformed { .. } => 20,
            Error::Cancelled => 21,
            Error::NoKeyspace { .. } => 22,
            Error::KeyspaceExists { .. } => 23,
            Error::KeyspaceDropped { .. } => 24,
            Error::Conflict { .. } => 25,
            Error::NoCounter { .. } => 26,
            Error::LockTimeout { .. } => 27,
            Error::Deadlock { .. } => 28,
            Error::NoMergeOperator { .. } => 29,
            Error::MergeFailed { .. } => 30,
            Error::Gone { .. } => 31,
            Error::FeatureMissing { .. } => 32,
        }
    }

    /// Whether bytes are wrong, or a file is missing: for this call, or for background work.
    /// `verify` and [`verify_files`](crate::tools::verify_files) tell all damage, and `repair`
    /// repairs it.
    pub fn tells_of_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } | Error::FileMissing { .. } => true,
            Error::Stopped { cause } => cause.tells_of_damage(),
            _ => false,
        }
    }

    /// Where bytes are wrong, and what is wrong there. None: this is another error.
    pub(crate) fn as_damage(&self) -> Option<(u64, &str)> {
        match self {
            Error::Corrupt { offset, what, .. } => Some((*offset, what)),
            _ => None,
        }
    }

    /// Background work failed with `cause`, and a call had to wait for it.
    pub(crate) fn stopped(cause: &Error) -> Error {
        Error::Stopped { cause: Box::new(cause.clone()) }
    }

    /// The error for a panic.
    pub(crate) fn panicked(who: impl Into<String>) -> Error {
        Error::Panicked { who: who.into() }
    }

    /// Wraps an error of the operating system about `path`.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        // An error of the store itself is returned as it is.
        move |source| {
            let of_system = |source| Error::Io { path, source: Arc::new(source) };
            source.downcast().unwrap_or_else(of_system)
        }
    }

    /// As [`io`](Error::io), for a file that must exist: `needed` says why.
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

    /// Whether a file was not created because its name is taken.
    pub(crate) fn is_name_taken(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    }
}

/// The numbers of such errors: of the process, and of the system.
#[cfg(unix)]
pub(crate) const EXHAUSTED: [i32; 2] = {
    use rustix::io::Errno;
    [Errno::MFILE.raw_os_error(), Errno::NFILE.raw_os_error()]
};
/// `ERROR_TOO_MANY_OPEN_FILES` and `ERROR_NO_SYSTEM_RESOURCES`.
#[cfg(windows)]
pub(crate) const EXHAUSTED: [i32; 2] = [4, 1450];

/// Whether the process or the system has run out of descriptors.
pub(crate) fn is_exhausted(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

/// What is gone, and what to do.
fn gone(since: u64, first: u64, file: Option<&Path>) -> String {
    if let Some(file) = file {
        return format!(
            "{} was removed by the process that writes the store, and was not open here: catch up, and read anew, \
             or allow more open files (`max_open_files`)",
            file.display()
        );
    }
    let why = match since < first {
        true => format!("the logs have the writes from {first} on"),
        false => format!("the next write of this store is {first}"),
    };
    format!(
        "what came after write {since} cannot be told: {why}; read a snapshot, and go on from its number"
    )
}

/// What to do about a store of another version.
fn of_version(found: u32, known: u32) -> &'static str {
    match found < known {
        true => ": `trommel upgrade` rewrites it",
        false => ": a newer Trommel wrote it",
    }
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
    fn errors_are_small_and_tell_their_source() {
        // Each result of a call has room for one.
        assert!(size_of::<Error>() <= 64, "{}", size_of::<Error>());
        let full = || Error::io("db/000003.table")(ErrorKind::StorageFull.into());
        let stopped = Error::stopped(&full());
        let source = std::error::Error::source(&stopped).expect("it has a cause");
        assert_eq!(source.to_string(), full().to_string());
        let of_system = source.source().expect("the system's").to_string();
        assert_eq!(of_system, std::io::Error::from(ErrorKind::StorageFull).to_string());
        assert_eq!((full().code(), stopped.code()), (1, 17));
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
