//! How logs that several trees share become fewer.
//! ```text
//! log 7        log 8      log 9, the newest      more than max_log_bytes
//! a  b b b b   b b b b    b b b b
//! |                       ^
//! '--- repeated ----------'                      a is small: 7 and 8 can go when b is flushed
//! '--- or a, or the largest tree, is sealed      much is in memory: what is repeated is long again
//! ```
//! Invariant: a log goes when all that it has is in tables, or in a newer log and durable there.

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::memtable_writes::writes_up_to;
use crate::error::Result;
use crate::sync::Arc;
use crate::write::commit::writer::Writer;
use crate::write::engine::Engine;

/// A log that has so many bytes is followed by another one at the next seal, whoever else has
/// entries in it. Where logs are to take less, it is a quarter of that.
const LOG_BYTES: u64 = 16 << 20;

fn log_bytes_max(engine: &Engine) -> u64 {
    LOG_BYTES.min(engine.table_files.options.max_log_bytes / 4)
}

impl Writer {
    /// Whether a log that grows is to be looked at now.
    pub(super) fn is_long_again(&self, engine: &Engine, before: u64, now: u64) -> bool {
        let most = log_bytes_max(engine);
        now / most > before / most
    }

    /// Whether a log of so many bytes is to end when a tree's memtable is sealed: soon nothing in
    /// it is needed, or it is long.
    pub(super) fn ends_log(&self, sealed: &Engine, bytes: u64) -> bool {
        bytes >= log_bytes_max(sealed) || !sealed.logs.is_active_beside(sealed.keyspace)
    }

    /// Makes logs fewer, if they have more bytes than the options allow. Looks at all memtables
    /// with entries, each time that the log is longer by a quarter of what is allowed.
    pub(super) fn make_room_in_logs(&mut self, engine: &Engine) -> Result<()> {
        let most = engine.table_files.options.max_log_bytes;
        while engine.logs.sizes().1 > most {
            let (oldest, newest) = (engine.logs.live_without(None), engine.logs.newest());
            let active = self.trees.active_among(engine.logs.active());
            let size = |engine: &Arc<Engine>| engine.current.pin().active.memtable.size_bytes();
            let in_memory: usize = active.iter().map(size).sum();
            if in_memory as u64 > most / 2 {
                let largest = active.into_iter().max_by_key(size);
                return largest.map_or(Ok(()), |largest| self.seal(&largest));
            }
            let of_oldest = self.trees.active_among(engine.logs.active_in(oldest));
            // Else a flush is to come, or all of it is in one log.
            if of_oldest.is_empty() || oldest == newest {
                return Ok(());
            }
            self.repeat(engine, &of_oldest)?;
        }
        Ok(())
    }

    /// Writes what is in these trees' memtables into the newest log once more, durably.
    fn repeat(&mut self, main: &Engine, trees: &[Arc<Engine>]) -> Result<()> {
        let memtable = |engine: &Arc<Engine>| {
            (engine.keyspace, Arc::clone(&engine.current.pin().active.memtable))
        };
        let memtables: Vec<(KeyspaceId, Arc<Memtable>)> = trees.iter().map(memtable).collect();
        let log = self.open_log(main)?;
        let borrowed = memtables.iter().map(|(keyspace, memtable)| (*keyspace, &**memtable));
        let writes = writes_up_to(borrowed, Sequence::MAX);
        log.repeat(&writes)?;
        let bytes = log.len();
        self.sync(main)?;
        main.logs.note_bytes(bytes);
        for engine in trees {
            engine.current.pin().active.move_to_newest(&engine.logs, engine.keyspace);
        }
        main.installer().free_logs(main)
    }
}
