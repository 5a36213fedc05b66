//! Errors in C: a code, a message, and the key that the error is about.
//! ```text
//! store::Error --code()--> 1 ..= 32       the library's own: from 1000 on
//! ```
//! Invariant: a code never changes its meaning.

use std::ffi::{CString, c_char, c_void};
use std::ptr::null;

use store::Error;

use crate::border::out_if;
use crate::text::c_string;

/// No error.
pub const TROMMEL_OK: u32 = 0;
/// The disk failed. Make room or repair the disk, then repeat the call.
pub const TROMMEL_IO: u32 = 1;
/// Bytes of a file are corrupt. Restore the file, or repair the store.
pub const TROMMEL_CORRUPT: u32 = 2;
/// A file that the store needs is missing.
pub const TROMMEL_FILE_MISSING: u32 = 3;
/// The folder holds files, but no store.
pub const TROMMEL_NOT_A_STORE: u32 = 4;
/// The folder is for a new store, but has files.
pub const TROMMEL_NOT_EMPTY: u32 = 5;
/// The folder holds no store, and the call must not create one.
pub const TROMMEL_MISSING: u32 = 6;
/// The store was written by an incompatible version of Trommel.
pub const TROMMEL_VERSION: u32 = 7;
/// The store is open already, in another process or in this one.
pub const TROMMEL_LOCKED: u32 = 8;
/// The store was closed.
pub const TROMMEL_CLOSED: u32 = 9;
/// This process is a forked child of the process that opened the store.
pub const TROMMEL_FORKED: u32 = 10;
/// A key is too long.
pub const TROMMEL_KEY_TOO_LONG: u32 = 11;
/// A value is too long.
pub const TROMMEL_VALUE_TOO_LONG: u32 = 12;
/// A batch is too long.
pub const TROMMEL_BATCH_TOO_LONG: u32 = 13;
/// Keys that must ascend do not ascend.
pub const TROMMEL_UNSORTED: u32 = 14;
/// A range to delete ends before it begins.
pub const TROMMEL_INVERTED_RANGE: u32 = 15;
/// An option or a name is invalid.
pub const TROMMEL_OPTION: u32 = 16;
/// Background work failed, and writes wait for it. The store retries it.
pub const TROMMEL_STOPPED: u32 = 17;
/// A thread of the store panicked. No acknowledged write is lost.
pub const TROMMEL_PANICKED: u32 = 18;
/// A flush that must come first is running. Repeat the call.
pub const TROMMEL_FLUSH_UNDER_WAY: u32 = 19;
/// Packed writes are malformed.
pub const TROMMEL_MALFORMED: u32 = 20;
/// The caller stopped the call.
pub const TROMMEL_CANCELLED: u32 = 21;
/// There is no key space with this name.
pub const TROMMEL_NO_KEYSPACE: u32 = 22;
/// There is already a key space with this name.
pub const TROMMEL_KEYSPACE_EXISTS: u32 = 23;
/// The key space was dropped.
pub const TROMMEL_KEYSPACE_DROPPED: u32 = 24;
/// Others have written a key since it was read. Nothing was written.
pub const TROMMEL_CONFLICT: u32 = 25;
/// The value of a counter is not a number of 8 bytes.
pub const TROMMEL_NO_COUNTER: u32 = 26;
/// A transaction has held the lock of a key for too long.
pub const TROMMEL_LOCK_TIMEOUT: u32 = 27;
/// The holder of a key's lock waits for this transaction. End the transaction, and run it again.
pub const TROMMEL_DEADLOCK: u32 = 28;
/// The key space was opened without the merge operator that a key needs.
pub const TROMMEL_NO_MERGE_OPERATOR: u32 = 29;
/// The merge operator failed for a key.
pub const TROMMEL_MERGE_FAILED: u32 = 30;
/// Changes, or a file that a follower needs, no longer exist.
pub const TROMMEL_GONE: u32 = 31;
/// A file needs a feature that this library was built without.
pub const TROMMEL_FEATURE_MISSING: u32 = 32;
/// An argument is invalid: NULL where it is not allowed, an unknown flag, a key space of another
/// store. Nothing was done.
pub const TROMMEL_ARGUMENT: u32 = 1000;
/// The library panicked, which is a bug in it. The handles of the call can still be freed. Any
/// other use of handles that the call modifies may give wrong answers.
pub const TROMMEL_BUG: u32 = 1001;
/// The bytes are not a filter of this kind.
pub const TROMMEL_NO_FILTER: u32 = 1002;
/// The transaction has ended.
pub const TROMMEL_ENDED: u32 = 1003;
/// The transaction is in use, by a scan that is not freed or by a call of another thread.
pub const TROMMEL_IN_USE: u32 = 1004;

/// The reason why a call failed. A call that can fail sets the place of its last argument: to NULL
/// on success, otherwise to an error, which the caller must free. The previous content of the place
/// is ignored. With NULL as the argument, the error is not reported.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_error {
    failure: Failure,
    message: CString,
}

/// An error before it is reported to C.
pub(crate) struct Failure {
    code: u32,
    message: String,
    key: Option<Vec<u8>>,
    keyspace: u32,
    is_damage: bool,
}

impl Failure {
    fn new(code: u32, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), key: None, keyspace: 0, is_damage: false }
    }

    /// Returns an error about an argument of the caller.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Failure::new(TROMMEL_ARGUMENT, message)
    }

    pub(crate) fn null(what: &str) -> Self {
        Failure::argument(format!("{what} is NULL"))
    }

    pub(crate) fn panicked(message: &str) -> Self {
        Failure::new(TROMMEL_BUG, format!("the library has panicked, which is a bug: {message}"))
    }

    pub(crate) fn no_filter(message: impl Into<String>) -> Self {
        Failure::new(TROMMEL_NO_FILTER, message)
    }

    pub(crate) fn ended() -> Self {
        Failure::new(TROMMEL_ENDED, "the transaction has ended: begin another one")
    }

    pub(crate) fn in_use() -> Self {
        let message = "the transaction is in use: free its scans, and let other calls end, before";
        Failure::new(TROMMEL_IN_USE, message)
    }

    pub(crate) fn boxed(self) -> Box<trommel_error> {
        Box::new(trommel_error { message: c_string(&self.message), failure: self })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut failure = Failure::new(u32::from(error.code()), error.to_string());
        failure.is_damage = error.tells_of_damage();
        match error {
            Error::Conflict { keyspace, key }
            | Error::LockTimeout { keyspace, key }
            | Error::Deadlock { keyspace, key }
            | Error::NoMergeOperator { keyspace, key, .. } => {
                (failure.keyspace, failure.key) = (keyspace, Some(key));
            }
            Error::MergeFailed { keyspace, key, .. } => {
                (failure.keyspace, failure.key) = (keyspace, Some(key.into()));
            }
            Error::Unsorted { key, .. } | Error::NoCounter { key, .. } => failure.key = Some(key),
            _ => {}
        }
        failure
    }
}

impl From<trommel_filters::OutOfOrder> for Failure {
    fn from(error: trommel_filters::OutOfOrder) -> Self {
        let failure = Failure::new(TROMMEL_UNSORTED, error.to_string());
        Failure { key: Some(error.key), ..failure }
    }
}

/// Returns the code of an error: one of the constants above. TROMMEL_OK for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_error_code(error: *const trommel_error) -> u32 {
    plain!(TROMMEL_OK, error.as_ref().map_or(TROMMEL_OK, |error| error.failure.code))
}

/// Returns what went wrong, where, and what to do: a text in UTF-8 that ends with a zero and lives
/// as long as the error. An empty text for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_error_message(error: *const trommel_error) -> *const c_char {
    plain!(c"".as_ptr(), error.as_ref().map_or(c"".as_ptr(), |error| error.message.as_ptr()))
}

/// Returns the key that an error is about, such as that of a conflict; it lives as long as the
/// error. NULL and a length of 0: the error is about no key.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_error_key(
    error: *const trommel_error,
    len: *mut usize,
) -> *const c_void {
    plain!(null(), {
        let key = error.as_ref().and_then(|error| error.failure.key.as_deref());
        out_if(len).set(key.map_or(0, <[u8]>::len));
        key.map_or(null(), |key| key.as_ptr().cast())
    })
}

/// Returns the number of that key's key space; 0 is the default one.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_error_keyspace(error: *const trommel_error) -> u32 {
    plain!(0, error.as_ref().map_or(0, |error| error.failure.keyspace))
}

/// Returns whether bytes are corrupt or a file is missing, for this call or for background work.
/// trommel_verify reports all damage; trommel_repair repairs it.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_error_tells_of_damage(error: *const trommel_error) -> bool {
    plain!(false, error.as_ref().is_some_and(|error| error.failure.is_damage))
}

/// Frees an error. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_error_free(error: *mut trommel_error) {
    free!(error);
}

/// Panics inside the library, for tests of bindings. Returns false and TROMMEL_BUG.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_test_panic(error: *mut *mut trommel_error) -> bool {
    call!(error, {
        let code = std::hint::black_box(TROMMEL_BUG);
        assert!(code == TROMMEL_OK, "forced by trommel_test_panic");
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Returns one error of each code that only needs its name, and those with a key.
    fn samples() -> Vec<(Error, u32)> {
        let (path, key) = (std::path::PathBuf::from("db"), b"k\0".to_vec());
        let source = Arc::new(std::io::Error::other("full"));
        let io = Error::Io { path: path.clone(), source };
        vec![
            (Error::Stopped { cause: Box::new(io.clone()) }, TROMMEL_STOPPED),
            (io, TROMMEL_IO),
            (Error::Corrupt { path: path.clone(), offset: 1, what: "x".into() }, TROMMEL_CORRUPT),
            (Error::FileMissing { path: path.clone(), what: "x".into() }, TROMMEL_FILE_MISSING),
            (Error::NotAStore { path: path.clone() }, TROMMEL_NOT_A_STORE),
            (Error::NotEmpty { path: path.clone() }, TROMMEL_NOT_EMPTY),
            (Error::Missing { path: path.clone() }, TROMMEL_MISSING),
            (Error::Version { path: path.clone(), found: 1, known: 2 }, TROMMEL_VERSION),
            (Error::Locked { path: path.clone() }, TROMMEL_LOCKED),
            (Error::Closed { path: path.clone() }, TROMMEL_CLOSED),
            (Error::Forked { path: path.clone() }, TROMMEL_FORKED),
            (Error::KeyTooLong { len: 2, max: 1 }, TROMMEL_KEY_TOO_LONG),
            (Error::ValueTooLong { len: 2, max: 1 }, TROMMEL_VALUE_TOO_LONG),
            (Error::BatchTooLong { len: 2, max: 1 }, TROMMEL_BATCH_TOO_LONG),
            (Error::Unsorted { before: key.clone(), key: key.clone() }, TROMMEL_UNSORTED),
            (Error::InvertedRange { from: key.clone(), to: key.clone() }, TROMMEL_INVERTED_RANGE),
            (Error::Option { option: "x".into(), problem: "y".into() }, TROMMEL_OPTION),
            (Error::Panicked { who: "x".into() }, TROMMEL_PANICKED),
            (Error::FlushUnderWay, TROMMEL_FLUSH_UNDER_WAY),
            (Error::Malformed { offset: 1, what: "x".into() }, TROMMEL_MALFORMED),
            (Error::Cancelled, TROMMEL_CANCELLED),
            (Error::NoKeyspace { name: "x".into(), there: vec![] }, TROMMEL_NO_KEYSPACE),
            (Error::KeyspaceExists { name: "x".into() }, TROMMEL_KEYSPACE_EXISTS),
            (Error::KeyspaceDropped { name: "x".into() }, TROMMEL_KEYSPACE_DROPPED),
            (Error::Conflict { keyspace: 3, key: key.clone() }, TROMMEL_CONFLICT),
            (Error::NoCounter { key: key.clone(), len: 1 }, TROMMEL_NO_COUNTER),
            (Error::LockTimeout { keyspace: 3, key: key.clone() }, TROMMEL_LOCK_TIMEOUT),
            (Error::Deadlock { keyspace: 3, key: key.clone() }, TROMMEL_DEADLOCK),
            (
                Error::NoMergeOperator { path: path.clone(), keyspace: 3, key: key.clone() },
                TROMMEL_NO_MERGE_OPERATOR,
            ),
            (
                Error::MergeFailed {
                    path: path.clone(),
                    keyspace: 3,
                    key: key.into(),
                    what: "x".into(),
                },
                TROMMEL_MERGE_FAILED,
            ),
            (Error::Gone { since: 1, first: 2, file: None }, TROMMEL_GONE),
            (
                Error::FeatureMissing { path, what: "x".into(), feature: "zstd" },
                TROMMEL_FEATURE_MISSING,
            ),
        ]
    }

    #[test]
    fn each_constant_is_the_code_of_its_error() {
        let mut codes: Vec<u32> = Vec::new();
        for (error, code) in samples() {
            let failure = Failure::from(error.clone());
            assert_eq!((failure.code, u32::from(error.code())), (code, code), "{error}");
            let names_one = matches!(code, 14 | 25..=30);
            assert_eq!(failure.key.is_some(), names_one, "the key of {error}");
            let of_other = matches!(code, 25 | 27..=30);
            assert_eq!(failure.keyspace == 3, of_other, "the key space of {error}");
            codes.push(code);
        }
        codes.sort_unstable();
        assert_eq!(codes, (1..=32).collect::<Vec<u32>>(), "each one once");
    }

    #[test]
    fn messages_end_with_their_first_zero() {
        let told = Failure::argument("a\0b").boxed();
        assert_eq!(told.message.to_bytes(), "a\u{fffd}b".as_bytes());
    }

    #[test]
    fn damage_behind_a_stop_is_damage() {
        let damage = Error::Corrupt { path: "db".into(), offset: 1, what: "x".into() };
        assert!(Failure::from(damage.clone()).is_damage);
        assert!(Failure::from(Error::Stopped { cause: Box::new(damage) }).is_damage);
        assert!(!Failure::from(Error::Cancelled).is_damage);
    }
}
