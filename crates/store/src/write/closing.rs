//! How a store is closed.
//! ```text
//! callers refused -> log saved -> threads and calls ended -> log synced -> image -> sweep
//!                 -> tables released -> closed -> unlocked
//! ```
//! Invariant: the lock is released last, when no part of the store can touch a file any more, even
//! if a step panics.

use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::events::Event;
use crate::storage::life::Closing;
use crate::sync::{Arc, lock};
use crate::tree::guard_image;
use crate::tree::version::Version;
use crate::write::engine::Engine;

/// Closes a store and ends what threads do for it; does nothing if it is closed. The error is what
/// could not be made durable.
pub(crate) fn close(engine: &Engine) -> Result<()> {
    let Some(closing) = engine.life().begin_close()? else { return Ok(()) };
    let ending = Ending { engine, closing };
    // While the threads can flush: entries of a log that has failed are in memory only.
    let saved = engine.commit.writer().leave_if_failed(engine);
    ending.end_work();
    engine.abandon_work();
    let saved = saved.and_then(|()| engine.commit.writer().close(engine));
    // A session that has not changed the tree writes nothing.
    if engine.installer().has_changed {
        // Without an image the next open reads the filter from the runs.
        let _ = guard_image::write(engine, &KeyBounds::all());
    }
    engine.sweep();
    saved
}

/// A store that is being closed. When it is dropped, it is closed.
struct Ending<'c> {
    engine: &'c Engine,
    closing: Closing<'c>,
}

impl Ending<'_> {
    /// Returns when no thread works for the store any more.
    fn end_work(&self) {
        self.engine.end_work();
        self.closing.wait_for_calls();
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.end_work();
        self.closing.shut();
        if let Some(memory) = &self.engine.memory {
            memory.leave();
        }
        self.engine.commit.writer().let_go_of_files();
        self.engine.manifest().let_go_of_files();
        // Readers that see this version see that the store is closed.
        let last = self.engine.current.hold();
        self.engine.current.store(Arc::new(Version::closed(&last)));
        drop(last);
        // Of tables that a scan or a pinned tree still holds.
        self.engine.table_files.files.close_all();
        drop(lock(&self.engine.lock).take());
        let path = self.engine.table_files.folder.path();
        self.engine.env.tell(Event::Closed { path });
    }
}
