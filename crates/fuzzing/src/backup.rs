//! The record of a generation, and changes that were shipped since, beside sound objects.
//! ```text
//! input   mend u8: bit 0 the record, bit 1 the changes | how many writes the changes' name tells |
//!         length of the record u16 | record | changes
//! ```
//! Invariant: what comes back of a sound record opens, whatever the changes are. What does not come
//! back leaves no store.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use trommel::backup::{Backups, FolderObjects, Unlogged, Until};
use trommel::merge_operators::Concat;
use trommel::storage::{Memory, Storage};
use trommel::{Error, GuardKind, KeyspaceOptions};

use crate::ask;

const GUARD: GuardKind = GuardKind::Grf;
/// The folder of backups. As those of stores: errors name it.
const FOLDER: &str = "db-backups";
const RECORD: &str = "generation-000001";
/// What comes before the record.
const LEAD_BYTES: usize = 4;

/// The backups of a small store.
struct Sound {
    /// Without record and changes.
    objects: Vec<(String, Vec<u8>)>,
    record: Vec<u8>,
    changes: Vec<u8>,
    /// The last write of the generation, and that of the changes.
    writes: (u64, u64),
}

fn sound() -> &'static Sound {
    static SOUND: OnceLock<Sound> = OnceLock::new();
    SOUND.get_or_init(|| {
        let disk = Memory::new();
        let options = ask::options(GUARD).kept_log_bytes(1 << 20).merge_operator(Concat::new("+"));
        let db = trommel::Db::open_with(ask::DIR, options, ask::environment(&disk)).expect("opens");
        let backups = backups_on(&disk, &disk);
        let other = |name: &str| {
            let options = KeyspaceOptions::new().merge_operator(Concat::new("+")).block_bytes(512);
            db.keyspace(name, options).expect("made")
        };
        (0..12).for_each(|key| db.put([b'k', key], "value").expect("puts"));
        other("other").put("a", "1").expect("puts");
        let from = backups.back_up(&db).expect("backs up").sequence;
        db.put("k", "other").expect("puts");
        db.delete([b'k', 3]).expect("deletes");
        db.delete_range([b'k', 5], [b'k', 7]).expect("deletes");
        db.put_ttl("t", "value", Duration::from_secs(9)).expect("puts");
        db.merge("k", "more").expect("merges");
        db.rename_keyspace("other", "moved").expect("renames");
        other("moved").merge("a", "2").expect("merges");
        // It is stored beside the changes.
        db.put("long", vec![7; 1 << 20]).expect("puts");
        other("new").merge("a", "3").expect("merges");
        db.keyspace("unlogged", KeyspaceOptions::new().log(false)).expect("made");
        let to = backups.ship(&db).expect("ships").to;
        let mut sound = Sound {
            objects: Vec::new(),
            record: Vec::new(),
            changes: Vec::new(),
            writes: (from, to),
        };
        for name in disk.list(Path::new(FOLDER)).expect("lists") {
            let bytes = disk.file(Path::new(FOLDER).join(&name)).expect("is there");
            match &*name {
                "LOCK" => {}
                RECORD => sound.record = bytes,
                name if name.starts_with("changes-") => sound.changes = bytes,
                _ => sound.objects.push((name, bytes)),
            }
        }
        sound
    })
}

/// Backups on one disk, whose stores are made on another one.
fn backups_on(disk: &Memory, to: &Memory) -> Backups {
    let objects = FolderObjects::open_with(FOLDER, &ask::environment(disk)).expect("opens");
    Backups::with(objects, ask::environment(to))
}

/// Puts the checksum at the end right.
fn mend(object: &mut [u8]) {
    if let Some((rest, sum)) = object.split_last_chunk_mut::<4>() {
        *sum = crc32c::crc32c(rest).to_le_bytes();
    }
}

pub(crate) fn body(input: &[u8]) {
    let Some((lead, rest)) = input.split_at_checked(LEAD_BYTES) else { return };
    let len = usize::from(u16::from_le_bytes([lead[2], lead[3]])).min(rest.len());
    let (record, changes) = rest.split_at(len);
    let (mut record, mut changes) = (record.to_vec(), changes.to_vec());
    let mended = [&mut record, &mut changes];
    let mended = mended.into_iter().enumerate().filter(|(bit, _)| lead[0] >> bit & 1 == 1);
    mended.for_each(|(_, object)| mend(object));
    let sound = sound();
    let (disk, from) = (Memory::new(), sound.writes.0);
    let to = from + u64::from(lead[1]);
    disk.create_dir(Path::new(FOLDER)).expect("a new disk takes a folder");
    let put = |name: &str, bytes: &[u8]| disk.put_file(Path::new(FOLDER).join(name), bytes);
    sound.objects.iter().for_each(|(name, bytes)| put(name, bytes));
    put(RECORD, &record);
    put(&format!("changes-{from:020}-{to:020}-1"), &changes);
    read_all(&disk);
    let is_sound = record == sound.record;
    let times = [Duration::ZERO, Duration::MAX].map(Until::Time);
    for until in [Until::Sequence(to), Until::Sequence(from + 1)].into_iter().chain(times) {
        restore_until(&disk, until, to, is_sound);
    }
}

fn read_all(disk: &Memory) {
    let restored = Memory::new();
    let backups = backups_on(disk, &restored);
    match backups.generations() {
        Ok(found) => assert_eq!(found.len(), 1),
        Err(error) => ask::check_error(&error),
    }
    match backups.verify(1) {
        Ok(report) => assert!(report.bytes <= 2 << 20),
        Err(error) => ask::check_error(&error),
    }
    match backups.restore(1, ask::DIR) {
        Ok(()) => drop(ask::ask(&restored, GUARD)),
        Err(error) => {
            ask::check_error(&error);
            nothing_is_left(&restored);
        }
    }
}

fn restore_until(disk: &Memory, until: Until, to: u64, is_sound: bool) {
    let restored = Memory::new();
    let (backups, options) = (backups_on(disk, &restored), ask::options(GUARD));
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let unlogged = Unlogged::AsOfGeneration;
    match backups.restore_until_with_progress(until, (ask::DIR, options), unlogged, go_on) {
        Ok(last) => {
            assert!(!is_sound || last <= to, "write {last} of {to}");
            let read_back = ask::ask(&restored, GUARD);
            assert!(!is_sound || read_back.is_some(), "what was restored does not open");
        }
        Err(error) => {
            if !matches!(error, Error::Option { .. }) {
                ask::check_error(&error);
            }
            nothing_is_left(&restored);
        }
    }
}

fn nothing_is_left(disk: &Memory) {
    let names = disk.list(Path::new(ask::DIR)).unwrap_or_default();
    assert!(names.iter().all(|name| name == "LOCK"), "{names:?}");
}

/// Inputs of sound objects.
pub(crate) fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let Sound { record, changes, writes: (from, to), .. } = sound();
    let writes = u8::try_from(to - from).expect("few writes");
    let len = (record.len() as u16).to_le_bytes();
    let input = |mend: u8| [&[mend, writes, len[0], len[1]][..], record, changes].concat();
    vec![("plain", input(0)), ("mended", input(3)), ("record", input(1)), ("changes", input(2))]
}
