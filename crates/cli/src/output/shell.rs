//! Quotes words for a shell, for commands in messages.

use std::path::Path;

/// Returns a path as a shell word that is no option.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    quoted(if text.starts_with('-') { format!("./{text}") } else { text })
}

/// Quotes a word for a shell, if necessary.
pub(crate) fn quoted(word: String) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_word_of_a_shell() {
        let word = |path: &str| shell_word(Path::new(path));
        assert_eq!((word("/srv/db-1"), word("-x")), ("/srv/db-1".into(), "./-x".into()));
        assert_eq!((word("it's"), word("$x")), (r"'it'\''s'".into(), "'$x'".into()));
    }
}
