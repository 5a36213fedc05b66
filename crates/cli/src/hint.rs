//! The hint: what to do about a failure, in one line after the error.
//! ```text
//! trommel: words/000003.table is damaged at byte 0: ...
//! trommel: `trommel verify --db words` tells all damage; `trommel repair --db words` mends the ...
//!
//! trommel: words is open already, ...
//! trommel: words is open in another process; beside it work `trommel inspect --db words ...
//! ```
//! Invariant: the commands of a hint work in a shell as they are printed.

use std::path::Path;

use crate::command_line::Command;
use crate::output::shell::shell_word;
use crate::process::failure::Failure;

/// Returns the hint for a failure of this command. None: there is nothing to suggest, or this
/// command is itself the remedy.
pub(crate) fn of(failure: &Failure, command: &Command) -> Option<String> {
    match failure {
        Failure::Damage(_) => for_damage(command),
        Failure::InUse(_) => command.store().map(beside_a_writer),
        Failure::Usage(_) | Failure::Data(_) | Failure::OutputClosed => None,
    }
}

fn for_damage(command: &Command) -> Option<String> {
    let folder = shell_word(command.store()?);
    let mends =
        format!("`trommel repair --db {folder}` mends the store, and tells what it could not save");
    match command {
        Command::Repair(_) => None,
        Command::Verify(_) => Some(mends),
        _ => Some(format!("`trommel verify --db {folder}` tells all damage; {mends}")),
    }
}

/// Names the commands that work while another process has the store open.
fn beside_a_writer(store: &Path) -> String {
    let folder = shell_word(store);
    format!(
        "{folder} is open in another process; beside it work `trommel get`, `scan`, `stats`, `inspect`, `verify`, \
         `checkpoint`, `dump --db {folder}`, and any command on a checkpoint"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::Arguments;

    fn hint(failure: fn(String) -> Failure, words: &[&str]) -> Option<String> {
        let line = ["trommel"].iter().chain(words);
        let command = Arguments::try_parse_from(line).expect("makes sense").command;
        of(&failure(String::new()), &command)
    }

    #[test]
    fn the_way_out_has_the_name_of_the_folder() {
        let hint = |words: &[&str]| hint(Failure::Damage, words);
        let get = hint(&["get", "--db", "a/words", "key"]).expect("a way");
        let verify = "`trommel verify --db a/words`";
        assert!(get.contains(verify) && get.contains("`trommel repair --db a/words`"), "{get}");
        let verify = hint(&["verify", "--db", "my words"]).expect("a way");
        assert!(verify.starts_with("`trommel repair --db 'my words'`"), "{verify}");
        assert_eq!(hint(&["repair", "--db", "words"]), None);
        assert_eq!(hint(&["bench", "read"]), None, "its stores are its own");
    }

    #[test]
    fn beside_a_writer_the_commands_that_work_are_named() {
        let put = hint(Failure::InUse, &["put", "--db", "words", "key", "value"]).expect("a way");
        for words in ["words is open", "`trommel get`, `scan`", "dump --db words", "checkpoint"] {
            assert!(put.contains(words), "{put}");
        }
        assert_eq!(hint(Failure::Data, &["scan", "--db", "words"]), None);
    }
}
