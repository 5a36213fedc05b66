//! Runs this program under callgrind, and reads what it counted.
//! ```text
//! # standard output: the processor, then "name times" per operation
//! valgrind --tool=callgrind this-program
//!    `counted_work` returns --dump--> counts.1, counts.2, ...    in the same order
//!                                       |
//!                                       v
//!                                 Profile { own, elsewhere }
//! ```
//! Invariant: as many profiles as operations, or an error.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::profile::{Profile, parse_names, parse_profile};

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

/// Callgrind's words for the function within which it counts, and after which it writes, however
/// names are mangled. Both name the same one; of two options with equal words callgrind would drop
/// one.
const COUNTED: &str = "*counted_work*";
const WRITTEN: &str = "*operations*counted_work*";

/// Counts every operation. `folder`: for callgrind's files, which are removed in the end.
pub(crate) fn count(folder: &Path) -> Result<Counted, String> {
    let folder = folder.join(format!("instructions-{}", std::process::id()));
    let at = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(at)?;
    let counted = count_in(&folder);
    fs::remove_dir_all(&folder).map_err(at)?;
    counted
}

fn count_in(folder: &Path) -> Result<Counted, String> {
    let program = std::env::current_exe().and_then(fs::canonicalize);
    let program = program.map_err(|error| format!("this program's own path: {error}"))?;
    let (processor, names) = parse_names(&run(&program, folder)?)?;
    let profile_path = |number: usize| folder.join(format!("counts.{number}"));
    if profile_path(names.len() + 1).exists() {
        return Err(format!("callgrind wrote more than {} profiles", names.len()));
    }
    let operations = names.into_iter().zip(1..).map(|((name, times), number)| {
        let text = fs::read_to_string(profile_path(number));
        let text = text.map_err(|error| format!("callgrind's profile {number}: {error}"))?;
        let Profile { own, elsewhere } = parse_profile(&text, &program.to_string_lossy())?;
        let per = |instructions| instructions as f64 / times as f64;
        Ok(Operation { name, instructions: per(own), elsewhere: per(elsewhere) })
    });
    Ok(Counted { processor, operations: operations.collect::<Result<_, String>>()? })
}

/// Runs `program` under callgrind, and gives its standard output.
fn run(program: &Path, folder: &Path) -> Result<String, String> {
    // A percent sign is special to callgrind.
    let out = folder.join("counts").display().to_string().replace('%', "%%");
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--toggle-collect={COUNTED}"));
    command.arg(format!("--dump-after={WRITTEN}"));
    command.arg(format!("--callgrind-out-file={out}"));
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
