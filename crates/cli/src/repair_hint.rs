//! The repair hint: what to do about a damaged store, in one line after the error.
//! ```text
//! trommel: words/000003.table is damaged at byte 0: ...
//! trommel: `trommel verify --db words` tells all damage; `trommel repair words` mends the ...
//! ```
//! Invariant: a shell takes the commands of a hint as they stand.

use std::path::Path;

use crate::command_line::Command;

/// The hint for damage that this command met. None if this command is itself the way out.
pub(crate) fn of(command: &Command) -> Option<String> {
    let folder = shell_word(command.store()?);
    let mends =
        format!("`trommel repair {folder}` mends the store, and tells what it could not save");
    match command {
        Command::Repair(_) => None,
        Command::Verify(_) => Some(mends),
        _ => Some(format!("`trommel verify --db {folder}` tells all damage; {mends}")),
    }
}

/// A path as a shell reads it: one word, and no option.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::Arguments;

    fn told(words: &[&str]) -> Option<String> {
        let line = ["trommel"].iter().chain(words);
        of(&Arguments::try_parse_from(line).expect("makes sense").command)
    }

    #[test]
    fn the_way_out_has_the_name_of_the_folder() {
        let get = told(&["get", "--db", "a/words", "key"]).expect("a way");
        let verify = "`trommel verify --db a/words`";
        assert!(get.contains(verify) && get.contains("`trommel repair a/words`"), "{get}");
        let verify = told(&["verify", "--db", "my words"]).expect("a way");
        assert!(verify.starts_with("`trommel repair 'my words'`"), "{verify}");
        assert_eq!(told(&["repair", "words"]), None);
        assert_eq!(told(&["bench", "read"]), None, "its stores are its own");
    }

    #[test]
    fn a_folder_is_one_word_of_a_shell() {
        let word = |path: &str| shell_word(Path::new(path));
        assert_eq!((word("/srv/db-1"), word("-x")), ("/srv/db-1".into(), "./-x".into()));
        assert_eq!((word("it's"), word("$x")), (r"'it'\''s'".into(), "'$x'".into()));
    }
}
