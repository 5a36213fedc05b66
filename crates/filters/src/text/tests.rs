//! Codes keep order for any model and any query, and text becomes short.

use super::code::KeyCode;
use super::decode::KeysAround;
use super::encode::Lead;
use super::judge::Judged;
use super::model::TextModel;
use super::positions::KeyPositions;
use super::sample::KeySample;
use super::wire::PlacedModel;
use crate::base::wire::{Reader, Writer};
use crate::fingerprint::query_mix::QueryMix;
use proptest::prelude::*;

fn sample_of(keys: &[Vec<u8>]) -> KeySample {
    let mut sorted = keys.to_vec();
    sorted.sort();
    sorted.dedup();
    let mut sample = KeySample::default();
    sorted.iter().for_each(|key| sample.push(key));
    sample
}

fn code(model: &TextModel, key: &[u8]) -> Vec<u8> {
    let mut code = KeyCode::new();
    let mut bytes = model.encode(key, &mut code).to_vec();
    assert!(bytes.len() <= (model.code_bits as usize).next_multiple_of(64) / 8);
    bytes.resize(64, 0);
    bytes
}

fn users() -> Vec<Vec<u8>> {
    let mixed = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let key =
        |i: u64| format!("user{:08}time{:08}", mixed(i / 8) % 100_000_000, mixed(i) % 100_000_000);
    (0..8000).map(|i| key(i).into_bytes()).collect()
}

/// Strings that are hard to encode: empty, prefixes of each other, runs of the smallest and the
/// largest byte. Their lengths go beyond the longest code.
fn awkward() -> Vec<Vec<u8>> {
    let mut keys = vec![Vec::new()];
    for byte in [0x00, 0x01, b'0', b'a', b'e', b'u', 0xfe, 0xff] {
        for len in [1, 2, 3, 7, 8, 9, 20, 40, 70, 300] {
            let run = vec![byte; len];
            for end in [0x00, b'a', 0xff] {
                keys.push([&run[..], &[end]].concat());
                keys.push([b"user", &run[..], &[end]].concat());
                keys.push([b"zz", &run[..], &[end]].concat());
            }
            keys.push(run);
        }
    }
    keys.extend(users().into_iter().step_by(37));
    keys.extend(users().into_iter().step_by(41).map(|key| key[..key.len() / 2].to_vec()));
    keys.sort();
    keys.dedup();
    keys
}

fn models() -> Vec<TextModel> {
    let words = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    let samples: [Vec<Vec<u8>>; 6] = [
        Vec::new(),
        vec![Vec::new()],
        users(),
        words("a ab abc b ba bab drum drums tin"),
        (0..=255u8).flat_map(|a| [vec![a], vec![a, a], vec![255 - a, a, 0]]).collect(),
        vec![vec![0xff; 9], vec![0xff; 10], vec![0xff; 400]],
    ];
    let whole = samples.iter().map(|keys| TextModel::of(&sample_of(keys), 1 << 20));
    // Truncated within a word, at its end, and below the usual length.
    let cut = |(model, code_bits): (TextModel, u32)| TextModel { code_bits, ..model };
    whole.clone().chain(whole.cycle().zip([48, 64, 70, 1, 0, 128, 130, 511]).map(cut)).collect()
}

#[test]
fn codes_ascend_as_keys_do() {
    let keys = awkward();
    for model in models() {
        let codes: Vec<Vec<u8>> = keys.iter().map(|key| code(&model, key)).collect();
        for (pair, keys) in codes.windows(2).zip(keys.windows(2)) {
            assert!(pair[0] <= pair[1], "{:?} {:?}", keys[0], keys[1]);
            let short = keys.iter().all(|key| key.len() <= 22) && model.code_bits == 512;
            assert!(pair[0] < pair[1] || !short, "{:?} {:?}", keys[0], keys[1]);
        }
    }
}

/// Same as `encode`, one byte at a time.
fn code_by_bytes(model: &TextModel, key: &[u8]) -> Vec<u8> {
    let (tables, mut code) = (model.tables(), KeyCode::new());
    let lead = tables.lead(key);
    let (mut interval, mut row) = tables.begin(&lead, &mut code);
    let (Lead::Below(rest) | Lead::Within(rest) | Lead::Above(rest)) = lead;
    for &byte in rest {
        row = tables.narrow(&mut interval, row, byte, &mut code);
        if tables.is_whole(&interval, &code) {
            break;
        }
    }
    interval.finish(model.code_bits, &mut code);
    code.as_bytes().to_vec()
}

/// Existing files contain codes, so the code of a key must never change.
#[test]
fn codes_are_those_of_one_byte_after_the_other() {
    let keys = awkward();
    for model in models() {
        for bits in (1..=130).chain([200, 511, 512]) {
            let model = model.clone().with_code_bits(bits);
            for key in keys.iter().step_by(1 + bits as usize % 7) {
                let mut code = KeyCode::new();
                let own = model.encode(key, &mut code);
                assert_eq!(own, code_by_bytes(&model, key), "{bits} bits: {key:?}");
            }
        }
    }
}

#[test]
fn the_code_of_text_is_short() {
    let keys = users();
    let model = TextModel::of(&sample_of(&keys), 1 << 20);
    let mut codes: Vec<Vec<u8>> = keys.iter().map(|key| code(&model, key)).collect();
    codes.sort();
    let shared = codes
        .windows(2)
        .map(|pair| pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count());
    // Two keys of one user share its eight digits, some 27 bits; neighbours in time share more.
    let mean = shared.sum::<usize>() as f64 / codes.len() as f64;
    assert!((2.0..5.5).contains(&mean), "{mean}");
}

#[test]
fn a_model_is_learnt_where_it_pays() {
    let keys = sample_of(&users());
    let model = |keys: &KeySample, count| Judged::of(keys, count, 12.0, QueryMix::default()).model;
    assert!(model(&keys, 1 << 20).is_some());
    assert!(model(&keys, 1000).is_none(), "few keys");
    let mixed = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 7);
    let numbers: Vec<Vec<u8>> = (0..8000).map(|i| mixed(i).to_be_bytes().to_vec()).collect();
    assert!(model(&sample_of(&numbers), 1 << 20).is_none(), "even numbers");
    let ids: Vec<Vec<u8>> = (0..8000u64).map(|i| (i * 3).to_be_bytes().to_vec()).collect();
    assert!(model(&sample_of(&ids), 1 << 20).is_none(), "ids");
}

#[test]
fn huge_keys_are_sampled_by_their_beginnings() {
    let keys: Vec<Vec<u8>> = (0..600u32)
        .map(|i| [format!("{:05}", i * 7).as_bytes(), &vec![b'x'; 60_000]].concat())
        .collect();
    let sample = sample_of(&keys);
    assert!(sample.keys().iter().all(|key| key.len() == 512));
    let model = Judged::of(&sample, 1 << 20, 12.0, QueryMix::default()).model;
    let codes = keys.iter().map(|key| model.as_ref().map(|model| code(model, key)));
    assert!(codes.collect::<Vec<_>>().is_sorted());
}

#[test]
fn a_model_is_read_as_it_was_written() {
    for model in models() {
        let mut out = Writer::new();
        model.write(&mut out);
        let bytes = out.finish();
        let mut input = Reader::new(&bytes);
        assert_eq!(TextModel::read(&mut input).as_ref(), Ok(&model));
        assert!(input.end().is_ok());
        for cut in 0..bytes.len() {
            assert!(TextModel::read(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
}

#[test]
fn a_model_answers_where_it_lies() {
    for model in models() {
        let mut out = Writer::new();
        out.bytes(b"before");
        model.write(&mut out);
        let end = out.len();
        out.bytes(b"behind");
        let bytes = out.finish();
        let mut input = Reader::new(&bytes[..end]);
        assert!(input.bytes(6).is_ok());
        let placed = PlacedModel::read(&mut input).expect("it was written");
        for key in awkward() {
            let mut buffer = KeyCode::new();
            let code = placed.of(&bytes).encode(&key, &mut buffer).to_vec();
            assert_eq!(code, model.encode(&key, &mut buffer), "{key:?}");
        }
    }
}

/// Whether all keys respect the bounds around a code.
fn lie_around(around: &KeysAround, code: &[u8], keys: &[(&Vec<u8>, Vec<u8>)]) -> bool {
    keys.iter().all(|(key, other)| {
        let is_less = other.as_slice() < code;
        let is_below = around.above.as_ref().is_none_or(|above| *key < above);
        if is_less { is_below } else { **key >= around.below }
    })
}

#[test]
fn keys_lie_around_their_codes() {
    let keys = awkward();
    for model in models() {
        let coded: Vec<(&Vec<u8>, Vec<u8>)> =
            keys.iter().map(|key| (key, code(&model, key))).collect();
        for (key, code) in coded.iter().step_by(5) {
            let around = model.tables().keys_around(code);
            assert!(lie_around(&around, code, &coded), "{around:?} around {key:?}");
        }
    }
    let model = TextModel::of(&sample_of(&users()), 1 << 20);
    for key in users().iter().step_by(100) {
        let around = model.tables().keys_around(&code(&model, key));
        assert_eq!(around.above.as_ref(), Some(key));
        assert!(around.below < *key && around.below[..11] >= key[..11], "{around:?}");
    }
}

/// Strings of few letters share prefixes often; strings of any bytes are unlike the sample.
fn strings() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let near = prop::collection::vec(prop::sample::select(vec![0, 1, b'a', b'b', 254, 255]), 0..40);
    let any = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop_oneof![near, any], 1..60)
}

proptest! {
    #[test]
    fn any_model_keeps_any_order(
        learnt in strings(),
        mut asked in strings(),
        code_bits in 0..=512u32,
    ) {
        let mut model = TextModel::of(&sample_of(&learnt), 1 << 20);
        model.code_bits = code_bits;
        asked.extend(learnt);
        asked.sort();
        let codes: Vec<Vec<u8>> = asked.iter().map(|key| code(&model, key)).collect();
        prop_assert!(codes.is_sorted());
        // Compared as written: equal or ascending, whatever their lengths.
        let mut buffer = KeyCode::new();
        let codes = asked.iter().map(|key| model.encode(key, &mut buffer).to_vec());
        prop_assert!(codes.collect::<Vec<_>>().is_sorted());
    }

    #[test]
    fn keys_lie_around_any_code(
        learnt in strings(),
        asked in strings(),
        mut code_asked in prop::collection::vec(any::<u8>(), 0..20),
        code_bits in 0..=512u32,
    ) {
        let model = TextModel::of(&sample_of(&learnt), 1 << 20).with_code_bits(code_bits);
        code_asked.resize(64, 0);
        let coded: Vec<(&Vec<u8>, Vec<u8>)> =
            asked.iter().chain(&learnt).map(|key| (key, code(&model, key))).collect();
        let codes = coded.iter().map(|(_, code)| code.as_slice());
        for code in codes.chain([&code_asked[..]]) {
            let around = model.tables().keys_around(code);
            prop_assert!(lie_around(&around, code, &coded), "{around:?}");
        }
    }

    #[test]
    fn damaged_models_keep_order_or_are_refused(
        learnt in strings(),
        at in any::<prop::sample::Index>(),
        flip in 1..=255u8,
        mut asked in strings(),
    ) {
        let mut out = Writer::new();
        TextModel::of(&sample_of(&learnt), 1 << 20).write(&mut out);
        let mut bytes = out.finish();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(model) = TextModel::read(&mut Reader::new(&bytes)) {
            asked.sort();
            let codes: Vec<Vec<u8>> = asked.iter().map(|key| code(&model, key)).collect();
            prop_assert!(codes.is_sorted());
        }
    }
}

fn positions_of(keys: &[Vec<u8>]) -> KeyPositions {
    let evenly = keys.iter().step_by((keys.len() / 1000).max(1)).map(Vec::as_slice);
    KeyPositions::of(&sample_of(keys), keys.len() as u64, evenly)
}

#[test]
fn positions_keep_order_whatever_they_were_learnt_of() {
    let numbers = (0..5000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let numbers: Vec<Vec<u8>> = numbers.map(|word| word.to_vec()).collect();
    let alike = vec![b"alike".to_vec(); 3];
    for learnt in [users(), numbers, awkward(), alike, vec![vec![0xff; 20]], vec![]] {
        let positions = positions_of(&learnt);
        let placed: Vec<u64> = awkward().iter().map(|key| positions.position(key)).collect();
        assert!(placed.is_sorted(), "learnt of {} keys", learnt.len());
    }
}

#[test]
fn positions_are_spread_evenly() {
    let mut keys = users();
    keys.sort();
    let (learnt, others) = (keys.iter().step_by(2), keys.iter().skip(1).step_by(2));
    let positions = positions_of(&learnt.cloned().collect::<Vec<_>>());
    let mut counts = [0; 64];
    others.for_each(|key| counts[(positions.position(key) >> 58) as usize] += 1);
    let mean = 4000 / counts.len();
    assert!(counts.iter().all(|count| (mean / 2..=mean * 2).contains(count)), "{counts:?}");
}
