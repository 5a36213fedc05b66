//! Tests that a recording matches what happened, and that its answers are the store's.

use trommel::options::Granularity;
use trommel::{Background, GuardKind, Options, Policy, SyncPolicy};

use super::*;
use crate::replay::recording::{ReplayAnswer, ReplayEvent};

const FLUSHES: u64 = 90;
/// Every seventh flush writes this key, the eleventh flush writes `ONCE`, and none writes `NEVER`.
const AGAIN: &str = "again";
const ONCE: &str = "once";
const NEVER: &str = "never";

fn options(guard: GuardKind, policy: Policy) -> Options {
    Options::new()
        .guard(guard)
        .policy(policy)
        .size_ratio(4)
        .background(Background::Threads(2))
        .sync(SyncPolicy::Never)
}

fn plan(folder: &Path) -> RunToRecord {
    let keys = [AGAIN, ONCE, NEVER].map(|key| (key.to_string(), key.as_bytes().to_vec()));
    RunToRecord { file: folder.join("run.jsonl"), keys: keys.into(), bits_per_key: 12.0 }
}

/// Writes flushes, waits for merges now and then, and reads back what was written.
fn write(db: &Db) {
    for flush in 0..FLUSHES {
        for number in 0..30u64 {
            db.put((number * FLUSHES + flush).to_be_bytes(), "value").expect("puts");
        }
        if flush.is_multiple_of(7) {
            db.put(AGAIN, flush.to_string()).expect("puts");
        }
        if flush == 11 {
            db.put(ONCE, flush.to_string()).expect("puts");
        }
        db.flush().expect("flushes");
        if flush % 3 == 0 {
            db.settle().expect("merges");
        }
        let again = db.get(AGAIN).expect("reads").expect("was written");
        assert_eq!(*again, *(flush - flush % 7).to_string().as_bytes());
    }
    db.settle().expect("merges");
}

fn recorded(options: Options) -> (Recording, trommel::stats::Stats) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(folder.path().join("db"), options).expect("opens");
    let plan = plan(folder.path());
    let recorder = RunRecorder::begin(&plan, &db).expect("begins");
    write(&db);
    let steps = recorder.end(&db).expect("was written");
    let recording = read_recording(&plan.file).expect("reads");
    assert_eq!(recording.steps.len() as u64, steps);
    (recording, db.stats().expect("open"))
}

/// Returns the newest flush before `next` that wrote a key.
fn newest(key: &str, next: u64) -> Option<u64> {
    let last = next.checked_sub(1)?;
    match key {
        AGAIN => Some(last - last % 7),
        ONCE => (last >= 11).then_some(11),
        _ => None,
    }
}

fn of_kind(recording: &Recording, kind: fn(&ReplayEvent) -> bool) -> u64 {
    recording.steps.iter().filter(|step| kind(&step.event)).count() as u64
}

#[test]
fn every_flush_and_every_merge_is_in_the_file() {
    for policy in [Policy::lazy_leveling(), Policy::leveling(), Policy::tiering()] {
        let options = options(GuardKind::Grf, policy);
        let (recording, stats) = recorded(options.granularity(Granularity::Full));
        let flushes = of_kind(&recording, |event| matches!(event, ReplayEvent::Flush { .. }));
        let merges = of_kind(&recording, |event| matches!(event, ReplayEvent::Merge { .. }));
        assert_eq!((flushes, merges), (FLUSHES, stats.merges), "{}", recording.head.policy);
        let spans = |step: &ReplayStep| -> Vec<(u64, u64)> {
            step.levels.iter().flatten().map(|run| run.span).collect()
        };
        for pair in recording.steps.windows(2) {
            let mut before = spans(&pair[0]);
            match &pair[1].event {
                ReplayEvent::Flush { span } => before.insert(0, *span),
                ReplayEvent::Merge { inputs, outputs, .. } => {
                    let at = before.iter().position(|span| *span == inputs[0]).expect("was there");
                    before.splice(at..at + inputs.len(), outputs.iter().copied());
                }
                ReplayEvent::Move { .. } => {}
                ReplayEvent::Begin => panic!("a recording begins once"),
            }
            assert_eq!(spans(&pair[1]), before);
        }
    }
}

#[test]
fn the_ratio_is_the_one_that_was_asked_for_and_not_a_levels_own() {
    let policy = Policy::leveling().ratios(vec![2; 12]);
    let (recording, stats) = recorded(options(GuardKind::Open, policy));
    assert!(stats.levels.iter().all(|level| level.size_ratio == 2));
    assert_eq!(recording.head.size_ratio, 4);
}

#[test]
fn the_newest_version_of_a_key_is_where_the_recording_says() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let (recording, _) = recorded(options(guard, Policy::lazy_leveling()));
        let mut checked = 0;
        for step in &recording.steps {
            let runs: Vec<(u64, u64)> = step.levels.iter().flatten().map(|run| run.span).collect();
            let next = runs.first().map_or(0, |newest| newest.1);
            for (key, answer) in recording.head.keys.iter().zip(&step.answers) {
                let ReplayAnswer { named, holds, is_uncoded, .. } = answer;
                assert_eq!(*is_uncoded, guard == GuardKind::Open);
                assert!(holds.iter().all(|run| named.contains(run)), "{key}: {step:?}");
                let Some(flush) = newest(key, next) else {
                    assert!(holds.is_empty(), "{key}: {step:?}");
                    continue;
                };
                let (lo, hi) = runs[holds[0]];
                assert!(lo <= flush && flush < hi, "{key}: {step:?}");
                checked += 1;
            }
        }
        assert!(checked > 150, "{checked}");
        let of_again: Vec<u64> = (0..FLUSHES).step_by(7).collect();
        assert_eq!(recording.written, [of_again, vec![11], vec![]]);
    }
}

// GRF, section 4.2: the run is in level L - m - 1, where the position counts runs from the oldest.
#[test]
fn positions_of_the_newest_code_find_the_run_that_has_the_key() {
    let (recording, _) = recorded(options(GuardKind::Grf, Policy::lazy_leveling()));
    let mut checked = 0;
    for step in recording.steps.iter().filter(|step| step.is_encoding) {
        let levels = step.levels.len();
        for answer in &step.answers[..2] {
            let found = answer.codes.iter().map(|code| {
                let digits = code.digits.as_ref().expect("a lazily levelled tree");
                let m = digits.common_suffix;
                let (level, from_oldest) = match digits.kept {
                    1 => (levels - 1, 0),
                    _ => (levels - m - 1, digits.positions[levels - m - 1]),
                };
                let newer: usize = step.shape[..level].iter().sum();
                newer + step.shape[level] - 1 - from_oldest
            });
            let found: Vec<usize> = found.collect();
            assert!(answer.holds.iter().all(|run| found.contains(run)), "{answer:?}, {found:?}");
            checked += answer.holds.len();
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn what_is_no_recording_is_named_and_one_that_was_cut_short_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(folder.path().join("db"), options(GuardKind::Grf, Policy::default()));
    let db = db.expect("opens");
    let plan = plan(folder.path());
    let recorder = RunRecorder::begin(&plan, &db).expect("begins");
    for flush in 0..5 {
        db.put(AGAIN, flush.to_string()).expect("puts");
        db.flush().expect("flushes");
    }
    recorder.end(&db).expect("was written");
    let whole = std::fs::read_to_string(&plan.file).expect("reads");
    let steps = read_recording(&plan.file).expect("reads").steps.len();
    let read = |text: &str| {
        std::fs::write(&plan.file, text).expect("writes");
        read_recording(&plan.file)
    };
    let cut = read(&whole[..whole.len() - 20]).expect("reads");
    assert_eq!(cut.steps.len(), steps - 1);
    let first = whole.lines().next().expect("a line");
    let other_form = whole.replacen("\"trommel_recording\":1", "\"trommel_recording\":9", 1);
    let in_the_middle = whole.replacen("\"event\"", "\"even\"", 1);
    let in_the_end = format!("{whole}{{\"even\":{{}}}}\n");
    let span = whole.split_once("\"kind\":\"flush\",\"span\":").expect("a flush").1;
    let span = &span[..=span.find(']').expect("a span")];
    for (text, word) in [
        ("", "no whole line"),
        (first, "no whole line"),
        ("{}\n", "no recording"),
        (&format!("{first}\n"), "no step"),
        (&other_form, "form 9"),
        (&in_the_middle, "line 2"),
        (&in_the_end, &format!("line {}", steps + 2)),
        (&whole.replacen(span, "[0,0]", 1), "a flush of no number"),
        (&whole.replacen(&format!("[\"{AGAIN}\",\"{ONCE}\",\"{NEVER}\"]"), "[]", 1), "no key"),
    ] {
        let message = read(text).expect_err(word).to_string();
        assert!(message.contains(word) && message.contains("run.jsonl"), "{message}");
    }
    let nothing = RunToRecord { keys: Vec::new(), ..plan.clone() };
    let refused = RunRecorder::begin(&nothing, &db).map(drop).expect_err("no key").to_string();
    assert!(refused.contains("key"), "{refused}");
    std::fs::write(&plan.file, "words\n").expect("writes");
    let refused = RunRecorder::begin(&plan, &db).map(drop).expect_err("another file").to_string();
    assert!(refused.contains("no recording"), "{refused}");
    assert_eq!(std::fs::read(&plan.file).expect("reads"), b"words\n", "it is as it was");
    let nowhere = RunToRecord { file: folder.path().join("no/run"), ..plan };
    assert!(RunRecorder::begin(&nowhere, &db).is_err());
}
