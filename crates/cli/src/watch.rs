//! Watching a tree while it lives: `load --watch`, `compact --watch`, `bench write --watch`, `bench read --watch`, `inspect --watch`.
//! ```text
//! main thread    look, keys, look, keys ...  --> terminal, or a line of JSON for each look
//! other threads  load, write, merge
//! ```
//! One process at a time has a store open, and what moves fastest in it (memtables, open merges, probes, stalls) is in that
//! process's memory alone. So the process that loads draws: no socket, no file of statistics that a crash leaves behind, no second
//! account of the truth. `inspect --watch` is for all other stores: it reads the manifest again and again, which needs no lock and changes
//! nothing, shows the runs that are installed, and says of the rest that it is unknown.
//!
//! Invariants: work goes on as it would unwatched, whatever is drawn and when the picture is closed. The terminal is given back as
//! it was, after a panic and before a signal ends the process, too.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use serde_json::json;
use trommel::Db;
use trommel_lab::Progress;

use crate::failure::Failure;
use crate::progress::StageBar;
use crate::sight::Sight;
use crate::signals::{Drawing, end_by_signal, interrupt};
use crate::watch_view::picture;

/// Whether to watch, and how often to look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WatchArgs {
    /// Draw the tree while it lives: q closes the picture, p holds it. With --json: one look on each line. Whoever loads or measures
    /// draws all of it, and what is measured takes a little longer; `inspect` draws the runs of a store that another process
    /// may have open, from its manifest, and changes nothing.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds, requires = "watch")]
    every: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "a number of seconds, like 0.5".to_string())?;
    let few = Duration::from_millis(20);
    match Duration::try_from_secs_f64(number) {
        Ok(time) if time >= few => Ok(time),
        _ => Err("at least 0.02 seconds".to_string()),
    }
}

/// Someone who watches.
pub(crate) struct Watcher<'o> {
    every: Duration,
    begun: Instant,
    /// The last look, and when it was.
    last: Option<(Instant, Sight)>,
    looks: u64,
    shown: Shown<'o>,
    /// What went wrong with showing: told at the end, so that work goes on.
    failure: Option<Failure>,
}

enum Shown<'o> {
    Screen(Box<Screen>),
    Lines(&'o mut dyn Write),
    /// The picture was closed.
    Nowhere,
}

impl<'o> Watcher<'o> {
    /// None if nobody wants to watch.
    pub(crate) fn new(
        arguments: WatchArgs,
        json: bool,
        out: &'o mut dyn Write,
    ) -> Result<Option<Self>, Failure> {
        if !arguments.watch {
            return Ok(None);
        }
        let shown = match json {
            true => Shown::Lines(out),
            false if std::io::stdout().is_terminal() => Shown::Screen(Box::new(Screen::open()?)),
            false => {
                let problem = "--watch draws in a terminal, and this is none; --json prints looks";
                return Err(Failure::Usage(problem.into()));
            }
        };
        let (last, failure) = (None, None);
        let begun = Instant::now();
        Ok(Some(Watcher { every: arguments.every, begun, last, looks: 0, shown, failure }))
    }

    /// Hears keys. True: it is time to look.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_time = self.last.as_ref().is_none_or(|(when, _)| when.elapsed() >= self.every);
        let Shown::Screen(screen) = &mut self.shown else {
            return is_time && !self.is_closed();
        };
        match screen.hear() {
            Ok(Heard::Nothing) => is_time && !screen.is_held,
            Ok(Heard::Redraw) => {
                self.draw_again();
                false
            }
            Ok(Heard::Close) => {
                self.shown = Shown::Nowhere;
                false
            }
            Ok(Heard::Interrupt) => {
                // Dropping the screen gives the terminal back.
                self.shown = Shown::Nowhere;
                interrupt();
            }
            Err(error) => {
                self.fail(error.into());
                false
            }
        }
    }

    /// Nothing is shown any more.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.shown, Shown::Nowhere)
    }

    /// How often it has looked.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Shows a look.
    pub(crate) fn show(&mut self, sight: Sight) {
        let when = Instant::now();
        let of_this_store = self.last.take().filter(|(_, last)| last.store == sight.store);
        let seconds = of_this_store.as_ref().map_or(0.0, |(then, _)| (when - *then).as_secs_f64());
        let before = of_this_store.map(|(_, sight)| sight);
        let shown = match &mut self.shown {
            Shown::Nowhere => Ok(()),
            Shown::Screen(screen) => screen.draw(before, &sight, seconds),
            Shown::Lines(out) => {
                let rates = before.and_then(|before| sight.rates(&before, seconds));
                let at = (when - self.begun).as_secs_f64();
                let line = json!({ "seconds": at, "tree": &sight, "per_second": rates });
                writeln!(out, "{line}").and_then(|()| out.flush())
            }
        };
        self.last = Some((when, sight));
        self.looks += 1;
        if let Err(error) = shown {
            self.fail(error.into());
        }
    }

    fn draw_again(&mut self) {
        if let Shown::Screen(screen) = &mut self.shown
            && let Err(error) = screen.draw_last()
        {
            self.fail(error.into());
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.shown = Shown::Nowhere;
        self.failure = Some(failure);
    }

    /// Ends watching: gives the terminal back, and says what went wrong.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Between two looks of someone who watches, at least.
const NAP: Duration = Duration::from_millis(20);

/// Works in another thread, so that this one can look again and again, whatever the store is waiting for.
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

/// Works on a store while someone watches it.
pub(crate) fn watched(
    mut watcher: Watcher<'_>,
    db: &Db,
    work: impl FnOnce() -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let name = db.path().display().to_string();
    let worked = beside(work, || {
        if watcher.is_due()
            && let Ok(stats) = db.stats()
        {
            watcher.show(Sight::of_stats(&name, &stats));
        }
    });
    watcher.show(Sight::of_stats(&name, &db.stats()?));
    watcher.end()?;
    worked
}

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Redraw,
    Close,
    Interrupt,
}

/// The terminal. Dropping it gives it back as it was.
struct Screen {
    terminal: DefaultTerminal,
    is_held: bool,
    /// What was drawn last: the look, the one before, and the seconds between them.
    drawn: Option<(Option<Sight>, Sight, f64)>,
}

impl Screen {
    fn open() -> std::io::Result<Self> {
        end_by_signal()?;
        let _drawing = Drawing::begin(true);
        Ok(Screen { terminal: ratatui::try_init()?, is_held: false, drawn: None })
    }

    fn hear(&mut self) -> std::io::Result<Heard> {
        while event::poll(Duration::ZERO)? {
            let heard = match event::read()? {
                Event::Key(key) => self.pressed(key),
                Event::Resize(..) => Heard::Redraw,
                _ => Heard::Nothing,
            };
            if heard != Heard::Nothing {
                return Ok(heard);
            }
        }
        Ok(Heard::Nothing)
    }

    fn pressed(&mut self, key: KeyEvent) -> Heard {
        if key.kind == KeyEventKind::Release {
            return Heard::Nothing;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Heard::Interrupt,
            KeyCode::Char('q') | KeyCode::Esc => Heard::Close,
            KeyCode::Char('p') | KeyCode::Char(' ') => {
                self.is_held = !self.is_held;
                Heard::Redraw
            }
            _ => Heard::Nothing,
        }
    }

    fn draw(&mut self, before: Option<Sight>, now: &Sight, seconds: f64) -> std::io::Result<()> {
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

/// Listens to a measurement: a bar, or someone who watches its store.
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

    /// Ends listening: gives the terminal back, and says what went wrong.
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
            watcher.show(Sight::of_stats(&db.path().display().to_string(), &stats));
        }
    }
}
