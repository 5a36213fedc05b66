//! `bench compare`, as a user runs it, without the program that has the other engines and with a
//! stand-in for it.

use crate::common::Workplace;

#[test]
fn without_the_program_it_says_what_to_do() {
    let place = Workplace::new();
    let mut command = place.command("bench compare --peer rocksdb");
    let output = command.env("PATH", place.path("")).output().expect("runs");
    let words = ["trommel-peers", "cargo build --release --manifest-path crates/peers/Cargo.toml"];
    crate::common::Ended::from(output).fails(3, &[&words[..], &["--program", "PATH"]].concat());
    place.run("bench compare --program nowhere").fails(3, &[&["nowhere"], &words[1..]].concat());
    place.run("bench compare --shape tall").fails(2, &["default, runs"]);
    place.run("bench compare --range-width 0").fails(2, &["--range-width"]);
    place.run("bench compare --ask prefix").fails(2, &["absent-prefix, present-prefix"]);
}

/// A script in the program's place.
#[cfg(unix)]
mod stand_in {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use trommel_lab::{ComparePlan, Engine, PeerTask, Silent, Trommel, bench_compare};

    fn script(place: &Workplace, text: &str) {
        let file = place.file("trommel-peers", format!("#!/bin/sh\n{text}\n"));
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, executable).expect("made executable");
    }

    /// What the program would tell of a plan, if it had this store alone.
    fn reports(plan: &ComparePlan) -> String {
        let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
        serde_json::to_string(&bench_compare(plan, &engines, &mut Silent).expect("measured"))
            .expect("plain data")
    }

    #[test]
    fn the_program_is_given_a_plan_and_its_reports_are_shown() {
        let place = Workplace::new();
        script(&place, "cat > plan; cat reports");
        place.file("reports", "[]");
        let run = "bench compare --program ./trommel-peers --peer trommel --filters none --guard grf --keys 3000 \
                   --size-ratio 4 --queries 100 --loads 1 --value-bytes 10 --ask absent-prefix,next --db stores";
        assert_eq!(place.run(&format!("{run} --json")).with_status(0), "[]\n");
        let text = std::fs::read_to_string(place.path("plan")).expect("a plan was written");
        let task = serde_json::from_str(&text).expect("the task is JSON");
        let PeerTask::Compare(plan) = task else { panic!("{text}") };
        assert_eq!((plan.keys, plan.size_ratio, plan.queries), (Some(3000), 4, 100));
        assert_eq!((plan.contenders.len(), &plan.contenders[0].filter[..]), (2, "grf"));
        let plan = ComparePlan { folder: place.path("stores"), ..plan };
        place.file("reports", reports(&plan));
        let table = place.run(run).with_status(0);
        for word in ["point_miss", "empty_range", "absent-prefix", "trommel, none", "7 runs", "x)"]
        {
            assert!(table.contains(word), "{word} is not in {table}");
        }
        assert_eq!(place.run(&format!("{run} --json")).json(0)[1]["guard"], "none");
    }

    #[test]
    fn how_the_program_ends_is_told() {
        let place = Workplace::new();
        let run = "bench compare --program ./trommel-peers";
        script(&place, "cat > /dev/null; exit 2");
        place.run(run).fails(2, &["refused the plan"]);
        script(&place, "cat > /dev/null; exit 3");
        place.run(run).fails(3, &["trommel-peers", "exit status: 3"]);
        script(&place, "cat > /dev/null; echo good morning");
        place.run(run).fails(3, &["no reports"]);
    }
}
