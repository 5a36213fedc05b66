//! What other threads may do between two steps. Here the same thread does it.

use std::sync::Arc;

use super::{count, options, wait};
use crate::pause::{self, Point};
use crate::{Db, ReadOptions};

fn filled(folder: &tempfile::TempDir) -> Arc<Db> {
    let db = Db::open(&options(), folder.path()).expect("it opens");
    (0..1000).for_each(|at| db.put(format!("key {at:04}"), b"old").expect("written"));
    wait(&db);
    Arc::new(db)
}

/// Writes keys when this thread comes to a point. A view that was loaded before does not have the
/// last ones.
fn put_at(db: &Arc<Db>, point: Point, keys: &'static [&[u8]]) {
    let db = Arc::clone(db);
    pause::then(point, move || {
        db.put(b"before", b"new").expect("written");
        db.shared().doors()[0].close_quiet(true);
        keys.iter().for_each(|key| db.put(key, b"new").expect("written"));
    });
}

#[test]
fn a_key_is_not_denied_from_before_it_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder);
    let (other, key) = (Arc::clone(&db), b"key 0500 and more");
    pause::then(Point::Noted, move || {
        assert_eq!(other.inner().get(key).expect("read"), None, "it is not written yet");
        assert!(!other.shared().doors()[0].denies_key(key, None));
    });
    db.put(key, b"new").expect("written");
    assert!(db.get(key).expect("read").is_some());
    assert_eq!(count(&db, key, &[&key[..], b"\0"].concat()), 1);
}

#[test]
fn an_iterator_has_one_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder);
    assert_eq!(count(&db, b"later", b"m"), 0, "lists answer ranges, once one was asked for");
    put_at(&db, Point::Pinning, &[b"later"]);
    let mut bounds = ReadOptions::default();
    bounds.set_iterate_upper_bound(b"m");
    let mut rows = db.raw_iterator_opt(bounds);
    rows.seek(b"lat");
    assert!(rows.valid(), "its state was pinned behind the write");
    rows.seek(b"key 0999");
    rows.next();
    assert_eq!(rows.key(), Some(&b"later"[..]));
}

#[test]
fn many_keys_have_one_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder);
    put_at(&db, Point::Asked, &[b"key 0500 and more", b"key 0501"]);
    let found = db.multi_get([&b"key 0500 and more"[..], b"key 0501"]);
    let [first, second] = &found[..] else { panic!("two answers") };
    let is_new = |value: &Option<Vec<u8>>| value.as_deref() == Some(b"new");
    let [first, second] = [first, second].map(|it| is_new(it.as_ref().expect("read")));
    assert!(first || !second, "the first one was written before the second one");
}

#[test]
fn files_that_are_not_there_change_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder);
    let files = vec![folder.path().join("nowhere.sst")];
    assert!(db.ingest_external_file(files).is_err());
    assert!(db.get(b"key 0500").expect("read").is_some());
    wait(&db);
    let before = db.door_state().denied;
    assert_eq!(db.get(b"key 0500 and more").expect("read"), None);
    assert_eq!(db.door_state().denied, before + 1);
}
