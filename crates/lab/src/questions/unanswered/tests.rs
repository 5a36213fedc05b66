//! Tests of unanswered questions: no stored key answers them, and each kind is what its name says.

use std::collections::HashSet;

use super::*;
use crate::keys::dist::FileFormat;
use crate::keys::real_sets::RealSet;

const COUNT: usize = 500;

fn keys(dist: &Dist) -> KeySet {
    KeySet::new(dist, FileFormat::Lines, Some(20_000), 1).expect("keys")
}

fn drawn(ask: Ask, keys: &KeySet, width: Option<u64>) -> Queries {
    ask.draw(keys, COUNT, width, &mut Rng::new(2))
}

/// Returns each question as a range.
fn ends(queries: &Queries) -> Vec<Ends> {
    let upper = |place| queries.upper(place).unwrap_or(queries.lower(place)).to_vec();
    (0..queries.len()).map(|place| (queries.lower(place).to_vec(), upper(place))).collect()
}

fn check_empty(ask: Ask, dist: &Dist, width: Option<u64>) {
    let keys = keys(dist);
    let queries = drawn(ask, &keys, width);
    assert_eq!(queries.len(), COUNT, "{ask}, {dist}");
    let ends = ends(&queries);
    let answered = ends.iter().filter(|(lower, upper)| {
        keys.stored().iter().any(|key| key >= &lower[..] && key <= &upper[..])
    });
    assert_eq!(answered.count(), 0, "{ask}, {dist}");
    assert!(ends.iter().all(|(lower, upper)| lower <= upper));
    let distinct: HashSet<&Ends> = ends.iter().collect();
    assert!(distinct.len() > 100, "{ask}, {dist}: {} distinct", distinct.len());
    let again = self::ends(&drawn(ask, &keys, width));
    assert_eq!(ends, again, "one seed, the same questions");
}

/// Returns sets of every shape: numbers, bytes, texts of equal and of various lengths.
fn shapes() -> impl Iterator<Item = Dist> {
    let laws = [Dist::Uniform, Dist::Intervals, Dist::Uuid7, Dist::UserTime, Dist::Hosts];
    laws.into_iter().chain([RealSet::Packages, RealSet::Ipv4Ranges].map(Dist::StandIn))
}

#[test]
fn no_stored_key_is_part_of_a_question_and_many_questions_differ() {
    for dist in shapes() {
        check_empty(Ask::Points, &dist, Some(1));
        check_empty(Ask::AbsentPrefix, &dist, None);
        check_empty(Ask::PresentPrefix, &dist, None);
        check_empty(Ask::Next, &dist, Some(32));
        check_empty(Ask::Behind, &dist, None);
    }
    for dist in [Dist::UserTime, Dist::Hosts, Dist::JsonComposite, Dist::Emails, Dist::Urls] {
        check_empty(Ask::SecondPart, &dist, None);
    }
    for dist in [Dist::Uniform, Dist::UserTime] {
        check_empty(Ask::Ranges, &dist, Some(32));
    }
}

#[test]
fn a_prefix_is_absent_and_one_byte_shorter_it_is_there() {
    for dist in [Dist::UserTime, Dist::Hosts, Dist::Uuid4Text, Dist::StandIn(RealSet::Packages)] {
        let keys = keys(&dist);
        for (prefix, after) in ends(&drawn(Ask::AbsentPrefix, &keys, None)) {
            assert_eq!(Some(&after), after_all_with(prefix.clone()).as_ref());
            let shorter = &prefix[..prefix.len() - 1];
            let first = keys.stored().first_from(shorter).expect("a key");
            assert!(first.starts_with(shorter), "{dist}: {}", String::from_utf8_lossy(&prefix));
        }
    }
}

#[test]
fn a_prefix_of_numbers_ends_with_the_last_number_that_has_it() {
    let keys = keys(&Dist::Uniform);
    for (prefix, last) in ends(&drawn(Ask::AbsentPrefix, &keys, None)) {
        assert!(last.len() == NUMBER_BYTES && last.starts_with(&prefix));
        assert!(last[prefix.len()..].iter().all(|byte| *byte == u8::MAX));
    }
}

#[test]
fn stretches_lie_behind_a_prefix_that_is_stored() {
    for dist in [Dist::Hosts, Dist::Uuid4, Dist::StandIn(RealSet::Packages)] {
        let keys = keys(&dist);
        let stored = keys.stored();
        for (lower, upper) in ends(&drawn(Ask::PresentPrefix, &keys, None)) {
            let prefix = &lower[..lower.len() - 1];
            assert!(!prefix.is_empty() && upper > lower);
            let next = stored.place_from(&lower);
            let both = [next - 1, next].map(|place| stored.get(place).starts_with(prefix));
            assert_eq!(both, [true; 2], "{dist}: neighbours that begin alike");
        }
    }
    let keys = keys(&Dist::UserTime);
    for (lower, upper) in ends(&drawn(Ask::PresentPrefix, &keys, None)) {
        let user = &lower[..USER_BYTES];
        assert!(upper.starts_with(user));
        assert!(keys.stored().first_from(user).is_some_and(|key| key.starts_with(user)));
        let moment = |key: &[u8]| -> u64 {
            std::str::from_utf8(&key[USER_BYTES + 4..]).expect("digits").parse().expect("a number")
        };
        assert_eq!(moment(&upper) - moment(&lower), BELOW / STRETCH_SHARE);
    }
}

#[test]
fn a_first_part_is_asked_for_whole() {
    let keys = keys(&Dist::UserTime);
    for (lower, upper) in ends(&drawn(Ask::SecondPart, &keys, None)) {
        assert_eq!((lower.len(), lower.starts_with(b"user")), (USER_BYTES, true));
        assert_eq!(Some(upper), after_all_with(lower));
    }
    let alone = drawn(Ask::SecondPart, &self::keys(&Dist::Uniform), None);
    assert!(alone.is_empty(), "numbers have no second part");
}

#[test]
fn what_is_next_begins_just_behind_a_stored_key() {
    let numbers = keys(&Dist::Uniform);
    for (lower, upper) in ends(&drawn(Ask::Next, &numbers, Some(32))) {
        let key = crate::keys::key_list::key_before(&lower, 1);
        assert!(numbers.stored().holds(&key) && upper == key_after(&lower, 31));
    }
    let names = keys(&Dist::StandIn(RealSet::Packages));
    for (lower, _) in ends(&drawn(Ask::Next, &names, Some(32))) {
        assert!(lower.ends_with(&[0]) && names.stored().holds(&lower[..lower.len() - 1]));
    }
}

#[test]
fn widths_are_of_points_or_of_ranges() {
    let widths = [1, 32, 1024];
    assert_eq!(Ask::Points.widths(&widths), [Some(1)]);
    assert_eq!(Ask::Ranges.widths(&widths), [Some(32), Some(1024)]);
    assert_eq!(Ask::Next.widths(&widths).len(), 3);
    assert_eq!(Ask::AbsentPrefix.widths(&[]), [None]);
}

#[test]
fn keys_without_such_a_question_are_an_error() {
    let (keys, rng) = (keys(&Dist::Uniform), &mut Rng::new(2));
    let drawn = Ask::Ranges.draw_some(&keys, 10, u64::MAX, rng);
    let message = drawn.expect_err("no gap is so wide").to_string();
    assert!(message.contains("--ask ranges: uniform has no such question"), "{message}");
    let one_wide = Ask::Ranges.draw_some(&keys, 10, 1, rng).expect("gaps");
    assert_eq!((one_wide.len(), one_wide.upper(0)), (10, Some(one_wide.lower(0))));
}

#[test]
fn behind_a_prefix_nothing_begins_with_it() {
    assert_eq!(PrefixEnd::Above.behind(b"ac"), Some(b"ac".to_vec()));
    let [prefix, last, next] = [0x12ff, 0x12ff_ffff_ffff_ffff, 0x13].map(u64::to_be_bytes);
    let (_, upper) = PrefixEnd::LastNumber.all_with(&prefix[6..]).expect("a range");
    assert_eq!(upper, last);
    assert_eq!(PrefixEnd::LastNumber.behind(&upper), Some(next[7..].to_vec()));
    assert_eq!(PrefixEnd::LastNumber.behind(&[0xff; 8]), None);
}

#[test]
fn names_are_read_back_and_unknown_ones_list_the_known() {
    for ask in Ask::ALL {
        assert_eq!(ask.name().parse::<Ask>().expect("known"), ask);
        assert_eq!(serde_json::to_value(ask).expect("a word"), ask.name());
    }
    let message = "prefix".parse::<Ask>().expect_err("unknown").to_string();
    assert!(message.contains("absent-prefix, present-prefix"), "{message}");
}
