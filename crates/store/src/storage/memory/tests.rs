//! Tests of the simulated disk: what crashes, faults and damage leave.

use super::*;

fn db(disk: &Memory) -> Arc<dyn Folder> {
    disk.open_folder(Path::new("db")).unwrap()
}

fn disk_with(name: &str, synced: &[u8], unsynced: &[u8]) -> Memory {
    let disk = Memory::new();
    disk.create_dir(Path::new("db")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    let mut file = db(&disk).create(name).unwrap();
    file.append(synced).unwrap();
    file.sync().unwrap();
    file.append(unsynced).unwrap();
    disk
}

#[test]
fn a_crash_keeps_what_was_synced_and_a_prefix_of_the_rest() {
    let disk = disk_with("x", b"synced", b"unsynced");
    disk.sync_dir(Path::new("db")).unwrap();
    assert_eq!(disk.crash_hard().file("db/x").unwrap(), b"synced");
    let mut lens = BTreeSet::new();
    for seed in 0..200 {
        let bytes = disk.crash(seed).file("db/x").expect("the name was synced");
        assert_eq!(bytes, disk.crash(seed).file("db/x").unwrap(), "one seed, one history");
        assert_eq!(&bytes[..6], b"synced");
        assert!(bytes.len() <= 14);
        lens.insert(bytes.len());
    }
    assert!(lens.contains(&6) && lens.contains(&14) && lens.len() > 5, "{lens:?}");
    assert_eq!(disk.file("db/x").unwrap(), b"syncedunsynced", "the old disk is as it was");
}

#[test]
fn names_that_were_not_synced_may_be_lost() {
    let disk = disk_with("x", b"data", b"");
    assert_eq!(disk.crash_hard().file("db/x"), None);
    let there = (0..100).filter(|&seed| disk.crash(seed).file("db/x").is_some()).count();
    assert!((1..100).contains(&there), "{there}");
}

#[test]
fn a_rename_happens_as_a_whole_or_not_at_all() {
    let disk = disk_with("new", b"new", b"");
    disk.put_file("db/CURRENT", b"old");
    disk.sync_dir(Path::new("db")).unwrap();
    db(&disk).rename("new", "CURRENT").unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let after = disk.crash(seed);
        let current = after.file("db/CURRENT").expect("one of the two");
        assert_eq!(after.file("db/new").is_some(), current == b"old");
        seen.insert(current);
    }
    assert_eq!(seen.len(), 2);
    disk.sync_dir(Path::new("db")).unwrap();
    assert_eq!(disk.crash_hard().file("db/CURRENT").unwrap(), b"new");
}

#[test]
fn a_removal_that_was_not_synced_may_be_undone() {
    let disk = Memory::new();
    disk.put_file("db/x", b"data");
    disk.remove(Path::new("db/x")).unwrap();
    assert_eq!(disk.file("db/x"), None);
    assert_eq!(disk.crash_hard().file("db/x").unwrap(), b"data");
}

#[test]
fn faults_strike_once_and_a_full_disk_stays_full() {
    let disk = Memory::new();
    disk.create_dir(Path::new("db")).unwrap();
    let mut file = db(&disk).create("x").unwrap();
    disk.fail_at(1, Fault::Io);
    file.append(b"one").unwrap();
    assert_eq!(file.append(b"two").unwrap_err().kind(), io::ErrorKind::Other);
    assert!(b"onetwo".starts_with(&disk.file("db/x").unwrap()));
    file.append(b"three").unwrap();
    disk.no_space(true);
    assert_eq!(file.append(b"four").unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.append(b"four").unwrap_err().kind(), io::ErrorKind::StorageFull);
    let folder = db(&disk);
    assert_eq!(folder.free_space().unwrap(), 0);
    assert!(folder.open("x").unwrap().size().unwrap() >= 8);
    disk.no_space(false);
    file.sync().unwrap();
    assert_eq!(disk.operations(), 13);
}

#[test]
fn locks_vanish_with_a_crash() {
    let disk = Memory::new();
    disk.create_dir(Path::new("db")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    let held = db(&disk).lock("LOCK").unwrap();
    assert!(db(&disk.clone()).lock("LOCK").is_err());
    assert!(db(&disk.crash(1)).lock("LOCK").is_ok());
    drop(held);
    assert!(db(&disk).lock("LOCK").is_ok());
}

#[test]
fn damage_is_done_where_it_is_asked() {
    let disk = Memory::new();
    disk.put_file("db/x", [0u8, 0, 0]);
    disk.flip_bit("db/x", 1, 3);
    disk.truncate("db/x", 2);
    assert_eq!(disk.file("db/x").unwrap(), [0, 8]);
}

#[test]
fn sectors_are_lost_one_by_one() {
    let disk = disk_with("x", &[1; 700], &[2; 4000]);
    disk.sync_dir(Path::new("db")).unwrap();
    let mut kinds = BTreeSet::new();
    for seed in 0..400 {
        let bytes = disk.crash(seed).file("db/x").unwrap();
        assert_eq!(bytes[..700], [1; 700]);
        let whole = if bytes.len() == 4700 { &bytes[1024..] } else { continue };
        let sectors = whole.chunks_exact(512);
        let lost: Vec<bool> = sectors.map(|sector| sector.iter().all(|&byte| byte == 0)).collect();
        kinds.insert(lost);
    }
    assert!(kinds.contains(&vec![false; 7]) && kinds.len() > 20, "{} kinds", kinds.len());
}

#[test]
fn the_end_of_a_process_loses_nothing_and_syncs_nothing() {
    let disk = disk_with("x", b"synced", b"unsynced");
    disk.fail_from(0, Fault::Io);
    let after = disk.kill();
    assert!(!after.may_fail());
    assert_eq!(after.file("db/x").unwrap(), b"syncedunsynced");
    assert_eq!(after.crash_hard().file("db/x"), None, "its name was not synced");
    after.sync_dir(Path::new("db")).unwrap();
    assert_eq!(after.crash_hard().file("db/x").unwrap(), b"synced");
    assert_eq!(disk.crash_hard().file("db/x"), None, "the old disk is as it was");
}

#[test]
fn a_fault_that_lasts_ends_when_it_is_mended() {
    let disk = disk_with("x", b"synced", b"");
    let folder = db(&disk);
    disk.fail_from(1, Fault::Io);
    folder.sync().unwrap();
    for _ in 0..3 {
        assert_eq!(folder.open("x").err().unwrap().kind(), io::ErrorKind::Other);
    }
    disk.mend();
    folder.open("x").unwrap();
    disk.fail_from(0, Fault::NoSpace);
    folder.open("x").unwrap();
    assert_eq!(folder.sync().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(folder.sync().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(disk.may_fail());
    disk.mend();
    folder.sync().unwrap();
    assert!(!disk.may_fail());
}

#[test]
fn what_a_failed_sync_had_to_save_is_not_saved_by_the_next_one() {
    let disk = Memory::new();
    disk.create_dir(Path::new("db")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    let mut file = db(&disk).create("x").unwrap();
    disk.sync_dir(Path::new("db")).unwrap();
    file.append(b"one").unwrap();
    file.sync().unwrap();
    file.append(b"two").unwrap();
    disk.fail_at(0, Fault::Io);
    file.sync().unwrap_err();
    file.sync().unwrap();
    assert_eq!(disk.crash_hard().file("db/x").unwrap(), b"one");
}
