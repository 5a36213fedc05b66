//! `man`: prints or writes the manual pages, which cargo does not install.
//! ```text
//! trommel man              the first page, as roff
//! trommel man --dir DIR    DIR/trommel.1, DIR/trommel-load.1, DIR/trommel-bench-read.1 ...
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use serde_json::json;

use crate::output::table::counted;
use crate::process::failure::{Failure, Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: where `man` looks; a look at the first\n  \
    trommel man --dir ~/.local/share/man/man1\n  trommel man | man -l -";

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(
    arguments: &ManArgs,
    mut program: Command,
    json: bool,
    out: &mut dyn Write,
) -> Outcome {
    program = program.disable_help_subcommand(true);
    program.build();
    let Some(dir) = &arguments.dir else {
        let page = page(&program)?;
        match json {
            true => writeln!(out, "{}", json!({ "page": String::from_utf8_lossy(&page) }))?,
            false => out.write_all(&page)?,
        }
        return Ok(Status::Fine);
    };
    let failed = |error: std::io::Error| Failure::Data(format!("{}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(failed)?;
    let pages = write_pages(&program, dir).map_err(failed)?;
    let dir = dir.display().to_string();
    match json {
        true => writeln!(out, "{}", json!({ "ok": true, "dir": dir, "pages": pages }))?,
        false => writeln!(out, "{} in {dir}", counted(pages, "page"))?,
    }
    Ok(Status::Fine)
}

/// Writes a page for the command, and for each visible command below it. Returns the number of
/// pages.
fn write_pages(command: &Command, dir: &Path) -> std::io::Result<u64> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(dir.join(format!("{name}.1")), page(command)?)?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| write_pages(command, dir)).try_fold(1, |sum, pages| Ok(sum + pages?))
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
