//! Writes of keys that others have locked: they wait for the lock outside all locks of the store.
//! ```text
//! write -> refused by the leader: another holder has locked one of its keys
//!       -> waits for that lock and takes it -> writes again, as its holder
//! ```
//! Invariant: a lock that is taken binds every group that begins later. Whoever takes one waits for
//! the group that is being written, which may not have seen it.

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::sync::{Ordering, giving_up, lock, wait};
use crate::write::commit::Commit;
use crate::write::conflicts::Write;
use crate::write::engine::Engine;
use crate::write::key_locks::{Locker, Patience};

impl Commit {
    /// Retries a write that was refused because someone else has locked this key.
    #[cold]
    pub(super) fn write_in_turn(
        &self,
        engine: &Engine,
        write: &mut Write,
        sync: bool,
        (mut keyspace, mut key): (u32, Vec<u8>),
    ) -> Result<Sequence> {
        let patience = Patience::of(engine);
        let holder = *write.holder.get_or_insert_with(|| self.locks.new_holder());
        let locker = Locker::beside(&self.locks, holder);
        loop {
            let tree = self.trees.of(engine, KeyspaceId(keyspace))?;
            match locker.take(&tree, &key, patience) {
                // Waits with fewer locks. Only locks that were taken for update must be kept
                // throughout.
                Err(Error::Deadlock { .. }) if locker.free_all() > 0 => continue,
                taken => taken?,
            };
            if giving_up::is_possible() {
                self.wait_for_room(engine, &write.batch)?;
            }
            match self.write_once(engine, write, sync) {
                Err(Error::LockTimeout { keyspace: of, key: next })
                    if patience.left(engine).is_some() =>
                {
                    (keyspace, key) = (of, next);
                }
                written => return written,
            }
        }
    }

    /// Waits until the group that is being written has ended.
    pub(crate) fn wait_for_group(&self) {
        let mut queue = lock(&self.queue);
        let ended = self.ended.load(Ordering::Relaxed);
        while queue.leading && self.ended.load(Ordering::Relaxed) == ended {
            queue.asleep += 1;
            queue = wait(&self.turn, queue);
            queue.asleep -= 1;
        }
    }
}
