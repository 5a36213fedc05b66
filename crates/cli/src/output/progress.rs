//! Progress of long work, on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use trommel_lab::Progress;

/// A bar for each stage of a measurement. Draws nothing if standard error is no terminal.
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
    /// A bar that also shows steps per second. A stage of 0 steps has no known end.
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

/// A bar over the bytes of a file, short enough for 80 columns. If the size is unknown, it is a
/// count of bytes.
pub(crate) fn byte_bar(total: Option<u64>) -> ProgressBar {
    match total {
        Some(total) => {
            let template = "loading [{bar:16}] {bytes}/{total_bytes}  {msg}  {eta} left";
            ProgressBar::new(total).with_style(style(template))
        }
        None => ProgressBar::new_spinner()
            .with_style(style("loading {bytes}  {bytes_per_sec}  {msg}  {elapsed}")),
    }
}

/// A count of bytes that merges have written: their total is unknown.
pub(crate) fn merge_bar() -> ProgressBar {
    ProgressBar::new_spinner()
        .with_style(style("merging {bytes}  {bytes_per_sec}  {msg}  {elapsed}"))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates in this file are well formed")
}
