//! The filter with codes collected, against the same filter with whole codes: the oracle.
//! ```text
//! oracle  each entry has its own flush              [71, 72)     inserted for a shape without runs
//! whole   as wide as the version's runs allow       [68, 72)
//!         inserted for the shape of each version
//! ```
//! What must be equal: the runs named by an entry. What need not be: which entries match a query.
//! The bits of a fraction depend on the other entries, and how many these are depends on the form;
//! so either may say "maybe" for a key that is near a flushed one. Invariant:
//! once garbage is collected for one version, both are the same in every answer.

use crate::bed::{BASE_END, Bed, Key, Random, Spread, answer, ask_all, insert, runs};
use std::collections::BTreeSet;
use trommel_filters::{Codes, Fingerprints, FlushNumber, KeyRange, Part, Query, Shape, Span};

const RATIO: u32 = 4;
/// Three inner levels, each with as many runs as it takes.
const FLUSHES: usize = 63;

fn shape(flushes: usize) -> Shape {
    let next = FlushNumber(BASE_END + flushes as u64);
    Shape::of_round(FlushNumber(BASE_END), next, RATIO)
}

/// Few entries for a chunk's keys: the oracle's stay young.
const FEW: usize = 5;
/// So many that entries grow old with their own flush as code, too.
const MANY: usize = 150;

/// A part in both forms, after some flushes.
#[derive(Clone)]
struct Forms {
    whole: Part,
    oracle: Part,
}

impl Forms {
    fn new(bed: &Bed, fingerprints: Fingerprints) -> Forms {
        let base = bed.base_part(fingerprints);
        Forms { whole: base.clone(), oracle: base }
    }

    fn flush(&mut self, bed: &Bed, flush: usize) {
        let (number, keys) = (BASE_END + flush as u64, &bed.flushes[flush]);
        self.whole = insert(&self.whole, number, keys, &shape(flush));
        self.oracle = insert(&self.oracle, number, keys, &Shape::default());
    }

    fn after_all(bed: &Bed, fingerprints: Fingerprints) -> Forms {
        let mut forms = Forms::new(bed, fingerprints);
        (0..bed.flushes.len()).for_each(|flush| forms.flush(bed, flush));
        forms
    }
}

/// Each code names one run: candidate runs per matching entry are 1.00.
fn assert_one_run_per_entry(codes: &Codes, shape: &Shape) {
    for &code in codes.as_slice() {
        let mut alone = Codes::new();
        alone.push(code);
        assert_eq!(shape.resolve(&alone).count(), 1, "{code:?} in {shape:?}");
    }
}

/// The runs that a key's entries are in.
fn true_runs(bed: &Bed, key: &Key, shape: &Shape) -> BTreeSet<u16> {
    let base = bed.base.contains(key).then_some(0);
    let flushes: Vec<u64> = bed.flushes_of(key).into_iter().chain(base).collect();
    let holds =
        |run: Span| flushes.iter().any(|&flush| Span::of_flush(FlushNumber(flush)).meets(run));
    let numbered = (0..).zip(shape.runs());
    numbered.filter(|(_, run)| holds(*run)).map(|(place, _)| place).collect()
}

/// Keys that are stored, and as many that most likely are not; sorted.
fn asked(bed: &Bed, spread: Spread) -> Vec<Key> {
    let mut random = Random(5);
    let flushed = bed.flushed().into_iter().step_by(1 + bed.flushed().len() / 2500);
    let stored = flushed.chain(bed.base.iter().step_by(23)).cloned();
    let missing = (0..3000).map(|_| spread.key(&mut random));
    let asked: BTreeSet<Key> = stored.chain(missing).collect();
    asked.into_iter().collect()
}

/// Every spread of keys under every kind of fingerprint.
fn for_all(each: usize, mut check: impl FnMut(&Bed, Spread, Fingerprints)) {
    for spread in Spread::ALL {
        let bed = Bed::new(spread, 30_000, FLUSHES, each);
        Fingerprints::ALL.into_iter().for_each(|kind| check(&bed, spread, kind));
    }
}

#[test]
fn an_entry_that_matches_names_one_run() {
    for each in [FEW, MANY] {
        for_all(each, |bed, spread, kind| {
            let (Forms { whole, oracle }, last) =
                (Forms::after_all(bed, kind), shape(bed.flushes.len()));
            let mut named = 0;
            ask_all(&asked(bed, spread), 3, |query| {
                for part in [&whole, &oracle] {
                    let codes = answer(part, query);
                    named += codes.as_slice().len();
                    assert_one_run_per_entry(&codes, &last);
                }
            });
            assert!(named > 2000, "{spread:?} {kind:?}: {named} codes");
        });
    }
}

#[test]
fn stored_keys_are_in_the_runs_that_both_forms_name() {
    for each in [FEW, MANY] {
        for_all(each, |bed, spread, kind| {
            let (forms, last) = (Forms::after_all(bed, kind), shape(bed.flushes.len()));
            let keys: Vec<&Key> = bed.flushed().into_iter().collect();
            let mut other_matches = 0;
            for key in &keys {
                let query = Query::Point(key);
                let truth = true_runs(bed, key, &last);
                let whole = runs(&forms.whole, &last, &query);
                let oracle = runs(&forms.oracle, &last, &query);
                assert!(whole.is_superset(&truth) && oracle.is_superset(&truth), "{key:?}");
                other_matches += usize::from(whole != oracle);
            }
            // They differ where another key's entry matches in one form and not in the other. (Of
            // many text keys, many share a place under some fingerprints: no bound there.)
            let crowded = each == MANY && matches!(spread, Spread::Text);
            let share = other_matches as f64 / keys.len() as f64;
            assert!(crowded || share <= 0.01, "{spread:?} {kind:?} {each}: {share}");
        });
    }
}

#[test]
fn with_few_entries_the_oracle_names_no_other_run() {
    for_all(FEW, |bed, spread, kind| {
        let (Forms { whole, oracle }, last) =
            (Forms::after_all(bed, kind), shape(bed.flushes.len()));
        ask_all(&asked(bed, spread), 2, |query| {
            // With whole codes an answer is sooner too long to be listed.
            if !answer(&oracle, query).is_all() {
                let (more, fewer) = (runs(&whole, &last, query), runs(&oracle, &last, query));
                assert!(more.is_superset(&fewer), "{spread:?} {kind:?}: {query:?}");
            }
        });
    });
}

/// Both answer with the same codes.
fn assert_same_answers(one: &Part, other: &Part, keys: &[Key]) {
    ask_all(keys, 2, |query| {
        let (one, other) = (answer(one, query), answer(other, query));
        let set = |codes: &Codes| -> BTreeSet<Span> { codes.as_slice().iter().copied().collect() };
        assert_eq!(one.is_all(), other.is_all(), "{query:?}");
        assert_eq!(set(&one), set(&other), "{query:?}");
    });
}

// Every answer, of missing keys too: what was forgotten bit by bit is what is forgotten at once.
#[test]
fn collected_at_every_flush_or_at_the_end_is_the_same() {
    // No run is of one flush: no entry stays young.
    let flushes = FLUSHES - RATIO as usize + 1;
    let last = shape(flushes);
    assert_eq!(last.digits(), [0, 3, 3, 1]);
    for each in [FEW, MANY] {
        for_all(each, |bed, spread, kind| {
            let mut forms = Forms::new(bed, kind);
            (0..flushes).for_each(|flush| forms.flush(bed, flush));
            let whole = forms.whole.collect_garbage(&last);
            let oracle = forms.oracle.collect_garbage(&last);
            assert_eq!(whole.size().overlay_entries, oracle.size().overlay_entries);
            assert_same_answers(&whole, &oracle, &asked(bed, spread));
        });
    }
}

#[test] // Section 4.2: what was forgotten for one version is not missed in any later one.
fn a_part_answers_for_later_versions_as_the_oracle_does() {
    for spread in Spread::ALL {
        let bed = Bed::new(spread, 30_000, FLUSHES, FEW);
        let mut forms = Forms::new(&bed, Fingerprints::Auto);
        for flush in 0..FLUSHES {
            forms.flush(&bed, flush);
            // As above: all runs are merged.
            if flush % 8 != 7 {
                continue;
            }
            let known = &bed.flushes[..=flush];
            let of_version = shape(flush + 1);
            let collected = forms.oracle.collect_garbage(&of_version);
            let tidied = forms.whole.collect_garbage(&of_version);
            for later in (flush + 1..FLUSHES + 20).step_by(5) {
                let later = shape(later);
                for key in known.iter().flatten().step_by(3) {
                    let query = Query::Point(key);
                    assert_one_run_per_entry(&answer(&forms.whole, &query), &later);
                    let runs = |part| runs(part, &later, &query);
                    assert_eq!(runs(&tidied), runs(&collected), "{key:?} in {later:?}");
                    assert!(runs(&forms.whole).is_superset(&runs(&forms.oracle)), "{key:?}");
                    assert!(runs(&tidied).is_superset(&runs(&forms.whole)), "{key:?}");
                }
            }
        }
    }
}

/// As [`shape`], but merges lag behind: the newest flushes, five or more, wait in level 0.
fn shape_with_waiting_runs(flushes: usize) -> Shape {
    let merged = flushes.saturating_sub(5) / RATIO as usize * RATIO as usize;
    let mut late = shape(merged);
    let number = |flush: usize| FlushNumber(BASE_END + flush as u64);
    let waiting = (merged..flushes).rev().map(|flush| Span::of_flush(number(flush)));
    late.levels.insert(0, waiting.collect());
    late
}

#[test] // Section 5, generalization 1: flushes beside merges.
fn an_entry_names_one_run_while_merges_lag_behind() {
    for spread in Spread::ALL {
        let bed = Bed::new(spread, 30_000, FLUSHES, MANY);
        let mut part = bed.base_part(Fingerprints::Auto);
        for (flush, keys) in bed.flushes.iter().enumerate() {
            part = insert(&part, BASE_END + flush as u64, keys, &shape_with_waiting_runs(flush));
        }
        let now = shape_with_waiting_runs(FLUSHES);
        let tidied = part.collect_garbage(&now);
        for later in [now, shape(FLUSHES), shape_with_waiting_runs(FLUSHES + 9), shape(64)] {
            for key in bed.flushed() {
                let (query, truth) = (Query::Point(key), true_runs(&bed, key, &later));
                for part in [&part, &tidied] {
                    assert_one_run_per_entry(&answer(part, &query), &later);
                    assert!(runs(part, &later, &query).is_superset(&truth), "{key:?}: {later:?}");
                }
            }
        }
    }
}

// Garbage collection by itself.

#[test]
fn after_garbage_collection_a_code_is_the_span_of_its_run() {
    for_all(MANY, |bed, spread, kind| {
        let last = shape(bed.flushes.len());
        let forms = Forms::after_all(bed, kind);
        for part in [&forms.whole, &forms.oracle] {
            let part = part.collect_garbage(&last);
            for key in asked(bed, spread) {
                for code in answer(&part, &Query::Point(&key)).as_slice() {
                    assert!(last.runs().any(|run| run == *code), "{code:?} in {last:?}");
                }
            }
        }
    });
}

#[test]
fn garbage_is_collected_once() {
    for_all(MANY, |bed, spread, kind| {
        let last = shape(bed.flushes.len());
        let forms = Forms::after_all(bed, kind);
        for part in [&forms.whole, &forms.oracle] {
            let once = part.collect_garbage(&last);
            let twice = once.collect_garbage(&last);
            assert_eq!(once.size(), twice.size());
            assert_same_answers(&once, &twice, &asked(bed, spread));
        }
    });
}

// Only codes change, and no answer's runs.
#[test]
fn garbage_collection_of_old_entries_changes_no_answer() {
    // After 16 flushes all are in one run of level 2. When 64 were flushed, it is in one of level
    // 3.
    let (first, later) = (shape(16), shape(64));
    assert_eq!((first.digits(), later.digits()), (vec![0, 0, 1, 1], vec![0, 0, 0, 1, 1]));
    for_all(MANY, |bed, spread, kind| {
        let mut forms = Forms::new(bed, kind);
        (0..16).for_each(|flush| forms.flush(bed, flush));
        let packed = forms.whole.collect_garbage(&first);
        let collected = packed.collect_garbage(&later);
        assert_eq!(packed.size().overlay_entries, collected.size().overlay_entries);
        let mut widened = 0;
        ask_all(&asked(bed, spread), 2, |query| {
            assert_eq!(runs(&packed, &later, query), runs(&collected, &later, query));
            let widest = later.runs().next().expect("a run above the last level");
            widened += usize::from(answer(&collected, query).as_slice().contains(&widest));
        });
        assert!(widened > 500, "{widened} answers with a wider code");
    });
}

#[test] // Entries that grow old keep their fractions: a query that they matched they match still.
fn garbage_collection_takes_no_run_from_an_answer() {
    for_all(FEW, |bed, spread, kind| {
        let oracle = Forms::after_all(bed, kind).oracle;
        let last = shape(bed.flushes.len());
        let collected = oracle.collect_garbage(&last);
        ask_all(&asked(bed, spread), 2, |query| {
            let (before, after) = (runs(&oracle, &last, query), runs(&collected, &last, query));
            let unlisted = answer(&oracle, query).is_all();
            assert!(unlisted || after.is_superset(&before), "{query:?}");
        });
    });
}

#[test]
fn entries_that_become_equal_are_one_and_are_still_counted() {
    for kind in Fingerprints::ALL {
        // The same keys in each of 16 flushes, which one run has in the end.
        let mut bed = Bed::new(Spread::Uniform, 20_000, 1, 300);
        bed.flushes = vec![bed.flushes[0].clone(); 16];
        let Forms { whole, oracle } = Forms::after_all(&bed, kind);
        let last = shape(16);
        for part in [whole, oracle] {
            let part = part.collect_garbage(&last);
            let entries = part.size().overlay_entries;
            assert!((290..=300).contains(&entries), "{kind:?}: {entries}");
            let all = part.approximate_count(&KeyRange::all());
            assert!(all.least <= 20_300 && all.most >= 20_000 + 16 * 300, "{kind:?}: {all:?}");
            assert_ranges_are_counted(&bed, &part);
        }
    }
}

/// The truth lies within the bounds: an entry for the base and for each flush.
fn assert_ranges_are_counted(bed: &Bed, part: &Part) {
    let keys: Vec<&Key> = bed.flushes[0].iter().collect();
    for apart in [1, 7, 100] {
        for ends in keys.windows(apart + 1).step_by(apart) {
            let (low, high) = (ends[0], ends[apart]);
            let range = KeyRange::new(low, Some(high)).expect("sorted");
            let base = bed.base.range(low.clone()..=high.clone()).count();
            let truth = (base + bed.flushes.len() * (apart + 1)) as u64;
            let count = part.approximate_count(&range);
            assert!(count.least <= truth && truth <= count.most, "{count:?}, but {truth}");
        }
    }
}
