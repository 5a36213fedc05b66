//! A range of keys, as typed on the command line.

use std::ops::Bound;

use clap::Args;
use trommel::KeyBounds;

use crate::args::store::StoreArgs;
use crate::output::keytext::read;
use crate::process::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The first key, included.
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<String>,
    /// The last key, included.
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,
    /// Keys that begin so.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<String>,
    /// Keys and values are read and printed in hexadecimal.
    #[arg(long)]
    pub(crate) hex: bool,
}

impl RangeArgs {
    /// Returns the bounds of the range.
    pub(crate) fn bounds(&self) -> Result<KeyBounds, Failure> {
        if let Some(prefix) = &self.prefix {
            return Ok(KeyBounds::prefix(read(prefix, self.hex)?));
        }
        let bound = |key: &Option<String>| match key {
            None => Ok(Bound::Unbounded),
            Some(key) => read(key, self.hex).map(Bound::Included),
        };
        let (from, to) = (bound(&self.from)?, bound(&self.to)?);
        match (&from, &to) {
            (Bound::Included(from), Bound::Included(to)) if from > to => {
                Err(Failure::Usage("--from is after --to".into()))
            }
            _ => Ok(KeyBounds::from((from, to))),
        }
    }
}
