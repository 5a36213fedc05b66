//! Closes a store.
//! ```text
//! callers refused -> log saved -> threads and calls ended -> what has no log flushed
//!                 -> failed edits undone -> log synced -> image -> sweep
//!                 -> tables released -> closed -> unlocked
//! ```
//! Invariant: the folder's lock is released last, when no part of the store can touch a file any
//! more, even if a step panics.

use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::Result;
use crate::events::Event;
use crate::storage::life::Closing;
use crate::sync::{Arc, lock};
use crate::tree::guard_image;
use crate::tree::version::Version;
use crate::write::engine::Engine;
use crate::write::keyspaces::Keyspaces;

/// A tree with at most this many blocks can be read as fast as an image of its filter.
const BLOCKS_WITHOUT_IMAGE: usize = 4;

/// Closes a store and ends its background work. Does nothing if it is closed already. An error says
/// what could not be made durable. `main`: the default tree.
pub(crate) fn close(main: &Arc<Engine>, keyspaces: &Keyspaces) -> Result<()> {
    let Some(closing) = main.life().begin_close()? else { return Ok(()) };
    let ending = Ending { main, keyspaces, closing };
    main.commit.locks.end_waits(None);
    // Done while the threads can still flush: the entries of a failed log are only in memory.
    let saved = main.commit.writer().leave_if_failed(main);
    ending.end_work();
    let engines = ending.engines();
    let saved = saved.and(flush_unlogged(&engines));
    engines.iter().for_each(|engine| engine.abandon_work());
    let mut writer = main.commit.writer();
    // Even if something else was not saved: the next opening would find what has failed.
    let is_certain = main.commit.trees.make_certain(main);
    let saved = saved.and_then(|()| writer.close(main)).and(is_certain);
    drop(writer);
    for engine in &engines {
        // If the session has not changed the tree, nothing is written.
        if engine.installer().has_changed && is_worth_an_image(engine) {
            // Without an image, the next opening reads the filter from the runs.
            let _ = guard_image::write(engine, &KeyBounds::all());
        }
    }
    main.sweep();
    saved
}

/// Flushes the trees that have no log. A failure does not keep the others from being flushed.
/// Requires: no thread works for the store.
fn flush_unlogged(engines: &[Arc<Engine>]) -> Result<()> {
    let unlogged = engines.iter().filter(|engine| !engine.has_log());
    let flushed = unlogged.map(|engine| engine.commit.writer().flush_here(engine));
    flushed.fold(Ok(()), Result::and)
}

/// Whether an image of the filter is faster to read than the tables. There may be thousands of key
/// spaces with a block each, and each image costs three syncs.
fn is_worth_an_image(engine: &Engine) -> bool {
    let blocks = || engine.current.pin().files().map(|table| table.block_count()).sum::<usize>();
    engine.keyspace == KeyspaceId::DEFAULT || blocks() > BLOCKS_WITHOUT_IMAGE
}

/// A store that is being closed. Dropping this completes the closing.
struct Ending<'c> {
    main: &'c Arc<Engine>,
    keyspaces: &'c Keyspaces,
    closing: Closing<'c>,
}

impl Ending<'_> {
    fn engines(&self) -> Vec<Arc<Engine>> {
        std::iter::once(Arc::clone(self.main)).chain(self.keyspaces.all()).collect()
    }

    /// Returns when no thread works for the store any more.
    fn end_work(&self) {
        self.engines().iter().for_each(|engine| engine.end_work());
        self.closing.wait_for_calls();
        // A call may have opened another tree meanwhile.
        self.engines().iter().for_each(|engine| engine.end_work());
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.end_work();
        self.closing.shut();
        let engines = self.engines();
        engines.iter().for_each(|engine| engine.release());
        self.main.commit.writer().let_go_of_files();
        self.main.manifest().let_go_of_files();
        for engine in &engines {
            // Readers of this version learn from it that the store is closed.
            let last = engine.current.hold();
            engine.current.store(Arc::new(Version::closed(&last)));
        }
        self.main.logs.release_values();
        drop(engines);
        self.keyspaces.clear();
        self.main.table_files.values.store.close_all();
        // Closes files of tables that a scan or a pinned tree still holds.
        self.main.table_files.files.close_all();
        drop(lock(&self.main.lock).take());
        let path = self.main.table_files.folder.path();
        self.main.env.tell(Event::Closed { path });
    }
}
