//! Tests of key sets: how many keys are stored, which are held out, and the errors of bad files.

use super::*;
use crate::keys::real_sets::RealSet;

fn of_file(bytes: &[u8], format: FileFormat) -> Result<KeySet> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys");
    std::fs::write(&path, bytes).expect("written");
    KeySet::new(&Dist::File(path), format, None, 1)
}

#[test]
fn rules_give_as_many_keys_as_asked() {
    let laws = [Dist::Uniform, Dist::Normal, Dist::Lognormal, Dist::Clustered, Dist::Timestamps];
    let strings = [Dist::Sensors, Dist::Emails, Dist::Urls];
    let composites =
        [Dist::UserTime, Dist::UserSessions, Dist::Intervals, Dist::Hosts, Dist::JsonComposite];
    let identifiers = [Dist::Uuid4, Dist::Uuid4Text, Dist::Uuid7, Dist::Uuid7Text];
    let strings = strings.into_iter().chain(composites).chain(identifiers);
    let strings = strings.chain([Dist::HexDigests]);
    let stand_ins = RealSet::ALL.map(Dist::StandIn);
    for dist in laws.into_iter().chain(strings).chain(stand_ins) {
        let keys = KeySet::new(&dist, FileFormat::Lines, Some(5000), 3).expect("keys");
        assert_eq!((keys.stored().len(), keys.shape().duplicates), (5000, 0), "{dist}");
        let mut rng = Rng::new(5);
        let missed = (0..1000).filter(|_| !keys.stored().holds(&keys.draw(&mut rng))).count();
        assert!(missed > 500, "{dist}: {missed} of 1,000 draws are misses");
        let again = KeySet::new(&dist, FileFormat::Lines, Some(5000), 3).expect("keys");
        assert!(keys.stored().iter().eq(again.stored().iter()));
    }
}

#[test]
fn every_eighth_key_of_a_set_is_held_out() {
    let keys = KeySet::new(&Dist::NaturalEarth, FileFormat::Lines, None, 1).expect("keys");
    assert_eq!(keys.stored().len(), 472_391 - 472_391 / 8);
    let mut rng = Rng::new(5);
    assert!((0..1000).all(|_| !keys.stored().holds(&keys.draw(&mut rng))));
    let fewer = KeySet::new(&Dist::NaturalEarth, FileFormat::Lines, Some(1000), 1).expect("keys");
    assert_eq!(fewer.stored().len(), 1000);
    assert!(KeySet::new(&Dist::NaturalEarth, FileFormat::Lines, Some(500_000), 1).is_err());
}

#[test]
fn dense_ids_lack_one_in_eleven() {
    let keys = KeySet::new(&Dist::Ids, FileFormat::Lines, Some(1000), 1).expect("keys");
    let stored = keys.stored();
    let missing: Vec<[u8; 8]> =
        (0..1100u64).map(u64::to_be_bytes).filter(|id| !stored.holds(id)).collect();
    assert_eq!((stored.len(), missing.len()), (1000, 100));
    let mut rng = Rng::new(5);
    let drawn: HashSet<Vec<u8>> = (0..5000).map(|_| keys.draw(&mut rng)).collect();
    assert!(drawn.len() == 100 && missing.iter().all(|id| drawn.contains(&id[..])));
    assert!(KeySet::new(&Dist::Ids, FileFormat::Lines, Some(usize::MAX), 1).is_err());
}

#[test]
fn files_are_read_in_both_formats() {
    let text = b"b\na\r\n\nc\nd\ne\nf\ng\nh\na\ni";
    let keys = of_file(text, FileFormat::Lines).expect("lines");
    assert_eq!(keys.stored().len(), 8);
    assert_eq!(keys.draw(&mut Rng::new(1)), b"h");
    let numbers: Vec<u8> = (0..80u64).rev().flat_map(u64::to_le_bytes).collect();
    let keys = of_file(&numbers, FileFormat::U64le).expect("numbers");
    assert_eq!((keys.stored().len(), keys.stored().get(69)), (70, &78u64.to_be_bytes()[..]));
}

#[test]
fn what_a_file_has_twice_is_told() {
    let text = b"a\nb\nc\nd\ne\nf\ng\nh\nabc\nabd\na\nb\na\n";
    let shape = of_file(text, FileFormat::Lines).expect("lines").shape();
    assert_eq!((shape.duplicates, shape.bytes_max), (3, 3));
    // Stored are a, abc, abd, b, c, d, e, g, h. Of eight pairs, one shares one byte and one shares
    // two.
    assert_eq!(shape.bytes_mean, 13.0 / 9.0);
    assert_eq!(shape.shared_prefix_bytes_mean, 3.0 / 8.0);
}

#[test]
fn a_law_that_has_too_few_keys_is_an_error() {
    let law = Law::Strings(StringLaw::few_words());
    assert_eq!(drawn(&law, 200, &mut Rng::new(1)).expect("300 at most").len(), 200);
    let problem = drawn(&law, 1000, &mut Rng::new(1)).expect_err("too many").to_string();
    assert!(problem.contains("has not 1000 distinct keys"), "{problem}");
}

#[test]
fn bad_files_are_errors_that_name_the_place() {
    for (bytes, format, word) in [
        (&b""[..], FileFormat::Lines, "empty"),
        (b"a\nb\0c\n", FileFormat::Lines, "line 2"),
        (b"123456789", FileFormat::U64le, "9 bytes"),
        (b"a\nb\n", FileFormat::Lines, "at least 8"),
    ] {
        let message = of_file(bytes, format).expect_err(word).to_string();
        assert!(message.contains(word), "{message}");
    }
    let long = of_file(&[b'x'; 65_537], FileFormat::Lines).expect_err("too long").to_string();
    assert!(long.contains("line 1"), "{long}");
    let missing = Dist::File("/nowhere/keys".into());
    assert!(KeySet::new(&missing, FileFormat::Lines, None, 1).is_err());
}
