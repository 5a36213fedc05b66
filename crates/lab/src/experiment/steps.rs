//! From a plan to the command lines that it stands for.

use crate::experiment::plan::{Experiment, Scale};
use crate::experiment::rows::Scalar;

/// One measurement: a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The plan's name.
    pub experiment: String,
    /// What follows `trommel`. Records are found by it.
    pub arguments: Vec<String>,
    /// The options and labels as fields of its rows, by the names that reports use.
    pub fields: Vec<(String, Scalar)>,
    /// Where in what it prints the rows are.
    pub rows: Option<String>,
}

impl Experiment {
    /// The measurements at a scale, in the order in which they are made.
    pub fn steps(&self, scale: Scale) -> Vec<Step> {
        let of_scale = self.runs.iter().filter(|run| run.scale.is_none_or(|only| only == scale));
        let steps = of_scale.flat_map(|run| {
            run.set.choices(scale).into_iter().map(|choice| {
                let words = run.command.split_whitespace().map(str::to_string);
                let options = choice.iter().flat_map(|(name, value)| option(name, value));
                let labels =
                    run.label.iter().map(|(name, text)| (name.clone(), Scalar::Text(text.clone())));
                let fields =
                    choice.iter().map(|(name, value)| (name.replace('-', "_"), value.clone()));
                Step {
                    experiment: self.name.clone(),
                    arguments: words.chain(options).chain(["--json".to_string()]).collect(),
                    fields: fields.chain(labels).collect(),
                    rows: run.rows.clone(),
                }
            })
        });
        steps.collect()
    }
}

impl Step {
    /// The command as people would type it.
    pub fn command(&self) -> String {
        let quoted = self.arguments.iter().map(|word| match word.contains([' ', '\'', '*']) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.clone(),
        });
        std::iter::once("trommel".to_string()).chain(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// An option as words of a command line.
fn option(name: &str, value: &Scalar) -> Vec<String> {
    match value {
        Scalar::Flag(true) => vec![format!("--{name}")],
        Scalar::Flag(false) => Vec::new(),
        value => vec![format!("--{name}"), value.to_string()],
    }
}
