//! Handles signals for processes that draw on the terminal, have temporary folders, or print last
//! words.
//! ```text
//! SIGTERM, SIGINT, SIGHUP --> a thread: waits until nothing is half drawn, restores the terminal,
//!                             removes the folders, says what is kept --> the signal's own end
//! Ctrl-C while the picture is there: a key --> the same
//! ```
//! The main thread holds the lock of standard output as long as it runs. So the signal thread has
//! its own handle on the terminal.
//! Invariants: the process still ends by the signal, as it would without picture and folders;
//! shells report 130 or 143. A signal that was ignored when the process began, as with `nohup`,
//! stays ignored.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{LeaveAlternateScreen, disable_raw_mode};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::process::failure::Failure;
use crate::process::{message, temporary};

/// Whether the terminal shows a picture. The lock is held while something is drawn.
static HAS_PICTURE: Mutex<bool> = Mutex::new(false);

/// A drawing in progress, which signals do not interrupt.
pub(crate) struct Drawing {
    _held: MutexGuard<'static, bool>,
}

impl Drawing {
    /// Begins a drawing. `leaves_picture`: whether the terminal shows a picture afterwards.
    pub(crate) fn begin(leaves_picture: bool) -> Self {
        let mut held = HAS_PICTURE.lock().unwrap_or_else(PoisonError::into_inner);
        *held = leaves_picture;
        Drawing { _held: held }
    }
}

type Words = Box<dyn Fn() -> String + Send>;

static LAST_WORDS: Mutex<Option<Words>> = Mutex::new(None);

/// While it lives, a signal that ends the process first prints what the work leaves behind.
pub(crate) struct LastWords(());

impl LastWords {
    /// `words` describes what is kept of the work at that time. It must not take a lock that the
    /// work may hold.
    pub(crate) fn new(words: impl Fn() -> String + Send + 'static) -> Result<Self, Failure> {
        end_by_signal().map_err(|error| Failure::Data(format!("signals: {error}")))?;
        *last_words() = Some(Box::new(words));
        Ok(LastWords(()))
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        *last_words() = None;
    }
}

fn last_words() -> MutexGuard<'static, Option<Words>> {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say_last_words() {
    if let Some(words) = &*last_words() {
        // The current line shows a bar, or ^C.
        if std::io::stderr().is_terminal() {
            let _ = std::io::stderr().write_all(b"\n");
        }
        message::warning(&format!("interrupted: {}", words()));
    }
}

/// Installs the handler. A signal that ends the process then first restores the terminal (standard
/// output), if it shows a picture, and removes temporary folders.
pub(crate) fn end_by_signal() -> std::io::Result<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = listen());
    result
}

fn listen() -> std::io::Result<()> {
    let terminal = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let ignored = ignored_signals();
    let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_in(ignored, *signal));
    let mut signals = Signals::new(heard)?;
    std::thread::spawn(move || signals.forever().for_each(|signal| end(signal, &terminal)));
    Ok(())
}

/// Ends the process like Ctrl-C on a terminal without a picture. Requires: nothing is being drawn.
pub(crate) fn interrupt() -> ! {
    say_last_words();
    let removed = temporary::remove_all();
    // SIGINT is not handled here, so this ends the process.
    let _ = emulate_default_handler(SIGINT);
    drop(removed);
    std::process::abort();
}

fn end(signal: i32, mut terminal: &File) {
    let has_picture = HAS_PICTURE.lock().unwrap_or_else(PoisonError::into_inner);
    if *has_picture {
        // The process ends in any case: a terminal that is gone needs no restoring.
        let _ = disable_raw_mode();
        let _ = execute!(terminal, LeaveAlternateScreen, Show);
    }
    say_last_words();
    let _removed = temporary::remove_all();
    // This fails only for signals that cannot be handled, and these can.
    let _ = emulate_default_handler(signal);
}

/// Returns the signals that the process ignored when it began, as bits. Without /proc, none are
/// known.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether the mask has the signal. Signal number 1 has the lowest bit.
fn is_in(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}
