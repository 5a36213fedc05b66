//! Remix against a twin too plain to be wrong.
//! ```text
//! flushes, merges, clones ─┬─> view ──> slots of a key, of a range ──────┐
//!                          └─> key -> slots, as sets ─> slots it has in ─┴─> all of them are named
//! ```
//! Invariant: a slot that the twin has is never left out; in sets as narrow as one key, no other
//! one is named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

use trommel_filters::{
    KeyRange, LineCounter, Query, RunLocator, RunLocatorBuilder, RunSlot, Selected, SlotSet,
    SortedView, TreePlan, Untraced,
};
use trommel_guards::{RemixBuilder, SortedRemix, SortedRemixBuilder};

type Key = Vec<u8>;
type Twin = BTreeMap<Key, BTreeSet<u8>>;

/// A fixed, evenly spread sequence (SplitMix64), so that every run asks the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn plan(runs_of_levels: &[u8], entries: u64, bits_per_key: f64) -> TreePlan {
    TreePlan {
        runs_of_levels: runs_of_levels.to_vec(),
        waiting_runs: 0,
        size_ratio: 4,
        entries,
        bits_per_key,
    }
}

fn built<B: RunLocatorBuilder>(plan: &TreePlan, keys: &BTreeSet<Key>) -> (B::Filter, Twin) {
    let mut builder = B::new(plan);
    keys.iter().for_each(|key| builder.push(key));
    let oldest = (plan.slots() - 1) as u8;
    (builder.finish(), keys.iter().map(|key| (key.clone(), BTreeSet::from([oldest]))).collect())
}

fn point(filter: &impl RunLocator, key: &[u8]) -> Vec<u8> {
    let mut slots = SlotSet::default();
    filter.candidates(&Query::Point(key), &mut slots, &mut Untraced);
    slots.iter().map(|slot| slot.0).collect()
}

fn range(filter: &impl RunLocator, lower: &[u8], upper: Option<&[u8]>) -> Vec<u8> {
    let mut slots = SlotSet::default();
    let range = KeyRange::new(lower, upper).expect("in order");
    filter.candidates(&Query::Range(range), &mut slots, &mut Untraced);
    slots.iter().map(|slot| slot.0).collect()
}

/// Keys in, between and around the stored ones.
fn probes(twin: &Twin) -> Vec<Key> {
    let mut probes: Vec<Key> = vec![vec![], vec![0], vec![0xff; 9], vec![0x7f; 8]];
    for key in twin.keys().step_by(twin.len().div_ceil(50).max(1)) {
        probes.push(key.clone());
        probes.push([key, &[0][..]].concat());
        probes.push(key[..key.len() / 2].to_vec());
        if let Some((last, head)) = key.split_last() {
            probes.push([head, &[last.wrapping_add(1)]].concat());
            probes.push([head, &[last.wrapping_sub(1), 0xff]].concat());
        }
    }
    probes
}

/// Every law of a view, for every key of the twin and around.
fn the_laws_hold(filter: &impl RunLocator, twin: &Twin, slots: u8) {
    for (key, held) in twin {
        let named = point(filter, key);
        assert!(
            held.iter().all(|slot| named.contains(slot)),
            "{}: {held:?}, {named:?}",
            key.escape_ascii()
        );
    }
    let probes = probes(twin);
    for (at, lower) in probes.iter().enumerate() {
        let uppers = [at, at + 1, at + 7, at + probes.len() / 2];
        let uppers = uppers.map(|other| Some(&probes[other % probes.len()][..]));
        for upper in uppers.into_iter().chain([None]) {
            let (lower, upper) = match upper {
                Some(upper) => (upper.min(lower), Some(upper.max(lower))),
                None => (&lower[..], None),
            };
            let named = range(filter, lower, upper);
            let covers = |key: &Key| upper.is_none_or(|upper| key[..] <= *upper);
            let within = twin.range::<[u8], _>((Included(lower), Unbounded));
            for (key, held) in within.take_while(|(key, _)| covers(key)) {
                assert!(
                    held.iter().all(|slot| named.contains(slot)),
                    "{key:?}: {held:?}, {named:?}"
                );
            }
        }
        for slot in 0..slots {
            let mut after = twin.range::<[u8], _>((Included(&lower[..]), Unbounded));
            let next = after.find(|(_, held)| held.contains(&slot)).map(|(key, _)| key);
            match filter.lower_bound(RunSlot(slot), lower) {
                None => assert_eq!(next, None, "slot {slot} from {}", lower.escape_ascii()),
                Some(bound) => {
                    assert!(*lower <= bound, "{bound:?} from {lower:?}");
                    assert!(next.is_none_or(|next| bound <= *next), "{bound:?}, next {next:?}");
                }
            }
            let mut before = twin.range::<[u8], _>((Unbounded, Excluded(&lower[..])));
            let last = before.rfind(|(_, held)| held.contains(&slot)).map(|(key, _)| key);
            match filter.upper_bound(RunSlot(slot), lower) {
                None => assert_eq!(last, None, "slot {slot} before {}", lower.escape_ascii()),
                Some(bound) => {
                    assert!(bound <= *lower, "{bound:?} before {lower:?}");
                    assert!(last.is_none_or(|last| *last < bound), "{bound:?}, last {last:?}");
                }
            }
        }
    }
}

/// Moves the keys of some slots to another one; some are dropped.
fn merge(
    filter: &mut impl RunLocator,
    twin: &mut Twin,
    inputs: &[u8],
    output: u8,
    drop_one_in: u64,
) {
    let mut random = Random(u64::from(output));
    twin.retain(|key, held| {
        let from: Vec<u8> = inputs.iter().copied().filter(|slot| held.contains(slot)).collect();
        let dropped = random.below(drop_one_in) == 0;
        for (nth, slot) in from.iter().enumerate() {
            held.remove(slot);
            // Of a key in several inputs, the newest entry is kept.
            let to = (nth == 0 && !dropped).then_some(RunSlot(output));
            filter.note(key, Some(RunSlot(*slot)), to);
            held.extend(to.map(|slot| slot.0));
        }
        !held.is_empty()
    });
    let gone = inputs.iter().filter(|&&slot| slot != output);
    gone.for_each(|&slot| filter.vacate(RunSlot(slot)));
}

/// Keys that have hurt filters, by name.
fn families() -> Vec<(&'static str, Vec<Key>)> {
    let mut random = Random(5);
    let mut numbers = |count: usize, draw: &mut dyn FnMut(u64) -> u64| {
        let draws = (0..count).map(|_| draw(random.next()).to_be_bytes().to_vec());
        draws.collect::<Vec<Key>>()
    };
    let text = b"a sieve that turns, one drum, many sizes of grain";
    let runs_of = |byte: u8| (0..100).map(move |len| vec![byte; len]);
    let users = |n: u64| format!("user/{:04}/{:03}/name", n % 97, n % 1013).into_bytes();
    vec![
        ("no key", vec![]),
        ("one key", vec![b"drum".to_vec()]),
        ("the empty key and its successor", vec![vec![], vec![0]]),
        ("runs of 0x00 and 0xff", runs_of(0).chain(runs_of(0xff)).collect()),
        ("prefixes of each other", (0..text.len()).map(|len| text[..len].to_vec()).collect()),
        ("dense ids", numbers(600, &mut |n| 1_000_000 + n % 900)),
        ("clusters", numbers(600, &mut |n| ((n % 17) << 50) + (n >> 20) % 3000)),
        ("uniform", numbers(600, &mut |n| n)),
        ("text", (0..600).map(|n| users(n * 7919)).collect()),
    ]
}

/// Flushes, merges up the levels, and clones that go on alone, over keys of a family.
fn a_tree_lives<B: RunLocatorBuilder>(name: &str, keys: &[Key], bits_per_key: f64) {
    let plan = plan(&[4, 3, 1], keys.len() as u64, bits_per_key);
    let mut random = Random(keys.len() as u64);
    let oldest = keys.iter().filter(|_| random.below(4) > 0).cloned().collect();
    let (mut filter, mut twin) = built::<B>(&plan, &oldest);
    the_laws_hold(&filter, &twin, 8);
    let mut older = Vec::new();
    for round in 0..9u8 {
        let flushed: BTreeSet<_> = keys.iter().filter(|_| random.below(9) == 0).collect();
        for key in flushed {
            filter.note(key, None, Some(RunSlot(round % 3)));
            twin.entry(key.clone()).or_default().insert(round % 3);
        }
        if round % 3 == 2 {
            older.push((filter.clone(), twin.clone()));
            merge(&mut filter, &mut twin, &[0, 1, 2], 4 + round / 3, 5);
        }
        the_laws_hold(&filter, &twin, 8);
    }
    merge(&mut filter, &mut twin, &[4, 5, 6, 7], 7, 7);
    the_laws_hold(&filter, &twin, 8);
    for slot in 0..7 {
        assert_eq!(filter.lower_bound(RunSlot(slot), b""), None, "{name}: slot {slot} is vacated");
        assert_eq!(filter.upper_bound(RunSlot(slot), &[0xff; 99]), None, "{name}: slot {slot}");
        assert!(!range(&filter, b"", None).contains(&slot), "{name}");
    }
    older.iter().for_each(|(filter, twin)| the_laws_hold(filter, twin, 8));
}

#[test]
fn no_family_of_keys_loses_one() {
    for (name, keys) in families() {
        for bits_per_key in [0.0, 12.0, 1000.0] {
            a_tree_lives::<RemixBuilder>(name, &keys, bits_per_key);
            a_tree_lives::<SortedRemixBuilder>(name, &keys, bits_per_key);
        }
    }
}

#[test]
fn with_a_segment_per_key_no_other_run_is_named() {
    let keys: BTreeSet<Key> = (0..600u64).map(|n| (n << 40).to_be_bytes().to_vec()).collect();
    let plan = plan(&[4, 1], 600, 1000.0);
    let (mut filter, mut twin) = built::<RemixBuilder>(&plan, &keys);
    for (nth, key) in keys.iter().enumerate().filter(|(nth, _)| nth % 3 == 0) {
        let slot = (nth % 4) as u8;
        filter.note(key, None, Some(RunSlot(slot)));
        twin.get_mut(key).expect("a key").insert(slot);
    }
    assert_eq!(filter.segments(), 602);
    for (key, held) in &twin {
        assert_eq!(point(&filter, key), held.iter().copied().collect::<Vec<_>>());
    }
    assert_eq!(point(&filter, &[0xff; 8]), [], "above all keys");
    let first = filter.lower_bound(RunSlot(1), &[0; 8]).expect("slot 1 has keys");
    assert_eq!(first, [0, 0, 9], "the anchor of the first key that it has");
    let last = filter.upper_bound(RunSlot(1), &[0, 1]).expect("slot 1 has keys");
    assert_eq!(last, [0, 0, 250], "the anchor after the last key below 256 that it has: 249");
}

#[test]
fn the_view_takes_the_memory_that_it_may() {
    let mut random = Random(3);
    for (bits_per_key, size_ratio, levels) in
        [(8.0, 10, 5), (12.0, 10, 5), (20.0, 4, 3), (5.0, 5, 6)]
    {
        let mut runs_of_levels = vec![(size_ratio - 1) as u8; levels];
        runs_of_levels[levels - 1] = 1;
        let count = 200_000;
        // The oldest run has its share of the tree.
        let newer = (1..levels as i32).map(|level| f64::from(size_ratio).powi(-level)).sum::<f64>();
        let entries = (count as f64 * (1.0 + newer)) as u64;
        let plan = TreePlan { runs_of_levels, waiting_runs: 0, size_ratio, entries, bits_per_key };
        let numbers: BTreeSet<Key> =
            (0..count).map(|_| random.next().to_be_bytes().to_vec()).collect();
        let texts: BTreeSet<Key> = (0..count)
            .map(|n| format!("some/longer/{n:09}/prefix/{}", n % 7).into_bytes())
            .collect();
        for keys in [numbers, texts] {
            let (filter, _) = built::<RemixBuilder>(&plan, &keys);
            let taken = filter.size().bytes as f64 * 8.0 / entries as f64;
            assert!(
                (0.94..1.01).contains(&(taken / bits_per_key)),
                "{taken} of {bits_per_key} bits"
            );
        }
    }
}

#[test]
fn a_lone_probe_reads_few_lines() {
    let mut random = Random(9);
    let keys: BTreeSet<Key> = (0..300_000).map(|_| random.next().to_be_bytes().to_vec()).collect();
    let plan = plan(&[4, 3, 3, 1], 400_000, 12.0);
    let (filter, _) = built::<RemixBuilder>(&plan, &keys);
    let (mut lines, mut slots, mut counter) = (0, SlotSet::default(), LineCounter::default());
    for _ in 0..10_000 {
        filter.candidates(&Query::Point(&random.next().to_be_bytes()), &mut slots, &mut counter);
        lines += counter.take();
    }
    assert!((30_000..45_000).contains(&lines), "{lines} lines for 10,000 probes");
}

/// The GRF paper's Figure 5: a key in run f2 of version 1; then a merge moves it, and version 3 has
/// it in the last level.
#[test]
fn a_view_that_is_changed_in_place_loses_keys_of_older_versions() {
    let [f2, f3, f4, last] = [2, 1, 0, 4].map(RunSlot);
    let keys: BTreeSet<Key> = (0..200u64).map(|n| (n << 48).to_be_bytes().to_vec()).collect();
    let (mut view, _) = built::<RemixBuilder>(&plan(&[4, 1], 250, 1000.0), &keys);
    let key = &((1u64 << 63) + 5).to_be_bytes();
    view.note(key, None, Some(f2));
    view.note(&[3; 8], None, Some(f3));
    view.note(&[4; 8], None, Some(f4));
    let version_1 = view.clone();
    view.note(key, Some(f2), Some(last));
    [f2, f3, f4].into_iter().for_each(|slot| view.vacate(slot));
    // Asked for version 1, the changed view names only a run that does not have the key there.
    assert_eq!(point(&view, key), [last.0]);
    assert!(point(&version_1, key).contains(&f2.0), "version 1 keeps its own");
}

/// The sorted view of entries in order, newest version first.
fn sorted_view(plan: &TreePlan, segment_keys: usize, entries: &[(&[u8], u8)]) -> SortedRemix {
    let mut builder = SortedRemixBuilder::with_segment_keys(plan, segment_keys);
    entries.iter().for_each(|&(key, slot)| builder.add(key, RunSlot(slot)));
    builder.finish()
}

/// As the GRF paper's Figure 4 has it: segments of four, three runs, a seek that searches one
/// segment.
#[test]
fn a_seek_reads_keys_of_one_segment_and_a_scan_compares_none() {
    let runs: [&[&[u8]]; 3] = [
        &[b"04", b"31", b"79"],
        &[b"02", b"11", b"23", b"91"],
        &[b"06", b"17", b"23", b"29", b"43", b"73"],
    ];
    let mut entries: Vec<(&[u8], u8)> = Vec::new();
    for (slot, run) in runs.iter().enumerate() {
        entries.extend(run.iter().map(|&key| (key, slot as u8)));
    }
    entries.sort_unstable();
    let view = sorted_view(&plan(&[1, 1, 1], 13, 0.0), 4, &entries);
    let selectors = |segment| view.selectors(segment).map(|(slot, older)| (slot.0, older));
    let of = |segment| selectors(segment).collect::<Vec<_>>();
    assert_eq!(view.segments(), 6);
    assert_eq!(of(1), [(1, false), (0, false), (2, false), (1, false)], "02 04 06 11");
    assert_eq!(of(2), [(2, false), (1, false), (2, true), (2, false)], "17 23 23 29");
    assert_eq!(of(3), [(0, false), (2, false), (2, false), (0, false)], "31 43 73 79");
    assert_eq!(of(4), [(1, false)], "91");
    assert_eq!([0, 1, 2].map(|slot| view.cursor(2, RunSlot(slot))), [1, 2, 1]);
    assert_eq!(view.seek(b"24"), 2);
    // 24 is sought: of the segment's keys the search reads those in the middle.
    let key_of = |selected: Selected| runs[usize::from(selected.slot.0)][selected.rank as usize];
    let key = |nth| view.place(2, nth).map(key_of);
    assert_eq!(
        [0, 1, 2, 3, 4].map(key),
        [Some(&b"17"[..]), Some(b"23"), Some(b"23"), Some(b"29"), None]
    );
    let after: Vec<_> = view.scan(2, 3).map(key_of).collect();
    let expected: [&[u8]; 6] = [b"29", b"31", b"43", b"73", b"79", b"91"];
    assert_eq!(after, expected);
}

#[test]
fn the_sorted_view_is_the_merged_runs() {
    let mut random = Random(77);
    for (name, keys) in families() {
        let keys: BTreeSet<Key> = keys.into_iter().collect();
        let mut runs: Vec<Vec<&[u8]>> = vec![Vec::new(); 8];
        let mut entries: Vec<(&[u8], u8)> = Vec::new();
        for key in &keys {
            // Few keys have many versions.
            let versions = if random.below(8) == 0 { 255 } else { random.next() & random.next() };
            for slot in (0..8u8).filter(|slot| versions >> slot & 1 != 0) {
                runs[usize::from(slot)].push(key);
                entries.push((key, slot));
            }
        }
        for segment_keys in [1, 4, 33] {
            let view = sorted_view(&plan(&[4, 3, 1], 600, 0.0), segment_keys, &entries);
            let whole: Vec<_> = view.scan(0, 0).collect();
            assert_eq!(whole.len(), entries.len());
            for (nth, (selected, (key, slot))) in whole.iter().zip(&entries).enumerate() {
                let is_older = nth > 0 && entries[nth - 1].0 == *key;
                assert_eq!((selected.slot.0, selected.is_older), (*slot, is_older), "{name}");
                assert_eq!(runs[usize::from(*slot)][selected.rank as usize], *key, "{name}");
            }
            let mut first = 0;
            for segment in 0..view.segments() {
                let len = view.segment_len(segment);
                let places: Vec<_> = (0..len).filter_map(|nth| view.place(segment, nth)).collect();
                assert_eq!(places, whole[first..first + len], "{name}, segment {segment}");
                assert!(
                    entries[first..first + len].iter().all(|(key, _)| view.seek(key) == segment)
                );
                first += len;
            }
            a_walk_goes_both_ways(&view, &whole);
            the_sorted_view_names_runs_that_have_keys(&view, &entries);
        }
    }
}

/// From every segment on, forward and back, by turns of different lengths.
fn a_walk_goes_both_ways(view: &SortedRemix, whole: &[Selected]) {
    let mut back = view.walk_from_end();
    assert!(back.is_at_end() && back.forward().is_none());
    whole.iter().rev().for_each(|selected| assert_eq!(back.back(), Some(*selected)));
    assert_eq!(back.back(), None);
    let (mut at, mut random) = (0, Random(whole.len() as u64));
    for segment in 0..view.segments() {
        let mut walk = view.walk(segment, 1);
        let mut place = (at + 1).min(at + view.segment_len(segment));
        for _ in 0..20 {
            let is_within = whole.get(place).is_some_and(|selected| selected.is_older);
            assert_eq!((walk.is_within_key(), walk.is_at_end()), (is_within, place == whole.len()));
            if random.below(2) == 0 {
                assert_eq!(walk.forward(), whole.get(place).copied());
                place = whole.len().min(place + 1);
            } else {
                let before = place.checked_sub(1);
                assert_eq!(walk.back(), before.map(|before| whole[before]));
                place = before.unwrap_or(0);
            }
        }
        at += view.segment_len(segment);
    }
}

/// Without anything noted, the answers are those of the segments.
fn the_sorted_view_names_runs_that_have_keys(view: &SortedRemix, entries: &[(&[u8], u8)]) {
    let twin = entries.iter().fold(Twin::new(), |mut twin, (key, slot)| {
        twin.entry(key.to_vec()).or_default().insert(*slot);
        twin
    });
    the_laws_hold(view, &twin, 8);
    let touched = |first: usize, last: usize| {
        let slots = (first..=last).flat_map(|segment| view.selectors(segment));
        slots.map(|(slot, _)| slot.0).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let probes = probes(&twin);
    for pair in probes.windows(2) {
        let (low, high) = (&pair[0][..], &pair[1][..]);
        let (low, high) = (low.min(high), low.max(high));
        let (first, last) = (view.seek(low), view.seek(high));
        assert_eq!(range(view, low, Some(high)), touched(first, last));
        assert_eq!(point(view, low), touched(first, first));
    }
}

#[test]
fn the_sorted_view_takes_the_memory_that_it_may() {
    let mut random = Random(3);
    let keys: BTreeSet<Key> = (0..200_000).map(|_| random.next().to_be_bytes().to_vec()).collect();
    for (bits_per_key, least) in [(10.0, 8.0), (16.0, 12.0), (40.0, 30.0)] {
        let plan = plan(&[4, 3, 3, 1], 200_000, bits_per_key);
        let (view, _) = built::<SortedRemixBuilder>(&plan, &keys);
        let taken = view.size().bytes as f64 * 8.0 / 200_000.0;
        assert!((least..bits_per_key).contains(&taken), "{taken} of {bits_per_key} bits");
    }
}

fn as_many_slots_as_there_can_be<B: RunLocatorBuilder>(runs_of_levels: &[u8]) {
    let keys: BTreeSet<Key> = (0..256u64).map(|n| (n << 50).to_be_bytes().to_vec()).collect();
    let plan = plan(runs_of_levels, u64::MAX, 4000.0);
    let (mut filter, mut twin) = built::<B>(&plan, &keys);
    let slots = plan.slots();
    for (nth, key) in keys.iter().enumerate() {
        let slot = (nth % slots) as u8;
        filter.note(key, None, Some(RunSlot(slot)));
        twin.get_mut(key).expect("a key").insert(slot);
    }
    for (key, held) in &twin {
        assert!(held.iter().all(|slot| point(&filter, key).contains(slot)), "{slots} slots");
    }
    assert_eq!(range(&filter, b"", None).len(), slots);
    let oldest = RunSlot((slots - 1) as u8);
    assert_eq!(filter.lower_bound(oldest, b""), Some(vec![]), "the first key begins with zeros");
    (0..slots).for_each(|slot| filter.vacate(RunSlot(slot as u8)));
    assert_eq!(range(&filter, b"", None), []);
}

#[test]
fn one_slot_and_256_slots() {
    for runs_of_levels in [&[1][..], &[255, 1], &[64, 64, 127, 1]] {
        as_many_slots_as_there_can_be::<RemixBuilder>(runs_of_levels);
        as_many_slots_as_there_can_be::<SortedRemixBuilder>(runs_of_levels);
    }
}
