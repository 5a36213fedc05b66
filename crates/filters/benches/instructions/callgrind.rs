//! Runs this program under callgrind, and reads what it counted.
//! ```text
//! valgrind --tool=callgrind this-program       standard output: the processor, then "name times" per operation
//!    `counted_work` returns --dump--> counts.1, counts.2, ...    in the same order
//!                                       |
//!                   ob=FILE, cost lines |--> instructions in this program, and elsewhere (libc)
//! ```
//! What libc spends depends on its version and on the machine, so it is kept apart. Invariant: both sums together are
//! the total that callgrind states.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What was counted, on which kind of processor.
pub(crate) struct Counted {
    pub(crate) processor: String,
    pub(crate) operations: Vec<Operation>,
}

/// Instructions per operation.
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) instructions: f64,
    pub(crate) elsewhere: f64,
}

/// Instructions by where they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) own: u64,
    pub(crate) elsewhere: u64,
}

/// Callgrind's words for the function within which it counts, and after which it writes, however names are mangled.
/// Both name the same one; of two options with equal words callgrind would drop one.
const COUNTED: &str = "*counted_work*";
const WRITTEN: &str = "*operations*counted_work*";

/// Counts every operation once. `folder`: for callgrind's files.
pub(crate) fn count(folder: &Path) -> Result<Counted, String> {
    let at = |error| format!("{}: {error}", folder.display());
    let folder = folder.join("instructions");
    let _ = fs::remove_dir_all(&folder); // What an earlier run may have left.
    fs::create_dir_all(&folder).map_err(at)?;
    let program = std::env::current_exe().and_then(fs::canonicalize).map_err(at)?;
    let names = run(&program, &folder)?;
    let (processor, names) = parse_names(&names)?;
    let operations = names.into_iter().zip(1..).map(|((name, times), number)| {
        let text = fs::read_to_string(folder.join(format!("counts.{number}")));
        let text = text.map_err(|error| format!("callgrind's file {number}: {error}"))?;
        let Profile { own, elsewhere } = parse_profile(&text, &program.to_string_lossy())?;
        let per = |instructions| instructions as f64 / times as f64;
        Ok(Operation { name, instructions: per(own), elsewhere: per(elsewhere) })
    });
    let operations = operations.collect::<Result<_, String>>()?;
    fs::remove_dir_all(&folder).map_err(at)?;
    Ok(Counted { processor, operations })
}

/// Runs `program` under callgrind, and gives its standard output.
fn run(program: &Path, folder: &Path) -> Result<String, String> {
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--toggle-collect={COUNTED}"));
    command.arg(format!("--dump-after={WRITTEN}"));
    command.arg(format!("--callgrind-out-file={}", folder.join("counts").display()));
    command.args(["--dump-line=no", "--compress-strings=no", "--compress-pos=no"]);
    let output = command.arg(program).output().map_err(|error| {
        format!(
            "cannot run valgrind ({error}): install the package 'valgrind'; nothing was counted"
        )
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("valgrind: {}; it said:\n{said}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("names of operations: {error}"))
}

/// The processor, and each operation's name and how often it was done.
pub(crate) fn parse_names(text: &str) -> Result<(String, Vec<(String, u64)>), String> {
    let mut lines = text.lines();
    let processor = lines.next().ok_or("the program named no processor")?.to_owned();
    let operation = |line: &str| {
        let (name, times) = line.split_once(' ')?;
        let times = times.parse().ok().filter(|&times| times > 0)?;
        Some((name.to_owned(), times))
    };
    let operations: Option<Vec<_>> = lines.map(operation).collect();
    match operations {
        Some(operations) if !operations.is_empty() => Ok((processor, operations)),
        _ => Err(format!("these are no operations with counts: '{text}'")),
    }
}

/// Sums the costs of a profile: `own` if their object file is `program`.
pub(crate) fn parse_profile(text: &str, program: &str) -> Result<Profile, String> {
    let mut profile = Profile { own: 0, elsewhere: 0 };
    let (mut in_program, mut is_callee, mut total) = (false, false, None);
    for line in text.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            in_program = object == program;
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if let Some(sum) = line.strip_prefix("totals: ") {
            total = sum.trim().parse().ok();
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            // The line after "calls=" says what the callee needed; that is counted where it was spent.
            if !std::mem::take(&mut is_callee) {
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                let cost = cost.ok_or_else(|| format!("callgrind wrote '{line}'"))?;
                *(if in_program { &mut profile.own } else { &mut profile.elsewhere }) += cost;
            }
        }
    }
    if profile.own == 0 || total != Some(profile.own + profile.elsewhere) {
        return Err(format!("callgrind's profile does not add up: {profile:?}, total {total:?}"));
    }
    Ok(profile)
}
