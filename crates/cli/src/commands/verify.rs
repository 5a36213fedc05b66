//! `verify`: reads everything and checks it.
//! ```text
//! opens with a guard         Db::verify: files, ages, and every key against the guard
//! opens, but not with that   Db::verify, without it
//! does not open              verify_files: each file by itself, unless it is open elsewhere
//! ```
//! Invariant: damage that stops one kind of check is reported, and other checks go on.

use std::io::Write;

use serde_json::json;
use trommel::Environment;
use trommel::GuardKind;
use trommel::tools::{LogCounts, VerifyReport, verify_files_with_progress};

use crate::args::store::{StoreArgs, is_anothers};
use crate::output::progress::CallBar;
use crate::output::table::{bytes, counted, whole};
use crate::process::failure::{Failure, Outcome, Status, told};

pub(crate) const EXAMPLES: &str = "Examples: all of a store, also of one that does not open; its keys against another guard; as JSON, for a program\n  \
    trommel verify --db words\n  \
    trommel verify --db words --guard blocked-bloom\n  \
    trommel verify --db words --json";

pub(crate) fn run(arguments: &StoreArgs, json: bool, out: &mut dyn Write) -> Outcome {
    arguments.only_default("all key spaces are checked")?;
    let checked = match check(arguments) {
        Ok(checked) => checked,
        Err(error) => {
            if json && error.tells_of_damage() {
                writeln!(out, "{}", json!({ "ok": false, "damage": [error.to_string()] }))?;
            }
            return Err(error.into());
        }
    };
    let report = &checked.report;
    let sound = report.damage.is_empty();
    let written = match json {
        true => writeln!(out, "{}", as_json(&checked)),
        false if sound => writeln!(out, "fine: {}", holds(report)),
        false => Ok(()),
    };
    let damage = || Failure::Damage(report.damage.join("\ntrommel: "));
    told(sound.then_some(Status::Fine).ok_or_else(damage), written)
}

fn as_json(Checked { report, opens }: &Checked) -> serde_json::Value {
    let LogCounts { files, bytes, groups, entries, .. } = report.logs;
    json!({
        "ok": report.damage.is_empty(), "opens": opens,
        "tables": report.tables, "entries": report.entries, "bytes": report.bytes,
        "logs": files, "log_bytes": bytes, "log_groups": groups, "log_entries": entries,
        "memtable_entries": report.memtable_entries, "damage": report.damage,
    })
}

/// Summarizes the contents of a store in one line.
fn holds(report: &VerifyReport) -> String {
    let (tables, entries) = (counted(report.tables, "table"), whole(report.entries));
    format!("{tables}, {entries} entries, {}; {}", bytes(report.bytes), logs(&report.logs))
}

/// Summarizes the logs.
pub(crate) fn logs(counts: &LogCounts) -> String {
    let files = counted(counts.files, "log");
    if counts.files == 0 {
        return files;
    }
    let (groups, entries) = (counted(counts.groups, "group"), whole(counts.entries));
    format!(
        "{files}, {}, with {entries} entries in {groups} that are in no table yet",
        bytes(counts.bytes)
    )
}

/// The result of the checks, and whether the store opens.
struct Checked {
    report: VerifyReport,
    opens: bool,
}

/// Checks with a guard, so that its answers are checked, too. If damage prevents the guard or the
/// opening, checks all files without, so that the report does not end at the first damage.
fn check(arguments: &StoreArgs) -> trommel::Result<Checked> {
    let mut bar = CallBar::new("verifying");
    let mut by = |guard: Option<GuardKind>| {
        let db = match guard {
            None => arguments.read(GuardKind::Grf),
            Some(guard) => arguments.read_with(guard),
        };
        db.and_then(|store| store.verify(&mut bar.hear()))
            .map(|report| Checked { report, opens: true })
    };
    let of_files = || {
        let mut bar = CallBar::new("verifying files");
        let environment = Environment::default();
        let report = verify_files_with_progress(&arguments.db, &environment, &mut bar.hear())?;
        Ok(Checked { report, opens: false })
    };
    let with_guard = by(None);
    let Some(first) = with_guard.as_ref().err().filter(|error| error.tells_of_damage()) else {
        return with_guard;
    };
    let checked = match by(Some(GuardKind::Open)) {
        Err(error) if error.tells_of_damage() => of_files(),
        checked => checked,
    };
    let mut checked = match checked {
        // Files by themselves are only read under the store's lock.
        Err(error) if is_anothers(&error) => return with_guard,
        checked => checked?,
    };
    let (first, damage) = (first.to_string(), &mut checked.report.damage);
    if !damage.contains(&first) {
        damage.insert(0, first);
    }
    Ok(checked)
}
