//! The bytes of every filter, held fast.
//! ```text
//! fixed keys -> builder -> the bytes that are written down here -> reader -> maybe, for these keys
//! ```
//! Invariant: if a test here fails, filters that were written before no longer read. Then the encoding
//! needs a new version, not the test new bytes.

use trommel_filters::{
    AnyFilter, AnyFilterBuilder, BlockedBloom, BlockedBloomBuilder, Codes, FilterKind,
    FilterOptions, Fingerprints, FlushNumber, GrfOptions, HashUse, Part, PartBuilder, Query, Shape,
    Span, TableFilter, TableFilterBuilder, hash_key,
    FilterOptions, Fingerprints, FlushNumber, GrfOptions, HashUse, Part, PartBuilder, PrefixRule,
    Query, RencoderPlan, RosettaPlan, RosettaSplit, Shape, Span, TableFilter, TableFilterBuilder,
    hash_key,
    BlockedBloom, BlockedBloomBuilder, Codes, Elastic, ElasticBuilder, Fingerprints, FlushNumber, GrfOptions, HashUse, Part,
    PartBuilder, Query, Shape, Span, TableFilter, TableFilterBuilder, hash_key,
    BlockedBloom, BlockedBloomBuilder, Codes, Elastic, ElasticBuilder, Fingerprints, FlushNumber,
    GrfOptions, HashUse, Part, PartBuilder, Query, Shape, Span, TableFilter, TableFilterBuilder,
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

/// The golden bytes of a filter of the keys above read, and say "maybe" for them; the builder still makes them.
fn check_filter(kind: FilterKind, bits_per_key: f64, golden: &str) {
    let mut builder = AnyFilterBuilder::new(&FilterOptions::new(kind, bits_per_key));
    KEYS.iter().for_each(|key| builder.add(key).expect("in order"));
    assert_eq!(hex(&builder.finish()), golden, "{}", kind.name());
    let filter = AnyFilter::read(unhex(golden)).expect("golden bytes");
    assert_eq!(filter.kind(), kind);
    assert!(KEYS.iter().all(|key| filter.may_contain(key)));
    let refuted = (0..1000u64).filter(|key| !filter.may_contain(&key.to_be_bytes())).count();
    assert!(refuted > 700, "{}: {refuted} of 1000", kind.name());
}

#[test]
fn bloom_of_a_few_keys() {
    check_filter(FilterKind::Bloom, 10.0, "BLOOM");
}

#[test]
fn ribbon_of_a_few_keys() {
    check_filter(FilterKind::Ribbon, 9.0, "RIBBON");
}

#[test]
fn binary_fuse_of_a_few_keys() {
    check_filter(FilterKind::BinaryFuse, 15.0, "FUSE");
}

#[test]
fn xor_of_a_few_keys() {
    check_filter(FilterKind::Xor, 15.0, "XOR");
#[test]
fn elastic_of_four_units() {
    let mut builder = ElasticBuilder::new(6.0, Some(4));
    KEYS.iter().for_each(|key| builder.add(key).expect("in order"));
    let golden = concat!("@@GOLDEN@@");
    assert_eq!(hex(&builder.finish()), golden);
    let filter = Elastic::read(unhex(golden)).expect("golden bytes");
    assert_eq!((filter.directory().unit_count(), filter.directory().key_count()), (4, 6));
    assert!(KEYS.iter().all(|key| filter.may_contain(key)));
}

/// A part of a few keys; one more was flushed and merged since, another one flushed.
fn small_part(fingerprints: Fingerprints) -> Part {
    let options = GrfOptions { fingerprints, ..GrfOptions::default() };
    let mut builder = PartBuilder::new(&options);
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
    let mut image = Vec::new();
    small_part(fingerprints).write_image(&mut image);
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
        "54524d4c475246000200000000000000000028400a0000000200050000000000",
        "000006000000000000000d00000000000000000014ffffffffffffffffffffff",
        "ffffffffffffffffff0100000000000000000000000000000000000010000000",
        "1004c6df7aee02476f90917000030000210b000d000004010000000105550000",
        "020d050000000000000001000100000000000d07000000000000000000000000",
        "0001000100010001000100010001000100010001000100010001000100010001",
        "000000000000080000a792b30eed337e58",
    );
    check_image(Fingerprints::Gap, golden);
}

#[test]
fn image_of_cell_fingerprints() {
    let golden = concat!(
        "54524d4c475246000200000000000000000028400a0000000300050000000000",
        "000006000000000000000d00000000000000000014ffffffffffffffffffffff",
        "ffffffffffffffffff0100000000000000000000000000000000000010000000",
        "00040a31050051db439fe00000030000210b000d000004010000000105550000",
        "020d050000000000000001000100000000000d07000000000000000000000000",
        "0001000100010001000100010001000100010001000100010001000100010001",
        "000000000000080000bc874c98a5a91de2",
    );
    check_image(Fingerprints::Cell, golden);
}

#[test]
fn image_of_spline_fingerprints() {
    let golden = concat!(
        "54524d4c475246000200000000000000000028400a0000000100050000000000",
        "000006000000000000000d00000000000000000014ffffffffffffffffffffff",
        "ffffffffffffffffff0100000000000000000000000000000000000018000000",
        "20200001000f0000000000000005001f0000000000030000210b000d00000401",
        "0000000105820000020d050000000000000001000100000000000d0700000000",
        "0000000000000000000100010001000100010001000100010001000100010001",
        "000100010001000100000000005406000094db799b982393a9",
    );
    check_image(Fingerprints::Spline, golden);
}

/// The golden bytes read as a filter of that kind, and say "maybe" for the keys; the builder still makes them.
fn check_kind(kind: FilterKind, keys: &[&[u8]], golden: &str) {
    let mut builder = AnyFilterBuilder::new(&FilterOptions::new(kind, 12.0));
    keys.iter().for_each(|key| builder.add(key).expect("in order"));
    assert_eq!(hex(&builder.finish()), golden, "{}", kind.name());
    let filter = AnyFilter::read(unhex(golden)).expect("golden bytes");
    assert_eq!(filter.kind(), kind);
    assert!(keys.iter().all(|key| filter.may_contain(key)), "{}", kind.name());
}

#[test]
fn snarf_without_keys() {
    let golden = concat!(
        "86f1ca5538392e13000000000000000000000000000000000000000000000000",
        "00000000000000000a000100",
    );
    check_kind(FilterKind::Snarf, &[], golden);
}

#[test]
fn snarf() {
    let golden = concat!(
        "00000020200001000f0000000000000005001f0000000000fce042beec9ddb2e",
        "000000000000000000000000000000000000000001000000ffffffffffffffff",
        "ffffffffffffffffffffffff0600000000000000030000000100000002000000",
        "0000000000000000140000000a000100",
    );
    check_kind(FilterKind::Snarf, &KEYS, golden);
}

#[test]
fn cell() {
    let golden = concat!(
        "00000000040a31050051db439fe00000c84c3da5b8db3a760000000000000000",
        "00000000000000000000000001000000ffffffffffffffffffffffffffffffff",
        "ffffffff06000000000000000200000001000000020000000000000000000000",
        "140000000b000100",
    );
    check_kind(FilterKind::Cell, &KEYS, golden);
}

#[test]
fn gap() {
    let golden = concat!(
        "0000001004c6df7aee02476f909170009cd476d8d61f64c40000000000000000",
        "00000000000000000000000001000000ffffffffffffffffffffffffffffffff",
        "ffffffff06000000000000000200000001000000020000000000000000000000",
        "140000000c000100",
    );
    check_kind(FilterKind::Gap, &KEYS, golden);
/// The golden bytes read, and say "maybe" for the keys; the builder still makes them.
fn check_filter(options: &FilterOptions, keys: &[&[u8]], golden: &str) {
    let mut builder = AnyFilterBuilder::new(options);
    keys.iter().for_each(|key| builder.add(key).expect("in order"));
    assert_eq!(hex(&builder.finish()), golden, "{options:?}");
    let filter = AnyFilter::read(unhex(golden)).expect("golden bytes");
    assert_eq!(filter.kind(), options.kind);
    assert!(keys.iter().all(|key| filter.may_contain(key)));
}

/// Numbers of eight bytes: in these filters, keys of one length are numbers and nothing else.
fn check_filter_of_numbers(options: &FilterOptions, golden: &str) {
    let numbers: Vec<[u8; 8]> = (0..6u64).map(|id| (id * id * 1000).to_be_bytes()).collect();
    let keys: Vec<&[u8]> = numbers.iter().map(|key| &key[..]).collect();
    check_filter(options, &keys, golden);
}

#[test]
fn rosetta() {
    let usual = FilterOptions::new(FilterKind::Rosetta, 100.0);
    check_filter(&usual, &[], "0000eb7d48340d000100");
    check_filter(
        &usual,
        &KEYS,
        concat!(
            "3f741310fbf0ff4b2b3f22ee357e9566b1cc27b80ded7300080c0000000b0b00",
            "00000c0000000001000000000100000000010000000001000000000100000000",
            "012a001175b0c50d000107"
        ),
    );
    let rosetta = RosettaPlan { range_bits: 2, split: RosettaSplit::Variable };
    check_filter_of_numbers(
        &FilterOptions { rosetta, ..usual },
        concat!(
            "27d45db5bc477420fea2d335cd4668790ecd0c16fffb75615087308609a4c46d",
            "fd6328e69a068200000000000000000000010f0000000e0c0000000b0a000000",
            "091c00e7d32bd50d000103"
        ),
    );
}

#[test]
fn rencoder() {
    let usual = FilterOptions::new(FilterKind::Rencoder, 10.0);
    check_filter(&usual, &[], "00000a2358950e000100");
    check_filter(
        &usual,
        &KEYS,
        concat!(
            "df837b3945f5499929ab4a5f5e17ff91cfa87c82c2110300669a721200d99b91",
            "47697c4353d16fd3ffd77eb7c0cfa07bdbf8db1f6e6a04934808751240f468d1",
            "000802070400bd2aa3ec0e00011f"
        ),
    );
    let rencoder = RencoderPlan { probes: 3 };
    check_filter_of_numbers(
        &FilterOptions { rencoder, ..usual },
        concat!(
            "f42f6d00d3fdc2930b8940416162aac0ebb5d6c4c0fde31353091780c4c229c2",
            "bda32257588ea264906200c867d004c090922000521221828a124cc02516005a",
            "068200000000000003000a00f2bd71ee0e000110"
        ),
    );
}

#[test]
fn prefix_bloom() {
    let usual = FilterOptions::new(FilterKind::PrefixBloom, 40.0);
    check_filter(&usual, &[], "0006010300206c25710f000100");
    check_filter_of_numbers(&usual, "432d28f8ffabb272c46a6ba9764207dfca00060d03001dd7caea0f000100");
    let prefix = PrefixRule::Separator(b'e');
    check_filter(
        &FilterOptions { prefix, ..usual },
        &KEYS,
        "b5c69a318169ea44ae77b7dac4570985dd01650c0300d4d2340d0f000100",
    );
}

#[test]
fn arf() {
    let usual = FilterOptions::new(FilterKind::Arf, 160.0);
    check_filter(&usual, &[], "00008c49bae110000100");
    check_filter(
        &usual,
        &KEYS,
        concat!(
            "00000000dfb4adcc2db3cc2a534d35d332abccb4cc2a534d35cb4a53ad34d52a",
            "534db5cc4c532d33d32a4b2da58a32add0020000000000000000000000000000",
            "000000000000000000000000000000000000004008409000086f010000060090",
            "13d70610000100"
        ),
    );
    check_filter_of_numbers(
        &usual,
        concat!(
            "000000007bbbb3cc564bcd34cdaad4acaaccacaaaa0200000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "000000000000000055050682000000000000970000000c00322fa58010000100"
        ),
    );
}
