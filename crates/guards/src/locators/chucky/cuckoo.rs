//! The cuckoo filter: each key's fingerprint is in one of two buckets, with the slot of the key's
//! run.
//! ```text
//! key ──> two buckets ──> lanes with a prefix of its fingerprint ──> slots
//!              │ └─ overflowed: its fingerprints are in the overflow table
//!              └─── full: more of its entries may be in the table of unplaced entries
//! insert       into an empty lane; or another entry moves to its other bucket; or unplaced
//! ```
//! Entries are (slot, fingerprint); the slot determines the fingerprint's length. Removing a key
//! removes any equal entry in either bucket, which is correct. The other entry has the same slot
//! and fingerprint, whose first bits determine the other bucket. So it is in the same two buckets
//! and indistinguishable. There are always as many equal entries as such keys, and any remaining
//! entry answers for any remaining key. (Fingerprints of different lengths are in different slots
//! and never confused.)
//!
//! Invariant: each noted key and slot has an entry. It is in a bucket of the key, or in the list of
//! unplaced entries of a full bucket of the key.

use std::collections::HashMap;
use std::sync::Arc;

use trommel_filters::bits::simd::fastest;
use trommel_filters::hash::{HashUse, grouped, hash_key, scattered};
use trommel_filters::{
    KeyList, Move, Query, RunLocator, RunLocatorSize, RunSlot, SlotSet, Trace, TreePlan, Untraced,
};

use super::bucket::{BUCKET_SLOTS, BucketCodec, Decoded, Entry, Lanes};
use super::hasher::{QuickHash, map_bytes};
use super::held::{Bucket, Held, OldestHeld};
use super::pages::Pages;
use super::place::{BucketPair, Geometry};
use super::symbol::FINGERPRINT_BITS;

/// The maximum number of moves for a new entry, before one entry stays unplaced.
const MOVES_MAX: u64 = 500;
/// The same in a filter that is fuller than planned, where a place is rarely found. This happens
/// when merges are late, and hundreds of moves per key would delay them further.
const MOVES_MAX_OVERFULL: u64 = 16;

/// The number of keys whose buckets are prefetched together.
const KEYS_AHEAD: usize = 16;
/// The maximum number of keys that are sorted by bucket together.
const KEYS_GROUPED_MAX: usize = 1 << 16;

/// Data by bucket number, shared until it changes.
type Table<V> = Arc<HashMap<u32, V, QuickHash>>;

/// A cuckoo filter of the keys of all runs of a tree, which knows the run of each key.
#[derive(Clone, Debug)]
pub struct Cuckoo<C> {
    codec: C,
    geometry: Geometry,
    pub(super) pages: Pages,
    /// The entries of buckets whose combination leaves no bits for them.
    overflow: Table<Lanes>,
    /// Entries without a place, by a full bucket of theirs.
    unplaced: Table<Vec<Entry>>,
    unplaced_entries: u64,
    entries: u64,
    slots: usize,
}

impl<C: BucketCodec> Cuckoo<C> {
    /// A filter without keys. Requires: a plan of 1 to 256 slots.
    pub(super) fn of_plan(plan: &TreePlan) -> Self {
        assert!((1..=256).contains(&plan.slots()), "{} slots", plan.slots());
        let geometry = Geometry::new(plan.entries);
        let codec = C::new(plan, geometry.buckets());
        let geometry = geometry.with_last_bits(codec.fingerprint_bits(codec.last_slot()));
        Cuckoo {
            pages: Pages::new(geometry.buckets(), geometry.shift(), codec.bucket_bits()),
            geometry,
            overflow: Arc::default(),
            unplaced: Arc::default(),
            unplaced_entries: 0,
            entries: 0,
            slots: plan.slots(),
            codec,
        }
    }

    /// Returns the hash by which a key is noted. These hashes suffice to rebuild the filter.
    pub fn key_hash(key: &[u8]) -> u64 {
        hash_key(key, HashUse::Chucky)
    }

    /// Same as [`RunLocator::candidates`], for the key with this hash.
    #[inline]
    pub fn candidates_hash<T: Trace>(&self, hash: u64, slots: &mut SlotSet, trace: &mut T) {
        let (found, seen) = (&mut *slots, &mut *trace);
        let place = fastest(
            #[inline(always)]
            move || self.probe(hash, found, seen),
        );
        if self.unplaced_entries > 0 {
            self.unplaced_matches(&place, slots, trace);
        }
    }

    /// Looks up a key in both buckets, which are prefetched before either is read.
    #[inline(always)]
    fn probe<T: Trace>(&self, hash: u64, slots: &mut SlotSet, trace: &mut T) -> BucketPair {
        let place = self.geometry.place(hash);
        self.pages.prefetch(place.first);
        self.pages.prefetch(place.second);
        self.bucket_matches(place.first, place.fingerprint, slots, trace);
        if place.second != place.first {
            self.bucket_matches(place.second, place.fingerprint, slots, trace);
        }
        place
    }

    #[inline(always)]
    fn bucket_matches<T: Trace>(
        &self,
        bucket: u32,
        fingerprint: u32,
        slots: &mut SlotSet,
        trace: &mut T,
    ) {
        let known = if self.pages.are_words() {
            self.codec.matches(
                self.pages.read_as::<u64, T>(bucket, trace),
                fingerprint,
                slots,
                trace,
            )
        } else {
            self.codec.matches(
                self.pages.read_as::<u128, T>(bucket, trace),
                fingerprint,
                slots,
                trace,
            )
        };
        if !known {
            self.overflow_matches(bucket, fingerprint, slots, trace);
        }
    }

    #[cold]
    #[inline(never)]
    fn overflow_matches<T: Trace>(
        &self,
        bucket: u32,
        fingerprint: u32,
        slots: &mut SlotSet,
        trace: &mut T,
    ) {
        let lanes = self.held(bucket).lanes;
        if let Some(lanes) = self.overflow.get(&bucket) {
            trace.touch(std::ptr::from_ref(lanes) as usize, size_of::<Lanes>());
        }
        for lane in 0..BUCKET_SLOTS {
            self.entry_matches(lanes.get(lane), fingerprint, slots);
        }
    }

    #[cold]
    #[inline(never)]
    fn unplaced_matches<T: Trace>(&self, place: &BucketPair, slots: &mut SlotSet, trace: &mut T) {
        for bucket in [place.first, place.second] {
            for entry in self.unplaced.get(&bucket).into_iter().flatten() {
                trace.touch(std::ptr::from_ref(entry) as usize, size_of::<Entry>());
                self.entry_matches(*entry, place.fingerprint, slots);
            }
        }
    }

    fn entry_matches(&self, entry: Entry, fingerprint: u32, slots: &mut SlotSet) {
        if entry.fingerprint
            == fingerprint >> (FINGERPRINT_BITS - self.codec.fingerprint_bits(entry.slot))
        {
            slots.insert(RunSlot(entry.slot));
        }
    }

    /// Returns the entry of a key in a slot.
    fn entry(&self, place: &BucketPair, slot: u8) -> Entry {
        Entry {
            slot,
            fingerprint: place.fingerprint
                >> (FINGERPRINT_BITS - self.codec.fingerprint_bits(slot)),
        }
    }

    /// Returns the contents of a bucket, and whether they are in the overflow table.
    #[inline(always)]
    pub(super) fn held(&self, bucket: u32) -> Held {
        match self.codec.decode(self.pages.read(bucket, &mut Untraced)) {
            Decoded::Whole(lanes) => Held { lanes, overflowed: false },
            Decoded::Overflowed(named) => {
                Held { lanes: self.overflowed(bucket, named), overflowed: true }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn overflowed(&self, bucket: u32, named: Option<[u8; BUCKET_SLOTS]>) -> Lanes {
        let lanes = self.overflow.get(&bucket).expect("an overflowed bucket is in the table");
        Lanes { slots: named.unwrap_or(lanes.slots), fingerprints: lanes.fingerprints }
    }

    /// Writes the contents of a bucket.
    #[inline(always)]
    pub(super) fn set_held(&mut self, bucket: u32, held: &Held) {
        let sorted = held.lanes.sorted();
        let encoded = self.codec.encode(&sorted);
        if encoded.overflowed || held.overflowed {
            self.set_overflow(bucket, encoded.overflowed.then_some(sorted));
        }
        self.pages.write(bucket, encoded.value);
    }

    #[cold]
    #[inline(never)]
    fn set_overflow(&mut self, bucket: u32, lanes: Option<Lanes>) {
        let table = Arc::make_mut(&mut self.overflow);
        match lanes {
            Some(lanes) => table.insert(bucket, lanes),
            None => table.remove(&bucket),
        };
    }

    /// Notes some keys, given by hash and index. All of their buckets are prefetched first.
    fn note_some(&mut self, some: &[(u64, usize)], of: &dyn Fn(usize) -> Move) {
        let mut places = [BucketPair::default(); KEYS_AHEAD];
        for (place, (hash, _)) in places.iter_mut().zip(some) {
            *place = self.geometry.place(*hash);
            self.pages.prefetch(place.first);
            self.pages.prefetch(place.second);
        }
        places.iter().zip(some).for_each(|(place, (_, nth))| self.note_at(place, of(*nth)));
    }

    /// See [`RunLocator::note`].
    fn note_at(&mut self, place: &BucketPair, (from, to): Move) {
        let slot = |slot: Option<RunSlot>| {
            slot.inspect(|slot| assert!(usize::from(slot.0) < self.slots, "{slot:?}")).map(|s| s.0)
        };
        match (slot(from), slot(to)) {
            (None, None) => {}
            (None, Some(to)) => self.insert::<Held>(place, self.entry(place, to)),
            (Some(from), None) => {
                self.replace(place, self.entry(place, from), None);
            }
            (Some(from), Some(to)) => {
                let (old, new) = (self.entry(place, from), self.entry(place, to));
                if !self.replace(place, old, Some(new)) {
                    self.insert::<Held>(place, new);
                }
            }
        }
    }

    /// Notes a key of the oldest run by its hash. Requires: no key of another run was noted yet.
    pub(super) fn note_oldest(&mut self, hash: u64) {
        let place = self.geometry.place(hash);
        let entry = self.entry(&place, self.codec.last_slot());
        match self.pages.are_words() {
            true => self.insert::<OldestHeld<u64>>(&place, entry),
            false => self.insert::<OldestHeld<u128>>(&place, entry),
        }
    }

    /// Inserts a new entry. It never fails: an entry may stay unplaced.
    fn insert<B: Bucket<C>>(&mut self, place: &BucketPair, entry: Entry) {
        self.entries += 1;
        if self.put::<B>(place.first, entry) || self.put::<B>(place.second, entry) {
            return;
        }
        if self.entries > self.geometry.slots() || self.is_closed::<B>(place) {
            return self.leave_unplaced(place.second, entry);
        }
        self.make_way::<B>(place, entry);
    }

    /// Puts an entry into an empty lane. False: there is none.
    fn put<B: Bucket<C>>(&mut self, bucket: u32, entry: Entry) -> bool {
        let mut held = B::take(self, bucket);
        let Some(lane) = held.vacancy(self.codec.last_slot()) else { return false };
        held.set(lane, entry);
        held.put_back(self, bucket);
        true
    }

    /// Whether every entry of both buckets could only move between these two, as with many versions
    /// of one key.
    fn is_closed<B: Bucket<C>>(&self, place: &BucketPair) -> bool {
        let leads = |from: u32, to: u32| {
            let held = B::take(self, from);
            (0..BUCKET_SLOTS).all(|lane| self.other(from, held.get(lane)) == to)
        };
        leads(place.first, place.second) && leads(place.second, place.first)
    }

    fn other(&self, bucket: u32, entry: Entry) -> u32 {
        self.geometry.other(bucket, entry.fingerprint, self.codec.fingerprint_bits(entry.slot))
    }

    /// Replaces another entry, which moves to its other bucket, and so on. Requires: both buckets
    /// are full.
    fn make_way<B: Bucket<C>>(&mut self, place: &BucketPair, mut entry: Entry) {
        let mut bucket = place.second;
        let seed = scattered(self.entries);
        let is_overfull = self.entries > self.geometry.room();
        for turn in 0..if is_overfull { MOVES_MAX_OVERFULL } else { MOVES_MAX } {
            let mut held = B::take(self, bucket);
            let lane = (scattered(seed ^ turn) % BUCKET_SLOTS as u64) as usize;
            let evicted = held.get(lane);
            held.set(lane, entry);
            held.put_back(self, bucket);
            entry = evicted;
            bucket = self.other(bucket, entry);
            if self.put::<B>(bucket, entry) {
                return;
            }
        }
        self.leave_unplaced(bucket, entry);
    }

    /// Lists an entry as unplaced for one of its buckets. Requires: that bucket is full.
    fn leave_unplaced(&mut self, bucket: u32, entry: Entry) {
        Arc::make_mut(&mut self.unplaced).entry(bucket).or_default().push(entry);
        self.unplaced_entries += 1;
    }

    /// Replaces an entry by another one of the same key, or removes it. False: there is no such
    /// entry.
    fn replace(&mut self, place: &BucketPair, old: Entry, new: Option<Entry>) -> bool {
        for bucket in [place.first, place.second] {
            let mut held = self.held(bucket);
            let Some(lane) = held.lanes.position(old) else { continue };
            if new == Some(old) {
                return true;
            }
            match new {
                Some(new) => held.lanes.set(lane, new),
                None => self.vacate(bucket, &mut held.lanes, lane),
            }
            self.set_held(bucket, &held);
            return true;
        }
        self.unplaced_entries > 0 && self.replace_unplaced(place, old, new)
    }

    /// Removes an entry from a bucket. An unplaced entry of the bucket takes its place.
    fn vacate(&mut self, bucket: u32, lanes: &mut Lanes, lane: usize) {
        self.entries -= 1;
        match self.take_unplaced(bucket) {
            Some(entry) => lanes.set(lane, entry),
            None => lanes.clear(lane, self.codec.last_slot()),
        }
    }

    fn take_unplaced(&mut self, bucket: u32) -> Option<Entry> {
        if !self.unplaced.contains_key(&bucket) {
            return None;
        }
        self.edit_unplaced(bucket, |list| list.pop())
    }

    /// Changes a list of unplaced entries, and removes it once it is empty.
    fn edit_unplaced<R>(&mut self, bucket: u32, edit: impl FnOnce(&mut Vec<Entry>) -> R) -> R {
        let table = Arc::make_mut(&mut self.unplaced);
        let list = table.entry(bucket).or_default();
        let before = list.len();
        let result = edit(list);
        self.unplaced_entries -= (before - list.len()) as u64;
        if list.is_empty() {
            table.remove(&bucket);
        }
        result
    }

    fn replace_unplaced(&mut self, place: &BucketPair, old: Entry, new: Option<Entry>) -> bool {
        for bucket in [place.first, place.second] {
            let list = self.unplaced.get(&bucket);
            let Some(nth) = list.and_then(|list| list.iter().position(|entry| *entry == old))
            else {
                continue;
            };
            match new {
                Some(new) => self.edit_unplaced(bucket, |list| list[nth] = new),
                None => {
                    self.entries -= 1;
                    self.edit_unplaced(bucket, |list| _ = list.swap_remove(nth));
                }
            }
            return true;
        }
        false
    }

    /// The encoding of buckets.
    pub(super) fn codec(&self) -> &C {
        &self.codec
    }

    /// The number of unplaced entries, and of overflowed buckets.
    pub(super) fn misplaced(&self) -> (u64, usize) {
        (self.unplaced_entries, self.overflow.len())
    }
}

impl<C: BucketCodec> RunLocator for Cuckoo<C> {
    /// See [`Cuckoo::note_hash`], also for its requirements.
    fn note(&mut self, key: &[u8], from: Option<RunSlot>, to: Option<RunSlot>) {
        self.note_hash(Self::key_hash(key), from, to);
    }

    fn note_hash(&mut self, hash: u64, from: Option<RunSlot>, to: Option<RunSlot>) {
        let place = self.geometry.place(hash);
        self.note_at(&place, (from, to));
    }

    /// Notes keys of neighbouring buckets consecutively, as the first one may have copied the page.
    /// The moves of one key keep their order.
    fn note_all(&mut self, keys: &KeyList, of: &dyn Fn(usize) -> Move) {
        for first in (0..keys.len()).step_by(KEYS_GROUPED_MAX) {
            let nths = first..keys.len().min(first + KEYS_GROUPED_MAX);
            let hashes: Vec<_> = nths.map(|nth| (Self::key_hash(keys.get(nth)), nth)).collect();
            for some in grouped(&hashes, |(hash, _)| hash).chunks(KEYS_AHEAD) {
                self.note_some(some, of);
            }
        }
    }

    /// A range of more than one key may be in any run.
    #[inline]
    fn candidates<T: Trace>(&self, query: &Query<'_>, slots: &mut SlotSet, trace: &mut T) {
        let range = query.range();
        if range.upper() == Some(range.lower()) {
            return self.candidates_hash(Self::key_hash(range.lower()), slots, trace);
        }
        (0..=u8::MAX).take(self.slots).for_each(|slot| slots.insert(RunSlot(slot)));
    }

    fn lower_bound(&self, _slot: RunSlot, from: &[u8]) -> Option<Vec<u8>> {
        Some(from.to_vec())
    }

    fn upper_bound(&self, _slot: RunSlot, before: &[u8]) -> Option<Vec<u8>> {
        Some(before.to_vec())
    }

    fn size(&self) -> RunLocatorSize {
        let lists = self.unplaced.values().map(|list| list.capacity() * size_of::<Entry>());
        let overflow_bytes =
            map_bytes(&self.overflow) + map_bytes(&self.unplaced) + lists.sum::<usize>();
        RunLocatorSize {
            bytes: size_of::<Self>()
                + self.codec.size_bytes()
                + self.pages.size_bytes()
                + overflow_bytes,
            overflow_bytes,
            entries: self.entries,
            room: self.geometry.room(),
        }
    }
}
