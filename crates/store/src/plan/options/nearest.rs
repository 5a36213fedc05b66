//! Finds the name that a mistyped word probably meant.

/// The most mistyped letters.
const WRONG_MAX: usize = 3;

/// Returns the first of the names that differ least from a word, in at most a third of its letters.
/// None: all names differ more.
pub(super) fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let most = WRONG_MAX.min(word.len() / 3);
    let differences = names.iter().map(|name| (difference(word.as_bytes(), name.as_bytes()), name));
    let near = differences.min_by_key(|(count, _)| *count)?;
    (near.0 <= most).then_some(*near.1)
}

/// Returns the least number of bytes that must be inserted, deleted or changed (Levenshtein
/// distance).
fn difference(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, byte) in one.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], line + 1);
        for (column, candidate) in other.iter().enumerate() {
            let changed = before + usize::from(byte != candidate);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_differ_are_counted() {
        let counted = |one: &str, other: &str| difference(one.as_bytes(), other.as_bytes());
        assert_eq!(counted("kitten", "sitting"), 3);
        assert_eq!(counted("", "abc"), 3);
        assert_eq!(counted("abc", ""), 3);
        assert_eq!(counted("block_bytes", "block_bytes"), 0);
        assert_eq!(counted("blokc_bytes", "block_bytes"), 2);
    }

    #[test]
    fn a_name_is_near_if_few_letters_are_wrong() {
        let names = ["guard", "cache_bytes", "block_bytes"];
        assert_eq!(nearest("blokc_bytes", &names), Some("block_bytes"));
        assert_eq!(nearest("cach_bytes", &names), Some("cache_bytes"));
        assert_eq!(nearest("gard", &names), Some("guard"));
        assert_eq!(nearest("gu", &names), None);
        assert_eq!(nearest("compression", &names), None);
        assert_eq!(nearest("guard", &[]), None);
    }
}
