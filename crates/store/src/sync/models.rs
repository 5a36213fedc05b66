//! Models for loom: code that threads share without a lock, in every order that loom tries.
//! ```text
//! skip list     insert | find, cursor            a reachable node is complete; order, counts hold
//! numbers       insert | next newer, both ways
//!               a published entry that is newer than a number is not skipped
//! memtable      insert, publish | visible, get
//!               what is published is found; later sequence numbers are not
//! deletions     put, publish | visible, skip     a published entry is not skipped as deleted
//! switch        store, round | round, pin   the version of a round that was read is pinned, whole
//! merge         copy, drop, store | pin, visible, get        rule 2: nothing visible is lost
//! cache         insert, let go | get          a slot has the right block or none; the budget holds
//! ```
//! Invariant: each model runs the store's own code. `sync/model.rs` replaces what loom cannot
//! follow (arc-swap).
//!
//! `scripts/sanitize.sh loom` runs them.

mod loom_models {
    use std::time::Duration;

    use loom::model::Builder;
    use loom::thread;

    use crate::entries::cursor::Cursor;
    use crate::entries::entry::{Entry, Kind, Sequence};
    use crate::entries::memtable::Memtable;
    use crate::entries::retention::{Retention, Verdict};
    use crate::entries::skiplist::{ListCursor, SkipList};
    use crate::entries::tombstones::RangeTombstones;
    use crate::storage::life::Life;
    use crate::sync::{Arc, AtomicU64, Ordering, Switch};
    use crate::tree::snapshots::Snapshots;

    /// The most preemptive switches between threads. In models of two threads, more show nothing
    /// new.
    const PREEMPTIONS_MAX: usize = 3;

    fn model(run: impl Fn() + Sync + Send + 'static) {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(PREEMPTIONS_MAX);
        builder.check(run);
    }

    fn snapshots_at(visible: Sequence) -> Snapshots {
        Snapshots::new(visible, Arc::new(Life::new("store".as_ref())))
    }

    fn put(list: &SkipList, key: &[u8], sequence: u64) {
        let (sequence, kind) = (Sequence(sequence), Kind::Put);
        list.insert(&Entry { key, sequence, kind, value: key });
    }

    /// Returns all entries, walked from the front or from the back. Each must be complete.
    fn walk(list: &Arc<SkipList>, forward: bool) -> Vec<(Vec<u8>, u64)> {
        let mut cursor = ListCursor::new(Arc::clone(list));
        if forward {
            cursor.seek_first().unwrap()
        } else {
            cursor.seek_last().unwrap()
        }
        let mut found = Vec::new();
        while let Some(entry) = cursor.entry() {
            assert_eq!(entry.key, entry.value);
            found.push((entry.key.to_vec(), entry.sequence.0));
            if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
        }
        if !forward {
            found.reverse();
        }
        found
    }

    /// Makes a list whose random seed gives the second node several levels.
    fn list_of_tall_nodes() -> Arc<SkipList> {
        Arc::new(SkipList::with_random(1 << 12, TALL_SECOND))
    }

    /// See `the_seed_makes_the_second_node_tall`.
    const TALL_SECOND: u64 = 34;

    #[test]
    fn the_seed_makes_the_second_node_tall() {
        model(|| {
            let list = list_of_tall_nodes();
            put(&list, b"a", 1);
            assert_eq!(list.height.load(Ordering::Relaxed), 1);
            put(&list, b"b", 2);
            assert!(list.height.load(Ordering::Relaxed) > 1);
        });
    }

    #[test]
    fn inserts_beside_a_cursor() {
        for forward in [true, false] {
            model(move || {
                let list = list_of_tall_nodes();
                put(&list, b"b", 1);
                let writer = Arc::clone(&list);
                let writer = thread::spawn(move || {
                    put(&writer, b"c", 2);
                    put(&writer, b"a", 3);
                });
                let found = walk(&list, forward);
                assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "{found:?}");
                assert!(found.iter().any(|(key, _)| key == b"b"), "an entry is gone: {found:?}");
                writer.join().expect("no panic");
                assert_eq!(walk(&list, forward).len(), 3);
            });
        }
    }

    #[test]
    fn inserts_beside_a_search() {
        model(|| {
            let list = list_of_tall_nodes();
            put(&list, b"b", 1);
            let writer = Arc::clone(&list);
            let writer = thread::spawn(move || {
                put(&writer, b"c", 2);
                put(&writer, b"a", 3);
            });
            assert!(list.find(b"b", Sequence::MAX).is_some(), "an entry is gone");
            for key in [b"c", b"a"] {
                let held = list.find(key, Sequence::MAX);
                assert!(held.is_none_or(|(_, _, held)| held.as_slice() == key));
            }
            writer.join().expect("no panic");
        });
    }

    fn put_marked(list: &SkipList, key: &[u8], sequence: u64) {
        let (sequence, kind) = (Sequence(sequence), Kind::Put);
        list.insert_marked(&Entry { key, sequence, kind, value: key });
    }

    /// Returns the sequence numbers of the first entry and of the newer ones, from the front or the
    /// back.
    fn newer_than(list: &Arc<SkipList>, than: Sequence, forward: bool) -> Vec<u64> {
        let mut cursor = ListCursor::new(Arc::clone(list));
        if forward {
            cursor.seek_first().unwrap()
        } else {
            cursor.seek_last().unwrap()
        }
        let mut found = Vec::new();
        while let Some(entry) = cursor.entry() {
            found.push(entry.sequence.0);
            if forward {
                cursor.next_newer(than).unwrap()
            } else {
                cursor.prev_newer(than).unwrap()
            }
        }
        found
    }

    #[test]
    fn inserts_beside_a_search_for_what_is_newer() {
        // New entries come once in between, and once at either end. The search passes the second
        // and the third node.
        for (keys, forward) in [[b"adbc", b"bcda"]; 2]
            .into_iter()
            .zip([true, false])
            .flat_map(|(keys, forward)| keys.into_iter().map(move |keys| (keys, forward)))
        {
            model(move || {
                let list = list_of_tall_nodes();
                let published = Arc::new(AtomicU64::new(2));
                put_marked(&list, &keys[..1], 1);
                put_marked(&list, &keys[1..2], 2);
                let (writer, publisher) = (Arc::clone(&list), Arc::clone(&published));
                let writer = thread::spawn(move || {
                    for (key, number) in keys[2..].chunks(1).zip(3..) {
                        put_marked(&writer, key, number);
                        publisher.store(number, Ordering::Release);
                    }
                });
                let visible = published.load(Ordering::Acquire);
                let found = newer_than(&list, Sequence(1), forward);
                let missed: Vec<u64> = (2..=visible).filter(|it| !found.contains(it)).collect();
                assert!(missed.is_empty(), "{missed:?} of {visible} is passed: {found:?}");
                writer.join().expect("no panic");
            });
        }
    }

    #[test]
    fn two_writers_wait_for_each_other() {
        model(|| {
            let list = list_of_tall_nodes();
            let other = Arc::clone(&list);
            let writer = thread::spawn(move || put(&other, b"a", 1));
            put(&list, b"b", 2);
            writer.join().expect("no panic");
            assert_eq!(walk(&list, true), [(b"a".to_vec(), 1), (b"b".to_vec(), 2)]);
            assert_eq!((list.len(), walk(&list, false).len()), (2, 2));
        });
    }

    /// Returns the newest sequence number that a get at `at` finds.
    fn get(memtable: &Arc<Memtable>, at: Sequence) -> Option<u64> {
        memtable.get(b"k", at).map(|found| found.sequence.0)
    }

    #[test]
    fn what_is_published_is_found_and_nothing_newer() {
        model(|| {
            let (memtable, snapshots) = (Arc::new(Memtable::new(0)), snapshots_at(Sequence(0)));
            let shared = Arc::new((memtable, snapshots));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                for sequence in 1..=2 {
                    writer.0.insert(b"k", Sequence(sequence), Kind::Put, b"v");
                    writer.1.publish(Sequence(sequence));
                }
            });
            let at = shared.1.visible();
            // A get first checks whether the memtable is empty.
            let found = if shared.0.is_empty() { None } else { get(&shared.0, at) };
            assert_eq!(found.unwrap_or(0), at.0);
            writer.join().expect("no panic");
        });
    }

    #[test]
    fn a_cursor_sees_what_was_published_before() {
        model(|| {
            let shared = Arc::new((Arc::new(Memtable::new(0)), snapshots_at(Sequence(0))));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                writer.0.insert(b"a", Sequence(1), Kind::Put, b"v");
                writer.0.insert(b"b", Sequence(2), Kind::Put, b"v");
                writer.1.publish(Sequence(2));
            });
            let at = shared.1.visible();
            let mut cursor = shared.0.cursor();
            cursor.seek_first().expect("memory");
            let mut seen = 0;
            while let Some(entry) = cursor.entry() {
                seen += u64::from(entry.sequence <= at);
                cursor.next().expect("memory");
            }
            assert_eq!(seen, at.0, "half a batch, or none of it");
            writer.join().expect("no panic");
        });
    }

    #[test]
    fn what_was_put_into_a_deleted_range_before_is_not_passed() {
        model(|| {
            let shared = Arc::new((Arc::new(Memtable::new(0)), snapshots_at(Sequence(0))));
            shared.0.insert(b"a", Sequence(1), Kind::DeleteRange, b"m");
            shared.0.insert(b"g", Sequence(2), Kind::DeleteRange, b"t");
            shared.0.insert(b"m", Sequence(3), Kind::DeleteRange, b"z");
            shared.1.publish(Sequence(3));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                writer.0.insert(b"k", Sequence(4), Kind::Put, b"v");
                writer.1.publish(Sequence(4));
            });
            let (at, ranges) = (shared.1.visible(), shared.0.ranges());
            let view = ranges.at(at).expect("deletions");
            let (until, from) = (ranges.hidden_until(view, b"b"), ranges.hidden_from(view, b"p"));
            assert!([&b"g"[..], b"m", b"z"].contains(&until), "{until:?}");
            assert!([&b"a"[..], b"g", b"m"].contains(&from), "{from:?}");
            assert!(
                at < Sequence(4) || (until <= &b"k"[..] && &b"k"[..] < from),
                "{until:?} {from:?}"
            );
            writer.join().expect("no panic");
        });
    }

    #[test]
    fn a_round_that_was_read_is_pinned() {
        model(|| {
            let shared = Arc::new((Switch::new(Arc::new(0)), AtomicU64::new(0)));
            let installer = Arc::clone(&shared);
            let installer = thread::spawn(move || {
                for round in 1..=2 {
                    installer.0.store(Arc::new(round));
                    installer.1.store(round, Ordering::Release);
                }
            });
            let round = shared.1.load(Ordering::Acquire);
            let pinned = **shared.0.pin();
            assert!(pinned >= round, "round {round}, but {pinned} is pinned");
            assert!(*shared.0.hold() >= pinned, "a later pin is older");
            installer.join().expect("no panic");
        });
    }

    /// A small version: a memtable, and a run as the sequence numbers that it has of one key.
    struct Small {
        memtable: Arc<Memtable>,
        run: Vec<u64>,
    }

    impl Small {
        fn get(&self, at: Sequence) -> Option<u64> {
            let in_run = self.run.iter().copied().filter(|sequence| *sequence <= at.0).max();
            get(&self.memtable, at).or(in_run)
        }
    }

    /// A small store: two versions of a key in a run, a third in memory. A merge drops what it may.
    struct Store {
        current: Switch<Small>,
        snapshots: Arc<Snapshots>,
    }

    impl Store {
        fn new() -> Arc<Self> {
            let small = Small { memtable: Arc::new(Memtable::new(0)), run: vec![2, 1] };
            let snapshots = Arc::new(snapshots_at(Sequence(1)));
            Arc::new(Store { current: Switch::new(Arc::new(small)), snapshots })
        }

        fn write(&self) {
            self.snapshots.publish(Sequence(2));
        }

        fn merge(&self) {
            let mut retention = Retention::new(
                self.snapshots.copy(),
                true,
                Duration::ZERO,
                RangeTombstones::default(),
            );
            let now = self.current.hold();
            let mut keeps = |sequence: &u64| {
                let (key, value) = (&b"k"[..], &b"v"[..]);
                let sequence = Sequence(*sequence);
                retention.judge(&Entry { key, sequence, kind: Kind::Put, value }) == Verdict::Keep
            };
            let run = now.run.iter().copied().filter(&mut keeps).collect();
            self.current.store(Arc::new(Small { memtable: Arc::clone(&now.memtable), run }));
        }
    }

    /// Runs a reader beside a thread that publishes and one that merges, or one thread that does
    /// both. There are few steps, so loom tries all orders.
    fn beside_a_merge(read: fn(&Store)) {
        loom::model(move || {
            let store = Store::new();
            let other = Arc::clone(&store);
            let other = thread::spawn(move || {
                other.write();
                other.merge();
            });
            read(&store);
            other.join().expect("no panic");
        });
        loom::model(move || {
            let store = Store::new();
            let (writer, merger) = (Arc::clone(&store), Arc::clone(&store));
            let threads =
                [thread::spawn(move || writer.write()), thread::spawn(move || merger.merge())];
            read(&store);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }

    #[test]
    fn a_get_pins_first_and_finds_what_is_visible() {
        beside_a_merge(|store| {
            let version = store.current.pin();
            let at = store.snapshots.visible();
            assert_eq!(version.get(at), Some(at.0), "a key is missed");
        });
    }

    #[test]
    fn a_snapshot_registers_first_and_keeps_what_it_sees() {
        beside_a_merge(|store| {
            let registered = store.snapshots.register();
            for _ in 0..2 {
                let version = store.current.hold();
                let at = registered.sequence();
                assert_eq!(version.get(at), Some(at.0), "a key is missed");
            }
        });
    }

    #[test]
    #[should_panic(expected = "a key is missed")]
    fn a_get_that_pins_last_misses_a_key() {
        beside_a_merge(|store| {
            let at = store.snapshots.visible();
            assert_eq!(store.current.pin().get(at), Some(at.0), "a key is missed");
        });
    }
}
