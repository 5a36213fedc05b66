//! Counts the instructions of building, inserting and probing, and compares them with committed
//! limits.
//! ```text
//! .ci/instructions (cargo bench --bench instructions)   --write-limits
//!      |                                                  |
//!      v                                                  v
//!  callgrind( this program, without --bench ) --counts--> limits.txt
//!     --> table; status 1 if one is over its limit
//!             runs the operations, each within `counted_work`
//! ```
//! Counts repeat where times do not, so that a busy machine can tell a few percent more work.
//! Invariant: every operation is counted and has a limit, or the run fails; nothing is skipped in
//! silence.

mod callgrind;
mod limits;
mod operations;
mod profile;

use std::path::Path;
use std::process::{Command, ExitCode};

use limits::{Limits, Section};

const LIMITS_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/limits.txt");

/// What the command line asks for.
enum Task {
    /// Run the operations, so that callgrind can watch, or a test can see that they still run.
    Run,
    Check,
    WriteLimits,
}

/// Cargo gives `--bench` when it benches, and nothing when it tests.
fn task(words: impl Iterator<Item = String>) -> Result<Task, String> {
    let mut task = Task::Run;
    for word in words {
        match (word.as_str(), &task) {
            ("--bench", Task::Run) => task = Task::Check,
            ("--bench", _) => {}
            ("--write-limits", _) => task = Task::WriteLimits,
            _ => return Err(format!("'{word}': there is only --write-limits")),
        }
    }
    Ok(task)
}

fn main() -> ExitCode {
    let task = match task(std::env::args().skip(1)) {
        Ok(task) => task,
        Err(problem) => {
            eprintln!("instructions: {problem}");
            return ExitCode::from(2);
        }
    };
    let done = match task {
        Task::Run => {
            operations::run_all();
            Ok(())
        }
        Task::Check => measured().and_then(|measured| check(&measured)),
        Task::WriteLimits => measured().and_then(write),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("instructions: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Counts all operations; prints what they need outside of this program, which no limit holds.
fn measured() -> Result<Section, String> {
    if cfg!(debug_assertions) {
        return Err(
            "debug assertions are compiled in, and would be counted: use cargo bench".into()
        );
    }
    let counted = callgrind::count(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    println!("outside of this program (allocator, copying; not limited), instructions:");
    for operation in &counted.operations {
        println!("  {:<26}{:>9.1}", operation.name, operation.elsewhere);
    }
    let operations = counted.operations.into_iter();
    Ok(Section {
        processor: counted.processor,
        compiler: compiler()?,
        rows: operations.map(|operation| (operation.name, operation.instructions)).collect(),
    })
}

/// "rustc 1.95.0": counts are those of a compiler.
fn compiler() -> Result<String, String> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.map_err(|error| format!("rustc --version: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    match words[..] {
        [_, _] => Ok(words.join(" ")),
        _ => Err(format!("rustc --version says '{text}'")),
    }
}

fn read_limits() -> Result<Limits, String> {
    let text = std::fs::read_to_string(LIMITS_PATH);
    let text = text.map_err(|error| format!("{LIMITS_PATH}: {error}"))?;
    Limits::parse(&text).map_err(|problem| format!("{LIMITS_PATH}: {problem}"))
}

fn check(measured: &Section) -> Result<(), String> {
    let limits = read_limits()?;
    let verdict = limits.compare(measured);
    print!("{}", verdict.table);
    if verdict.problems.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nIf that is meant: .ci/instructions --write-limits",
        verdict.problems.join("\n")
    ))
}

fn write(measured: Section) -> Result<(), String> {
    let mut limits = read_limits()?;
    print!("{}", limits.compare(&measured).table);
    limits.replace(measured);
    let written = std::fs::write(LIMITS_PATH, limits.to_string());
    written.map_err(|error| format!("{LIMITS_PATH}: {error}"))?;
    println!("written to {LIMITS_PATH}");
    Ok(())
}
