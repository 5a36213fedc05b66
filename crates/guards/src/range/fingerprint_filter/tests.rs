//! Damage under a valid checksum: bytes that were forged, not bytes that decayed.

use std::hint::black_box;

use trommel_filters::hash::checksum;
use trommel_filters::{KeySample, TableFilterBuilder, TextModel};

use super::encoding::Encoding;
use super::image::checksum_at;
use super::*;

fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Sets of keys whose images use every feature: several groups, tails of separators, escapes, ties,
/// zeros.
fn sets_of_keys() -> Vec<Vec<Vec<u8>>> {
    let uniform = (1..1500u64).map(|i| mixed(i).to_be_bytes().to_vec()).collect();
    let uneven = (1..300u64).map(|i| (mixed(i) >> (i % 60)).to_be_bytes().to_vec()).collect();
    let paths = (1..1200u64).map(|i| {
        let shard = "a folder whose name is long ".repeat(1 + i as usize % 3);
        format!("{shard}{:x}/{}", mixed(i) % 7, mixed(i) % 100_000).into_bytes()
    });
    let zeros = (0..90usize).map(|i| [&b"drum"[..], &vec![0; i / 2]].concat());
    let mut sets: Vec<Vec<Vec<u8>>> = vec![uniform, uneven, paths.collect(), zeros.collect()];
    sets.iter_mut().for_each(|keys| keys.sort());
    sets
}

fn image(encoding: Encoding, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = FingerprintFilterBuilder::new(encoding, 12.0);
    keys.iter().for_each(|key| builder.add(key).expect("in order"));
    builder.finish()
}

/// Same as [`image`], of codes.
fn image_of_text(encoding: Encoding, keys: &[Vec<u8>]) -> Vec<u8> {
    let model = TextModel::of(&KeySample::evenly(keys.len(), |place| &keys[place]), 1 << 20);
    let mut builder = FingerprintFilterBuilder::new(encoding, 12.0).with_text(model, 1 << 20);
    keys.iter().for_each(|key| builder.add(key).expect("in order"));
    builder.finish()
}

/// Images of all encodings, of keys and of codes, with their keys.
fn images() -> impl Iterator<Item = (Encoding, Vec<Vec<u8>>, Vec<u8>)> {
    Encoding::ALL.into_iter().flat_map(|encoding| {
        sets_of_keys().into_iter().flat_map(move |keys| {
            [image, image_of_text].map(|image| (encoding, keys.clone(), image(encoding, &keys)))
        })
    })
}

/// Runs all queries if the bytes read as a filter. Returns whether they do.
fn ask(image: &[u8], keys: &[Vec<u8>]) -> bool {
    let Ok(filter) = FingerprintFilter::read(image) else { return false };
    for key in keys.iter().step_by(keys.len() / 5 + 1).map(|key| &key[..]).chain([&b""[..]]) {
        black_box((filter.may_contain(key), filter.lower_bound(key), filter.upper_bound(key)));
        for upper in [None, Some(key), Some(&[0xff; 9][..]), keys.last().map(|key| &key[..])] {
            if let Some(range) = KeyRange::new(key, upper) {
                black_box((filter.may_overlap(&range), filter.count(&range)));
            }
        }
    }
    true
}

#[test]
fn no_flipped_bit_makes_a_filter_panic_even_with_its_checksum() {
    for (encoding, keys, image) in images() {
        assert!(ask(&image, &keys));
        let at = checksum_at(&image).expect("a whole image");
        let (mut errors, mut round) = (0, 0);
        let groups = (0..at).step_by(1 + at / 100);
        let directory = (at + 8..image.len()).step_by(1 + (image.len() - at) / 200);
        for byte in groups.chain(directory).chain(image.len() - 36..image.len()) {
            round += 1;
            for bit in [round % 8, round / 8 % 8] {
                let mut damaged = image.clone();
                damaged[byte] ^= 1 << bit;
                let sum = checksum(&damaged[at + 8..]).to_le_bytes();
                damaged[at..at + 8].copy_from_slice(&sum);
                errors += u32::from(!ask(&damaged, &keys));
            }
        }
        assert!(errors > 20, "{encoding:?}: {errors} errors were seen");
    }
}

#[test]
fn no_bytes_in_the_groups_make_a_filter_panic() {
    let mut asked = 0;
    for (_, keys, image) in images() {
        let at = checksum_at(&image).expect("a whole image");
        for round in 0..40 {
            // From some position on: noise, ones, zeros.
            let mut damaged = image.clone();
            let from = mixed(round) as usize % at;
            let noise = |place: u64| [mixed(place << 8 | round) as u8, 0xff, 0];
            let end = at.min(from + 1 + 40 * round as usize);
            for (byte, place) in damaged[from..end].iter_mut().zip(0..) {
                *byte = noise(place)[round as usize % 3];
            }
            asked += u32::from(ask(&damaged, &keys));
        }
    }
    assert!(asked > 200, "{asked} filters were asked");
}

#[test]
fn images_of_one_kind_are_none_of_another() {
    let keys = sets_of_keys().swap_remove(0);
    let mut image = image(Encoding::Cell, &keys);
    let at = checksum_at(&image).expect("a whole image");
    let tag_at = image.len() - 4;
    image[tag_at] = 12;
    let sum = checksum(&image[at + 8..]).to_le_bytes();
    image[at..at + 8].copy_from_slice(&sum);
    let error = FingerprintFilter::read(&image[..]).expect_err("groups of cells");
    assert_eq!(error.what, "a group of the filter's fingerprints");
}
