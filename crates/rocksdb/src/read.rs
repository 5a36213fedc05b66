//! Reads of keys, and creation of iterators.
//! ```text
//! get         denied: None; else RocksDB
//! multi_get   some denied, some not: RocksDB is asked for the others, then the door again for the
//!             denied ones, so that all answers belong to one moment
//! ```
//! Invariant: a denied key was absent at some moment of the call.

use std::sync::Arc;

use rocksdb::{DBPinnableSlice, Direction, Error, IteratorMode};

use crate::base::{Base, RocksDb, RocksOptimisticDb};
use crate::db::DoorDb;
use crate::door::Door;
use crate::family::ColumnFamily;
use crate::habit::Habit;
use crate::iterator::{DbIterator, DbRawIterator};
use crate::pause::{self, Point, Rule};
use crate::read_options::ReadOptions;

/// What the door said of a key before RocksDB was asked.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Denied,
    Passed,
    Not,
}

fn ask(door: &Door, key: &[u8], options: &ReadOptions) -> Asked {
    let habit = Habit::of_keys(door.id);
    if !options.may_ask() || !habit.is_worth_it() {
        return Asked::Not;
    }
    let is_denied = door.denies_key(key, options.snapshot);
    habit.learn(is_denied);
    if is_denied { Asked::Denied } else { Asked::Passed }
}

/// Gets a key from RocksDB, unless the door denies it.
fn found<T>(
    door: &Door,
    (key, options): (&[u8], &ReadOptions),
    get: impl FnOnce() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let asked = ask(door, key, options);
    if asked == Asked::Denied {
        return Ok(None);
    }
    let found = get()?;
    if found.is_none() && asked == Asked::Passed {
        door.note_waste();
    }
    Ok(found)
}

/// Reads of single keys.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::get`].
    pub fn get<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<Vec<u8>>, Error> {
        self.get_opt(key, &self.default_options)
    }

    /// See [`rocksdb::DB::get_opt`].
    pub fn get_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let key = key.as_ref();
        let get = || self.inner().get_opt(key, &options.inner);
        found(self.default_door(), (key, options), get)
    }

    /// See [`rocksdb::DB::get_cf`].
    pub fn get_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.get_cf_opt(family, key, &self.default_options)
    }

    /// See [`rocksdb::DB::get_cf_opt`].
    pub fn get_cf_opt<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let key = key.as_ref();
        let get = || self.inner().get_cf_opt(family, key, &options.inner);
        found(family.door(), (key, options), get)
    }

    /// See [`rocksdb::DB::get_pinned`].
    pub fn get_pinned<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_opt(key, &self.default_options)
    }

    /// See [`rocksdb::DB::get_pinned_opt`].
    pub fn get_pinned_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        options: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let key = key.as_ref();
        let get = || self.inner().get_pinned_opt(key, &options.inner);
        found(self.default_door(), (key, options), get)
    }

    /// See [`rocksdb::DB::get_pinned_cf`].
    pub fn get_pinned_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_cf_opt(family, key, &self.default_options)
    }

    /// See [`rocksdb::DB::get_pinned_cf_opt`].
    pub fn get_pinned_cf_opt<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily<'_>,
        key: K,
        options: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let key = key.as_ref();
        let get = || self.inner().get_pinned_cf_opt(family, key, &options.inner);
        found(family.door(), (key, options), get)
    }
}

/// Reads of many keys.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::multi_get`].
    pub fn multi_get<K, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.multi_get_opt(keys, &self.default_options)
    }

    /// See [`rocksdb::DB::multi_get_opt`].
    pub fn multi_get_opt<K, I>(
        &self,
        keys: I,
        options: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<(&Door, &[u8])> =
            keys.iter().map(|key| (self.default_door(), key.as_ref())).collect();
        many(&keys, options, |places| {
            let keys = places.iter().map(|place| keys[*place].1);
            self.inner().multi_get_opt(keys, &options.inner)
        })
    }

    /// See [`rocksdb::DB::multi_get_cf`].
    pub fn multi_get_cf<'b, K, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b ColumnFamily<'b>, K)>,
    {
        self.multi_get_cf_opt(keys, &self.default_options)
    }

    /// See [`rocksdb::DB::multi_get_cf_opt`].
    pub fn multi_get_cf_opt<'b, K, I>(
        &self,
        keys: I,
        options: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b ColumnFamily<'b>, K)>,
    {
        let keys: Vec<(&ColumnFamily<'_>, K)> = keys.into_iter().collect();
        let asked: Vec<(&Door, &[u8])> =
            keys.iter().map(|(family, key)| (&**family.door(), key.as_ref())).collect();
        many(&asked, options, |places| {
            let keys = places.iter().map(|place| (keys[*place].0, asked[*place].1));
            self.inner().multi_get_cf_opt(keys, &options.inner)
        })
    }
}

/// Methods that `TransactionDB` lacks.
macro_rules! more_reads {
    ($kind:ty) => {
        impl DoorDb<$kind> {
            /// See [`rocksdb::DB::key_may_exist`]. False proves that the key does not exist.
            pub fn key_may_exist<K: AsRef<[u8]>>(&self, key: K) -> bool {
                self.key_may_exist_opt(key, &self.default_options)
            }

            /// See [`rocksdb::DB::key_may_exist_cf`]. False proves that the key does not exist.
            pub fn key_may_exist_cf<K: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                key: K,
            ) -> bool {
                self.key_may_exist_cf_opt(family, key, &self.default_options)
            }

            /// See [`rocksdb::DB::key_may_exist_opt`]. False proves that the key does not exist.
            pub fn key_may_exist_opt<K: AsRef<[u8]>>(&self, key: K, options: &ReadOptions) -> bool {
                let key = key.as_ref();
                let asked = ask(self.default_door(), key, options);
                asked != Asked::Denied && self.inner().key_may_exist_opt(key, &options.inner)
            }

            /// See [`rocksdb::DB::key_may_exist_cf_opt`]. False proves that the key does not exist.
            pub fn key_may_exist_cf_opt<K: AsRef<[u8]>>(
                &self,
                family: &ColumnFamily<'_>,
                key: K,
                options: &ReadOptions,
            ) -> bool {
                let key = key.as_ref();
                let asked = ask(family.door(), key, options);
                asked != Asked::Denied
                    && self.inner().key_may_exist_cf_opt(family, key, &options.inner)
            }

            /// See [`rocksdb::DB::batched_multi_get_cf`].
            pub fn batched_multi_get_cf<'k, K, I>(
                &self,
                family: &ColumnFamily<'_>,
                keys: I,
                is_sorted: bool,
            ) -> Vec<Result<Option<DBPinnableSlice<'_>>, Error>>
            where
                K: AsRef<[u8]> + 'k + ?Sized,
                I: IntoIterator<Item = &'k K>,
            {
                self.batched_multi_get_cf_opt(family, keys, is_sorted, &self.default_options)
            }

            /// See [`rocksdb::DB::batched_multi_get_cf_opt`].
            pub fn batched_multi_get_cf_opt<'k, K, I>(
                &self,
                family: &ColumnFamily<'_>,
                keys: I,
                is_sorted: bool,
                options: &ReadOptions,
            ) -> Vec<Result<Option<DBPinnableSlice<'_>>, Error>>
            where
                K: AsRef<[u8]> + 'k + ?Sized,
                I: IntoIterator<Item = &'k K>,
            {
                let door: &Door = family.door();
                let keys: Vec<(&Door, &[u8])> =
                    keys.into_iter().map(|key| (door, key.as_ref())).collect();
                many(&keys, options, |places| {
                    let keys: Vec<&[u8]> = places.iter().map(|place| keys[*place].1).collect();
                    self.inner().batched_multi_get_cf_opt(family, keys, is_sorted, &options.inner)
                })
            }
        }
    };
}

more_reads!(RocksDb);
more_reads!(RocksOptimisticDb);

/// Answers for many keys, all of one moment. `get` asks RocksDB for the keys at some indexes.
fn many<T>(
    keys: &[(&Door, &[u8])],
    options: &ReadOptions,
    get: impl Fn(&[usize]) -> Vec<Result<Option<T>, Error>>,
) -> Vec<Result<Option<T>, Error>> {
    let views: Vec<_> = match keys {
        [(first, _), rest @ ..] if rest.iter().all(|(door, _)| std::ptr::eq(*door, *first)) => {
            vec![Arc::clone(&first.look())]
        }
        _ => keys.iter().map(|(door, _)| Arc::clone(&door.look())).collect(),
    };
    let view_of = |place: usize| &views[place.min(views.len() - 1)];
    let is_denied = |place: usize| {
        let (door, key) = keys[place];
        let view = view_of(place);
        let habit = Habit::of_keys(door.id);
        if !options.may_ask() || !door.is_in(view) || !habit.is_worth_it() {
            return false;
        }
        let is_denied = door.counts.count(view.denies_key(key, options.snapshot));
        habit.learn(is_denied);
        is_denied
    };
    let (denied, passed): (Vec<usize>, Vec<usize>) = (0..keys.len()).partition(|at| is_denied(*at));
    pause::at(Point::Asked);
    let all: Vec<usize> = (0..keys.len()).collect();
    if denied.is_empty() {
        return get(&all);
    }
    let mut answers: Vec<_> = keys.iter().map(|_| Ok(None)).collect();
    if passed.is_empty() {
        return answers;
    }
    for (place, answer) in passed.iter().zip(get(&passed)) {
        answers[*place] = answer;
    }
    // RocksDB saw a later moment, at which denied keys must be absent, too. They are, if the door
    // still denies them by a filter of the same scan.
    let is_absent_still = |place: &usize| {
        let now = keys[*place].0.look();
        let is_one_scan = now.has_scan_of(view_of(*place));
        is_one_scan && now.denies_key(keys[*place].1, options.snapshot)
    };
    let is_one_moment = options.snapshot.is_some() || pause::is_broken(Rule::OneMoment);
    if is_one_moment || denied.iter().all(is_absent_still) {
        return answers;
    }
    get(&all)
}

/// Iterators.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::iterator`].
    pub fn iterator(&self, mode: IteratorMode<'_>) -> DbIterator<'_, B> {
        self.iterator_opt(mode, ReadOptions::default())
    }

    /// See [`rocksdb::DB::iterator_opt`]. The door can answer if there is an upper bound.
    pub fn iterator_opt(&self, mode: IteratorMode<'_>, options: ReadOptions) -> DbIterator<'_, B> {
        DbIterator::new(self, None, options, mode)
    }

    /// See [`rocksdb::DB::iterator_cf`].
    pub fn iterator_cf<'a>(
        &'a self,
        family: &ColumnFamily<'a>,
        mode: IteratorMode<'_>,
    ) -> DbIterator<'a, B> {
        self.iterator_cf_opt(family, ReadOptions::default(), mode)
    }

    /// See [`rocksdb::DB::iterator_cf_opt`].
    pub fn iterator_cf_opt<'a>(
        &'a self,
        family: &ColumnFamily<'a>,
        options: ReadOptions,
        mode: IteratorMode<'_>,
    ) -> DbIterator<'a, B> {
        DbIterator::new(self, Some(family.clone()), options, mode)
    }

    /// See [`rocksdb::DB::full_iterator`].
    pub fn full_iterator(&self, mode: IteratorMode<'_>) -> DbIterator<'_, B> {
        let mut options = ReadOptions::default();
        options.set_total_order_seek(true);
        self.iterator_opt(mode, options)
    }

    /// See [`rocksdb::DB::full_iterator_cf`].
    pub fn full_iterator_cf<'a>(
        &'a self,
        family: &ColumnFamily<'a>,
        mode: IteratorMode<'_>,
    ) -> DbIterator<'a, B> {
        let mut options = ReadOptions::default();
        options.set_total_order_seek(true);
        self.iterator_cf_opt(family, options, mode)
    }

    /// See [`rocksdb::DB::prefix_iterator`]. The door can answer if the family has a fixed prefix.
    pub fn prefix_iterator<P: AsRef<[u8]>>(&self, prefix: P) -> DbIterator<'_, B> {
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        self.iterator_opt(IteratorMode::From(prefix.as_ref(), Direction::Forward), options)
    }

    /// See [`rocksdb::DB::prefix_iterator_cf`].
    pub fn prefix_iterator_cf<'a, P: AsRef<[u8]>>(
        &'a self,
        family: &ColumnFamily<'a>,
        prefix: P,
    ) -> DbIterator<'a, B> {
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        let mode = IteratorMode::From(prefix.as_ref(), Direction::Forward);
        self.iterator_cf_opt(family, options, mode)
    }

    /// See [`rocksdb::DB::raw_iterator`].
    pub fn raw_iterator(&self) -> DbRawIterator<'_, B> {
        self.raw_iterator_opt(ReadOptions::default())
    }

    /// See [`rocksdb::DB::raw_iterator_opt`].
    pub fn raw_iterator_opt(&self, options: ReadOptions) -> DbRawIterator<'_, B> {
        DbRawIterator::new(self, None, options, None)
    }

    /// See [`rocksdb::DB::raw_iterator_cf`].
    pub fn raw_iterator_cf<'a>(&'a self, family: &ColumnFamily<'a>) -> DbRawIterator<'a, B> {
        self.raw_iterator_cf_opt(family, ReadOptions::default())
    }

    /// See [`rocksdb::DB::raw_iterator_cf_opt`].
    pub fn raw_iterator_cf_opt<'a>(
        &'a self,
        family: &ColumnFamily<'a>,
        options: ReadOptions,
    ) -> DbRawIterator<'a, B> {
        DbRawIterator::new(self, Some(family.clone()), options, None)
    }
}
