//! The threads of an open store, each of which outlives a panic.
//! ```text
//! keeper, flush, merge ...   loop -panic-> no caller waits for it -> a pause, longer each time
//!                            ^------------------------------------------------------------'
//! ```
//! What panics is user code (`Storage`, `Clock`) or a mistake of ours. It counts as a failure: the
//! step is undone, the failure is noted, and the step is tried again.
//!
//! Invariant: a thread ends when the store is stopped, and not before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::plan::background::Background;
use crate::sync::{Arc, Builder, JoinHandle};
use crate::write::engine::Engine;
use crate::write::work::Kind;
use crate::write::workers::{RETRY_FIRST, RETRY_LONGEST};

/// Starts the threads that the options ask for, and adds each to `started`. After an error some
/// run.
pub(crate) fn start_threads(engine: &Arc<Engine>, started: &mut Vec<JoinHandle<()>>) -> Result<()> {
    let Background::Threads(count) = engine.table_files.options.background else {
        return Ok(());
    };
    started.push(start_thread(engine, Kind::Keeper)?);
    started.push(start_thread(engine, Kind::Flush)?);
    for _ in 0..count {
        started.push(start_thread(engine, Kind::Merge)?);
    }
    Ok(())
}

fn start_thread(engine: &Arc<Engine>, kind: Kind) -> Result<JoinHandle<()>> {
    let engine = Arc::clone(engine);
    let name = format!("trommel-{kind:?}").to_lowercase();
    Builder::new()
        .name(name)
        .spawn(move || live(&engine, kind))
        .map_err(Error::io("a background thread"))
}

/// The life of a thread.
fn live(engine: &Engine, kind: Kind) {
    let mut pause = Duration::ZERO;
    loop {
        let begun = Instant::now();
        let work = || match kind {
            Kind::Flush => engine.flush_loop(),
            Kind::Merge => engine.merge_loop(),
            Kind::Keeper => engine.keep_loop(),
        };
        if catch_unwind(AssertUnwindSafe(work)).is_ok() {
            return;
        }
        pause = pause_after(pause, begun.elapsed());
        // Writes do not wait for the keeper.
        if kind != Kind::Keeper {
            engine.note_panic(kind);
        }
        if !engine.begins_anew_after(pause) {
            return;
        }
    }
}

/// The pause after a panic, from the last one and the time that went well since.
fn pause_after(last: Duration, well: Duration) -> Duration {
    let doubled = if well > RETRY_LONGEST { RETRY_FIRST } else { 2 * last };
    doubled.clamp(RETRY_FIRST, RETRY_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_panics_follow_each_other() {
        let soon = Duration::from_millis(1);
        let first = pause_after(Duration::ZERO, soon);
        assert_eq!(first, RETRY_FIRST);
        assert_eq!(pause_after(first, soon), 2 * first);
        assert_eq!(pause_after(RETRY_LONGEST, soon), RETRY_LONGEST);
        assert_eq!(pause_after(RETRY_LONGEST, 2 * RETRY_LONGEST), RETRY_FIRST);
    }
}
