//! Tests that recordings match what happened, and that their codes are those of the paper.

use super::*;
use crate::progress::Silent;
use crate::replay::recording::{ReplayEvent, ReplayStep};

fn recorded(plan: impl FnOnce(ReplayPlan) -> ReplayPlan) -> Result<Recording> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = plan(ReplayPlan {
        guard: GuardKind::Grf,
        bits_per_key: 12.0,
        size_ratio: 4,
        policy: Policy::default(),
        flushes: 90,
        keys_per_flush: 20,
        followed: 30,
        seed: 1,
        folder: folder.path().join("db"),
    });
    record_replay(&plan, &mut Silent)
}

fn spans(step: &ReplayStep) -> Vec<(u64, u64)> {
    step.levels.iter().flatten().map(|run| run.span).collect()
}

#[test]
fn every_step_follows_from_the_one_before_and_its_event() {
    for name in ["lazy-leveling", "leveling", "tiering", "rocksdb"] {
        let policy = Policy::named(name).expect("a preset");
        let recording = recorded(|plan| ReplayPlan { policy, ..plan }).expect("records");
        let mut flushed = 0;
        for pair in recording.steps.windows(2) {
            let (before, now) = (spans(&pair[0]), spans(&pair[1]));
            match &pair[1].event {
                ReplayEvent::Begin => panic!("{name}: a store begins once"),
                ReplayEvent::Move { runs } => panic!("{name}: {runs:?} went without a merge"),
                ReplayEvent::Flush { span } => {
                    assert_eq!(*span, (flushed, flushed + 1), "{name}");
                    assert_eq!(now, [&[*span][..], &before].concat(), "{name}");
                    flushed += 1;
                }
                ReplayEvent::Merge { inputs, outputs, .. } => {
                    let [output] = outputs[..] else { panic!("{name}: {outputs:?}") };
                    let at = before.iter().position(|span| *span == inputs[0]).expect("was there");
                    let mut merged = before.clone();
                    merged.splice(at..at + inputs.len(), [output]);
                    assert_eq!(now, merged, "{name}: {inputs:?}");
                    let ends = (inputs.last().expect("inputs").0, inputs[0].1);
                    assert_eq!(output, ends, "{name}");
                }
            }
        }
        assert_eq!(flushed, 90, "{name}");
    }
}

#[test] // A run that is left out surely holds nothing.
fn runs_that_hold_a_key_are_named_by_its_codes() {
    for name in ["lazy-leveling", "leveling", "tiering"] {
        let policy = Policy::named(name).expect("a preset");
        let recording = recorded(|plan| ReplayPlan { policy, ..plan }).expect("records");
        let mut held = 0;
        for (number, step) in recording.steps.iter().enumerate() {
            for (answer, key) in step.answers.iter().zip(&recording.head.keys) {
                let is_coded = |run: &usize| {
                    answer.is_uncoded || answer.codes.iter().any(|code| code.runs.contains(run))
                };
                assert!(answer.named.iter().all(is_coded), "{name}, step {number}, {key}");
                let is_named = |run: &usize| answer.named.contains(run);
                assert!(answer.holds.iter().all(is_named), "{name}, step {number}, {key}");
                held += answer.holds.len();
            }
        }
        assert!(held > 1000, "{name}: {held}");
    }
}

// GRF, section 4.2: the run is in level L - m - 1, where the position counts runs from the oldest.
#[test]
fn positions_find_the_run_that_spans_find() {
    let recording = recorded(|plan| plan).expect("records");
    let (mut checked, mut shortened) = (0, 0);
    for step in recording.steps.iter().filter(|step| step.is_encoding) {
        let levels = step.levels.len();
        for code in step.answers.iter().flat_map(|answer| &answer.codes) {
            let digits = code.digits.as_ref().expect("a lazily levelled tree");
            assert_eq!(digits.unary.len(), digits.kept);
            let m = digits.common_suffix;
            let (level, from_oldest) = match (digits.kept, m) {
                (1, _) => (levels - 1, 0),
                _ => (levels - m - 1, digits.positions[levels - m - 1]),
            };
            let newer: usize = step.shape[..level].iter().sum();
            let found = newer + step.shape[level] - 1 - from_oldest;
            assert_eq!(code.runs, [found], "{code:?} in {:?}", step.shape);
            checked += 1;
            shortened += usize::from(digits.kept > 1 && digits.kept < levels);
        }
    }
    assert!(checked > 500 && shortened > 0, "{checked} codes, {shortened} without low digits");
}

#[test]
fn a_key_that_is_not_there_and_one_that_is_often() {
    let recording = recorded(|plan| plan).expect("records");
    let [.., updated, absent] = &recording.written[..] else { panic!("two more keys") };
    assert_eq!((absent.len(), updated.len()), (0, 13));
    let last = recording.steps.last().expect("steps");
    let [.., updated, absent] = &last.answers[..] else { panic!("two more keys") };
    assert!(absent.holds.is_empty() && updated.holds.len() > 1, "{last:?}");
}

#[test]
fn the_same_seed_gives_the_same_recording() {
    let json = |recording: Recording| serde_json::to_string(&recording).expect("serializes");
    let [one, other, third] =
        [1, 1, 2].map(|seed| json(recorded(|plan| ReplayPlan { seed, ..plan }).expect("records")));
    assert!(one == other && one != third);
}

#[test]
fn plans_that_make_no_sense_are_named() {
    let message = |plan: Result<Recording>| plan.expect_err("refused").to_string();
    let open = recorded(|plan| ReplayPlan { guard: GuardKind::Open, ..plan });
    assert!(message(open).contains("codes"));
    let never = recorded(|plan| ReplayPlan { flushes: 0, ..plan });
    assert!(message(never).contains("flushes"));
}
