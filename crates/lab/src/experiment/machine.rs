//! The machine and the source tree of a measurement.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// A machine on which measurements run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name, which is also that of its folder of records.
    pub name: String,
    /// Its processor.
    pub processor: String,
    /// How many threads it runs at once.
    pub cores: u64,
    /// Its memory, in bytes; 0 if unknown.
    pub memory_bytes: u64,
    /// The system's name and version.
    pub system: String,
}

impl Machine {
    /// Describes this machine. By default its name is made of processor and cores.
    pub fn this(name: Option<&str>) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processor = field(&read("/proc/cpuinfo"), "model name");
        let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_string());
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let release = read("/proc/sys/kernel/osrelease");
        Machine {
            name: name.map_or_else(|| slug(&format!("{processor} {cores} cores")), slug),
            processor,
            cores,
            memory_bytes: kib.unwrap_or(0) << 10,
            system: format!("{} {}", std::env::consts::OS, release.trim()).trim().to_string(),
        }
    }
}

/// Returns the value behind a name and a colon, in a file of such lines.
fn field(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(of, _)| of.trim() == name);
    found.next().map(|(_, value)| value.trim().to_string())
}

/// Converts text to lower-case letters and digits, with single hyphens between words.
pub(crate) fn slug(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Returns the commit of the source tree around a folder, and marks it if files have changed since.
/// "unknown": there is no tree, or no `git`.
pub(crate) fn commit(folder: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".into();
    };
    // Records do not count: they are written while plans run, and do not change what is measured.
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "plans"]);
    match changed.is_some_and(|files| !files.is_empty()) {
        true => format!("{commit}+changes"),
        false => commit,
    }
}
