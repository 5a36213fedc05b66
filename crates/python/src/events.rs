//! What happens in a store, told to Python's `logging`.
//! ```text
//! thread of the store --try_send--> queue --next()--> a thread of Python --> logging
//! ```
//! Invariants: a thread of the store neither waits for the queue nor takes the interpreter's lock.
//! What finds no room is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use trommel::Environment;
use trommel::events::{Event, Listener};

use crate::buffers::Lifetime;
use crate::calls::{self, Process, lock};

/// Events that wait at most.
const ROOM: usize = 1024;

/// Levels of `logging`.
const DEBUG: u8 = 10;
const INFO: u8 = 20;
const WARNING: u8 = 30;
const ERROR: u8 = 40;

/// What is logged: its name, its level, its text.
type Told = (&'static str, u8, String);

/// Events of a store, in their order.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct EventQueue {
    sender: SyncSender<Told>,
    receiver: Mutex<Receiver<Told>>,
    lost: Arc<AtomicU64>,
    process: Process,
}

struct Sending {
    sender: SyncSender<Told>,
    lost: Arc<AtomicU64>,
}

impl Listener for Sending {
    fn event(&self, event: &Event<'_>) {
        let Some(told) = told(event) else { return };
        if let Err(TrySendError::Full(_)) = self.sender.try_send(told) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn told(event: &Event<'_>) -> Option<Told> {
    let ms = |time: &Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    Some(match event {
        Event::Opened { path, runs, time } => {
            ("opened", INFO, format!("opened {}: {runs} runs, in {}", path.display(), ms(time)))
        }
        Event::Flushed { bytes, time } => {
            ("flushed", DEBUG, format!("flushed a run of {bytes} bytes in {}", ms(time)))
        }
        Event::Merged { runs, bytes, time } => {
            ("merged", DEBUG, format!("merged {runs} runs into {bytes} bytes in {}", ms(time)))
        }
        Event::WriterSlowed { time } => {
            ("slowed", DEBUG, format!("a writer was slowed down by {}", ms(time)))
        }
        Event::WritersStopped => ("stopped", WARNING, "writers wait for flushes or merges".into()),
        Event::WritersGoOn { time } => ("go-on", INFO, format!("writers go on after {}", ms(time))),
        Event::Failed { work, error } => {
            ("failed", ERROR, format!("{work} has failed, and is tried again: {error}"))
        }
        Event::Closed { path } => ("closed", INFO, format!("closed {}", path.display())),
        _ => return None,
    })
}

impl EventQueue {
    /// An environment whose listener fills the queue.
    pub(crate) fn environment(&self) -> Environment {
        let (sender, lost) = (self.sender.clone(), Arc::clone(&self.lost));
        Environment::new().listener(Arc::new(Sending { sender, lost }))
    }
}

#[pymethods]
impl EventQueue {
    #[new]
    fn new() -> EventQueue {
        let (sender, receiver) = sync_channel(ROOM);
        let (receiver, lost) = (Mutex::new(receiver), Arc::default());
        EventQueue { sender, receiver, lost, process: Process::current() }
    }

    /// The next event; None: there was none for so long.
    fn next(&self, py: Python<'_>, timeout: Lifetime) -> PyResult<Option<Told>> {
        self.process.check(py)?;
        let wait = || {
            let time = if calls::is_exiting() { Duration::ZERO } else { timeout.0 };
            lock(&self.receiver).recv_timeout(time)
        };
        match calls::computing(py, wait)? {
            Ok(told) => Ok(Some(told)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    /// How many found no room.
    #[getter]
    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
