//! The end of a command: success, "no", or a message and an exit status.

use std::io::ErrorKind;
use std::process::ExitCode;

use trommel_lab::LabError;

use crate::process::message;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Exit status 0.
    Fine,
    /// Exit status 1: not found, or a check failed.
    No,
}

/// The end of a command.
pub(crate) type Outcome = Result<Status, Failure>;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong arguments.
    Usage(String),
    /// Corrupt data outside a store, or an I/O error.
    Data(String),
    /// Corrupt data of a store.
    Damage(String),
    /// Another process has the store open.
    InUse(String),
    /// The reader of the output is gone; no message is printed.
    OutputClosed,
}

/// Returns how a command ends that has found an outcome and then written what it found. The exit
/// status tells the outcome also if nobody reads the output.
pub(crate) fn told(outcome: Outcome, written: std::io::Result<()>) -> Outcome {
    match written.map_err(Failure::from) {
        Ok(()) | Err(Failure::OutputClosed) => outcome,
        Err(failure) => outcome.and(Err(failure)),
    }
}

impl Failure {
    /// Returns the failure of a store's error, with this message.
    pub(crate) fn of_store(error: &trommel::Error, message: String) -> Self {
        match error {
            trommel::Error::Locked { .. } => Failure::InUse(message),
            error if error.tells_of_damage() => Failure::Damage(message),
            _ => Failure::Data(message),
        }
    }

    /// Prints the message and the hint, if any, on standard error. Returns the exit status.
    pub(crate) fn tell(self, hint: impl FnOnce(&Failure) -> Option<String>) -> ExitCode {
        let hint = hint(&self);
        let (kind, status, message) = match self {
            Failure::Usage(message) => ("usage", 2, message),
            Failure::Data(message) => ("data", 3, message),
            Failure::Damage(message) => ("damage", 3, message),
            Failure::InUse(message) => ("in_use", 3, message),
            Failure::OutputClosed => return ExitCode::SUCCESS,
        };
        message::error(kind, status, &message, hint.as_deref());
        ExitCode::from(status)
    }
}

impl From<trommel::Error> for Failure {
    fn from(error: trommel::Error) -> Self {
        use trommel::Error;
        match error {
            Error::Option { .. }
            | Error::KeyTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::InvertedRange { .. } => Failure::Usage(error.to_string()),
            _ => Failure::of_store(&error, error.to_string()),
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Store(error) => error.into(),
            LabError::Plan(problem) => Failure::Usage(problem),
            _ => Failure::Data(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Data(format!("standard output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        std::io::Error::from(error).into()
    }
}
