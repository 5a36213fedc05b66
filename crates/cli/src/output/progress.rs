//! Shows the progress of long work on standard error, if that is a terminal.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use trommel::sorting::{SortProgress, SortStage};
use trommel_lab::Progress;

/// A bar for each stage of a measurement. It draws nothing if standard error is no terminal.
#[derive(Default)]
pub(crate) struct StageBar {
    bar: Option<ProgressBar>,
    rated: bool,
}

impl Progress for StageBar {
    fn stage(&mut self, name: &str, steps: u64) {
        self.finish();
        let template = match (self.rated, steps) {
            (false, _) => "{msg:32} [{bar:30}] {percent:>3} %  {elapsed}",
            (true, 0) => "{human_pos} {msg}  {per_sec}  {elapsed}",
            (true, _) => "[{bar:20}] {human_pos} {msg}  {per_sec}  {elapsed}",
        };
        let bar = ProgressBar::new(steps).with_style(style(template));
        bar.set_message(name.to_string());
        self.bar = Some(bar);
    }

    fn advance(&mut self, steps: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(steps);
        }
    }
}

impl StageBar {
    /// Returns a bar that also shows steps per second. A stage of 0 steps has no known end.
    pub(crate) fn rated() -> Self {
        StageBar { rated: true, bar: None }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for StageBar {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Returns a bar over the bytes of a file, which fits into 80 columns. If the size is unknown, it
/// only counts bytes.
pub(crate) fn byte_bar(total: Option<u64>) -> ProgressBar {
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.with_style(style(byte_template(total)))
}

fn byte_template(total: Option<u64>) -> &'static str {
    match total {
        Some(_) => "loading [{bar:16}] {bytes}/{total_bytes}  {msg}  {eta} left",
        None => "loading {bytes}  {bytes_per_sec}  {msg}  {elapsed}",
    }
}

/// Returns a counter of bytes that merges have written, whose total is unknown.
pub(crate) fn merge_bar() -> ProgressBar {
    ProgressBar::new_spinner()
        .with_style(style("merging {bytes}  {bytes_per_sec}  {msg}  {elapsed}"))
}

/// Returns a counter of entries read, whose total is unknown.
pub(crate) fn scan_bar() -> ProgressBar {
    ProgressBar::new_spinner().with_style(style("{human_pos} entries  {per_sec}  {elapsed}"))
}

const COUNT_TEMPLATE: &str = "{msg} [{bar:30}] {human_pos} of {human_len}  {per_sec}  {eta} left";

/// Returns a bar over about `total` entries.
pub(crate) fn count_bar(doing: &'static str, total: u64) -> ProgressBar {
    ProgressBar::new(total).with_style(style(COUNT_TEMPLATE)).with_message(doing)
}

/// Returns a listener that shows the progress of a sort whose input is under `bar`. It never stops
/// the sort.
pub(crate) fn show_sorting(bar: &ProgressBar) -> impl FnMut(SortProgress) -> ControlFlow<()> {
    let (input_bytes, mut shown) = (bar.length(), SortStage::Reading);
    move |SortProgress { stage, done, total, .. }| {
        let is_new = std::mem::replace(&mut shown, stage) != stage;
        let doing = match stage {
            SortStage::Merging => "merging sorted files",
            SortStage::Writing => "merging into the store",
            _ => {
                if is_new {
                    bar.set_style(style(byte_template(input_bytes)));
                    input_bytes.into_iter().for_each(|bytes| bar.set_length(bytes));
                }
                return ControlFlow::Continue(());
            }
        };
        if is_new {
            bar.set_style(style(COUNT_TEMPLATE));
            bar.set_message(doing);
        }
        bar.set_length(total);
        bar.set_position(done);
        ControlFlow::Continue(())
    }
}

/// A bar over the steps of a call of the store.
pub(crate) struct CallBar {
    bar: ProgressBar,
}

impl CallBar {
    pub(crate) fn new(doing: &'static str) -> Self {
        let template = "{msg} [{bar:30}] {percent:>3} %  {eta} left";
        CallBar { bar: ProgressBar::new(0).with_style(style(template)).with_message(doing) }
    }

    /// Returns a listener of the call, which never stops it.
    pub(crate) fn hear(&mut self) -> impl FnMut(trommel::tools::Progress) -> ControlFlow<()> {
        |progress| {
            self.bar.set_length(progress.total);
            self.bar.set_position(progress.done);
            ControlFlow::Continue(())
        }
    }
}

impl Drop for CallBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long a user waits before a message is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does work that may take long. After a while, a terminal shows what is being done.
pub(crate) fn patiently<T>(doing: &'static str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (working, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar =
                    ProgressBar::new_spinner().with_style(style("{spinner} {msg}  {elapsed}"));
                bar.set_message(doing);
                bar.enable_steady_tick(Duration::from_millis(100));
                // Returns an error when the work has ended, which sends nothing.
                let _ = ended.recv();
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(working);
        result
    })
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates in this file are well formed")
}
