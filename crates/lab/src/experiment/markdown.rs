//! Studies as Markdown: what `docs/results.md` is made of.

use crate::experiment::number::duration;
use crate::experiment::study::Study;

/// The text. `about` stands under its title.
pub fn markdown(title: &str, about: &str, studies: &[Study]) -> String {
    let mut text = format!("# {title}\n\n{about}\n");
    text.push_str(&overview(studies));
    studies.iter().for_each(|study| text.push_str(&chapter(study)));
    text
}

/// Every claim in one table; first what does not hold.
fn overview(studies: &[Study]) -> String {
    let mut found: Vec<(Option<bool>, String)> = Vec::new();
    for study in studies {
        for (claim, outcome) in study.claims() {
            let why = claim.otherwise.as_ref().filter(|_| outcome.holds == Some(false));
            let says = match why {
                Some(why) => format!("{} *{}*", claim.says, why),
                None => claim.says.clone(),
            };
            let cells = [
                study.experiment.title.clone(),
                says,
                claim.source.clone(),
                outcome.verdict().to_string(),
                outcome.told(),
            ];
            found.push((outcome.holds, line(&cells)));
        }
    }
    let count = |holds: Option<bool>| found.iter().filter(|one| one.0 == holds).count();
    let mut text = format!(
        "\n## What is claimed, and whether it holds here\n\n{} claims: {} hold, {} do not, {} were not measured.\n\n",
        found.len(),
        count(Some(true)),
        count(Some(false)),
        count(None),
    );
    text.push_str(&line(&["plan", "claim", "by", "", "found"].map(str::to_string)));
    text.push_str(&rule(5));
    for wanted in [Some(false), None, Some(true)] {
        found.iter().filter(|one| one.0 == wanted).for_each(|one| text.push_str(&one.1));
    }
    text
}

fn chapter(study: &Study) -> String {
    let plan = &study.experiment;
    let (measured, all) = study.measured();
    let mut text = format!(
        "\n## {}\n\n{}. {}\n\n{measured} of {all} measurements ({}): `trommel lab run {} --scale {}`; commit {}.\n",
        plan.title,
        plan.source,
        plan.about.trim(),
        duration(study.seconds()),
        plan.name,
        study.scale,
        study.commits().join(", "),
    );
    for figure in study.figures() {
        text.push_str(&format!("\n### {}\n", figure.title));
        if figure.panels.is_empty() {
            text.push_str("\nThere are no measurements for this figure.\n");
        }
        for panel in &figure.panels {
            let of =
                if panel.title.is_empty() { String::new() } else { format!(", {}", panel.title) };
            text.push_str(&format!("\n{}{of}:\n\n", figure.y_label));
            for (place, row) in figure.table(panel).iter().enumerate() {
                text.push_str(&line(row));
                if place == 0 {
                    text.push_str(&rule(row.len()));
                }
            }
        }
    }
    text
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}
