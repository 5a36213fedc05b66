//! Options that RocksDB has written to a file, and that a `rocksdb::Options` does not reveal.
//! ```text
//! OPTIONS-000123    [CFOptions "default"]
//!                     comparator=leveldb.BytewiseComparator
//!                     prefix_extractor={id=rocksdb.FixedPrefix;length=4;}
//! ```
//! Invariant: a family whose options cannot be read counts as one with an unknown order of keys.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a family orders and stores its keys, as far as doors need to know.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Keys are ordered bytewise, and have no user timestamps.
    pub(crate) is_bytewise: bool,
    /// Values are updated in place in memtables. Then RocksDB supports no snapshots of any family.
    pub(crate) is_overwritten: bool,
    /// The length of the prefix if the extractor is a fixed prefix; otherwise 0.
    prefix_bytes: AtomicUsize,
}

impl Rules {
    /// The length of the fixed prefix, within which a scan can stay. None: there is no such
    /// extractor.
    pub(crate) fn prefix_bytes(&self) -> Option<usize> {
        Some(self.prefix_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Takes over the extractor of newly read rules.
    pub(crate) fn set_prefix(&self, other: &Rules) {
        self.prefix_bytes.store(other.prefix_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Numbers and names of the options files. Each opening of the database writes one more.
pub(crate) fn options_files(database: &Path) -> BTreeMap<u64, String> {
    let number = |name: &str| name.strip_prefix("OPTIONS-")?.parse::<u64>().ok();
    let names = std::fs::read_dir(database).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Some((number(&name)?, name))).collect()
}

/// Reads the rules of each family from the newest options file. Empty if there is none.
pub(crate) fn rules_of(database: &Path) -> HashMap<String, Rules> {
    let newest = options_files(database).pop_last();
    let text = newest.and_then(|(_, name)| std::fs::read_to_string(database.join(name)).ok());
    text.as_deref().map(read_rules).unwrap_or_default()
}

/// Whether RocksDB supports snapshots with these rules. Without snapshots nothing is scanned.
pub(crate) fn have_snapshots(rules: &HashMap<String, Rules>) -> bool {
    !rules.values().any(|rules| rules.is_overwritten)
}

fn read_rules(text: &str) -> HashMap<String, Rules> {
    let (mut rules, mut family) = (HashMap::<String, Rules>::new(), None);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            let name = line.strip_prefix("[CFOptions \"").and_then(|rest| rest.strip_suffix("\"]"));
            family = name.map(String::from);
        } else if let (Some(family), Some((name, value))) = (&family, line.split_once('=')) {
            let rules = rules.entry(family.clone()).or_default();
            match name {
                "comparator" => rules.is_bytewise = value == "leveldb.BytewiseComparator",
                "inplace_update_support" => rules.is_overwritten = value == "true",
                "prefix_extractor" => *rules.prefix_bytes.get_mut() = fixed_prefix(value),
                _ => {}
            }
        }
    }
    rules
}

/// Returns the length of a fixed prefix; 0 for another extractor, or none.
fn fixed_prefix(value: &str) -> usize {
    const NAME: &str = "rocksdb.FixedPrefix";
    let Some((_, behind)) = value.split_once(NAME) else { return 0 };
    let digits = behind.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_their_own_rules() {
        let text = "[DBOptions]\n  comparator=none\n[CFOptions \"default\"]\n  \
                    prefix_extractor=rocksdb.FixedPrefix.4\n  \
                    comparator=leveldb.BytewiseComparator\n  inplace_update_support=false\n\
                    [TableOptions/BlockBasedTable \"default\"]\n  prefix_extractor=x\n\
                    [CFOptions \"back\"]\n  comparator=rocksdb.ReverseBytewiseComparator\n  \
                    prefix_extractor={id=rocksdb.FixedPrefix;length=7;}\n\
                    [CFOptions \"timed\"]\n  comparator=leveldb.BytewiseComparator.u64ts\n";
        let rules = read_rules(text);
        let rule = |name: &str| (rules[name].is_bytewise, rules[name].prefix_bytes());
        assert_eq!(rule("default"), (true, Some(4)));
        assert_eq!(rule("back"), (false, Some(7)));
        assert_eq!(rule("timed"), (false, None));
        assert_eq!(rules.len(), 3);
        assert_eq!(fixed_prefix("rocksdb.CappedPrefix.3"), 0);
        assert_eq!(fixed_prefix("{id=rocksdb.FixedPrefix.12;}"), 12);
    }
}
