//! Signals that end a process whose picture is on the terminal.
//! ```text
//! SIGTERM, SIGINT, SIGHUP --> a thread: waits until nothing is half drawn, gives the terminal back --> the signal's own end
//! ```
//! (Ctrl-C is a key while the picture is there.) The program holds the lock of its standard output as long as it runs, so the thread has a handle
//! of its own on the terminal. Invariant: the process ends as it would have without a picture, by the signal.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{LeaveAlternateScreen, disable_raw_mode};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Whether the terminal has a picture. Held while something is drawn.
static HAS_PICTURE: Mutex<bool> = Mutex::new(false);

/// Something is being drawn: no signal ends the process before it is done.
pub(crate) struct Drawing {
    _held: MutexGuard<'static, bool>,
}

impl Drawing {
    /// `leaves_picture`: there is one when this is done.
    pub(crate) fn begin(leaves_picture: bool) -> Self {
        let mut held = HAS_PICTURE.lock().unwrap_or_else(PoisonError::into_inner);
        *held = leaves_picture;
        Drawing { _held: held }
    }
}

/// From now on signals that end the process give the terminal, which is standard output, back first, if it has a picture.
pub(crate) fn end_by_signal() -> std::io::Result<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = listen());
    result
}

fn listen() -> std::io::Result<()> {
    let terminal = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || wait(signals, terminal));
    Ok(())
}

fn wait(mut signals: Signals, mut terminal: File) {
    for signal in signals.forever() {
        let has_picture = HAS_PICTURE.lock().unwrap_or_else(PoisonError::into_inner);
        if *has_picture {
            // The process ends in any case: a terminal that is gone needs nothing back.
            let _ = disable_raw_mode();
            let _ = execute!(terminal, LeaveAlternateScreen, Show);
        }
        // Only signals that cannot be handled fail here, and those are none of them.
        let _ = emulate_default_handler(signal);
    }
}
