//! Studies as Markdown: the content of `docs/results.md`.
//! ```text
//! how many claims hold
//! claims that do not hold, and those without measurements     one table each, with reasons
//! each plan: its source, one figure, laws, the claims that hold   claims once, figures as files
//! ```
//! Invariant: every claim has one row, and every linked figure is among `figure_files`.

use std::collections::HashSet;

use crate::experiment::chart::svg_file;
use crate::experiment::claim::{Claim, ClaimOutcome, Verdict};
use crate::experiment::figure::{CurveLaw, Figure};
use crate::experiment::study::{Study, summary};

/// The folder of the figures, next to the Markdown file.
pub const FIGURES_FOLDER: &str = "figures";

/// A plan's figure as a file in [`FIGURES_FOLDER`].
pub struct FigureFile {
    /// The plan's name with `.svg` appended.
    pub name: String,
    /// The figure's title.
    pub title: String,
    /// The picture.
    pub svg: String,
}

/// Returns the first figure that has rows, for each plan.
pub fn figure_files(studies: &[Study]) -> Vec<FigureFile> {
    studies.iter().filter_map(figure_file).collect()
}

fn figure_file(study: &Study) -> Option<FigureFile> {
    study.figures().into_iter().find_map(|figure| {
        let name = format!("{}.svg", study.experiment.name);
        Some(FigureFile { svg: svg_file(&figure)?, name, title: figure.title })
    })
}

/// Returns the text. `about` stands below its title.
pub fn markdown(title: &str, about: &str, studies: &[Study]) -> String {
    let mut text = format!("# {title}\n\n**{}**\n{about}\n", summary(studies));
    for (verdict, heading) in [
        (Verdict::DoesNotHold, "Claims that do not hold"),
        (Verdict::Tie, "Ties"),
        (Verdict::NotMeasured, "Not measured"),
    ] {
        text.push_str(&failed(studies, verdict, heading));
    }
    studies.iter().for_each(|study| text.push_str(&chapter(study)));
    text
}

/// Lists the claims with a verdict other than "holds", each with its reason.
fn failed(studies: &[Study], verdict: Verdict, heading: &str) -> String {
    let mut rows = String::new();
    for study in studies {
        for (claim, outcome) in study.claims() {
            if outcome.verdict == verdict {
                let (plan, why) = (study.experiment.name.clone(), outcome.why.clone());
                let [says, source, found, bound] = cells(claim, &outcome);
                rows.push_str(&line(&[says, source, plan, found, bound, why]));
            }
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let names = ["claim", "by", "plan", "measured", "claimed", "why not"];
    format!("\n## {heading}\n\n{}{rows}", head(&names))
}

/// Returns a plan's chapter: its source, its figure, and the claims that hold.
fn chapter(study: &Study) -> String {
    let plan = &study.experiment;
    let mut text = format!("\n## {}\n\n{}", plan.name, plan.title);
    text.push_str(&format!(" ({})", plan.source.trim_end_matches('.')));
    text.push_str(&match study.measured() {
        (measured, all) if measured < all => format!(", {measured} of {all} measurements.\n"),
        _ => ".\n".into(),
    });
    if let Some(figure) = figure_file(study) {
        text.push_str(&format!("\n![{}]({FIGURES_FOLDER}/{})\n", figure.title, figure.name));
    }
    text.push_str(&laws(study));
    let claims = study.claims();
    let holds = claims.iter().filter(|(_, outcome)| outcome.verdict == Verdict::Holds);
    let rows: String = holds.map(|(claim, outcome)| line(&cells(claim, outcome))).collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}{rows}", head(&["claim", "by", "measured", "claimed"])));
    }
    text
}

/// Lists the laws of its figures' curves, in one table for each figure.
fn laws(study: &Study) -> String {
    study.figures().iter().map(laws_of).collect()
}

/// A row for each panel, and a column for each curve.
fn laws_of(figure: &Figure) -> String {
    let Some(first) = figure.laws.first() else { return String::new() };
    let names = |of: fn(&CurveLaw) -> &String| {
        let mut names: Vec<&String> = figure.laws.iter().map(of).collect();
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        names
    };
    let (panels, curves) = (names(|law| &law.panel), names(|law| &law.curve));
    let title = format!("{}; n = {} / {}", figure.title, figure.x_label, first.law.unit());
    let row = |panel: &&String| {
        let cell = |curve: &&String| {
            let mut laws = figure.laws.iter();
            let found = laws.find(|law| law.panel == **panel && law.curve == **curve);
            found.map(|found| found.law.short()).unwrap_or_default()
        };
        let cells = std::iter::once(panel.to_string()).chain(curves.iter().map(cell));
        line(&cells.collect::<Vec<_>>())
    };
    let heading: Vec<&str> =
        std::iter::once(title.as_str()).chain(curves.iter().map(|name| name.as_str())).collect();
    format!("\n{}{}", head(&heading), panels.iter().map(row).collect::<String>())
}

/// Returns a claim, its source, the findings and the bound.
fn cells(claim: &Claim, outcome: &ClaimOutcome) -> [String; 4] {
    let [found, bound] = outcome.cells();
    [claim.says.clone(), claim.source.clone(), found, bound]
}

fn head(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    format!("{}|{}\n", line(&names), "---|".repeat(names.len()))
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}
