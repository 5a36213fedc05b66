//! `--sort`: sorts entries on disk before they are written.

use std::path::PathBuf;

use clap::Args;
use trommel::sorting::SortOptions;

use crate::args::values::byte_count;

/// Whether and how entries are sorted.
#[derive(Clone, Debug, Args)]
pub(crate) struct SortArgs {
    /// Sort the keys first, which may come in any order, then make one run of them, past log and
    /// memory. Of a key that comes several times the last one counts. After an error nothing is
    /// loaded.
    #[arg(long, conflicts_with = "ingest")]
    sort: bool,
    /// Memory of the sort. More: fewer files.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "256MiB", requires = "sort")]
    sort_memory: usize,
    /// Where its files are. They have no names, and nothing is left of them. [default: the store]
    #[arg(long, value_name = "DIR", requires = "sort")]
    sort_folder: Option<PathBuf>,
}

impl SortArgs {
    /// Returns how to sort entries. None: they are not sorted.
    pub(crate) fn options(&self) -> Option<SortOptions> {
        let (memory_bytes, folder) = (self.sort_memory, self.sort_folder.clone());
        self.sort.then_some(SortOptions { memory_bytes, folder })
    }
}
