//! Options of measurements that may include other engines, and the program that measures.
//! ```text
//! without --peer   this program measures     with --peer   trommel-peers, with the other engines
//! ```
//! Invariant: both programs measure with the same code.

use std::path::PathBuf;

use clap::Args;
use serde::de::DeserializeOwned;
use trommel::Options;
use trommel_lab::{Contender, Engine, LabError, PeerTask, Progress, StoresPlan, Trommel};

use crate::args::guards::{GuardNames, contenders, guards, guards_help};
use crate::args::values::byte_count;
use crate::output::progress::StageBar;
use crate::process::failure::Failure;
use crate::process::peer_program::PeerProgram;
use crate::process::temporary::TemporaryFolder;

#[derive(Debug, Args)]
pub(crate) struct ComparisonArgs {
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = guards, default_value = "grf", help = guards_help())]
    guard: Vec<GuardNames>,
    /// Memory of filters, in bits per key.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, default_value_t = Options::default().bits_per_key)]
    bits_per_key: f64,
    /// Memory for new entries, of each key space.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64MiB")]
    write_buffer: usize,
    /// Seed of all that is drawn.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
    /// The program that has the other stores. [default: trommel-peers beside this program, or in
    /// PATH]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where to make the stores, a folder for each. `bench ycsb` leaves them there. [default: a
    /// temporary folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
}

impl ComparisonArgs {
    /// Plans this store with each of the guards, then the peers, in a folder.
    pub(crate) fn stores(
        &self,
        peers: &[Contender],
        (block_cache_bytes, merge_threads): (usize, usize),
        folder: PathBuf,
    ) -> StoresPlan {
        StoresPlan {
            contenders: contenders(&self.guard, peers),
            bits_per_key: self.bits_per_key,
            block_cache_bytes,
            write_buffer_bytes: self.write_buffer,
            merge_threads,
            seed: self.seed,
            folder,
        }
    }

    /// Carries out a plan, which receives the folder of its stores. With peers, the program that
    /// has them does so, as a task. Returns the reports and the plan.
    pub(crate) fn measure<P: Clone, R: DeserializeOwned>(
        &self,
        plan: impl FnOnce(PathBuf) -> P,
        has_peers: bool,
        measure: impl FnOnce(&P, &[Box<dyn Engine>], &mut dyn Progress) -> Result<Vec<R>, LabError>,
        task: impl FnOnce(P) -> PeerTask,
    ) -> Result<(P, Vec<R>), Failure> {
        let temporary = TemporaryFolder::new()?;
        let plan = plan(self.db.clone().unwrap_or_else(|| temporary.path().to_path_buf()));
        let reports = if has_peers {
            PeerProgram::find(self.program.as_deref())?.ask(&task(plan.clone()))?
        } else {
            let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
            measure(&plan, &engines, &mut StageBar::default())?
        };
        Ok((plan, reports))
    }
}
