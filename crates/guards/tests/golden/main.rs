//! The bytes of every filter, held fast.
//! ```text
//! fixed keys -> builder -> the bytes that are written down here -> reader -> maybe, for these keys
//! ```
//! Invariant: if a test here fails, filters that were written before no longer read. Then the
//! encoding needs a new version, not the test new bytes.

mod filters;

use trommel_filters::{
    BlockedBloom, BlockedBloomBuilder, Codes, Fingerprints, FlushNumber, GrfOptions, HashUse,
    KeySample, Part, PartBuilder, Query, Shape, Span, TableFilter, TableFilterBuilder, TextModel,
    hash_key,
};

const KEYS: [&[u8]; 6] = [b"", b"\0", b"drum", b"sieve", b"trommel", &[0xff; 20]];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn blocked_bloom(keys: &[&[u8]], bits_per_key: f64) -> Vec<u8> {
    let mut builder = BlockedBloomBuilder::new(bits_per_key);
    keys.iter().for_each(|key| builder.add(key).expect("in order"));
    builder.finish()
}

/// The golden bytes read, and say "maybe" for the keys; the builder still makes them.
fn check_blocked_bloom(keys: &[&[u8]], bits_per_key: f64, golden: &str, probes: u32) {
    assert_eq!(hex(&blocked_bloom(keys, bits_per_key)), golden);
    let filter = BlockedBloom::read(unhex(golden)).expect("golden bytes");
    assert_eq!(filter.probes(), probes);
    assert!(keys.iter().all(|key| filter.may_contain(key)));
}

#[test]
fn hashes_of_keys() {
    let hashes = KEYS.map(|key| format!("{:016x}", hash_key(key, HashUse::Table)));
    let golden = [
        "4c6176c077b13d7d",
        "7582db84936528da",
        "cf49a9141f049a7b",
        "7ec14c8c1c6f0176",
        "584482d258f4dbff",
        "64eb3bc0e23110f8",
    ];
    assert_eq!(hashes[..], golden[..]);
}

#[test]
fn blocked_bloom_without_keys() {
    check_blocked_bloom(&[], 10.0, "00000000010001f0", 1);
}

#[test]
fn blocked_bloom_of_one_line_and_most_probes() {
    let golden = concat!(
        "010840040110222014028001808080167260038d29002100000020000c000200",
        "48001b10208a34001000800090400000080484806f20804000220850004a3032",
        "010000000100010f",
    );
    check_blocked_bloom(&KEYS, 10.0, golden, 16);
}

#[test]
fn blocked_bloom_of_two_lines() {
    let keys: Vec<[u8; 8]> = (0..100u64).map(|id| (id * 1000).to_be_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let golden = concat!(
        "42d7b32b35abffbef65c31d1f6bac6fe3f195c5e9e2b23d7b56743068630d435",
        "2a9f3e3710178eca257b5fbb1d59f864d2908169142cb313a7db0f8a5d57bf87",
        "484e81baa15e81de76792a0e701a4499c00502165d9276162992d3e7f5a70700",
        "b6d1600e1dd55b82342654025393562fa984adb85bf085a5c8475455c5d18752",
        "0200000001000196",
    );
    check_blocked_bloom(&keys, 10.0, golden, 7);
}

/// A part of a few keys; one more was flushed and merged since, another one flushed.
fn small_part(fingerprints: Fingerprints, text: Option<TextModel>) -> Part {
    let options = GrfOptions { fingerprints, ..GrfOptions::default() };
    let mut builder = PartBuilder::new(&options);
    if let Some(text) = text {
        builder = builder.with_text(text, 1000);
    }
    KEYS.iter().for_each(|key| builder.push(key));
    let part = builder.finish(FlushNumber(5));
    let merged = Span::new(FlushNumber(5), FlushNumber(7)).expect("not empty");
    let shape = Shape { levels: vec![vec![merged], vec![]] };
    [(6, b"drum"), (7, b"sift")].into_iter().fold(part, |part, (flush, key)| {
        let mut inserter = part.inserter(FlushNumber(flush), &shape);
        inserter.push(key);
        inserter.finish()
    })
}

/// The bytes of a part's image are the golden ones, which read as that part.
fn check_image(fingerprints: Fingerprints, golden: &str) {
    check_image_with(fingerprints, None, golden);
}

fn check_image_with(fingerprints: Fingerprints, text: Option<TextModel>, golden: &str) {
    let mut image = Vec::new();
    small_part(fingerprints, text).write_image(&mut image);
    assert_eq!(hex(&image), golden, "{fingerprints:?}");
    let part = Part::read_image(&image).expect("golden bytes");
    let flushes = |key: &[u8]| {
        let mut codes = Codes::new();
        part.candidates(&Query::Point(key), &mut codes);
        [0, 4, 8, 5, 6, 7].map(|flush| codes.may_meet(Span::of_flush(FlushNumber(flush))))
    };
    KEYS.iter().for_each(|key| assert_eq!(flushes(key)[..3], [true, true, false], "{key:?}"));
    assert_eq!(flushes(b"drum")[2..], [false, true, true, false], "the run's code");
    assert_eq!(flushes(b"sift")[2..], [false, false, false, true]);
}

#[test]
fn image_of_gap_fingerprints() {
    let golden = concat!(
        "54524d4c475246000a00000000000000000028400a0000000200050000000000",
        "0000060000000000000078000099000000000000000000000014ffffffffffff",
        "ffffffffffffffffffffffffffff010000000000000000000000000000000000",
        "0010000000010004c6df7aee02476f909170030000002f140000001300020013",
        "07000403000100000002030aaa82000400020f02010f05000000000000000200",
        "01000000000000003dfde06a970f8956",
    );
    check_image(Fingerprints::Gap, golden);
}

#[test]
fn image_of_coded_fingerprints() {
    check_image(
        Fingerprints::Coded,
        concat!(
            "54524d4c475246000a00000000000000000028400a0000000400050000000000",
            "0000060000000000000078000099000000000000000000000014ffffffffffff",
            "ffffffffffffffffffffffffffff010000000000000000000000000000000000",
            "00580000001c00030000000800800400ca5d24e4db91000000003e3d373a3b3c",
            "39383f363534333231302f2e2d2c2b2a2928272625242322213f3e3a3d373c3b",
            "393f38363534333231302f2e2d2c2b2a2928272625242322213f030000002f14",
            "000000130002001307000403000100000002030aaa82000400020f02010f0500",
            "00000000000002000100000000000000ce99c4c8381e2819",
        ),
    );
}

/// Both ends of networks: blocks do without last bits, which their headers tell.
#[test]
fn image_of_ends_of_networks() {
    let options = GrfOptions {
        fingerprints: Fingerprints::Coded,
        bits_per_key: 6.0,
        ..GrfOptions::default()
    };
    let mut builder = PartBuilder::new(&options);
    let begins: Vec<u64> = (0..40).map(|place| (place * place + 7) << 8).collect();
    for ends in begins.windows(2) {
        [ends[0], ends[1] - 1].iter().for_each(|end| builder.push(&end.to_be_bytes()));
    }
    let part = builder.finish(FlushNumber(5));
    let mut inserter = part.inserter(FlushNumber(5), &Shape { levels: vec![vec![], vec![]] });
    (1..9u64).for_each(|place| inserter.push(&((place * 5003) << 4).to_be_bytes()));
    let mut image = Vec::new();
    inserter.finish().write_image(&mut image);
    let golden = concat!(
        "54524d4c475246000a00000000000000000018400a0000000400050000000000",
        "00004e0000000000000048000099000800000000000000000500000000000800",
        "0000000005f7ff0100000000000000000000000000000000000080012d00102c",
        "000800000000acc9803e0c87c1308c31c6ccccccccffffff7fc8ebb84dcbb0cb",
        "aaa8498aa0e71a5b2aa1b3a2e90e0888aaaaaa0628884108c000000006000504",
        "0302010708090a0b0c0d0e0f101112131415161718191a1b1c1d1e3f00060504",
        "0302010708090a0b0c0d0e0f101112131415161718191a1b1c1d1e3f03000000",
        "2a140000001300010006120004030001000000040f20c3d80001040500000000",
        "0000000100010000000000003314000000130001001800000403000100000004",
        "0fa1b880d5c210e4a688ee6c0800011605000000000000000100010000000000",
        "c1a7dedf98a8cca0",
    );
    assert_eq!(hex(&image), golden);
    let part = Part::read_image(&image).expect("golden bytes");
    for ends in begins.windows(2) {
        for end in [ends[0], ends[1] - 1] {
            let mut codes = Codes::new();
            part.candidates(&Query::Point(&end.to_be_bytes()), &mut codes);
            assert!(codes.may_meet(Span::of_flush(FlushNumber(4))), "{end}");
        }
    }
}

#[test]
fn image_of_cell_fingerprints() {
    let golden = concat!(
        "54524d4c475246000a00000000000000000028400a0000000300050000000000",
        "0000060000000000000078000099000000000000000000000014ffffffffffff",
        "ffffffffffffffffffffffffffff010000000000000000000000000000000000",
        "00100000000000040a31050051db439fe000030000002f140000001300020013",
        "07000403000100000002030aaa82000400020f02010f05000000000000000200",
        "0100000000000000db5444dad7da4ad0",
    );
    check_image(Fingerprints::Cell, golden);
}

#[test]
fn image_of_spline_fingerprints() {
    let golden = concat!(
        "54524d4c475246000a00000000000000000028400a0000000100050000000000",
        "0000060000000000000078000099000000000000000000000014ffffffffffff",
        "ffffffffffffffffffffffffffff010000000000000000000000000000000000",
        "001800000002200001000f0000000000000005001f0000000000030000002f14",
        "000000130002001307000403000100000002030b0401950400020f02010f0500",
        "00000000000002000100000000000000c96b72ac2b504a34",
    );
    check_image(Fingerprints::Spline, golden);
}

#[test]
fn image_with_a_model_of_text() {
    let mut sample = KeySample::default();
    KEYS.iter().for_each(|key| sample.push(key));
    check_image_with(
        Fingerprints::Gap,
        Some(TextModel::of(&sample, 1000)),
        concat!(
            "54524d4c475246000a00000000000000000028400a0000000200050000000000",
            "0000060000000000000078000099000000000000000000018004001300016465",
            "66696a6c6d6e6f70727374757677ff0000000000000000000000000000000000",
            "000000017f237729da29d22f9941a941a147b147a94d715f815f796589656971",
            "6177597d50834889d089ffff0010fffd213d58974d1c00000000000000000100",
            "000000000000000000000000000000000018000000010005c6cfdae90ebc006f",
            "1c1a7b90c00000000000030000002f1400000013000200130700040300010000",
            "0002030db6c2570400020f02010f050000000000000002000100000000000000",
            "961c511c67594476",
        ),
    );
}
