//! Whether and how often to watch a tree, as typed on the command line.

use std::time::Duration;

use clap::Args;

/// Whether to watch, and how often to look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WatchArgs {
    /// Draw the tree while it lives: q closes the picture, p holds it. With --json: one look on
    /// each line. Whoever loads or measures draws all of it, and what is measured takes a little
    /// longer; `inspect` draws the runs of a store that another process may have open, from its
    /// manifest, and changes nothing.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds, requires = "watch")]
    pub(crate) every: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "a number of seconds, like 0.5".to_string())?;
    let few = Duration::from_millis(20);
    match Duration::try_from_secs_f64(number) {
        Ok(time) if time >= few => Ok(time),
        _ => Err("at least 0.02 seconds".to_string()),
    }
}
