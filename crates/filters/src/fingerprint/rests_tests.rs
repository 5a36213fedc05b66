//! Tests of the separators' rests: each is what was put in, and is asked as if it stood in one piece.

use super::*;

/// Strings that share much, little and nothing, some with zeros at the end.
fn strings() -> Vec<Vec<u8>> {
    let mut strings: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0, 1], vec![7; 300]];
    for turn in 0..60usize {
        let stem = b"share/doc/rust/html/core/arch/x86_64/index";
        let mut string = stem[..turn * 7 % stem.len()].to_vec();
        string.extend((0..turn % 11).map(|at| (at * 37 + turn) as u8));
        string.extend(std::iter::repeat_n(0, turn % 3));
        strings.push(string);
        strings.push([&[7; 300][..], &[turn as u8; 3][..turn % 4]].concat());
    }
    strings
}

fn rests(strings: &[Vec<u8>]) -> Rests {
    let mut builder = RestsBuilder::default();
    strings.iter().for_each(|string| builder.push(string));
    builder.finish().expect("there are some")
}

#[test]
fn each_is_what_was_put_in() {
    for sorted in [false, true] {
        let mut strings = strings();
        if sorted {
            strings.sort();
        }
        let rests = rests(&strings);
        for (group, string) in strings.iter().enumerate() {
            assert_eq!(rests.get(group).to_vec(), *string, "{group}");
        }
        let whole: usize = strings.iter().map(Vec::len).sum();
        assert!(!sorted || rests.bytes.len() * 2 < whole, "{} of {whole}", rests.bytes.len());
    }
}

#[test]
fn a_rest_is_asked_as_one_piece() {
    let strings = strings();
    let rests = rests(&strings);
    for (group, string) in strings.iter().enumerate() {
        let rest = rests.get(group);
        for at in (0..8 * string.len() + 70).step_by(5) {
            assert_eq!(rest.bits_at(at), bits_at(string, at), "{group} from bit {at}");
        }
        for (place, other) in strings.iter().enumerate() {
            assert_eq!(rest.compare(other), compare(string, other), "{group} and {place}");
            let common = common_bits(string, other).unwrap_or(usize::MAX);
            for bits in [0, 1, 9, 64, common.min(3000), common.min(3000) + 1] {
                let (key, like) = (rest.begins_as(other, bits), rests.get(place));
                assert_eq!(key, common >= bits, "{bits} bits of {group} and {place}");
                assert_eq!(
                    rest.begins_like(&like, bits),
                    key,
                    "{bits} bits of {group} and {place}"
                );
            }
        }
    }
}

#[test]
fn words_alone_need_no_rests() {
    let mut builder = RestsBuilder::default();
    (0..20).for_each(|_| builder.push(&[]));
    assert!(builder.finish().is_none());
}

#[test]
fn damaged_bytes_are_no_panic() {
    let strings = strings();
    let sound = rests(&strings);
    for place in 0..sound.bytes.len() {
        let mut bytes = sound.bytes.clone();
        bytes[place] ^= 0xff;
        let damaged = Rests { ends: sound.ends.clone(), bytes };
        for group in 0..strings.len() {
            let rest = damaged.get(group);
            let _ = (rest.compare(b"share"), rest.bits_at(77), rest.begins_as(b"share", 60));
        }
    }
    let ends = sound.ends.iter().map(|end| end * 3).collect();
    let beyond: Rests = Rests { ends, bytes: sound.bytes };
    (0..strings.len()).for_each(|group| assert!(beyond.get(group).to_vec().len() <= 9000));
}

#[test]
fn what_all_separators_share_costs_nothing() {
    for prefix_bytes in [0, 8, 300, 3000] {
        let prefix = vec![b'x'; prefix_bytes];
        let mut separators = strings();
        separators.sort();
        separators.iter_mut().for_each(|string| *string = [&prefix[..], string].concat());
        separators.insert(0, prefix);
        let (mut cost, mut builder) = (RestsCost::default(), RestsBuilder::default());
        let told: usize = separators.iter().map(|separator| cost.push(separator)).sum();
        let rests = separators.iter().map(|it| it.get(prefix_bytes + 8..).unwrap_or(&[]));
        rests.for_each(|rest| builder.push(rest));
        let taken = builder.bytes.len() + 4 * separators.len();
        let near = taken * 8 / 10..taken * 11 / 10;
        assert!(near.contains(&told), "{told} of {taken}, {prefix_bytes} bytes shared");
    }
}
