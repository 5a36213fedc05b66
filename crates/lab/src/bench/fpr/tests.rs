//! Tests of `bench fpr`: its counts, its trees, and the plans that it refuses.

use super::*;
use crate::progress::Silent;

fn plan(dist: Dist) -> FprPlan {
    FprPlan {
        dist,
        file_format: FileFormat::Lines,
        keys: Some(20_000),
        fingerprints: vec![Fingerprints::Auto],
        bits_per_key: vec![10.0, 14.0],
        point_bits: 0,
        points_expected: None,
        learn: false,
        policies: vec![Policy::default()],
        levels: vec![3],
        fills: vec![9, 1],
        since: vec![1.0],
        owed: vec![0],
        asks: vec![Ask::Points, Ask::Ranges],
        range_widths: vec![1, 32],
        queries: 4000,
        seed: 1,
    }
}

fn filling(policy: &Policy, levels: u32, fill: u32, owed: u32) -> Filling<'_> {
    Filling { policy, levels, fill, since: 1.0, owed }
}

fn measured(plan: &FprPlan) -> FprReport {
    bench_fpr(plan, &mut Silent).expect("measured")
}

#[test]
fn every_filter_is_measured_and_loses_nothing() {
    let fingerprints = Fingerprints::ALL.to_vec();
    let report = measured(&FprPlan { fingerprints, ..plan(Dist::Uniform) });
    let named = |filter: &FprFilter| (filter.fingerprints, filter.bits_per_key, filter.fill);
    let order: Vec<_> = report.filters.iter().map(named).collect();
    assert_eq!(order.len(), 20);
    assert_eq!(order[..3], [("auto", 10.0, 9), ("auto", 10.0, 1), ("auto", 14.0, 9)]);
    assert_eq!(order[19], ("coded", 14.0, 1));
    for filter in &report.filters {
        assert_eq!((filter.hits, filter.false_negatives), (3 * HITS as u64, 0), "{filter:?}");
        assert_eq!(filter.base_keys + filter.overlay_keys, 20_000);
        let whole = filter.base_bits_per_key * filter.base_keys as f64
            + filter.overlay_bits_per_key.expect("has keys") * filter.overlay_keys as f64;
        assert!((whole / 20_000.0 - filter.guard_bits_per_key).abs() < 1e-6, "{filter:?}");
        for rate in &filter.rates {
            let (share, [low, high]) =
                (rate.false_positive_rate.expect("asked"), rate.interval_95.expect("asked"));
            // At z = 1 a filter may take a tenth more bits, and half of all keys are overlay
            // entries. Cells suffer most.
            let most = match (filter.bits_per_key > 12.0, filter.fill, filter.fingerprints) {
                (true, ..) => 0.02,
                (false, 9, _) => 0.12,
                (false, _, "cell") => 0.3,
                (false, ..) => 0.2,
            };
            assert!(low <= share && share < high && high < most, "{filter:?}");
            assert!(rate.needless_runs_per_op >= Some(share) && rate.queries == 4000);
        }
    }
    let rate = |place: usize| report.filters[place].rates[0].false_positive_rate;
    assert!(rate(2) < rate(0), "more bits, fewer false positives: {report:?}");
}

#[test]
fn a_seed_gives_the_same_counts_again() {
    let plan = plan(Dist::Clustered);
    assert_eq!(measured(&plan), measured(&plan));
    assert_ne!(measured(&plan).filters, measured(&FprPlan { seed: 2, ..plan.clone() }).filters);
    let alone = measured(&FprPlan { range_widths: vec![32], ..plan.clone() });
    let with_points = measured(&plan);
    assert_eq!(alone.filters[0].rates[0], with_points.filters[0].rates[1]);
}

#[test]
fn each_question_has_a_rate_of_its_own_and_loses_nothing() {
    let asks = Ask::ALL.to_vec();
    let report = measured(&FprPlan { asks, ..plan(Dist::UserTime) });
    let asked = |rate: &FprRate| (rate.question, rate.range_width);
    for filter in &report.filters {
        let order: Vec<_> = filter.rates.iter().map(asked).collect();
        let plain = [("points", Some(1)), ("ranges", Some(32)), ("absent-prefix", None)];
        assert_eq!(order[..3], plain);
        assert_eq!(order[3..5], [("present-prefix", None), ("second-part", None)]);
        assert_eq!(order[5..], [("behind", None), ("next", Some(1)), ("next", Some(32))]);
        // A point, a range of each width, a prefix.
        assert_eq!((filter.hits, filter.false_negatives), (4 * HITS as u64, 0), "{filter:?}");
        assert!(filter.rates.iter().all(|rate| rate.queries_distinct > 1000), "{filter:?}");
    }
    // Points and ranges do not depend on what else is asked.
    let plain = measured(&plan(Dist::UserTime));
    assert_eq!(plain.filters[0].rates[..], report.filters[0].rates[..2]);
}

#[test]
fn a_filter_that_was_asked_tells_points_behind_keys_apart() {
    let of = |learn| {
        let asks = vec![Ask::Points, Ask::Behind];
        let report = measured(&FprPlan { asks, learn, fills: vec![9], ..plan(Dist::Uniform) });
        report.filters.iter().for_each(|filter| assert_eq!(filter.false_negatives, 0));
        let last = &report.filters.last().expect("of 14 bits").rates;
        [&last[0], &last[1]].map(|rate| rate.needless_runs_per_op.expect("asked"))
    };
    let ([points, behind], [learnt_points, learnt_behind]) = (of(false), of(true));
    assert!(behind > 0.95 && learnt_behind < 0.2, "{behind}, then {learnt_behind}");
    assert!(learnt_points < 1.5 * points + 1e-3, "{points}, then {learnt_points}");
}

#[test]
fn dense_ids_have_misses_but_no_empty_ranges() {
    let report = measured(&plan(Dist::Ids));
    let rates = &report.filters[0].rates;
    assert!(rates[0].queries == 4000 && rates[0].queries_distinct <= 2000);
    let none = (rates[1].queries, rates[1].false_positive_rate, rates[1].interval_95);
    assert_eq!(none, (0, None, None));
    assert!(report.filters.iter().all(|filter| filter.false_negatives == 0));
}

#[test]
fn a_filter_that_lacks_keys_is_found_out() {
    let policy = Policy::default();
    let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(5000), 1).expect("keys");
    let (tree, options) =
        (FilledTree::deal(5000, filling(&policy, 3, 9, 0), 1), GrfOptions::default());
    let learnt = &EmptyQueries::default();
    let whole =
        TestedFilter { stored: keys.stored(), tree: &tree, options, query_mix: None, learnt };
    let questions = questions(&plan(Dist::Uniform)).into_iter();
    let draw = |(ask, width)| Misses::draw(&keys, ask, width, &plan(Dist::Uniform));
    let misses: Vec<Misses> = questions.map(draw).collect();
    let all = 3 * HITS as u64;
    assert_eq!(whole.lost(&whole.build(), &misses, 1), (all, 0));
    assert_eq!(whole.lost(&Part::empty(&options), &misses, 1), (all, all));
    // The same keys dealt to other flushes: all are there, but many in another run.
    let tree = FilledTree::deal(5000, filling(&policy, 3, 9, 0), 2);
    let other = TestedFilter { tree: &tree, ..whole };
    let (_, lost) = other.lost(&whole.build(), &misses, 1);
    assert!(lost > all / 20, "{lost} of {all}");
}

#[test]
fn a_tree_has_the_runs_of_lazy_leveling() {
    let policy = Policy::default();
    for (fill, keys, base_keys) in [(9, 99_900, 90_000), (1, 19_900, 10_000)] {
        let tree = FilledTree::deal(keys, filling(&policy, 3, fill, 0), 1);
        assert_eq!(tree.shape.digits(), [9, 9, 1]);
        assert!(tree.shape.runs().is_sorted_by(|newer, older| newer.lo() == older.hi()));
        let ends = (tree.shape.levels[0][0].hi(), tree.shape.levels[2][0].lo());
        assert_eq!(ends, (FlushNumber(tree.filling.flushes()), FlushNumber(0)));
        assert!(tree.newer.iter().all(|places| places.len() == 100 && places.is_sorted()));
        let in_base = |flush: &&u16| u64::from(**flush) < tree.base_end;
        assert_eq!(tree.flush_of.iter().filter(in_base).count(), base_keys);
    }
}

#[test]
fn a_round_begins_with_the_last_level_alone() {
    let policy = Policy::default();
    let tree = |since| FilledTree::deal(4000, Filling { since, ..filling(&policy, 3, 2, 0) }, 1);
    let runs = [0.0, 0.5, 1.0].map(|since| tree(since).shape.digits());
    assert_eq!(runs, [vec![0, 0, 1], vec![0, 5, 1], vec![9, 9, 1]]);
    assert!(tree(0.0).newer.is_empty() && tree(0.5).newer.len() == 50);
    let since = vec![0.0, 1.0];
    let fills = vec![1, 2];
    let report = measured(&FprPlan { since, fills, ..plan(Dist::Uniform) });
    let life = |place: usize| report.filters[place].rates[0].life.clone();
    assert!(life(0).is_none() && life(2).expect("the fullest").times_start > 1.0, "{report:?}");
    let bits = |place: usize| report.filters[place].guard_bits_per_key;
    assert_eq!(report.filters[2].guard_bits_per_key_filled, Some(bits(3)));
    assert_eq!(report.filters[0].rates[1].rate_of_paper, 1.0 / 32.0);
}

#[test]
fn first_flushes_and_those_owed_a_merge_are_runs_of_level_0() {
    let policy = Policy::default();
    for (levels, fill, owed, digits, base_end, flushes) in [
        (1, 1, 0, vec![1], 1, 1),
        (1, 4, 1, vec![2], 4, 5),
        (2, 1, 0, vec![9, 1], 10, 19),
        (2, 9, 14, vec![23, 1], 90, 113),
        (4, 1, 3, vec![12, 9, 9, 1], 1000, 2002),
    ] {
        let tree = FilledTree::deal(4000, filling(&policy, levels, fill, owed), 1);
        assert_eq!((tree.shape.digits(), tree.base_end), (digits, base_end));
        assert_eq!(tree.base_end + tree.newer.len() as u64, flushes);
        assert!(tree.shape.runs().is_sorted_by(|newer, older| newer.lo() == older.hi()));
        assert_eq!(tree.shape.levels[0][0].hi(), FlushNumber(flushes));
    }
}

#[test] // Issue 3: no filling takes more than a tenth above the knob, the first flushes included.
fn every_filling_is_within_the_knob_and_a_tenth() {
    let plan = FprPlan {
        levels: vec![1, 2, 3],
        fills: (1..10).collect(),
        keys: Some(40_000),
        bits_per_key: vec![8.0, 12.0, 20.0],
        queries: 100,
        range_widths: vec![1],
        ..plan(Dist::Uniform)
    };
    let report = measured(&plan);
    assert_eq!(report.filters.len(), 3 * 3 * 9);
    for filter in &report.filters {
        assert_eq!(filter.false_negatives, 0, "{filter:?}");
        // With so few keys, the directory, root and tables make a difference.
        let fixed = 8.0 * 2048.0 / 40_000.0;
        let times = (filter.guard_bits_per_key - fixed) / filter.bits_per_key;
        assert!(times <= 1.1, "{times} times the knob: {filter:?}");
    }
}

// The promise of 12 bits just before a merge into a full last level is 0.8 %; 0.45 % are usual.
#[test]
fn smooth_keys_are_told_apart_as_promised_and_within_two_percent_of_the_knob() {
    for dist in [Dist::Uniform, Dist::Normal, Dist::Lognormal] {
        let plan = FprPlan {
            fingerprints: vec![Fingerprints::Auto, Fingerprints::Spline],
            keys: Some(200_000),
            bits_per_key: vec![12.0],
            fills: vec![9],
            range_widths: vec![1, 32, 1024],
            queries: 20_000,
            ..plan(dist.clone())
        };
        for filter in measured(&plan).filters {
            let fixed = 8.0 * 2048.0 / 200_000.0;
            let share = (filter.guard_bits_per_key - fixed) / filter.bits_per_key;
            assert!((0.98..=1.0).contains(&share), "{dist:?}: {share} of the knob: {filter:?}");
            for rate in &filter.rates {
                let [_, high] = rate.interval_95.expect("asked");
                assert!(high <= 0.008, "{dist:?}: {filter:?}");
            }
        }
    }
}

/// Checks the highest rates of a full tree at 8, 12 and 16 bits, for points and short ranges.
/// Ranges over evenly spread numbers have up to 2^20 numbers. Smooth keys keep the promised rate;
/// the bounds of others are a quarter above what was measured. Stand-ins replace sets that need a
/// download.
#[test]
fn no_set_of_keys_is_told_apart_worse_than_it_was() {
    let smooth = [0.06, 0.0045, 0.0003];
    let sets = [
        ("uniform", 400_000, smooth),
        ("normal", 400_000, smooth),
        ("lognormal", 400_000, smooth),
        ("clustered", 400_000, [0.18, 0.012, 0.0008]),
        ("osm-stand-in", 400_000, [0.9, 0.21, 0.052]),
        ("ipv4-ranges-stand-in", 400_000, [0.008, 0.0005, 0.0005]),
        ("ipv6-stand-in", 200_000, [0.003, 0.003, 0.002]),
        ("intervals", 400_000, [0.9, 0.75, 0.6]),
        ("user-time", 400_000, [1.0, 0.062, 0.042]),
        ("uuid4-text", 400_000, [0.12, 0.01, 0.001]),
    ];
    for (name, keys, most) in sets {
        let dist: Dist = name.parse().expect("a set");
        let is_even = ["uniform", "normal", "lognormal", "clustered"].contains(&name);
        let plan = FprPlan {
            keys: Some(keys),
            bits_per_key: vec![8.0, 12.0, 16.0],
            fills: vec![9],
            range_widths: if is_even { vec![1, 32, 1 << 20] } else { vec![1, 32] },
            queries: 40_000,
            ..plan(dist)
        };
        for (filter, most) in measured(&plan).filters.iter().zip(most) {
            let rates = filter.rates.iter().map(|rate| rate.interval_95.expect("asked")[0]);
            let worst = rates.fold(0.0, f64::max);
            assert!(filter.false_negatives == 0 && worst <= most, "{name}: {worst}: {filter:?}");
        }
    }
}

// Small groups of long keys and clustered keys once took up to a third more bits. Text took up to
// seven percent more in the fullest tree.
#[test]
fn no_filling_of_text_or_crowds_exceeds_the_knob_by_a_tenth_and_the_full_one_meets_it() {
    for dist in [Dist::Urls, Dist::Emails, Dist::NaturalEarth, Dist::Clustered] {
        let plan = FprPlan {
            levels: vec![3],
            fills: vec![1, 2, 3, 9],
            keys: Some(60_000),
            bits_per_key: vec![8.0, 12.0],
            queries: 100,
            range_widths: vec![1],
            ..plan(dist.clone())
        };
        let report = measured(&plan);
        assert_eq!(report.filters.len(), 2 * 4);
        for filter in &report.filters {
            assert_eq!(filter.false_negatives, 0, "{filter:?}");
            let fixed = 8.0 * 2048.0 / 60_000.0;
            let times = (filter.guard_bits_per_key - fixed) / filter.bits_per_key;
            assert!(times <= 1.1, "{dist:?}: {times} times the knob: {filter:?}");
            if filter.fill == 9 {
                assert!(
                    (0.97..=1.01).contains(&times),
                    "{dist:?}: {times} times, full: {filter:?}"
                );
            }
        }
    }
}

// Half of the keys are overlay at z = 1, nine of ten under tiering.
#[test]
fn a_large_overlay_stays_within_the_knob_and_errs_little() {
    let policies = ["lazy-leveling", "tiering"].map(|name| Policy::named(name).expect("a preset"));
    let plan = FprPlan {
        policies: policies.to_vec(),
        fills: vec![9, 1],
        keys: Some(400_000),
        bits_per_key: vec![12.0],
        range_widths: vec![1],
        queries: 100_000,
        ..plan(Dist::Uniform)
    };
    let report = measured(&plan);
    let interval = |filter: &FprFilter| filter.rates[0].interval_95.expect("asked");
    let [full, small, tiered, _] = &report.filters[..] else { panic!("four: {report:?}") };
    for filter in &report.filters {
        let times = filter.guard_bits_per_key / filter.bits_per_key;
        assert!(filter.false_negatives == 0 && times <= 1.1, "{times} times: {filter:?}");
    }
    let ([_, most], [least, _]) = (interval(full), interval(small));
    assert!(least <= 1.7 * most && most < 0.005, "{least} at z = 1, {most} at z = 9");
    assert!(interval(tiered)[1] <= 0.03, "{tiered:?}");
}

#[test]
fn trees_of_other_policies_have_their_runs() {
    for (name, digits, base_end) in
        [("leveling", [1, 1, 1], 900), ("tiering", [9, 9, 9], 100), ("rocksdb", [3, 1, 1], 360)]
    {
        let policy = Policy::named(name).expect("a preset");
        let tree = FilledTree::deal(5000, filling(&policy, 3, 9, 0), 1);
        assert_eq!((tree.shape.digits(), tree.base_end), (digits.to_vec(), base_end));
        assert!(tree.shape.runs().is_sorted_by(|newer, older| newer.lo() == older.hi()));
    }
}

#[test] // Issue 7: longer codes cost a bit at most, for these hold several units in a run.
fn levelled_trees_need_no_more_bits_than_lazily_levelled_ones() {
    let policies =
        ["lazy-leveling", "leveling", "rocksdb"].map(|name| Policy::named(name).expect("a preset"));
    let plan = FprPlan {
        policies: policies.to_vec(),
        keys: Some(100_000),
        bits_per_key: vec![12.0],
        fills: vec![9],
        queries: 40_000,
        ..plan(Dist::Uniform)
    };
    let report = measured(&plan);
    let lazy = &report.filters[0];
    for filter in &report.filters[1..] {
        assert!(filter.guard_bits_per_key <= lazy.guard_bits_per_key + 1.0, "{filter:?}");
        let pairs = filter.rates.iter().zip(&lazy.rates);
        let no_worse = |(own, lazy): (&FprRate, &FprRate)| {
            own.interval_95.map(|interval| interval[0])
                <= lazy.interval_95.map(|interval| interval[1])
        };
        assert!(pairs.into_iter().all(no_worse), "{filter:?}, {lazy:?}");
    }
}

#[test]
fn plans_without_sense_are_errors() {
    let plan = plan(Dist::Uniform);
    for (plan, word) in [
        (FprPlan { queries: 0, ..plan.clone() }, "--queries"),
        (FprPlan { bits_per_key: vec![12.0, f64::NAN], ..plan.clone() }, "--bits-per-key"),
        (FprPlan { bits_per_key: vec![], ..plan.clone() }, "at least"),
        (FprPlan { fills: vec![10], ..plan.clone() }, "--fill 10"),
        (FprPlan { levels: vec![5], ..plan.clone() }, "--levels 5"),
        (FprPlan { levels: vec![0], ..plan.clone() }, "--levels 0"),
        (FprPlan { owed: vec![101], ..plan.clone() }, "--owed 101"),
        (FprPlan { owed: vec![], ..plan.clone() }, "at least"),
        (FprPlan { policies: vec![], ..plan.clone() }, "at least"),
        (FprPlan { range_widths: vec![0], ..plan.clone() }, "--range-width"),
        (FprPlan { asks: vec![], ..plan.clone() }, "at least"),
        (FprPlan { asks: vec![Ask::Points], range_widths: vec![32], ..plan.clone() }, "at least"),
        (FprPlan { asks: vec![Ask::SecondPart], ..plan.clone() }, "user-time, "),
        (FprPlan { fingerprints: vec![], ..plan.clone() }, "at least"),
        (FprPlan { keys: Some(998), ..plan.clone() }, "too few"),
        (FprPlan { keys: Some(0), ..plan.clone() }, "0 keys"),
    ] {
        let message = bench_fpr(&plan, &mut Silent).expect_err(word).to_string();
        assert!(message.contains(word), "{message}");
    }
    let message = fingerprints_named("snarf").expect_err("unknown").to_string();
    assert!(message.contains("auto, spline, gap, cell"), "{message}");
}

/// Every generated distribution, and the generated stand-in of every real set.
const ALL_SETS: [&str; 25] = [
    "uniform",
    "normal",
    "lognormal",
    "clustered",
    "ids",
    "timestamps",
    "sensors",
    "emails",
    "urls",
    "user-time",
    "user-sessions",
    "intervals",
    "hosts",
    "uuid4",
    "uuid4-text",
    "uuid7",
    "uuid7-text",
    "hex-digests",
    "json-composite",
    "osm-stand-in",
    "ipv4-stand-in",
    "ipv4-ranges-stand-in",
    "ipv6-stand-in",
    "words-stand-in",
    "packages-stand-in",
];

/// Asserts that `auto`, if it knows what is asked, is nowhere much worse than the best kind that
/// takes no more bits. Where no kind saves most searches, anything passes.
fn assert_auto_is_best(ask: Ask, points_expected: f64) {
    const QUERIES: usize = 4000;
    const SEARCHES_MAX: f64 = 0.5;
    for name in ALL_SETS {
        let plan = FprPlan {
            keys: Some(40_000),
            fingerprints: Fingerprints::ALL.to_vec(),
            bits_per_key: vec![8.0, 12.0, 16.0],
            fills: vec![9],
            range_widths: vec![if ask == Ask::Points { 1 } else { 32 }],
            queries: QUERIES,
            asks: vec![ask],
            points_expected: Some(points_expected),
            ..plan(name.parse().expect("a set"))
        };
        let report = measured(&plan);
        // Where keys are dense, no range is empty.
        let searches = |filter: &FprFilter| filter.rates[0].needless_runs_per_op.unwrap_or(0.0);
        for bits in &plan.bits_per_key {
            let mut filters = report.filters.iter().filter(|filter| filter.bits_per_key == *bits);
            let auto = filters.next().expect("auto is the first");
            let within = 1.02 * auto.guard_bits_per_key.max(*bits);
            let fair = filters.filter(|filter| filter.guard_bits_per_key <= within);
            let best = fair.map(searches).fold(SEARCHES_MAX, f64::min);
            let noise = 3.0 * (best / QUERIES as f64).sqrt() + 3.0 / QUERIES as f64;
            let own = searches(auto);
            let is_best = best == SEARCHES_MAX || own <= 1.1 * best + noise;
            assert!(is_best, "{name}, {bits} bits, {ask:?}: {own}, {best} of the best kind");
        }
    }
}

#[test]
fn auto_is_about_as_good_as_the_best_kind_for_points_of_all_sets() {
    assert_auto_is_best(Ask::Points, 1.0);
}

#[test]
fn auto_is_about_as_good_as_the_best_kind_for_ranges_of_all_sets() {
    assert_auto_is_best(Ask::Ranges, 0.0);
}
