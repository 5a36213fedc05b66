//! One key of a store, as typed on the command line.

use clap::Args;

use crate::args::store::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The key.
    pub(crate) key: String,
    /// Keys and values are read and printed in hexadecimal.
    #[arg(long)]
    pub(crate) hex: bool,
}
