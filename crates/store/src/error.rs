//! Errors, distinguished by what the caller can do about them.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of an operation on a store.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and where. The documentation of each variant says what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an I/O error. Make room or repair the disk, then make the call
    /// again. An open store needs nothing else: its threads retry failed work after at most ten
    /// seconds, and the next write replaces a failed log. In stepped mode the next step retries.
    #[error("{path}: {source}{hint}", path = path.display(), hint = hint(source))]
    Io {
        /// The file or folder of the failed operation.
        path: PathBuf,
        /// The error that the operating system reported.
        source: Arc<std::io::Error>,
    },
    /// A file holds wrong bytes. Restore it from a copy: its content cannot be trusted.
    #[error("{path} is damaged at byte {offset}: {what}", path = path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// The byte at which the damage was found.
        offset: u64,
        /// What was expected there.
        what: String,
    },
    /// A file that the store needs is missing. Restore it from a copy, or let
    /// [`repair`](crate::tools::repair) continue without it; the repair reports what is lost.
    /// [`verify_files`](crate::tools::verify_files) lists all missing files.
    #[error("{path} is missing: {what}", path = path.display())]
    FileMissing {
        /// The file.
        path: PathBuf,
        /// Why the file must exist, and what is lost with it.
        what: String,
    },
    /// The folder holds files, but no store. Choose another folder, or an empty one.
    #[error("{path} is not a Trommel store: it has files, but no MANIFEST", path = path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is to become a new store, but it already has files. Choose a new folder, or an
    /// empty one.
    #[error("{path} is not empty: name a folder that is new or empty", path = path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no store, and the call was not allowed to create one.
    #[error("{path}: there is no store here", path = path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// Another version of Trommel wrote this file. `trommel upgrade` rewrites stores of older
    /// versions. A newer store needs a newer Trommel.
    #[error("{path} has format version {found}; this Trommel reads version {known}{advice}", path = path.display(), advice = of_version(*found, *known))]
    Version {
        /// The file that names the version.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this program reads.
        known: u32,
    },
    /// Part of a file needs a feature of this crate that was not compiled in. The file is intact.
    /// Build the program with that feature.
    #[error("{path}: {what} needs the feature `{feature}`, which this program was built without: build it with that feature of the crate `trommel`", path = path.display())]
    FeatureMissing {
        /// The file.
        path: PathBuf,
        /// The part of the file.
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
    /// The store was closed while this handle, snapshot, scan or queue was still alive. Open it
    /// again.
    #[error("{path} was closed: open it again to use it", path = path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// This process is a forked child of the one that opened the store. It may not use the store,
    /// since both processes would write one log. Nothing was done. A child has to open its own
    /// stores.
    #[error("{path} was opened before this process was forked: only the process that opened it can use it", path = path.display())]
    Forked {
        /// The folder.
        path: PathBuf,
    },
    /// The key is longer than a store accepts.
    #[error("a key of {len} bytes: a key has at most {max} bytes")]
    KeyTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The value is longer than a store accepts.
    #[error("a value of {len} bytes: a value has at most {max} bytes")]
    ValueTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The batch is longer than a store accepts. Nothing was written. Split it into smaller
    /// batches.
    #[error(
        "a batch of {len} bytes: a batch has at most {max} bytes of keys and values, a few for each write included"
    )]
    BatchTooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The entries to ingest are out of order, or a key occurs twice. Nothing was written. Sort the
    /// entries and keep one for each key.
    #[error("keys to ingest must ascend: {key} comes after {before}", key = key.escape_ascii(), before = before.escape_ascii())]
    Unsorted {
        /// The previous key.
        before: Vec<u8>,
        /// The key that does not come after it.
        key: Vec<u8>,
    },
    /// The bytes are not valid packed writes. Nothing was written.
    #[error("packed writes are malformed at byte {offset}: {what}")]
    Malformed {
        /// The offset at which the first invalid write begins, or at which it becomes invalid.
        offset: usize,
        /// What is wrong at that offset.
        what: String,
    },
    /// There is no key space with this name.
    #[error("there is no key space {name}; there are: {}", there.join(", "))]
    NoKeyspace {
        /// The name that was asked for.
        name: String,
        /// The names of the existing key spaces.
        there: Vec<String>,
    },
    /// A key space with this name already exists. Nothing has changed.
    #[error("there is a key space {name} already")]
    KeyspaceExists {
        /// The name.
        name: String,
    },
    /// The key space was dropped. Nothing was written.
    #[error("the key space {name} was dropped")]
    KeyspaceDropped {
        /// The name of the key space. In an error about a batch: its number.
        name: String,
    },
    /// Another writer has written the key since it was read, or the value that was read has
    /// expired. Nothing was written.
    #[error("a key was written since it was read: {key}, in key space number {keyspace}", key = key.escape_ascii())]
    Conflict {
        /// The number of its key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// A transaction holds the lock of a key that this call writes or reads for update. It held the
    /// lock for longer than [`lock_timeout`](crate::options::OptionValues::lock_timeout). In
    /// stepped mode any held lock gives this error at once. Nothing was written. Make the call
    /// again. If the lock belongs to a transaction of the caller, end that transaction first.
    #[error("{key}, in key space number {keyspace}, is locked by a transaction that has not ended in time", key = key.escape_ascii())]
    LockTimeout {
        /// The number of its key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// The lock of the key cannot be waited for: its holder waits, directly or through others, for
    /// this transaction. Nothing was written. Drop the transaction, so that the others can
    /// continue, and run it again.
    #[error("a deadlock: whoever has locked {key}, in key space number {keyspace}, waits for this transaction: drop it, and run it again", key = key.escape_ascii())]
    Deadlock {
        /// The number of its key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// The value to add to is not a counter: it does not have 8 bytes. Nothing was written.
    #[error("{key} is no counter: its value has {len} bytes, and a counter 8", key = key.escape_ascii())]
    NoCounter {
        /// The key.
        key: Vec<u8>,
        /// The length of the value, in bytes.
        len: usize,
    },
    /// The key has merge operands, but its key space is open without its merge operator. Open it
    /// with that operator: by [`Options::merge_operator`](crate::Options::merge_operator), or by
    /// the options of [`Db::keyspace`](crate::Db::keyspace). If a write gives this error, nothing
    /// was written.
    #[error("{path}: key space number {keyspace} has no merge operator here, and {key} needs it: open it with the one it was made with", path = path.display(), key = key.escape_ascii())]
    NoMergeOperator {
        /// The folder of the store.
        path: PathBuf,
        /// The number of the key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Vec<u8>,
    },
    /// The merge operator could not combine a key's value and operands. The operands are kept. Fix
    /// the operator, or put or delete the key.
    #[error("{path}: no value can be made of {key}, in key space number {keyspace}: merge operator {what}", path = path.display(), key = key.escape_ascii())]
    MergeFailed {
        /// The folder of the store.
        path: PathBuf,
        /// The number of the key space; 0 is the default one.
        keyspace: u32,
        /// The key.
        key: Box<[u8]>,
        /// The operator's name, and why it failed.
        what: Box<str>,
    },
    /// The changes after this write cannot be delivered. Either logs that held some of them are
    /// gone, or a bulk load bypassed the logs. Or the store never had that write: it is another
    /// store, or an older copy. To start anew, take a [snapshot](crate::Db::snapshot),
    /// [`sync`](crate::Db::sync), read the snapshot, and continue from its [sequence
    /// number](crate::Snapshot::sequence). A larger
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes) keeps logs for longer.
    ///
    /// From a [`Follower`](crate::Follower): the process that writes the store has removed a file
    /// that a read needs, and this process did not have it open. [Catch
    /// up](crate::Follower::catch_up) and read again. With a larger
    /// [`max_open_files`](crate::options::OptionValues::max_open_files) more files stay open.
    #[error("{}", gone(*since, *first, file.as_deref()))]
    Gone {
        /// The sequence number after which changes were requested.
        since: u64,
        /// The sequence number of the first write that can be delivered.
        first: u64,
        /// The file that a follower needs. None: the error is about a change feed.
        file: Option<Box<Path>>,
    },
    /// The range to delete ends before it begins. Nothing was written.
    #[error("a range to delete from {from} to {to}: it ends before it begins", from = from.escape_ascii(), to = to.escape_ascii())]
    InvertedRange {
        /// The first key of the range.
        from: Vec<u8>,
        /// The end of the range, exclusive.
        to: Vec<u8>,
    },
    /// An option has an invalid value.
    #[error("option {option}: {problem}")]
    Option {
        /// The option's name.
        option: Cow<'static, str>,
        /// What is wrong with the value, and which values are valid.
        problem: String,
    },
    /// Background work failed, and this call would have to wait for it. Reads continue. The store
    /// need not be reopened: the work is retried as for [`Io`](Error::Io), and writes continue once
    /// it succeeds. Fix what the cause names (for a full disk, make room), then make the call
    /// again. Once the work has succeeded, [`Stats::failure`](crate::stats::Stats::failure) is
    /// None.
    #[error("writing has stopped: {cause}")]
    Stopped {
        /// The failure of the background work.
        #[source]
        cause: Box<Error>,
    },
    /// A thread panicked while working for the store. No acknowledged write is lost, and the work
    /// is retried.
    #[error("{who} has panicked")]
    Panicked {
        /// The thread that panicked, or its work.
        who: String,
    },
    /// The caller cancelled the call: through its progress listener, or by [giving
    /// up](crate::giving_up) a wait or a scan. Nothing has changed.
    #[error("stopped by its caller, before it was done")]
    Cancelled,
    /// Another thread is running a flush that must finish first. Make the call again.
    #[error("a flush that must come first is under way elsewhere")]
    FlushUnderWay,
}

/// Returns advice for the user; empty if there is none.
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
    /// Returns a stable number for the variant, for language bindings and logs. It never changes,
    /// and is never reused for another variant. [`Stopped`](Error::Stopped) has a number of its
    /// own, whatever its cause.
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

    /// Whether the error reports damage: wrong bytes or a missing file, in this call or in
    /// background work. `verify` and [`verify_files`](crate::tools::verify_files) find all damage,
    /// and `repair` repairs it.
    pub fn tells_of_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } | Error::FileMissing { .. } => true,
            Error::Stopped { cause } => cause.tells_of_damage(),
            _ => false,
        }
    }

    /// Returns the offset and the description of wrong bytes. None: this is another error.
    pub(crate) fn as_damage(&self) -> Option<(u64, &str)> {
        match self {
            Error::Corrupt { offset, what, .. } => Some((*offset, what)),
            _ => None,
        }
    }

    /// Returns the error of a call that had to wait for background work which failed with `cause`.
    pub(crate) fn stopped(cause: &Error) -> Error {
        Error::Stopped { cause: Box::new(cause.clone()) }
    }

    /// Returns the error for a panic of `who`.
    pub(crate) fn panicked(who: impl Into<String>) -> Error {
        Error::Panicked { who: who.into() }
    }

    /// Returns a function that wraps an error of the operating system about `path`.
    /// The path is copied only if there is an error.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        // An error of the store that was wrapped in an I/O error is unwrapped.
        move |source| {
            let of_system = |source| Error::Io { path: path.into(), source: Arc::new(source) };
            source.downcast().unwrap_or_else(of_system)
        }
    }

    /// As [`io`](Error::io), for a file that must exist; `needed` says why it must.
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

    /// Returns the error for damage in `path` at `offset`.
    pub(crate) fn corrupt(path: impl Into<PathBuf>, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { path: path.into(), offset, what: what.into() }
    }

    /// Whether a file could not be created because its name is taken.
    pub(crate) fn is_name_taken(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    }
}

/// Error codes of the operating system: out of descriptors in the process, and in the system.
#[cfg(unix)]
pub(crate) const EXHAUSTED: [i32; 2] = {
    use rustix::io::Errno;
    [Errno::MFILE.raw_os_error(), Errno::NFILE.raw_os_error()]
};
/// `ERROR_TOO_MANY_OPEN_FILES` and `ERROR_NO_SYSTEM_RESOURCES`.
#[cfg(windows)]
pub(crate) const EXHAUSTED: [i32; 2] = [4, 1450];

/// Whether the process or the system has run out of file descriptors.
pub(crate) fn is_exhausted(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

/// Returns the message for [`Error::Gone`]: what is gone, and what to do.
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

/// Returns advice for a store of another version.
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
        // Every call's result reserves space for an error.
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
            for message in [full(), stopped].map(|error| error.to_string()) {
                assert_eq!(message.matches("make room").count(), 1, "{message}");
                assert!(message.ends_with("goes on by itself"), "{message}");
            }
        }
        let refused = Error::io("db")(ErrorKind::PermissionDenied.into()).to_string();
        assert!(!refused.contains("make room"), "{refused}");
    }

    #[test] // It spoke of processes alone.
    fn a_store_that_is_open_may_be_so_in_this_process() {
        let message = Error::Locked { path: "db".into() }.to_string();
        assert!(message.contains("another process, or by another handle in this one"), "{message}");
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
