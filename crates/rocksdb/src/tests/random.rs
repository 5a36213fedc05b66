//! Random operations on both databases. All answers must be the same.

use std::path::Path;

use rocksdb::{
    DBRawIteratorWithThreadMode, Direction, IngestExternalFileOptions, IteratorMode,
    SnapshotWithThreadMode, SstFileWriter, WriteBatch,
};

use super::{FAMILIES, Numbers, families, options, wait};
use crate::{ColumnFamily, Db, DbRawIterator, ReadOptions, RocksDb, Snapshot};

const KEYS: u64 = 3000;

struct Both<'a> {
    db: &'a Db,
    plain: &'a RocksDb,
    numbers: Numbers,
    is_text: bool,
    answers: u64,
}

type Snapshots<'a> = Vec<(Snapshot<'a>, SnapshotWithThreadMode<'a, RocksDb>)>;
type RawPair<'a> = (DbRawIterator<'a>, DBRawIteratorWithThreadMode<'a, RocksDb>);

/// The bounds of a range. None: it has no such bound.
type Bounds = (Option<Vec<u8>>, Option<Vec<u8>>);

impl<'a> Both<'a> {
    fn key(&mut self) -> Vec<u8> {
        let number = self.numbers.below(KEYS);
        let mixed = Numbers(number).next();
        match (self.is_text, number % 50) {
            (_, 0) => vec![b'k'; 500 + (number % 40) as usize],
            (_, 1) => vec![0xff; (number % 9) as usize],
            (true, _) => format!("user{:04}time{:04}", mixed % 200, mixed % 9973).into_bytes(),
            (false, _) => mixed.to_be_bytes()[..1 + (number % 8) as usize].to_vec(),
        }
    }

    /// A key that is probably absent, and close to one that may be present.
    fn other_key(&mut self) -> Vec<u8> {
        let mut key = self.key();
        match self.numbers.below(3) {
            0 => key.push(self.numbers.below(3) as u8),
            1 => key.extend(b"x"),
            _ => {
                let place = self.numbers.below(key.len() as u64 + 1) as usize;
                key.insert(place, self.numbers.below(256) as u8);
            }
        }
        key
    }

    fn family(&mut self) -> (ColumnFamily<'a>, std::sync::Arc<rocksdb::BoundColumnFamily<'a>>) {
        let name = FAMILIES[self.numbers.below(2) as usize];
        let handles = (self.db.cf_handle(name), self.plain.cf_handle(name));
        (handles.0.expect("it was opened"), handles.1.expect("it was opened"))
    }

    fn write(&mut self, folder: &Path) {
        let (ours, plain) = self.family();
        let (key, value) = (self.key(), self.numbers.next().to_be_bytes());
        match self.numbers.below(100) {
            0..50 => {
                self.db.put_cf(&ours, &key, value).expect("written");
                self.plain.put_cf(&plain, &key, value).expect("written");
            }
            50..65 => {
                self.db.delete_cf(&ours, &key).expect("written");
                self.plain.delete_cf(&plain, &key).expect("written");
            }
            65..75 => {
                self.db.merge_cf(&ours, &key, b"+").expect("written");
                self.plain.merge_cf(&plain, &key, b"+").expect("written");
            }
            75..77 => {
                let end = [&key[..], b"5"].concat();
                self.db.delete_range_cf(&ours, &key, &end).expect("written");
                self.plain.delete_range_cf(&plain, &key, &end).expect("written");
            }
            77..97 => self.write_batch(),
            97..98 => {
                self.db.flush_cf(&ours).expect("flushed");
                self.plain.flush_cf(&plain).expect("flushed");
            }
            98 => self.ingest(folder),
            _ => {
                self.db.compact_range_cf(&ours, None::<&[u8]>, None::<&[u8]>);
                self.plain.compact_range_cf(&plain, None::<&[u8]>, None::<&[u8]>);
            }
        }
    }

    fn write_batch(&mut self) {
        let mut batches = (WriteBatch::default(), WriteBatch::default());
        for _ in 0..self.numbers.below(20) {
            let (ours, plain) = self.family();
            let key = self.key();
            match self.numbers.below(6) {
                0..3 => {
                    batches.0.put_cf(&ours, &key, b"batch");
                    batches.1.put_cf(&plain, &key, b"batch");
                }
                3 => {
                    batches.0.merge_cf(&ours, &key, b"-");
                    batches.1.merge_cf(&plain, &key, b"-");
                }
                4 => {
                    batches.0.put(&key, b"default");
                    batches.1.put(&key, b"default");
                }
                _ => {
                    batches.0.delete_cf(&ours, &key);
                    batches.1.delete_cf(&plain, &key);
                }
            }
        }
        self.db.write(batches.0).expect("written");
        self.plain.write(batches.1).expect("written");
    }

    fn ingest(&mut self, folder: &Path) {
        let (ours, plain) = self.family();
        let mut keys: Vec<Vec<u8>> = (0..100).map(|_| self.key()).collect();
        keys.sort();
        keys.dedup();
        let file = folder.join("ingested.sst");
        let options = options();
        let mut writer = SstFileWriter::create(&options);
        writer.open(&file).expect("it opens");
        keys.iter().for_each(|key| writer.put(key, b"ingested").expect("in order"));
        writer.finish().expect("written");
        let ingest = IngestExternalFileOptions::default();
        self.db.ingest_external_file_cf_opts(&ours, &ingest, vec![&file]).expect("taken");
        self.plain.ingest_external_file_cf_opts(&plain, &ingest, vec![&file]).expect("taken");
        std::fs::remove_file(file).expect("it was copied");
    }

    fn bounds(&mut self) -> Bounds {
        let mut bound = |share| (self.numbers.below(4) < share).then(|| self.other_key());
        let (lower, mut upper) = (bound(3), bound(3));
        if let (Some(lower), 0) = (&lower, self.numbers.below(2)) {
            // Short ranges are empty more often.
            let end = self.numbers.below(256) as u8;
            upper = Some([&lower[..], &[end]].concat());
        }
        (lower, upper)
    }

    fn read_options(&mut self, bounds: &Bounds) -> (ReadOptions, rocksdb::ReadOptions) {
        let mut both = (ReadOptions::default(), rocksdb::ReadOptions::default());
        if let Some(lower) = &bounds.0 {
            both.0.set_iterate_lower_bound(&lower[..]);
            both.1.set_iterate_lower_bound(&lower[..]);
        }
        if let Some(upper) = &bounds.1 {
            both.0.set_iterate_upper_bound(&upper[..]);
            both.1.set_iterate_upper_bound(&upper[..]);
        }
        both
    }

    fn read_keys(&mut self, snapshots: &Snapshots<'a>) {
        let (ours, plain) = self.family();
        let key = if self.numbers.below(2) == 0 { self.key() } else { self.other_key() };
        let mut both = (ReadOptions::default(), rocksdb::ReadOptions::default());
        if let Some(snapshot) = self.pick(snapshots) {
            both.0.set_snapshot(&snapshot.0);
            both.1.set_snapshot(&snapshot.1);
        }
        let found = self.db.get_cf_opt(&ours, &key, &both.0).expect("read");
        let expected = self.plain.get_cf_opt(&plain, &key, &both.1).expect("read");
        assert_eq!(found, expected, "{key:?}");
        self.answers += 1;
        if self.numbers.below(8) == 0 {
            let keys: Vec<Vec<u8>> = (0..6).map(|_| self.key()).chain([key]).collect();
            let found = self.db.multi_get_cf_opt(keys.iter().map(|key| (&ours, key)), &both.0);
            let plain = keys.iter().map(|key| (&plain, key));
            let expected = self.plain.multi_get_cf_opt(plain, &both.1);
            let value = |answer: Result<Option<Vec<u8>>, rocksdb::Error>| answer.expect("read");
            let found: Vec<_> = found.into_iter().map(value).collect();
            assert_eq!(found, expected.into_iter().map(value).collect::<Vec<_>>());
            self.answers += keys.len() as u64;
        }
    }

    fn pick<'s>(
        &mut self,
        snapshots: &'s Snapshots<'a>,
    ) -> Option<&'s (Snapshot<'a>, SnapshotWithThreadMode<'a, RocksDb>)> {
        let place = self.numbers.below(2 * snapshots.len() as u64 + 1) as usize;
        snapshots.get(place)
    }

    fn read_range(&mut self, snapshots: &Snapshots<'a>) {
        let (ours, plain) = self.family();
        let bounds = self.bounds();
        let mut both = self.read_options(&bounds);
        if let Some(snapshot) = self.pick(snapshots) {
            both.0.set_snapshot(&snapshot.0);
            both.1.set_snapshot(&snapshot.1);
        }
        let key = self.other_key();
        let mode = match self.numbers.below(4) {
            0 => IteratorMode::Start,
            1 => IteratorMode::End,
            2 => IteratorMode::From(&key, Direction::Forward),
            _ => IteratorMode::From(&key, Direction::Reverse),
        };
        let found = self.db.iterator_cf_opt(&ours, both.0, mode);
        let expected = self.plain.iterator_cf_opt(&plain, both.1, mode);
        let found: Vec<_> = found.take(20).map(|row| row.expect("read")).collect();
        let expected: Vec<_> = expected.take(20).map(|row| row.expect("read")).collect();
        assert_eq!(found, expected, "{bounds:?} {key:?}");
        self.answers += 1;
    }

    fn raw_pair(&mut self) -> RawPair<'a> {
        let (ours, plain) = self.family();
        let bounds = self.bounds();
        let both = self.read_options(&bounds);
        let ours = self.db.raw_iterator_cf_opt(&ours, both.0);
        (ours, self.plain.raw_iterator_cf_opt(&plain, both.1))
    }

    /// Moves iterators that were made earlier.
    fn move_raw(&mut self, (ours, plain): &mut RawPair<'a>) {
        let key = self.other_key();
        match self.numbers.below(5) {
            0 => {
                ours.seek(&key);
                plain.seek(&key);
            }
            1 => {
                ours.seek_for_prev(&key);
                plain.seek_for_prev(&key);
            }
            2 => {
                ours.seek_to_first();
                plain.seek_to_first();
            }
            3 => {
                ours.seek_to_last();
                plain.seek_to_last();
            }
            _ => {
                ours.refresh().expect("refreshed");
                plain.refresh().expect("refreshed");
            }
        }
        for step in 0..6 {
            assert_eq!(ours.item(), plain.item(), "{key:?}");
            assert_eq!(ours.valid(), plain.valid());
            ours.status().expect("no error");
            if step % 4 == 3 {
                ours.prev();
                plain.prev();
            } else {
                ours.next();
                plain.next();
            }
            self.answers += 1;
        }
    }
}

/// Runs both databases from one opening to the next. Returns the number of compared answers.
fn session(folders: [&Path; 2], scratch: &Path, (seed, is_text): (u64, bool), steps: u64) -> u64 {
    let db = Db::open_cf_descriptors(&options(), folders[0], families()).expect("it opens");
    let plain = RocksDb::open_cf_descriptors(&options(), folders[1], families());
    let plain = plain.expect("it opens");
    let numbers = Numbers(seed);
    let mut both = Both { db: &db, plain: &plain, numbers, is_text, answers: 0 };
    let mut snapshots: Snapshots<'_> = Vec::new();
    let mut raw: Vec<RawPair<'_>> = Vec::new();
    for step in 0..steps {
        both.write(scratch);
        (0..12).for_each(|_| both.read_keys(&snapshots));
        (0..4).for_each(|_| both.read_range(&snapshots));
        if let Some(mut pair) = raw.pop() {
            both.move_raw(&mut pair);
            if both.numbers.below(4) > 0 {
                raw.insert(0, pair);
            }
        }
        match step % 40 {
            5 => snapshots.push((db.snapshot(), plain.snapshot())),
            15 if snapshots.len() > 3 => drop(snapshots.remove(0)),
            25 => raw.push(both.raw_pair()),
            35 if step % 400 == 35 => {
                db.shared().doors().iter().for_each(|door| door.want_scan());
            }
            39 if step % 1000 == 39 => wait(&db),
            _ => {}
        }
    }
    let answers = both.answers;
    drop((raw, snapshots));
    let state = db.door_state();
    assert!(state.denied > 100, "the door denies: {state:?}");
    answers
}

#[test]
fn a_million_answers_are_the_same() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let [ours, plain, scratch] = &folders;
    let mut answers = 0;
    let mut seed = 0;
    while answers < 1_000_000 {
        seed += 1;
        let (kind, folders) = (seed % 2 == 0, [ours.path(), plain.path()]);
        answers += session(folders, scratch.path(), (seed, kind), 3000);
    }
    assert!(seed > 5, "{seed} openings");
}
