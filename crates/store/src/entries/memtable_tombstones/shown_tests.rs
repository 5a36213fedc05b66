//! Tests of how far a memtable's adjacent range tombstones hide keys, against a plain list of
//! writes.
//! ```text
//! writes    put 3 1   delete [0, 5) 2   put 4 3   delete [2, 9) 4   ...
//! key       at each number: is it deleted, has it a newer entry -> how far a scan may skip at once
//! ```
//! Invariant of every step: no key that is skipped has a visible entry.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{PATTERNS, keys};
use super::*;
use crate::entries::entry::Kind;
use crate::entries::memtable::Memtable;

const KEYS: u8 = 14;

/// The n-th write has the sequence number n + 1.
#[derive(Clone, Debug)]
enum Write {
    Put(u8),
    Delete(Range<u8>),
}

fn any_write() -> impl Strategy<Value = Write> {
    let range = (0..KEYS, 1..KEYS).prop_map(|(from, len)| from..from.saturating_add(len).min(KEYS));
    let short = (0..KEYS, 1u8..4).prop_map(|(from, len)| from..(from + len).min(KEYS));
    prop_oneof![
        3 => (0..KEYS).prop_map(Write::Put),
        1 => range.prop_map(Write::Delete),
        3 => short.prop_map(Write::Delete),
    ]
}

fn write(memtable: &Memtable, write: &Write, number: u64) {
    match write {
        Write::Put(key) => memtable.insert(&[*key], Sequence(number), Kind::Put, b""),
        Write::Delete(range) => {
            memtable.insert(&[range.start], Sequence(number), Kind::DeleteRange, &[range.end]);
        }
    }
}

/// The index of the newest deletion of a key.
fn deleted(writes: &[Write], key: u8) -> Option<usize> {
    writes.iter().rposition(|write| matches!(write, Write::Delete(range) if range.contains(&key)))
}

/// Whether a key has an entry that is newer than its newest deletion.
fn is_seen(writes: &[Write], key: u8) -> bool {
    let put = writes.iter().rposition(|write| matches!(write, Write::Put(put) if *put == key));
    put > deleted(writes, key)
}

/// The range around a key in which `goes_on` holds.
fn around(key: u8, goes_on: impl Fn(u8) -> bool) -> Range<u8> {
    let from = (0..key).rev().find(|before| !goes_on(*before)).map_or(0, |before| before + 1);
    let until = (key..KEYS).find(|after| !goes_on(*after)).unwrap_or(KEYS);
    from..until
}

/// Whether the keys around one with the same newest deletion are not deleted, or include a visible
/// one.
fn shows(writes: &[Write], key: u8) -> bool {
    let newest = deleted(writes, key);
    let mut stretch = around(key, |other| deleted(writes, other) == newest);
    newest.is_none() || stretch.any(|key| is_seen(writes, key))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_is_passed_at_once_is_hidden_and_at_the_newest_number_nothing_less_is_passed(
        writes in vec(any_write(), 1..40),
    ) {
        let memtable = Memtable::new(0);
        let ranges = memtable.ranges();
        for (last, number) in (1..).enumerate() {
            let Some(next) = writes.get(last) else { break };
            write(&memtable, next, number);
            let written = &writes[..=last];
            // Readers at the newest number, and at each earlier one.
            for at in 1..=number {
                let seen = &written[..at as usize];
                let Some(view) = ranges.at(Sequence(at)) else { continue };
                for key in (0..KEYS).filter(|key| deleted(seen, *key).is_some()) {
                    let passed =
                        ranges.hidden_from(view, &[key])[0]..ranges.hidden_until(view, &[key])[0];
                    prop_assert!(passed.contains(&key), "{passed:?} around {key}");
                    let shown = ranges.shows(view, &[key]);
                    for other in passed.clone() {
                        prop_assert!(deleted(seen, other).is_some(), "{other} of {passed:?}");
                        prop_assert!(shown || !is_seen(seen, other), "{other} of {passed:?}");
                    }
                    if at == number {
                        prop_assert_eq!(shown, shows(seen, key));
                        let newest = deleted(seen, key);
                        let most = around(key, |other| match shown {
                            true => deleted(seen, other) == newest,
                            false => !shows(seen, other),
                        });
                        prop_assert_eq!(passed, most);
                    }
                }
            }
        }
    }
}

/// Puts one entry into each range before the range is deleted.
#[test]
fn whatever_overlaps_what_is_hidden_is_passed_in_the_logarithm() {
    for (name, pattern) in PATTERNS {
        for count in [1_000u64, 10_000, 100_000] {
            let memtable = Memtable::new(1 << 20);
            let ranges = memtable.ranges();
            let log = u64::from(count.ilog2());
            let mut put_steps = 0;
            let add = |n: u64| {
                let (from, to) = pattern(n, count);
                let key = from.midpoint(to).to_be_bytes();
                let put = || memtable.insert(&key, Sequence(2 * n + 1), Kind::Put, b"");
                put_steps += cost::steps_of(put).1;
                let (from, to) = keys((from, to));
                memtable.insert(&from, Sequence(2 * n + 2), Kind::DeleteRange, &to);
            };
            let ((), steps) = cost::steps_of(|| (0..count).for_each(add));
            let steps = (steps - put_steps) / count;
            assert!(steps <= 12 * log, "{name}: {steps} steps for {count}");
            let bytes = ranges.size_bytes() as u64 / count;
            assert!(bytes <= 100 + 60 * log, "{name}: {bytes} bytes each, of {count}");
            let view = ranges.at(Sequence::MAX).expect("deletions");
            for n in (0..count).step_by(97) {
                let (from, _) = keys(pattern(n, count));
                if ranges.covering_tombstone(&from, Sequence::MAX).is_some() {
                    let pass =
                        || (ranges.hidden_from(view, &from), ranges.hidden_until(view, &from));
                    let (_, steps) = cost::steps_of(pass);
                    assert!(steps <= 12 * log, "{name}: {steps} steps of {count}");
                }
            }
        }
    }
}

#[test]
fn what_is_published_is_not_hidden_while_a_writer_adds() {
    use crate::sync::AtomicU64;
    let count = if cfg!(miri) { 60 } else { 20_000u64 };
    let memtable = Memtable::new(1 << 16);
    let published = AtomicU64::new(0);
    let key = |n: u64| 10 * (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 64);
    // Two of three writes are overlapping deletions.
    let is_put = |n: u64| n % 3 == 2;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = 0;
                while last < count {
                    last = published.load(Ordering::Acquire);
                    let Some(view) = memtable.ranges().at(Sequence(last)) else { continue };
                    if !is_put(last) || last < 3 {
                        continue;
                    }
                    let (ranges, put) = (memtable.ranges(), key(last).to_be_bytes());
                    if ranges.covering_tombstone(&put, Sequence(last)).is_some() {
                        assert!(ranges.shows(view, &put), "{last} is hidden");
                    }
                    for n in (0..64u64).map(|n| (10 * n + 1).to_be_bytes()) {
                        let is_deleted = ranges.covering_tombstone(&n, Sequence(last)).is_some();
                        if is_deleted && !ranges.shows(view, &n) {
                            let (from, until) =
                                (ranges.hidden_from(view, &n), ranges.hidden_until(view, &n));
                            assert!(from <= &n[..] && &n[..] < until, "around {n:?} at {last}");
                            assert!(&put[..] < from || until <= &put[..], "{last} is hidden");
                        }
                    }
                }
            });
        }
        for n in 1..=count {
            let from = key(n).to_be_bytes();
            match is_put(n) {
                true => memtable.insert(&from, Sequence(n), Kind::Put, b""),
                false => {
                    let to = (key(n) + 25).to_be_bytes();
                    memtable.insert(&from, Sequence(n), Kind::DeleteRange, &to);
                }
            }
            published.store(n, Ordering::Release);
        }
    });
}
