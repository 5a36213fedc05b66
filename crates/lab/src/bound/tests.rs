//! Tests of the bounds: known distributions, and text.

use super::*;
use crate::keys::real_sets::RealSet;

fn report(dist: Dist, order: Option<usize>, keys: usize) -> BoundReport {
    let plan = BoundPlan { dist, file_format: FileFormat::Lines, keys: Some(keys), order, seed: 1 };
    bound(&plan).expect("computed")
}

/// Gaps are exponential, so the lesser of two has half their mean. The power of two below it is 1 /
/// (2 ln 2) of it on average. An absent key lies in a cell as often as cells cover all numbers.
#[test]
fn of_uniform_keys_the_rate_follows_the_law() {
    let report = report(Dist::Uniform, None, 400_000);
    assert_eq!((report.keys, report.asked, report.ties), (350_000, 50_000, 0));
    for row in &report.cells[1..6] {
        let law = 0.5 / (2.0 * 2f64.ln()) / 2f64.powi(row.s as i32);
        let off = row.point_rate / law - 1.0;
        let deviation = (law * 50_000.0).sqrt().recip();
        assert!(off.abs() < 4.0 * deviation, "s = {}: {} for {law}", row.s, row.point_rate);
        assert!(row.prefix_rate.is_none());
    }
    // At this size every gap has the bits to store, so each finer step costs exactly one bit.
    let more = |s: usize| report.cells[s + 1].bits_per_key - report.cells[s].bits_per_key;
    assert!((0..6).all(|s| (more(s) - 1.0).abs() < 1e-3), "{:?}", report.cells);
    let (alone, context) = (report.exponent_bits, report.exponent_bits_in_context);
    assert!(alone > context && alone - context < 0.05, "gaps are independent: {alone} {context}");
    assert!((1.5..3.0).contains(&alone), "{alone}");
}

#[test]
fn a_model_of_text_saves_bits_and_prefixes_are_asked_for() {
    let of = |order| report(Dist::StandIn(RealSet::Packages), order, 40_000);
    let (raw, order_0, order_2) = (of(None), of(Some(0)), of(Some(2)));
    assert!(raw.contexts.is_none() && order_0.contexts == Some(1));
    assert!(order_2.contexts > Some(50), "{:?}", order_2.contexts);
    for report in [&raw, &order_0, &order_2] {
        let rates = |of: fn(&BoundRow) -> f64| report.cells.iter().map(of).collect::<Vec<_>>();
        let (points, bits) = (rates(|row| row.point_rate), rates(|row| row.bits_per_key));
        let prefixes = rates(|row| row.prefix_rate.expect("text has prefixes"));
        assert!(bits.is_sorted() && points.is_sorted_by(|a, b| a >= b), "{bits:?} {points:?}");
        assert!(prefixes[0] > prefixes[6] && points[0] > 2.0 * points[6], "{points:?}");
    }
    let better = (0..4).all(|s| order_2.cells[s].bits_per_key < raw.cells[s].bits_per_key);
    assert!(better, "{:?} {:?}", order_2.cells, raw.cells);
}

#[test]
fn one_seed_gives_the_same_figures() {
    let of = || serde_json::to_string(&report(Dist::Hosts, Some(1), 5000)).expect("plain data");
    assert_eq!(of(), of());
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let plan = BoundPlan {
        dist: Dist::Uniform,
        file_format: FileFormat::Lines,
        keys: Some(7),
        order: None,
        seed: 1,
    };
    let problem = |plan: &BoundPlan| bound(plan).expect_err("no plan").to_string();
    assert!(problem(&plan).contains("at least 8 keys"));
    assert!(problem(&BoundPlan { order: Some(3), ..plan }).contains("--order 3: must be 0 to 2"));
}
