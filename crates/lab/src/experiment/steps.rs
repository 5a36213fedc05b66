//! Expands a plan into command lines.

use crate::experiment::plan::{Experiment, Scale};
use crate::experiment::rows::Scalar;

/// One measurement: a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The plan's name.
    pub experiment: String,
    /// The arguments of `trommel`, by which records are found.
    pub arguments: Vec<String>,
    /// The options and labels as fields of its rows, named as in reports.
    pub fields: Vec<(String, Scalar)>,
    /// The path of the rows in the command's output.
    pub rows: Option<String>,
}

impl Experiment {
    /// Returns the measurements at a scale, in the order in which they run.
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
    /// Returns the command as it would be typed in a shell.
    pub fn command(&self) -> String {
        let quoted = self.arguments.iter().map(|word| match word.contains([' ', '\'', '*']) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.clone(),
        });
        std::iter::once("trommel".to_string()).chain(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// Returns an option as arguments.
fn option(name: &str, value: &Scalar) -> Vec<String> {
    match value {
        Scalar::Flag(true) => vec![format!("--{name}")],
        Scalar::Flag(false) => Vec::new(),
        value => vec![format!("--{name}"), value.to_string()],
    }
}
