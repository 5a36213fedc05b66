//! Policies as text: the name of a known policy, then its differences from that policy.
//! ```text
//! rocksdb        leveling ratios=4,6 last_runs=2        tiering inner_runs=each,1 delay_merges
//! ```
//! Words are separated by blanks or by `;`. Invariant: a written text is read as the same policy.

use std::fmt;
use std::str::FromStr;

use crate::plan::policy::{EACH, Policy};

/// The text of a run limit that is no limit.
const EACH_TEXT: &str = "each";

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = Policy::known().map(|(name, base)| format!("{name}{}", self.beside(&base)));
        f.write_str(&texts.min_by_key(String::len).expect("there are some"))
    }
}

impl Policy {
    /// Returns the text of the differences from that policy.
    fn beside(&self, base: &Policy) -> String {
        let mut text = String::new();
        if self.ratios != base.ratios {
            text += &format!(" ratios={}", listed(&self.ratios));
        }
        if self.inner_runs != base.inner_runs {
            text += &format!(" inner_runs={}", listed(&self.inner_runs));
        }
        if self.last_runs != base.last_runs {
            text += &format!(" last_runs={}", run_text(self.last_runs));
        }
        if self.delay_merges {
            text += " delay_merges";
        }
        text
    }
}

fn run_text(runs: u32) -> String {
    if runs == EACH { EACH_TEXT.into() } else { runs.to_string() }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(|&number| run_text(number)).collect::<Vec<_>>().join(",")
}

impl FromStr for Policy {
    /// A text that lists what a policy's text may contain.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split([' ', ';']).filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        let mut policy = Policy::named(name).ok_or_else(|| {
            let known = Policy::NAMES.join(", ");
            format!("there is no policy '{name}'; there are: {known}, levelled-from:LEVEL (0 to 8)")
        })?;
        for word in words {
            match word.split_once('=') {
                Some(("ratios", value)) => policy.ratios = numbers(value)?,
                Some(("inner_runs", value)) => policy.inner_runs = numbers(value)?,
                Some(("last_runs", value)) => policy.last_runs = number(value)?,
                None if word == "delay_merges" => policy.delay_merges = true,
                _ => {
                    let known = "ratios=T,.. inner_runs=K,.. last_runs=Z delay_merges";
                    return Err(format!("'{word}' is not of a policy; there are: {known}"));
                }
            }
        }
        Ok(policy)
    }
}

fn numbers(text: &str) -> Result<Vec<u32>, String> {
    if text.is_empty() { Ok(Vec::new()) } else { text.split(',').map(number).collect() }
}

fn number(text: &str) -> Result<u32, String> {
    if text == EACH_TEXT {
        return Ok(EACH);
    }
    text.parse().map_err(|_| format!("'{text}' is neither a number nor {EACH_TEXT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same_policy() {
        let odd = [
            Policy { ratios: vec![4, 6], ..Policy::leveling() },
            Policy { ratios: vec![], ..Policy::rocksdb() },
            Policy { inner_runs: vec![3, EACH, 1], ..Policy::tiering() },
            Policy { last_runs: 7, delay_merges: true, ..Policy::levelled_from(3) },
            Policy { inner_runs: vec![], last_runs: 0, ..Policy::tiering() },
        ];
        let named = ["lazy-leveling", "leveling", "tiering", "rocksdb", "levelled-from:8"];
        for policy in odd.into_iter().chain(named.map(|name| Policy::named(name).expect(name))) {
            let text = policy.to_string();
            assert_eq!(text.parse().as_ref(), Ok(&policy), "{text}");
        }
        for name in named.into_iter().skip(1) {
            assert_eq!(Policy::named(name).expect(name).to_string(), name);
        }
    }

    #[test]
    fn words_have_semicolons_where_blanks_are_in_the_way() {
        let read = "leveling;ratios=4,6; last_runs=2".parse();
        assert_eq!(read, Ok(Policy { ratios: vec![4, 6], last_runs: 2, ..Policy::leveling() }));
    }

    #[test]
    fn a_wrong_text_says_what_there_is() {
        for (text, word) in [
            ("", "lazy-leveling"),
            ("levelling", "lazy-leveling"),
            ("tiering ratio=4", "ratios="),
            ("tiering delay_merges=true", "delay_merges"),
            ("tiering last_runs=some", "each"),
        ] {
            assert!(text.parse::<Policy>().expect_err(text).contains(word), "{text}");
        }
    }
}
