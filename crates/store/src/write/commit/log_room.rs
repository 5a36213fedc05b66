//! Bounds the bytes of logs that several trees share.
//! ```text
//! log 7        log 8      log 9, the newest      more than max_log_bytes
//! a  b b b b   b b b b    b b b b
//! |                       ^
//! '--- repeated ----------'                      a is small: 7 and 8 can go when b is flushed
//! '--- or a, or the largest tree, is sealed      much is in memory: repeating is no gain
//! ```
//! Invariant: a log is removed only when all of its entries are in tables, or durable in a newer
//! log.

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::memtable_writes::writes_up_to;
use crate::error::Result;
use crate::sync::Arc;
use crate::write::commit::writer::Writer;
use crate::write::engine::Engine;

/// A log of at least this size ends at the next seal, even if other trees have entries in it. If
/// the options allow few log bytes, a quarter of these counts instead.
const LOG_BYTES: u64 = 16 << 20;

fn log_bytes_max(engine: &Engine) -> u64 {
    LOG_BYTES.min(engine.table_files.options.max_log_bytes / 4)
}

impl Writer {
    /// Whether the total size of logs is to be checked now that the log has grown.
    pub(super) fn is_long_again(&self, engine: &Engine, before: u64, now: u64) -> bool {
        let most = log_bytes_max(engine);
        now / most > before / most
    }

    /// Whether a log of this size is to end when a tree's memtable is sealed: it is long, or
    /// nothing in it is needed soon.
    pub(super) fn ends_log(&self, sealed: &Engine, bytes: u64) -> bool {
        bytes >= log_bytes_max(sealed) || !sealed.logs.is_active_beside(sealed.keyspace)
    }

    /// Reduces the logs if they have more bytes than the options allow. This examines all memtables
    /// that have entries, each time that the log has grown by a quarter of the allowed bytes.
    pub(super) fn make_room_in_logs(&mut self, engine: &Engine) -> Result<()> {
        let most = engine.table_files.options.max_log_bytes;
        while engine.logs.sizes().1 > most {
            let (oldest, newest) = (engine.logs.live_without(None), engine.logs.newest());
            let active = self.trees.active_among(engine.logs.active());
            let size = |engine: &Arc<Engine>| engine.current.pin().active.memtable.size_bytes();
            let in_memory: usize = active.iter().map(size).sum();
            if in_memory as u64 > most / 2 {
                let largest = active.into_iter().max_by_key(size);
                return largest.map_or(Ok(()), |largest| self.seal_early(&largest));
            }
            let of_oldest = self.trees.active_among(engine.logs.active_in(oldest));
            // Otherwise a flush is about to free a log, or everything is in one log.
            if of_oldest.is_empty() || oldest == newest {
                return Ok(());
            }
            self.repeat(engine, &of_oldest)?;
        }
        Ok(())
    }

    /// Copies the content of these trees' memtables into the newest log, durably.
    fn repeat(&mut self, main: &Engine, trees: &[Arc<Engine>]) -> Result<()> {
        let memtable = |engine: &Arc<Engine>| {
            (engine.keyspace, Arc::clone(&engine.current.pin().active.memtable))
        };
        let memtables: Vec<(KeyspaceId, Arc<Memtable>)> = trees.iter().map(memtable).collect();
        let log = self.open_log(main)?;
        let borrowed = memtables.iter().map(|(keyspace, memtable)| (*keyspace, &**memtable));
        let writes = writes_up_to(borrowed, Sequence::MAX);
        let repeated = log.repeat(&writes).map(|()| log.len());
        let bytes = repeated.inspect_err(|error| self.tell_failure(Some(error)))?;
        self.sync(main)?;
        main.logs.note_bytes(bytes);
        for engine in trees {
            engine.current.pin().active.move_to_newest(&engine.logs, engine.keyspace);
        }
        main.installer().free_logs(main)
    }
}
