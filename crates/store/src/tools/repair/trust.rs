//! Whether to trust a manifest that can be read.
//! ```text
//! its tables   all exist, and no other is newer
//! its end      is whole, or the logs continue where its tables end
//! ```
//! Invariant: the manifest of a sound store is trusted.

use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::log_replay::replay_logs;
use crate::files::names::table_name;
use crate::files::table::parts::TableParts;
use crate::plan::layout::Layout;
use crate::tools::repair::Repair;
use crate::tools::repair_manifest::FoundManifest;

impl Repair {
    /// Whether the manifest describes the newest tree. A manifest that has lost its last edits may
    /// still be readable. Then tables that it names are missing, or logs do not continue where its
    /// tables end, or other tables are newer.
    pub(super) fn trusts(&self, layout: &Layout, manifest: &FoundManifest) -> Result<bool> {
        let tables = || layout.runs.iter().flat_map(|run| &run.tables);
        let all_there = tables().all(|table| self.has(&table_name(table.file)));
        let mut unknown = self.numbers(table_name);
        unknown.retain(|&file| !manifest.knows(file));
        if unknown.is_empty() && !manifest.is_torn {
            return Ok(true);
        }
        let Some(last) = self.last_in_logs(layout)?.filter(|_| all_there) else {
            return Ok(false);
        };
        let last = last.max(layout.last_sequence);
        // Without a torn end such tables mean nothing: after a crash they are in no edit, and may
        // be incomplete.
        for file in unknown.into_iter().filter(|_| manifest.is_torn) {
            let parts = TableParts::read(&self.table_files.folder, &table_name(file), file)?;
            if parts.properties.is_some_and(|known| known.sequences.1 > last) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The newest sequence number in logs. None: the logs are damaged.
    pub(super) fn last_in_logs(&self, layout: &Layout) -> Result<Option<Sequence>> {
        match replay_logs(&self.table_files.folder, &self.names, layout, &self.table_files.options)
        {
            Ok(logs) => Ok(Some(logs.iter().map(|log| log.last).max().unwrap_or_default())),
            Err(error) if error.tells_of_damage() => Ok(None),
            Err(Error::Version { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
