//! `backup`, `backups`, `restore`: makes, lists and restores generations of a store in a folder.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use trommel::backup::{BackupDamage, Backups, Generation, Pruned, Unlogged, Until};
use trommel::{Background, Options};

use crate::args::store::{WholeStore, open_or_follow_whole, open_whole};
use crate::output::progress::CallBar;
use crate::output::table::{TextTable, bytes, counted, whole};
use crate::process::failure::{Failure, Outcome, Status, told};
use crate::process::signals::LastWords;

pub(crate) const BACKUP_EXAMPLES: &str = "Examples: a generation, of which only what is new is stored; what was written since it\n  \
    trommel backup --db words words-backups\n  \
    trommel backup --db words words-backups --changes";

pub(crate) const BACKUPS_EXAMPLES: &str = "Examples: what is there; whether it is as it was stored; all but the newest three removed\n  \
    trommel backups words-backups\n  \
    trommel backups words-backups --verify\n  \
    trommel backups words-backups --keep 3";

pub(crate) const RESTORE_EXAMPLES: &str = "Examples: the newest generation; another one; as of a write, and as of a time in seconds since 1970\n  \
    trommel restore words-backups restored\n  \
    trommel restore words-backups restored --generation 2\n  \
    trommel restore words-backups restored --until 4711\n  \
    trommel restore words-backups restored --until @1764268800";

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    /// The folder of its backups. It is made if there is none.
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,
    /// Store no generation, but the changes since the last one or since this was done before. The
    /// store has to keep its logs: see `--kept-log-bytes`.
    #[arg(long)]
    changes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupsArgs {
    /// The folder of backups.
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,
    /// Read all generations, or this one, and check every byte. Exit status 3 if any is damaged.
    #[arg(long, value_name = "GENERATION", num_args = 0..=1)]
    verify: Option<Option<u64>>,
    /// Remove all generations but the newest N, and what only they needed.
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The folder of backups.
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,
    /// The folder for the store: new, or empty.
    #[arg(value_name = "NEW-DIR")]
    dir: PathBuf,
    /// Which generation; else the newest.
    #[arg(long, value_name = "N", conflicts_with = "until")]
    generation: Option<u64>,
    /// The store as it was after the write with this number, or at a time: `@` and seconds since
    /// 1970. Of the changes that were stored since a generation.
    #[arg(long, value_name = "NUMBER|@SECONDS", value_parser = moment)]
    until: Option<Until>,
    /// With `--until`: key spaces without a log as they were at the generation.
    #[arg(long, requires = "until")]
    leave_unlogged: bool,
}

fn moment(text: &str) -> Result<Until, String> {
    let wrong =
        || format!("'{text}' is neither the number of a write nor @ and seconds since 1970");
    match text.strip_prefix('@') {
        Some(seconds) => time(seconds).map(Until::Time).ok_or_else(wrong),
        None => text.parse().map(Until::Sequence).map_err(|_| wrong()),
    }
}

/// Parses seconds since 1970, to the nearest millisecond: that is how exactly backups know their
/// times, and binary fractions may be a little less than decimal ones.
fn time(seconds: &str) -> Option<Duration> {
    let milliseconds = (seconds.parse::<f64>().ok()? * 1000.0).round();
    let is_time = (0.0..u64::MAX as f64).contains(&milliseconds);
    is_time.then(|| Duration::from_millis(milliseconds as u64))
}

/// Returns the text of a time, which `--until @` takes back.
fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

pub(crate) fn back_up(arguments: &BackupArgs, json: bool, out: &mut dyn Write) -> Outcome {
    if arguments.changes {
        return ship(arguments, json, out);
    }
    let store = open_or_follow_whole(&arguments.db)?;
    let backups = Backups::in_folder(&arguments.backups)?;
    let mut bar = CallBar::new("storing");
    let generation = match &store {
        WholeStore::Opened(db) => backups.back_up_with_progress(db, &mut bar.hear()),
        WholeStore::Followed(store) => {
            backups.back_up_followed_with_progress(store, &mut bar.hear())
        }
    }?;
    drop(bar);
    match store {
        WholeStore::Opened(db) => db.close()?,
        WholeStore::Followed(store) => store.close()?,
    }
    if json {
        writeln!(out, "{}", json!({ "ok": true, "generation": as_json(&generation) }))?;
    } else {
        let (files, size) = (generation.files.len() as u64, bytes(generation.bytes()));
        let (number, sequence) = (generation.number, generation.sequence);
        let files = counted(files, "file");
        writeln!(out, "generation {number}, up to write {sequence}: {files}, {size}")?;
    }
    Ok(Status::Fine)
}

/// Ships the changes since the last generation.
fn ship(arguments: &BackupArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let db = open_whole(&arguments.db)?;
    let shipped = Backups::in_folder(&arguments.backups)?.ship(&db)?;
    db.close()?;
    let (from, to, size) = (shipped.from, shipped.to, shipped.bytes);
    match json {
        true => {
            let report = json!({ "ok": true, "from": from, "to": to, "bytes": size });
            writeln!(out, "{report}")?;
        }
        false => writeln!(out, "changes behind write {from} up to {to}: {}", bytes(size))?,
    }
    Ok(Status::Fine)
}

pub(crate) fn list(arguments: &BackupsArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let backups = existing(&arguments.backups)?;
    let pruned = arguments.keep.map(|keep| backups.prune(keep)).transpose()?;
    let generations = backups.generations()?;
    let mut damage = Vec::new();
    if let Some(which) = arguments.verify {
        let numbers = generations.iter().map(|it| it.number);
        for number in numbers.filter(|number| which.is_none_or(|which| which == *number)) {
            damage.extend(backups.verify(number)?.damage);
        }
        if let Some(which) = which.filter(|it| generations.iter().all(|own| own.number != *it)) {
            // The error names the missing generation.
            backups.verify(which)?;
        }
    }
    let outcome = match damage.len() as u64 {
        0 => Ok(Status::Fine),
        count => Err(Failure::Damage(format!("{} damaged", counted(count, "object")))),
    };
    let listed = Listed { pruned, generations, damage };
    told(outcome, if json { writeln!(out, "{}", listed.as_json()) } else { listed.write_to(out) })
}

/// What was removed, what there is, and what of it is damaged.
struct Listed {
    pruned: Option<Pruned>,
    generations: Vec<Generation>,
    damage: Vec<BackupDamage>,
}

impl Listed {
    fn as_json(&self) -> serde_json::Value {
        let generations: Vec<_> = self.generations.iter().map(as_json).collect();
        let as_json =
            |it: &BackupDamage| json!({ "path": it.path.display().to_string(), "what": it.what });
        let damage: Vec<_> = self.damage.iter().map(as_json).collect();
        let removed = self.pruned.as_ref().map(|it| &it.generations);
        json!({ "generations": generations, "damage": damage, "removed": removed })
    }

    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if let Some(pruned) = &self.pruned {
            let (count, size) = (pruned.generations.len() as u64, bytes(pruned.bytes));
            writeln!(out, "removed: {}, {size}", counted(count, "generation"))?;
        }
        let mut table =
            TextTable::new(0, &["generation", "up to write", "seconds", "files", "bytes"]);
        for it in &self.generations {
            let (files, size) = (whole(it.files.len() as u64), bytes(it.bytes()));
            let (number, sequence) = (it.number.to_string(), it.sequence.to_string());
            table.row(vec![number, sequence, seconds(it.milliseconds), files, size]);
        }
        out.write_all(table.render().as_bytes())?;
        self.damage.iter().try_for_each(|it| writeln!(out, "{}", it.what))
    }
}

pub(crate) fn restore(arguments: &RestoreArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let (backups, dir) = (existing(&arguments.backups)?, &arguments.dir);
    let words = format!("{} is incomplete and no store: remove it", dir.display());
    let last_words = LastWords::new(move || words.clone())?;
    let mut bar = CallBar::new("restoring");
    let sequence = match arguments.until {
        Some(until) => {
            let options = Options::new().background(Background::Stepped);
            let unlogged = match arguments.leave_unlogged {
                true => Unlogged::AsOfGeneration,
                false => Unlogged::Refuse,
            };
            let to = (dir, options);
            backups.restore_until_with_progress(until, to, unlogged, &mut bar.hear())?
        }
        None => {
            let generations = backups.generations()?;
            let wanted = arguments.generation;
            let found = match wanted {
                Some(number) => generations.iter().find(|it| it.number == number),
                None => generations.last(),
            };
            // For a missing generation, the restore itself reports that.
            let number = found.map_or(wanted.unwrap_or_default(), |it| it.number);
            backups.restore_with_progress(number, dir, &mut bar.hear())?;
            found.map_or(0, |it| it.sequence)
        }
    };
    drop((bar, last_words));
    if json {
        let dir = dir.display().to_string();
        writeln!(out, "{}", json!({ "ok": true, "dir": dir, "sequence": sequence }))?;
    } else {
        writeln!(out, "restored in {}, as of write {sequence}", dir.display())?;
    }
    Ok(Status::Fine)
}

/// Opens the backups in an existing folder; reading does not create one.
fn existing(dir: &PathBuf) -> Result<Backups, Failure> {
    if !dir.is_dir() {
        return Err(trommel::Error::Missing { path: dir.clone() }.into());
    }
    Ok(Backups::in_folder(dir)?)
}

fn as_json(generation: &Generation) -> serde_json::Value {
    json!({
        "number": generation.number,
        "sequence": generation.sequence,
        "milliseconds": generation.milliseconds,
        "files": generation.files.len(),
        "bytes": generation.bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Fractions that are a little less in binary meant the millisecond before.
    fn times_are_exact_to_the_millisecond() {
        for milliseconds in [1_764_268_800_001, 1_764_268_800_700, 1_764_268_800_000, 500] {
            let text = format!("@{}", seconds(milliseconds));
            assert_eq!(moment(&text), Ok(Until::Time(Duration::from_millis(milliseconds))));
        }
        assert_eq!(moment("@0.5"), Ok(Until::Time(Duration::from_millis(500))));
        assert_eq!(moment("4711"), Ok(Until::Sequence(4711)));
        for wrong in ["@", "@-1", "@nan", "@inf", "yesterday"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
