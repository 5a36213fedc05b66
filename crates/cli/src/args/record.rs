//! `--record`: records the tree of a run, step by step, in a file that `replay --run` plays back.

use std::path::PathBuf;

use clap::Args;
use trommel::Db;
use trommel_lab::{RunRecorder, RunToRecord};

use crate::output::keytext;
use crate::process::failure::Failure;

/// What is recorded.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// Record every flush and every merge, for `trommel replay --run`. Each step is a line of JSON:
    /// the tree, and the filter's answers for the followed keys. What is measured takes a little
    /// longer.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// A key to follow; several, each with an option of its own. In hexadecimal with --hex, and
    /// always for `bench write`, which follows a dozen of its own if none is named.
    #[arg(long, value_name = "KEY", requires = "record")]
    record_key: Vec<String>,
}

impl RecordArgs {
    pub(crate) fn is_asked_for(&self) -> bool {
        self.record.is_some()
    }

    /// Returns what to record. `or_else`: the keys to follow if none are named. None: recording was
    /// not requested.
    pub(crate) fn plan(
        &self,
        hex: bool,
        bits_per_key: f64,
        or_else: impl FnOnce() -> Vec<Vec<u8>>,
    ) -> Result<Option<RunToRecord>, Failure> {
        let Some(file) = self.record.clone() else { return Ok(None) };
        let named = self.record_key.iter().map(|text| keytext::read(text, hex));
        let mut keys = named.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            keys = or_else();
        }
        if keys.is_empty() {
            let problem = "--record follows keys: name one or several with --record-key";
            return Err(Failure::Usage(problem.into()));
        }
        let keys = keys.into_iter().map(|key| (keytext::show(&key, hex), key)).collect();
        Ok(Some(RunToRecord { file, keys, bits_per_key }))
    }

    /// Begins to record a store that was just opened, if requested.
    pub(crate) fn begin(
        &self,
        hex: bool,
        bits_per_key: f64,
        db: &Db,
    ) -> Result<Option<RunRecorder>, Failure> {
        let plan = self.plan(hex, bits_per_key, Vec::new)?;
        Ok(plan.map(|plan| RunRecorder::begin(&plan, db)).transpose()?)
    }
}
