//! Tests of `bench read`: right answers, the planned trees, and the fields of reports.

use trommel::options::FilterTuning;
use trommel_guards::ElasticOptions;

use super::*;
use crate::progress::Silent;
use crate::questions::read_workload::{DeletedBy, Deletion};
use crate::tree_plan::{FilterMemory, PartsPlan};

fn plan(folder: &Path) -> ReadPlan {
    ReadPlan {
        guards: trommel_guards::all_guards().to_vec(),
        dist: Dist::Clustered,
        file_format: FileFormat::Lines,
        keys: Some(4000),
        tree: TreePlan {
            size_ratio: 4,
            policy: trommel::Policy::default(),
            levels: 3,
            fill: 3,
            value_bytes: 20,
            bits_per_key: 12.0,
            monkey: false,
            point_bits: 0,
            filter: FilterTuning::default(),
            elastic: ElasticOptions::default(),
            block_cache_bytes: None,
            table_bytes: None,
            parts: PartsPlan::default(),
            direct: false,
            seed: 1,
            synced: false,
        },
        queries: 200,
        rounds: 7,
        threads: 1,
        range_width: 64,
        pipelined: None,
        skew: Skew::None,
        workload: ReadWorkload::default(),
        kinds: Kind::ALL.to_vec(),
        asks: Vec::new(),
        full_scan: true,
        by_level: true,
        loads: 2,
        loaders: 1,
        fit_bits: false,
        folder: folder.to_path_buf(),
    }
}

fn guards(names: &[&str]) -> Vec<GuardKind> {
    let known = trommel_guards::all_guards();
    let named = |name: &&str| *known.iter().find(|guard| guard.name() == *name).expect("a guard");
    names.iter().map(named).collect()
}

#[test]
fn every_guard_answers_rightly_over_the_planned_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let measured = bench_read(&plan(folder.path()), &mut Silent).expect("measured");
    assert_eq!(measured.len(), trommel_guards::all_guards().len());
    for Measured { report, .. } in &measured {
        assert_eq!(report.false_negatives, 0, "{}", report.guard);
        assert_eq!(report.runs, report.runs_planned, "{}", report.guard);
        assert_eq!(report.load.seconds_of_all.len(), 2);
        assert!(report.kinds().iter().all(|(_, kind)| kind.ops == 200 && kind.ns_p99 > 0.0));
    }
    let of = |guard| {
        let place = trommel_guards::all_guards().into_iter().position(|kind| kind == guard);
        &measured[place.expect("all were measured")].report
    };
    let grf = of(GuardKind::Grf);
    for kind in [&grf.point_miss, &grf.point_hit, &grf.empty_range, &grf.seek] {
        assert_eq!(kind.guard_probes_per_op, 1.0);
    }
    assert_eq!(of(GuardKind::Open).guard_bits_per_key, 0.0);
    let counted = |report: &ReadReport| report.count.clone().expect("everything is asked");
    assert!(counted(grf).mean_relative_error < 0.01, "{:?}", grf.count);
    assert!(measured.iter().all(|measured| counted(&measured.report).ns_per_op > 0.0));
    let scanned = |report: &ReadReport| report.full_scan.clone().expect("it is asked for");
    assert!(measured.iter().all(|measured| scanned(&measured.report).entries == 4000));
    assert_places(of(GuardKind::Open), grf);
}

/// Chucky, Figure 11: fewer runs are searched before the key's run if the key is newer. ElasticBF,
/// Figure 2: fewer gets reach a table if the table is older.
fn assert_places(open: &ReadReport, grf: &ReadReport) {
    let places = |report: &ReadReport| -> Vec<String> {
        report.by_level.iter().map(|cost| cost.place.clone()).collect()
    };
    assert_eq!(places(open), ["level 0", "level 1", "level 2", "none"]);
    assert_eq!(places(grf), places(open));
    let needless: Vec<f64> = open.by_level.iter().map(|cost| cost.needless_runs_per_op).collect();
    assert!(needless.is_sorted() && needless[0] < 2.0 && needless[3] > 6.0, "{needless:?}");
    assert!(grf.by_level.iter().all(|cost| cost.needless_runs_per_op < 0.5), "{:?}", grf.by_level);
    assert!(grf.by_level.iter().all(|cost| cost.gets > 0 && cost.guard_lines_per_op > 1.0));
    assert_eq!(open.by_table, grf.by_table, "whatever the filter");
    assert_eq!(open.by_table.len() as u64, open.runs, "each run is one table here");
    let [newest, .., oldest] = &open.by_table[..] else { panic!("{:?}", open.by_table) };
    assert!(newest.level == 0 && oldest.level == 2 && newest.asked > oldest.asked);
    assert!(newest.asked <= 200 && oldest.asked >= 100, "{:?}", open.by_table);
}

#[test]
fn guards_take_what_was_asked_for_or_say_that_they_cannot() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["none", "surf-real", "remix", "blocked-bloom"];
    let guards = guards(&names);
    let mut plan = ReadPlan { guards, fit_bits: true, loads: 2, loaders: 3, ..plan(folder.path()) };
    plan.dist = Dist::Uniform;
    plan.tree.bits_per_key = 20.0;
    let measured = bench_read(&plan, &mut Silent).expect("measured");
    let [none, surf, remix, bloom] = &measured[..] else { panic!("four guards") };
    for Measured { report, .. } in [surf, remix, bloom] {
        let off = (report.guard_bits_per_key / 20.0 - 1.0).abs();
        assert_eq!(report.unfit, off > 0.03, "{}: {}", report.guard, report.guard_bits_per_key);
        assert!(report.bits_setting.is_some(), "{}", report.guard);
        assert_eq!(report.load.seconds_of_all.len(), 2, "{}: as asked for", report.guard);
        assert_eq!(report.false_negatives, 0, "{}", report.guard);
    }
    assert!(!none.report.unfit && none.report.bits_setting.is_none());
}

#[test]
fn a_filter_with_less_memory_says_maybe_where_little_is_asked() {
    let guards = vec![GuardKind::Grf];
    let measured = |filter_memory| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut plan = ReadPlan { guards: guards.clone(), loads: 1, ..plan(folder.path()) };
        (plan.keys, plan.dist, plan.skew) = (Some(200_000), Dist::Uniform, Skew::Zipf(0.99));
        (plan.kinds, plan.queries) = (vec![Kind::PointMiss], 20_000);
        plan.tree.parts = PartsPlan { partition_bytes: Some(256 << 10), filter_memory };
        let measured = bench_read(&plan, &mut Silent).expect("measured").swap_remove(0);
        assert_eq!(measured.report.false_negatives, 0);
        measured
    };
    let whole = measured(None);
    let bytes = whole.stats.guard.memory_bytes;
    let parts = whole.stats.partitions.len();
    assert!(parts > 3 && whole.stats.guard.part_bits.is_none(), "{parts} parts");
    let rate = |measured: &Measured| measured.report.point_miss.false_positive_rate;
    for half in [FilterMemory::Share(0.5), FilterMemory::Bytes(bytes / 2)] {
        let measured = measured(Some(half));
        let guard = &measured.stats.guard;
        assert!(guard.memory_bytes <= bytes * 11 / 20, "{guard:?}");
        let (least, most) = guard.part_bits.expect("parts share memory");
        assert!(least < 9.0 && (least..=12.0).contains(&most), "{least} to {most}");
        assert!(rate(&measured) > rate(&whole) && rate(&measured) < 0.5, "{}", rate(&measured));
    }
}

#[test]
fn only_the_kinds_that_are_asked_for_are_measured_and_with_the_same_questions() {
    let costs = |kinds: Vec<Kind>| {
        let folder = tempfile::tempdir().expect("a folder");
        let guards = vec![GuardKind::Grf];
        let plan = ReadPlan { guards, kinds, loads: 1, pipelined: Some(4), ..plan(folder.path()) };
        bench_read(&plan, &mut Silent).expect("measured").swap_remove(0).report
    };
    let (some, all) = (costs(vec![Kind::Seek, Kind::PointMiss]), costs(Kind::ALL.to_vec()));
    assert_eq!(some.kinds().iter().map(|kind| kind.0).collect::<Vec<_>>(), ["point_miss", "seek"]);
    assert!(some.count.is_none() && some.multi_get.is_none() && some.pipelined.is_none());
    assert!(all.kinds().len() == Kind::ALL.len() && all.pipelined.is_some());
    assert_eq!(some.seek.blocks_read_per_op, all.seek.blocks_read_per_op);
    let json = serde_json::to_value(&some).expect("plain data");
    assert!(json.get("point_hit").is_none() && json.get("seek").is_some());
}

#[test]
fn what_no_key_answers_is_asked_beside_the_kinds_and_is_none_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = ReadPlan {
        guards: guards(&["none", "grf"]),
        dist: Dist::UserTime,
        kinds: vec![Kind::PointHit],
        asks: Ask::ALL.to_vec(),
        threads: 2,
        ..plan(folder.path())
    };
    let measured = bench_read(&plan, &mut Silent).expect("measured");
    let [none, grf] = &measured[..] else { panic!("two guards") };
    for Measured { report, .. } in &measured {
        assert_eq!(report.false_negatives, 0, "{}", report.guard);
        let names: Vec<&str> = report.asked.iter().map(|asked| asked.question).collect();
        assert_eq!(names, Ask::ALL.map(Ask::name));
        assert!(report.asked.iter().all(|asked| asked.cost.ops == 400 && asked.cost.ns_p99 > 0.0));
        assert!(report.point_miss.is_nothing() && report.empty_range.is_nothing());
    }
    for (none, grf) in none.report.asked.iter().zip(&grf.report.asked) {
        let [none_runs, grf_runs] = [none, grf].map(|asked| asked.cost.false_positive_rate);
        assert!(none_runs > 5.0 && grf_runs <= none_runs, "{}: {grf_runs}", none.question);
    }
    let json = serde_json::to_value(&grf.report).expect("plain data");
    assert_eq!(json["asked"][2]["question"], "absent-prefix");
    assert!(json["asked"][2]["ns_per_op"].is_number() && json.get("empty_range").is_none());
}

#[test]
fn a_filter_spares_runs_and_blocks_where_prefixes_are_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let asks = vec![Ask::Points, Ask::AbsentPrefix, Ask::PresentPrefix];
    let (guards, dist, kinds) = (guards(&["none", "grf"]), Dist::Uniform, vec![Kind::PointHit]);
    let plan = ReadPlan { guards, dist, kinds, asks, ..plan(folder.path()) };
    let measured = bench_read(&plan, &mut Silent).expect("measured");
    let [none, grf] = &measured[..] else { panic!("two guards") };
    for (none, grf) in none.report.asked.iter().zip(&grf.report.asked) {
        let [none_runs, grf_runs] = [none, grf].map(|asked| asked.cost.false_positive_rate);
        assert!(none_runs > 5.0 && grf_runs < 1.0, "{}: {none_runs} {grf_runs}", none.question);
        assert!(grf.cost.blocks_read_per_op < none.cost.blocks_read_per_op, "{}", grf.question);
    }
}

#[test]
fn an_answer_where_nothing_is_stored_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open(folder.path(), trommel::Options::default()).expect("opens");
    let keys = KeySet::new(&Dist::UserTime, FileFormat::Lines, Some(500), 1).expect("keys");
    for ask in [Ask::AbsentPrefix, Ask::Behind] {
        let asked = ReaderThreads::draw_unanswered(ask, &keys, (50, 64), 1, 1).expect("drawn");
        let wrong = || asked.count_wrong(&db, keys.stored(), 20).expect("answers");
        assert_eq!(wrong(), 0, "{ask}");
        db.put(asked.first().lower(7), b"not to be there").expect("writes");
        assert!(wrong() >= 1, "{ask}");
    }
}

#[test]
fn keys_of_one_part_have_no_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = ReadPlan { asks: vec![Ask::SecondPart], ..plan(folder.path()) };
    let message = bench_read(&plan, &mut Silent).expect_err("one part").to_string();
    assert!(message.contains("clustered has keys of one part"), "{message}");
}

#[test]
fn threads_answer_rightly_and_their_throughput_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let guards = vec![GuardKind::Open, GuardKind::Grf];
    let plan = ReadPlan { guards, threads: 3, loads: 1, ..plan(folder.path()) };
    for Measured { report, .. } in bench_read(&plan, &mut Silent).expect("measured") {
        assert_eq!((report.false_negatives, report.threads), (0, 3));
        for (name, kind) in report.kinds() {
            assert_eq!(kind.ops, 600, "{name}");
            let per_s = 3.0 * 1e9 / kind.ns_per_op;
            assert!((kind.ops_per_s / per_s - 1.0).abs() < 1e-9, "{name}");
        }
        assert_eq!(report.point_hit.guard_probes_per_op, f64::from(report.guard == "grf"));
    }
}

#[test]
fn the_names_in_reports_are_an_interface() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = ReadPlan { guards: vec![GuardKind::Open], loads: 1, ..plan(folder.path()) };
    let measured = bench_read(&plan, &mut Silent).expect("measured");
    let json = serde_json::to_value(&measured[0].report).expect("plain data");
    let names = "guard keys runs levels threads guard_bits_per_key load false_negatives";
    assert!(names.split(' ').all(|name| json.get(name).is_some()), "{json}");
    for name in ["seconds", "ops_per_s", "write_amplification", "guard_seconds"] {
        assert!(json["load"][name].is_number(), "{name}");
    }
    let fields = "ops ns_per_op ops_per_s ns_p99 blocks_read_per_op disk_reads_per_op guard_probes_per_op \
                  guard_lines_per_op false_positive_rate";
    for kind in ["point_miss", "point_hit", "empty_range", "seek", "seek_next_50"] {
        assert!(fields.split_whitespace().all(|name| json[kind][name].is_number()), "{kind}");
    }
    for kind in ["point_miss", "point_hit", "empty_range"] {
        let turns = &json["multi_get"][kind];
        let names = ["ops", "alone_ns_per_op", "ns_per_op"];
        assert!(names.iter().all(|name| turns[name].is_number()), "{kind}");
    }
    for name in ["ops", "ns_per_op", "mean_relative_error", "worst_relative_error"] {
        assert!(json["count"][name].is_number(), "{name}");
    }
    assert!(json["levels"][0]["level"].is_number() && json["levels"][0]["runs"].is_number());
}

#[test]
fn plans_without_sense_and_used_folders_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = |change: fn(&mut ReadPlan)| {
        let mut plan = plan(folder.path());
        change(&mut plan);
        bench_read(&plan, &mut Silent).expect_err("no sense").to_string()
    };
    assert!(bad(|plan| plan.guards.clear()).contains("guard"));
    assert!(bad(|plan| plan.guards.push(GuardKind::Grf)).contains("twice"));
    assert!(bad(|plan| plan.threads = 0).contains("--threads 0"));
    assert!(bad(|plan| plan.tree.fill = 9).contains("--fill"));
    assert!(bad(|plan| plan.workload.correlated = Some(0)).contains("--correlated 0"));
    assert!(bad(|plan| plan.workload.empty_shares = vec![1.0]).contains("--empty 1"));
    fn delete(share: f64) -> Option<Deletion> {
        Some(Deletion { share, by: DeletedBy::Key })
    }
    assert!(bad(|plan| plan.workload.deleted = delete(f64::NAN)).contains("--deleted NaN"));
    assert!(bad(|plan| plan.workload.deleted = delete(1e-9)).contains("takes none"));
    assert!(
        bad(|plan| {
            plan.workload = ReadWorkload {
                correlated: Some(1),
                deleted: delete(0.5),
                ..ReadWorkload::default()
            }
        })
        .contains("--correlated, --deleted")
    );
    assert!(
        bad(|plan| {
            let inserts = Some(Dist::Uniform);
            plan.workload =
                ReadWorkload { inserts, deleted: delete(0.5), ..ReadWorkload::default() };
        })
        .contains("--inserts, --deleted")
    );
    assert!(
        bad(|plan| {
            plan.workload.inserts = Some(Dist::Uniform);
            (plan.tree.levels, plan.tree.fill) = (1, 3);
        })
        .contains("one level")
    );
    assert!(
        bad(|plan| (plan.dist, plan.workload.empty_shares) = (Dist::Urls, vec![0.5]))
            .contains("first eight bytes")
    );
    std::fs::create_dir_all(folder.path().join("none/x")).expect("made");
    assert!(bad(|_| ()).contains("not empty"));
}

#[test]
fn keys_of_text_are_answered_rightly_by_every_guard() {
    for dist in [Dist::Emails, Dist::Urls, Dist::Sensors] {
        let folder = tempfile::tempdir().expect("a folder");
        let plan =
            ReadPlan { dist: dist.clone(), keys: Some(1500), loads: 1, ..plan(folder.path()) };
        let plan = ReadPlan { queries: 50, range_width: 2, ..plan };
        for Measured { report, .. } in bench_read(&plan, &mut Silent).expect("measured") {
            assert_eq!(report.false_negatives, 0, "{}, {dist}", report.guard);
            assert_eq!((report.keys, &report.dist), (1500, &dist.to_string()));
            assert!(report.key_shape.bytes_mean >= 16.0, "{:?}", report.key_shape);
        }
    }
}

/// Returns the reports of a few guards, each for a small store with this workload.
fn reports(workload: ReadWorkload) -> Vec<ReadReport> {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["none", "blocked-bloom", "grf", "chucky", "remix", "surf-real"];
    let guards = guards(&names);
    let plan = ReadPlan { guards, workload, loads: 1, ..plan(folder.path()) };
    let measured = bench_read(&plan, &mut Silent).expect("measured").into_iter();
    measured.map(|measured| measured.report).collect()
}

#[test]
fn deleted_keys_are_not_found_however_they_were_deleted() {
    for by in [DeletedBy::Key, DeletedBy::Range] {
        let deleted = Some(Deletion { share: 0.25, by });
        for report in reports(ReadWorkload { deleted, ..ReadWorkload::default() }) {
            assert_eq!((report.keys, report.false_negatives), (3000, 0), "{}, {by}", report.guard);
            assert_eq!(report.runs, report.runs_planned, "{}, {by}", report.guard);
            let deleted = report.deleted.expect("told");
            assert_eq!((deleted.keys, deleted.stretches, deleted.by), (1000, 100, by.to_string()));
        }
    }
}

#[test]
fn a_shift_is_told_by_rates_before_and_after() {
    let inserts = Some(Dist::Uniform);
    for report in reports(ReadWorkload { inserts, ..ReadWorkload::default() }) {
        assert_eq!((report.keys, report.false_negatives), (4000, 0), "{}", report.guard);
        assert_eq!(report.runs, report.runs_planned, "{}", report.guard);
        let shift = report.shift.expect("told");
        // 48 of 63 flushes become the last level.
        assert_eq!((shift.base_keys, shift.new_keys), (3047, 953), "{}", report.guard);
        assert_eq!(shift.inserts, "uniform");
        assert_eq!(shift.after.point_miss, report.point_miss.false_positive_rate);
        let is_open = report.guard == "none";
        assert_eq!(shift.guard_ns_per_insert == 0.0, is_open, "{}", report.guard);
        if is_open {
            // One run before, seven after: every get searches them all without a filter.
            assert!((0.9..=1.0).contains(&shift.before.point_miss), "{:?}", shift.before);
            assert!(shift.after.point_miss > 6.0, "{:?}", shift.after);
        }
    }
}

#[test]
fn closed_seeks_are_as_empty_as_was_asked_for() {
    let empty_shares = vec![0.1, 0.5, 0.99];
    for report in reports(ReadWorkload { empty_shares, ..ReadWorkload::default() }) {
        assert_eq!(report.false_negatives, 0, "{}", report.guard);
        assert_eq!(report.closed_seek.len(), 3);
        for (seek, percent) in report.closed_seek.iter().zip([10.0, 50.0, 99.0]) {
            assert_eq!(seek.empty_percent, percent);
            assert!((100.0 * seek.empty_share - percent).abs() < 10.0, "{seek:?}");
            assert!(seek.cost.ops == 200 && seek.cost.ops_per_s > 0.0);
        }
        let json = serde_json::to_value(&report).expect("plain data");
        assert!(json["closed_seek"][1]["ns_per_op"].is_number(), "{json}");
    }
}

#[test]
fn close_misses_are_answered_rightly() {
    for report in reports(ReadWorkload { correlated: Some(16), ..ReadWorkload::default() }) {
        assert_eq!((report.false_negatives, report.correlated), (0, Some(16)), "{}", report.guard);
    }
}
