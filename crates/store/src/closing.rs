//! How a store is closed.
//! ```text
//! callers refused -> log saved -> threads ended, calls ended -> log synced -> image -> sweep -> tables let go -> closed -> unlocked
//! ```
//! Invariant: the lock goes last, when nothing of the store can touch a file any more, also where a step panics.

use crate::core::Core;
use crate::error::Result;
use crate::life::Closing;
use crate::sync::{Arc, JoinHandle, Mutex, lock};
use crate::version::Version;

/// Threads that end when their store is stopped.
pub(crate) type Threads = Mutex<Vec<JoinHandle<()>>>;

/// Closes a store and ends its threads; does nothing if it is closed. The error is what could not be made durable.
pub(crate) fn close(core: &Core, threads: &Threads) -> Result<()> {
    let Some(closing) = core.life().begin_close()? else { return Ok(()) };
    let ending = Ending { core, threads, closing };
    // While the threads can flush: entries of a log that has failed are in memory only.
    let saved = core.commit.leave_if_failed(core);
    ending.end_work();
    core.abandon_work();
    let saved = saved.and_then(|()| core.commit.close(core));
    write_image(core);
    core.sweep();
    saved
}

/// Leaves an image of the filter for the next open. A session that has not changed the tree writes nothing.
fn write_image(core: &Core) {
    if core.installer().has_changed {
        // Without an image the filter is read from the runs.
        let _ = crate::image::write(core, &crate::key_bounds::KeyBounds::all());
    }
}

/// A store that is being closed. When it is dropped, it is closed.
struct Ending<'c> {
    core: &'c Core,
    threads: &'c Threads,
    closing: Closing<'c>,
}

impl Ending<'_> {
    /// Returns when no thread works for the store any more.
    fn end_work(&self) {
        self.core.stop();
        for thread in lock(self.threads).drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
        self.closing.wait_for_calls();
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.end_work();
        self.closing.shut();
        self.core.commit.let_go_of_files();
        self.core.installer().manifest.let_go_of_files();
        // Readers who see this version see that the store is closed.
        let last = self.core.current.hold();
        self.core.current.store(Arc::new(Version::closed(&last)));
        drop(last);
        // Of tables that a scan or a pinned tree still has.
        self.core.shelf.files.close_all();
        drop(lock(&self.core.lock).take());
    }
}
