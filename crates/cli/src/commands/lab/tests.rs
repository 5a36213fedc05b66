//! Tests that the shipped plans load.

use std::path::Path;

use clap::Parser;
use trommel_lab::experiment::{Scale, Study, load_experiments};

use crate::command_line::Arguments;

fn plans() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans")
}

#[test]
fn every_command_of_every_plan_is_one_that_this_program_takes() {
    let plans = load_experiments(&plans(), &[]).expect("the plans are well formed");
    for plan in plans {
        for scale in Scale::ALL {
            for step in plan.steps(scale) {
                let words = std::iter::once("trommel".to_string()).chain(step.arguments.clone());
                let parsed = Arguments::try_parse_from(words);
                assert!(
                    parsed.is_ok(),
                    "{}: {}: {}",
                    plan.name,
                    step.command(),
                    parsed.unwrap_err()
                );
            }
        }
    }
}

#[test]
fn claims_and_reasons_are_short() {
    const WORDS_MAX: usize = 25;
    for plan in load_experiments(&plans(), &[]).expect("the plans are well formed") {
        let nowhere = Path::new("no-records");
        let study = Study::load(plan, Scale::Small, nowhere, "nobody").expect("no records");
        for (claim, _) in study.claims() {
            let sentences = std::iter::once(&claim.says).chain(&claim.otherwise);
            for sentence in sentences {
                let words = sentence.split_whitespace().count();
                assert!(words <= WORDS_MAX, "{}: {words}: {sentence}", study.experiment.name);
            }
        }
    }
}
