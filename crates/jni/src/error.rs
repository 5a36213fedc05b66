//! Errors on their way to Java: a code, a message, and the key in question.
//! ```text
//! trommel::Error --code()--> 1 ..= 32       the border's own codes: from 1000 on
//!                              '--> dev.trommel.Failures.of(code, message, key, key space)
//! ```
//! Invariant: the stable code alone decides the class of the exception.

use trommel::Error;

/// The store's codes for errors that are also found here.
const CORRUPT: u32 = 2;
const CLOSED: u32 = 9;
const UNSORTED: u32 = 14;
const PANICKED: u32 = 18;
const MALFORMED: u32 = 20;
/// An argument makes no sense: becomes an `IllegalArgumentException`.
const ARGUMENT: u32 = 1000;
/// An object is in use: becomes an `IllegalStateException`.
const IN_USE: u32 = 1001;
/// Becomes an `OutOfMemoryError`.
const NO_MEMORY: u32 = 1002;

/// The result of a call.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Told {
        code: u32,
        message: String,
        key: Option<Vec<u8>>,
        keyspace: u32,
    },
    /// An exception of Java is pending already.
    Pending,
}

impl Failure {
    fn new(code: u32, message: impl Into<String>) -> Self {
        Failure::Told { code, message: message.into(), key: None, keyspace: 0 }
    }

    /// An argument of the caller makes no sense.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Failure::new(ARGUMENT, message)
    }

    pub(crate) fn of_another_store(what: &str) -> Self {
        Failure::argument(format!("{what} is of another store, or of another opening of it"))
    }

    pub(crate) fn no_memory(len: usize) -> Self {
        Failure::new(NO_MEMORY, format!("no memory for {len} bytes"))
    }

    pub(crate) fn malformed(at: usize, what: String) -> Self {
        Failure::new(MALFORMED, format!("at byte {at}: {what}"))
    }

    pub(crate) fn panicked(message: &str) -> Self {
        let message = format!("the library has panicked, which is a bug: {message}");
        Failure::new(PANICKED, message)
    }

    pub(crate) fn closed(what: &str) -> Self {
        let message = format!("the {what} was closed, or has ended: make a new one");
        Failure::new(CLOSED, message)
    }

    pub(crate) fn in_use() -> Self {
        let message = "another thread is in a call of the transaction: join it first";
        Failure::new(IN_USE, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Failure::new(CORRUPT, message)
    }

    fn with_key(self, keyspace: u32, key: Vec<u8>) -> Self {
        match self {
            Failure::Told { code, message, .. } => {
                Failure::Told { code, message, key: Some(key), keyspace }
            }
            Failure::Pending => Failure::Pending,
        }
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        let failure = Failure::new(u32::from(error.code()), error.to_string());
        match error {
            Error::Conflict { keyspace, key }
            | Error::LockTimeout { keyspace, key }
            | Error::Deadlock { keyspace, key }
            | Error::NoMergeOperator { keyspace, key, .. } => failure.with_key(keyspace, key),
            Error::MergeFailed { keyspace, key, .. } => failure.with_key(keyspace, key.into()),
            Error::Unsorted { key, .. } | Error::NoCounter { key, .. } => failure.with_key(0, key),
            _ => failure,
        }
    }
}

impl From<trommel_filters::OutOfOrder> for Failure {
    fn from(error: trommel_filters::OutOfOrder) -> Self {
        Failure::new(UNSORTED, error.to_string()).with_key(0, error.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_and_key(failure: Failure) -> (u32, Option<Vec<u8>>, u32) {
        match failure {
            Failure::Told { code, key, keyspace, .. } => (code, key, keyspace),
            Failure::Pending => panic!("it is told"),
        }
    }

    #[test]
    fn codes_and_keys_are_those_of_the_store() {
        let conflict = Error::Conflict { keyspace: 3, key: b"k".to_vec() };
        assert_eq!(code_and_key(conflict.into()), (25, Some(b"k".to_vec()), 3));
        let own = [
            (
                Failure::corrupt("x"),
                Error::Corrupt { path: "f".into(), offset: 0, what: "x".into() },
            ),
            (Failure::closed("x"), Error::Closed { path: "f".into() }),
            (Failure::panicked("x"), Error::Panicked { who: "x".into() }),
            (Failure::malformed(0, "x".into()), Error::Malformed { offset: 0, what: "x".into() }),
        ];
        for (failure, error) in own {
            assert_eq!(code_and_key(failure).0, u32::from(error.code()), "{error}");
        }
        let unsorted = Error::Unsorted { before: b"b".to_vec(), key: b"a".to_vec() };
        assert_eq!(u32::from(unsorted.code()), UNSORTED);
    }
}
