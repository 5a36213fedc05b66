//! Watches a tree while it changes: `load --watch`, `compact --watch`, `bench write --watch`,
//! `bench read --watch`, `inspect --watch`.
//! ```text
//! main thread    look, keys, look, keys ...  --> terminal, or a line of JSON for each look
//! other threads  load, write, merge
//! ```
//! Only one process at a time has a store open. Only its memory has memtables, open merges, probes
//! and stalls, so the process that loads also draws. This needs no socket, no file of statistics
//! that a crash leaves behind, and no second source of truth. `inspect --watch` is for all other
//! stores. It reads the manifest again and again, which needs no lock and changes nothing. It shows
//! the installed runs; the rest is unknown.
//!
//! Invariants: work goes on as if unwatched, even after the picture is closed. The terminal is
//! restored, even after a panic, and before a signal ends the process.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use serde_json::json;
use trommel::Db;
use trommel_lab::Progress;

use crate::args::store::OpenStore;
use crate::args::watch::WatchArgs;
use crate::output::progress::StageBar;
use crate::process::failure::Failure;
use crate::process::signals::{Drawing, end_by_signal, interrupt};
use crate::watch::tree_snapshot::TreeSnapshot;
use crate::watch::view::picture;

/// Takes and shows snapshots of a tree, again and again.
pub(crate) struct Watcher<'o> {
    every: Duration,
    begun: Instant,
    /// The last snapshot, and when it was taken.
    last: Option<(Instant, TreeSnapshot)>,
    looks: u64,
    shown: WatchOutput<'o>,
    /// The first error of showing; it is reported at the end, so that work goes on.
    failure: Option<Failure>,
}

enum WatchOutput<'o> {
    Screen(Box<Screen>),
    Lines(&'o mut dyn Write),
    /// The picture was closed.
    Nowhere,
}

impl<'o> Watcher<'o> {
    /// Creates the watcher. None: `--watch` was not given.
    pub(crate) fn new(
        arguments: WatchArgs,
        json: bool,
        out: &'o mut dyn Write,
    ) -> Result<Option<Self>, Failure> {
        if !arguments.watch {
            return Ok(None);
        }
        let shown = match json {
            true => WatchOutput::Lines(out),
            false if std::io::stdout().is_terminal() => {
                WatchOutput::Screen(Box::new(Screen::open()?))
            }
            false => {
                let problem = "--watch draws in a terminal, and this is none; --json prints looks";
                return Err(Failure::Usage(problem.into()));
            }
        };
        let (last, failure) = (None, None);
        let begun = Instant::now();
        Ok(Some(Watcher { every: arguments.every, begun, last, looks: 0, shown, failure }))
    }

    /// Handles pressed keys. Returns whether a look is due.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_time = self.last.as_ref().is_none_or(|(when, _)| when.elapsed() >= self.every);
        let WatchOutput::Screen(screen) = &mut self.shown else {
            return is_time && !self.is_closed();
        };
        match screen.hear() {
            Ok(KeyAction::Nothing) => is_time && !screen.is_held,
            Ok(KeyAction::Redraw) => {
                self.draw_again();
                false
            }
            Ok(KeyAction::Close) => {
                self.shown = WatchOutput::Nowhere;
                false
            }
            Ok(KeyAction::Interrupt) => {
                // Dropping the screen restores the terminal.
                self.shown = WatchOutput::Nowhere;
                interrupt();
            }
            Err(error) => {
                self.fail(error.into());
                false
            }
        }
    }

    /// Whether the picture was closed.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.shown, WatchOutput::Nowhere)
    }

    /// Returns the number of looks so far.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Shows a snapshot.
    pub(crate) fn show(&mut self, snapshot: TreeSnapshot) {
        let when = Instant::now();
        let of_this_store = self.last.take().filter(|(_, last)| last.store == snapshot.store);
        let seconds = of_this_store.as_ref().map_or(0.0, |(then, _)| (when - *then).as_secs_f64());
        let before = of_this_store.map(|(_, snapshot)| snapshot);
        let shown = match &mut self.shown {
            WatchOutput::Nowhere => Ok(()),
            WatchOutput::Screen(screen) => screen.draw(before, &snapshot, seconds),
            WatchOutput::Lines(out) => {
                let rates = before.and_then(|before| snapshot.rates(&before, seconds));
                let at = (when - self.begun).as_secs_f64();
                let line = json!({ "seconds": at, "tree": &snapshot, "per_second": rates });
                writeln!(out, "{line}").and_then(|()| out.flush())
            }
        };
        self.last = Some((when, snapshot));
        self.looks += 1;
        if let Err(error) = shown {
            self.fail(error.into());
        }
    }

    fn draw_again(&mut self) {
        if let WatchOutput::Screen(screen) = &mut self.shown
            && let Err(error) = screen.draw_last()
        {
            self.fail(error.into());
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.shown = WatchOutput::Nowhere;
        self.failure = Some(failure);
    }

    /// Ends watching: restores the terminal, and returns the error.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// The least pause between two looks.
const NAP: Duration = Duration::from_millis(20);

/// Runs `work` in another thread, so that this one can call `look` repeatedly, even while the store
/// waits.
pub(crate) fn beside<T: Send>(work: impl FnOnce() -> T + Send, mut look: impl FnMut()) -> T {
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        while !working.is_finished() {
            look();
            std::thread::sleep(NAP);
        }
        working.join().expect("work does not panic")
    })
}

/// Runs `work` on a store while a watcher shows it.
pub(crate) fn watched(
    mut watcher: Watcher<'_>,
    db: &OpenStore,
    work: impl FnOnce() -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let name = db.db.path().display().to_string();
    let worked = beside(work, || {
        if watcher.is_due()
            && let Ok(stats) = db.stats()
        {
            watcher.show(TreeSnapshot::of_stats(&name, &stats));
        }
    });
    watcher.show(TreeSnapshot::of_stats(&name, &db.stats()?));
    watcher.end()?;
    worked
}

/// The effect of a pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyAction {
    Nothing,
    Redraw,
    Close,
    Interrupt,
}

/// The terminal. Dropping it restores the terminal.
struct Screen {
    terminal: DefaultTerminal,
    is_held: bool,
    /// The last drawing: its snapshot, the previous one, and the seconds between them.
    drawn: Option<(Option<TreeSnapshot>, TreeSnapshot, f64)>,
}

impl Screen {
    fn open() -> std::io::Result<Self> {
        end_by_signal()?;
        let _drawing = Drawing::begin(true);
        Ok(Screen { terminal: ratatui::try_init()?, is_held: false, drawn: None })
    }

    fn hear(&mut self) -> std::io::Result<KeyAction> {
        while event::poll(Duration::ZERO)? {
            let heard = match event::read()? {
                Event::Key(key) => self.pressed(key),
                Event::Resize(..) => KeyAction::Redraw,
                _ => KeyAction::Nothing,
            };
            if heard != KeyAction::Nothing {
                return Ok(heard);
            }
        }
        Ok(KeyAction::Nothing)
    }

    fn pressed(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Nothing;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                KeyAction::Interrupt
            }
            KeyCode::Char('q') | KeyCode::Esc => KeyAction::Close,
            KeyCode::Char('p') | KeyCode::Char(' ') => {
                self.is_held = !self.is_held;
                KeyAction::Redraw
            }
            _ => KeyAction::Nothing,
        }
    }

    fn draw(
        &mut self,
        before: Option<TreeSnapshot>,
        now: &TreeSnapshot,
        seconds: f64,
    ) -> std::io::Result<()> {
        self.drawn = Some((before, now.clone(), seconds));
        self.draw_last()
    }

    fn draw_last(&mut self) -> std::io::Result<()> {
        let Some((before, now, seconds)) = &self.drawn else { return Ok(()) };
        let _drawing = Drawing::begin(true);
        let keys = if self.is_held { "held: p goes on, q closes" } else { "q closes, p holds" };
        self.terminal.draw(|frame| {
            let rows = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]);
            let [above, below] = rows.areas(frame.area());
            let size = (above.width, above.height);
            frame.render_widget(picture(before.as_ref(), now, *seconds, size), above);
            frame.render_widget(Line::from(keys).dim(), below);
        })?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _drawing = Drawing::begin(false);
        ratatui::restore();
    }
}

/// A listener of a measurement: a bar, or a watcher of its store.
pub(crate) enum Listener<'o> {
    Bar(StageBar),
    Watcher(Box<Watcher<'o>>),
}

impl<'o> Listener<'o> {
    pub(crate) fn new(
        watch: WatchArgs,
        json: bool,
        out: &'o mut dyn Write,
    ) -> Result<Self, Failure> {
        let watcher = Watcher::new(watch, json, out)?;
        Ok(match watcher {
            Some(watcher) => Listener::Watcher(Box::new(watcher)),
            None => Listener::Bar(StageBar::default()),
        })
    }

    /// Ends listening: restores the terminal, and returns the first error.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self {
            Listener::Bar(_) => Ok(()),
            Listener::Watcher(watcher) => watcher.end(),
        }
    }
}

impl Progress for Listener<'_> {
    fn stage(&mut self, name: &str, steps: u64) {
        if let Listener::Bar(bar) = self {
            bar.stage(name, steps);
        }
    }

    fn advance(&mut self, steps: u64) {
        if let Listener::Bar(bar) = self {
            bar.advance(steps);
        }
    }

    fn look(&mut self, db: &Db) {
        if let Listener::Watcher(watcher) = self
            && watcher.is_due()
            && let Ok(stats) = db.stats()
        {
            watcher.show(TreeSnapshot::of_stats(&db.path().display().to_string(), &stats));
        }
    }
}
