//! The form of a stream of entries, as typed on the command line.

use clap::ValueEnum;
use trommel_lab::StreamForm;

/// How a stream of entries is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormName {
    /// Trommel's own: small, and every block is checked before it is used.
    Native,
    /// One JSON object in a line.
    Jsonl,
    /// Columns with tabs between them and escapes in them, as `scan` prints them.
    Tsv,
}

impl From<FormName> for StreamForm {
    fn from(name: FormName) -> Self {
        match name {
            FormName::Native => StreamForm::Native,
            FormName::Jsonl => StreamForm::JsonLines,
            FormName::Tsv => StreamForm::Tsv,
        }
    }
}
