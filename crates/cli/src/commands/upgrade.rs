//! `upgrade`: converts a store of an older format version to the current version, in place.
//! ```text
//! words (version 6) --> entries --> words.new          then, while words is locked:
//! words --> words.version-6     words.new --> words    both on one file system
//! ```
//! Invariants: the old store stays unchanged under another name. After a crash, a complete store
//! has one of its two names. `READ` only grows: all later versions read what this version writes.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trommel::tools::{FORMAT_VERSION, READ_VERSIONS, peek};
use trommel::{Db, Error, GuardKind, Options};

use crate::args::store::OpenStore;
use crate::commands::batches::{Batches, Kept};
use crate::output::progress::count_bar;
use crate::output::table::counted;
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::signals::LastWords;

pub(crate) const EXAMPLES: &str = "Example: a store that another version of Trommel has written\n  \
    trommel upgrade --db words\n\n\
    The old store is kept beside the new one: it can be removed when the new one is as it should be.";

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
}

pub(crate) fn run(arguments: &UpgradeArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let folder = &arguments.db;
    let version = version_of(folder)?;
    if version == FORMAT_VERSION {
        let object = json!({ "changed": false, "version": version });
        let text = format!(
            "nothing to do: {} has format version {version}, the present one",
            folder.display()
        );
        writeln!(out, "{}", if json { object.to_string() } else { text })?;
        return Ok(Status::Fine);
    }
    if !READ_VERSIONS.contains(&version) {
        return Err(Failure::Data(unreadable(folder, version)));
    }
    let Rewritten { keys, backup } = rewrite(folder, version)?;
    let backup = backup.display().to_string();
    let object = json!({
        "changed": true, "version": FORMAT_VERSION, "version_before": version,
        "keys": keys, "backup": backup,
    });
    let keys = counted(keys, "key");
    let text = format!(
        "upgraded from format version {version} to {FORMAT_VERSION}: {keys}; the old store is {backup}"
    );
    writeln!(out, "{}", if json { object.to_string() } else { text })?;
    Ok(Status::Fine)
}

/// Returns the version in the store's manifest.
fn version_of(folder: &Path) -> Result<u32, Failure> {
    match peek(folder) {
        Ok(_) => Ok(FORMAT_VERSION),
        Err(Error::Version { found, .. }) => Ok(found),
        Err(other) => Err(other.into()),
    }
}

fn unreadable(folder: &Path, version: u32) -> String {
    let which = if version > FORMAT_VERSION { "a newer" } else { "an older" };
    let read = READ_VERSIONS.map(|version| version.to_string()).join(", ");
    format!(
        "{} has format version {version}; this Trommel reads {read}: export it with {which} Trommel, the one that wrote it, and import that here",
        folder.display()
    )
}

struct Rewritten {
    keys: u64,
    backup: PathBuf,
}

/// Writes a new store with the same entries, and exchanges the names of both. Requires: the version
/// is one of those that can be read.
fn rewrite(folder: &Path, version: u32) -> Result<Rewritten, Failure> {
    let folder = &named(folder)?;
    let (new, backup) = (beside(folder, "new"), beside(folder, &format!("version-{version}")));
    for taken in [&new, &backup] {
        if taken.exists() {
            let problem = format!("{} exists: move or remove it first", taken.display());
            return Err(Failure::Data(problem));
        }
    }
    let words = format!("nothing has changed; {} can be removed", new.display());
    let last_words = LastWords::new(move || words.clone())?;
    // The open store holds the lock until the names are exchanged, so nobody writes to it
    // meanwhile.
    let old = Db::open_older(folder, options())?;
    let copied = copy(&old, &new);
    drop(last_words);
    let exchanged = copied.and_then(|keys| exchange(folder, &new, &backup).map(|()| keys));
    if exchanged.is_err() {
        // This command made the folder, if it still has this name; the error says more.
        let _ = fs::remove_dir_all(&new);
    }
    let keys = exchanged?;
    old.close()?;
    Ok(Rewritten { keys, backup })
}

/// Returns the options of a store that is only read or filled. Its next opening makes the guard.
fn options() -> Options {
    Options::new().guard(GuardKind::Open).for_now("guard")
}

/// Writes all entries of a store into a new one. Returns their number.
fn copy(old: &Db, new: &Path) -> Result<u64, Failure> {
    let (db, kept) = (OpenStore::from(Db::open(new, options())?), Kept::new("copied"));
    let bar = count_bar("upgrading", old.estimate_count(..)?);
    let mut batches = Batches::new(&db, &kept);
    for entry in old.iter() {
        let (key, value) = entry?;
        if batches.put(&key, &value, value.expiry())? {
            bar.set_position(kept.keys());
        }
    }
    batches.write()?;
    db.flush()?;
    db.close()?;
    bar.finish_and_clear();
    Ok(kept.keys())
}

/// Gives the old store's name to the new store, durably.
fn exchange(folder: &Path, new: &Path, backup: &Path) -> Result<(), Failure> {
    let failed = of_folder(folder);
    fs::rename(folder, backup).map_err(failed)?;
    if let Err(error) = fs::rename(new, folder) {
        // Gives the old store its name back.
        let _ = fs::rename(backup, folder);
        return Err(failed(error));
    }
    let parent = folder.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)
}

/// Returns a path that ends in the folder's name, unlike `.` and `..`.
fn named(folder: &Path) -> Result<PathBuf, Failure> {
    match folder.file_name() {
        Some(_) => Ok(folder.into()),
        None => folder.canonicalize().map_err(of_folder(folder)),
    }
}

fn of_folder(folder: &Path) -> impl Fn(std::io::Error) -> Failure + Copy {
    move |error| Failure::Data(format!("{}: {error}", folder.display()))
}

/// Returns the path of a sibling folder: `words.new`.
fn beside(folder: &Path, ending: &str) -> PathBuf {
    let whole = folder.components().as_path();
    let mut name = whole.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// There is only one version so far, so the test converts that version to itself.
    #[test]
    fn a_rewritten_store_has_the_same_entries_and_the_old_one_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("s");
        let db = Db::open(&folder, options()).expect("opens");
        (0..2000).for_each(|i| db.put(format!("key{i:04}"), [0xff, i as u8]).expect("puts"));
        db.delete("key0007").expect("deletes");
        db.put_ttl("soon", "gone", Duration::from_secs(86_400)).expect("puts");
        db.close().expect("closes");
        let Rewritten { keys, backup } =
            rewrite(&place.path().join("s/"), FORMAT_VERSION).expect("rewrites");
        assert_eq!((keys, &backup), (2000, &place.path().join("s.version-8")));
        let entries = |folder: &Path| {
            let db = Db::open(folder, options()).expect("opens");
            let entries = db.iter().map(|entry| entry.expect("sound"));
            entries.map(|(key, value)| (key, value.to_vec(), value.expiry())).collect::<Vec<_>>()
        };
        assert_eq!(entries(&folder), entries(&backup));
        assert!(entries(&folder).iter().any(|(_, _, expiry)| expiry.is_some()));
        let again = rewrite(&folder, FORMAT_VERSION).err().expect("the name is taken");
        assert!(matches!(again, Failure::Data(message) if message.contains("s.version-8 exists")));
    }

    #[test] // The new store was made inside the old one, as `..new`, and stayed there.
    fn a_store_that_is_named_by_dots_is_rewritten_beside_it() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("s");
        Db::open(&folder, options()).and_then(|db| db.close()).expect("made");
        fs::create_dir(folder.join("lost")).expect("made");
        let Rewritten { backup, .. } =
            rewrite(&folder.join("lost/.."), FORMAT_VERSION).expect("rewrites");
        let beside = place.path().canonicalize().expect("there").join("s.version-8");
        assert_eq!(backup, beside);
        assert!(beside.join("lost").exists() && !folder.join("lost").exists());
    }

    #[test] // The new store stayed, and the next try was refused because of it.
    fn a_rewritten_store_that_gets_no_name_is_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("s");
        Db::open(&folder, options()).and_then(|db| db.close()).expect("made");
        // A folder of this name would have been refused; a link to nothing is met by the rename.
        std::os::unix::fs::symlink("nothing", beside(&folder, "version-8")).expect("linked");
        assert!(rewrite(&folder, FORMAT_VERSION).is_err());
        assert!(folder.exists() && !beside(&folder, "new").exists());
    }

    #[test]
    fn a_version_that_cannot_be_read_is_told_with_the_way_out() {
        let message = unreadable(Path::new("s"), FORMAT_VERSION + 1);
        assert!(
            message.contains("s has format version 9") && message.contains("a newer"),
            "{message}"
        );
        assert!(unreadable(Path::new("s"), 1).contains("an older Trommel"));
    }
}
