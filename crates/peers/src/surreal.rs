//! SurrealKV behind the `Engine` trait: a levelled LSM-tree in Rust, where each read and write is a
//! transaction.
//! ```text
//! put --> a transaction of its own --> commit, which is awaited here:
//!     each open store has its own tokio runtime
//!
//! filter   in every table
//! bloom    Bloom, whole keys, 10 bits per key: no other number can be set
//! ribbon   Ribbon, whole keys, bits per key rounded down
//! none     nothing
//! ```
//! Invariant: all values are in the tables, however large: the log for large values is off, as by
//! default.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use surrealkv::{
    CompactRangeOptions, Error, LSMIterator, Mode, ReadOptions, RibbonFilter, Transaction, Tree,
    TreeBuilder,
};
use tokio::runtime::{Builder, Runtime};
use trommel_lab::{Engine, LabError, Peer, PeerSettings, PeerShape};

use crate::lock::version_of;

type Result<T> = std::result::Result<T, LabError>;

/// The engine SurrealKV.
pub(crate) struct Surreal;

struct Opened {
    tree: Tree,
    runtime: Runtime,
    folder: PathBuf,
    settings: String,
}

/// Pause between two looks at the files.
const LOOK: Duration = Duration::from_millis(20);
/// Looks in a row that must find the same files.
const LOOKS: usize = 5;

impl Engine for Surreal {
    fn name(&self) -> &'static str {
        "surrealkv"
    }

    fn filters(&self) -> Vec<String> {
        ["bloom", "ribbon", "none"].map(String::from).to_vec()
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        if matches!(settings.shape, PeerShape::Runs(_)) {
            return Err(LabError::Plan(
                "surrealkv cannot be given its runs: --shape default".into(),
            ));
        }
        let bits = settings.bits_per_key as usize;
        let builder = TreeBuilder::new();
        let (builder, filter) = match filter {
            "bloom" => (builder, "bloom at 10 bits per key".to_string()),
            "ribbon" => {
                let ribbon = RibbonFilter::new(bits);
                (
                    builder.with_filter_policy(Some(Arc::new(ribbon))),
                    format!("ribbon at {bits} bits per key"),
                )
            }
            "none" => (builder.with_filter_policy(None), "no filter".to_string()),
            _ => return Err(LabError::Plan(format!("no filter '{filter}'"))),
        };
        let builder = builder
            .with_path(folder.to_path_buf())
            .without_compression()
            .with_block_size(BLOCK_BYTES)
            .with_block_cache_capacity(settings.block_cache_bytes as u64)
            .with_max_memtable_size(settings.write_buffer_bytes);
        let threads = settings.merge_threads + 1;
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
        let runtime = runtime.map_err(|error| LabError::Peer(format!("tokio: {error}")))?;
        let tree = {
            // SurrealKV starts its tasks in the runtime that is entered.
            let _entered = runtime.enter();
            builder.build().map_err(failed)?
        };
        let settings = format!(
            "SurrealKV {}; levelled, as by default; {threads} threads of tokio flush and merge; {filter}; cache {} MiB, blocks of \
             {BLOCK_BYTES} bytes, no compression, through the system's cache; log written, not synced; write buffer {} MiB; a \
             transaction for each call; else defaults",
            version_of("surrealkv"),
            settings.block_cache_bytes >> 20,
            settings.write_buffer_bytes >> 20,
        );
        Ok(Box::new(Opened { tree, runtime, folder: folder.to_path_buf(), settings }))
    }
}

/// The block size of all other stores here.
const BLOCK_BYTES: usize = 4096;

fn failed(error: Error) -> LabError {
    LabError::Peer(format!("surrealkv: {error}"))
}

impl Opened {
    /// Runs a write transaction; after a conflict, again.
    fn write(
        &self,
        change: impl Fn(&mut Transaction) -> std::result::Result<(), Error>,
    ) -> Result<()> {
        loop {
            let mut transaction = self.tree.begin_with_mode(Mode::WriteOnly).map_err(failed)?;
            change(&mut transaction).map_err(failed)?;
            match self.runtime.block_on(transaction.commit()) {
                Err(Error::TransactionRetry | Error::TransactionWriteConflict) => {}
                ended => return ended.map_err(failed),
            }
        }
    }

    fn compact_to(&self, options: &CompactRangeOptions) -> Result<()> {
        let _entered = self.runtime.enter();
        self.tree.compact_range(None, None, options).map_err(failed)
    }

    /// The names and sizes of all files.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder.clone()]);
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match file.metadata() {
                    Ok(about) if about.is_dir() => folders.push(file.path()),
                    Ok(about) => files.push((file.path(), about.len())),
                    // The file was removed meanwhile.
                    Err(_) => {}
                }
            }
        }
        files.sort_unstable();
        files
    }
}

impl Peer for Opened {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|transaction| transaction.set(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.write(|transaction| transaction.delete(key))
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.tree.begin_with_mode(Mode::ReadOnly).map_err(failed)?;
        let value = transaction.get(key).map_err(failed)?;
        if let Some(value) = &value {
            seen(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        if limit == 0 || before.is_some_and(|before| before <= from) {
            return Ok(0);
        }
        let transaction = self.tree.begin_with_mode(Mode::ReadOnly).map_err(failed)?;
        let mut options = ReadOptions::new();
        options.set_iterate_lower_bound(Some(from.to_vec()));
        options.set_iterate_upper_bound(before.map(<[u8]>::to_vec));
        let mut entries = transaction.range_with_options(&options).map_err(failed)?;
        let mut is_there = entries.seek_first().map_err(failed)?;
        let mut count = 0;
        while is_there {
            seen(entries.key().user_key(), &entries.value().map_err(failed)?);
            count += 1;
            is_there = count < limit && entries.next().map_err(failed)?;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        // To level 0, and no deeper.
        self.compact_to(&CompactRangeOptions {
            flush_memtable: true,
            target_level: Some(0),
            rewrite_bottommost: false,
        })
    }

    /// Waits until the files stay the same for some time, as SurrealKV does not report due work.
    fn settle(&self) -> Result<()> {
        let (mut same, mut files) = (0, self.files());
        while same < LOOKS {
            std::thread::sleep(LOOK);
            let now = self.files();
            same = if now == files { same + 1 } else { 0 };
            files = now;
        }
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.compact_to(&CompactRangeOptions::default())
    }

    fn runs(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.runtime.block_on(self.tree.close()).map_err(failed)
    }
}
