//! The bytes of every filter of one table.

use trommel_filters::{
    AlignedBytes, FilterKind, FilterOptions, FilterTuning, KeySample, SubFilterDirectory, Surf,
    SurfBuilder, SurfKind, SurfOptions, SurfSuffix, TableFilter, TableFilterBuilder, TextModel,
    read_filter,
};
use trommel_guards::{
    Elastic, ElasticBuilder, FingerprintFilter, FingerprintFilterBuilder, PrefixLevels, PrefixRule,
    RencoderPlan, RosettaPlan, RosettaSplit, kinds,
};

use super::{KEYS, hex, unhex};

/// The golden bytes read, and say "maybe" for the keys; the builder still makes them.
fn check(options: &FilterOptions, keys: &[&[u8]], golden: &str) {
    let mut builder = options.builder();
    keys.iter().for_each(|key| builder.add(key).expect("in order"));
    assert_eq!(hex(&builder.finish()), golden, "{options:?}");
    let filter = read_filter(AlignedBytes::from_slice(&unhex(golden)), &kinds::TABLE_FILTERS)
        .expect("golden bytes");
    assert_eq!(filter.kind(), options.kind);
    assert!(keys.iter().all(|key| filter.may_contain(key)), "{options:?}");
}

/// As [`check`], of codes: few keys pay for no model by themselves.
fn check_text(kind: FingerprintFilterBuilder, golden: &str) {
    let mut sample = KeySample::default();
    KEYS.iter().for_each(|key| sample.push(key));
    let mut builder = kind.with_text(TextModel::of(&sample, 1000), 1000);
    KEYS.iter().for_each(|key| builder.add(key).expect("in order"));
    assert_eq!(hex(&builder.finish()), golden);
    let filter = FingerprintFilter::read(unhex(golden)).expect("golden bytes");
    assert!(KEYS.iter().all(|key| filter.may_contain(key)));
    assert!(!filter.may_contain(b"zug"));
}

/// Numbers of eight bytes: in some filters, keys of one length are numbers and nothing else.
fn check_numbers(options: &FilterOptions, golden: &str) {
    let numbers: Vec<[u8; 8]> = (0..6u64).map(|id| (id * id * 1000).to_be_bytes()).collect();
    let keys: Vec<&[u8]> = numbers.iter().map(|key| &key[..]).collect();
    check(options, &keys, golden);
}

fn check_kind(kind: &'static dyn FilterKind, bits_per_key: f64, golden: &str) {
    check(&FilterOptions::new(kind, bits_per_key), &KEYS, golden);
}

#[test]
fn bloom() {
    check_kind(kinds::BLOOM, 10.0, "2c084bb72412aef501000000d627eebe02000107");
}

#[test]
fn ribbon() {
    check_kind(
        kinds::RIBBON,
        9.0,
        concat!(
            "ca55adbc50cd7ddcdf9621349560f307f5853f3cf031f146582688d4ec3f77be",
            "f11f63a9f4701a65adc4054432905b210100000000000000039631a789030001",
            "00",
        ),
    );
}

#[test]
fn binary_fuse() {
    check_kind(
        kinds::BINARY_FUSE,
        15.0,
        "0000e000006c010000000000000070811a00ec06010000000d0000000306aaeea36f04000100",
    );
}

#[test]
fn xor() {
    check_kind(kinds::XOR, 15.0, "000000185003400c0087bd03050000000000000000064994e22e05000100");
}

/// The golden bytes of a SuRF are made, and read as one that knows its keys.
fn check_surf(kind: SurfKind, (hash, real): (u32, u32), size_ratio: u32, golden: &str) {
    let options = SurfOptions { suffix: SurfSuffix::Bits { hash, real }, size_ratio };
    let mut builder = SurfBuilder::new(kind, 0.0, &options);
    KEYS.iter().for_each(|key| builder.add(key).expect("in order"));
    assert_eq!(hex(&builder.finish()), golden, "{}", kind.name());
    let filter = Surf::read(unhex(golden)).expect("golden bytes");
    assert_eq!(
        (filter.kind(), filter.keys(), filter.suffix_bits()),
        (kind.filter_kind(), 6, (hash, real))
    );
    assert!(KEYS.iter().all(|key| filter.may_contain(key)));
    assert!(!filter.may_contain(b"grain"));
}

#[test]
fn surf_base() {
    let golden = concat!(
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "01000000000000000000000000000000ff00647374ff06000000000000000100",
        "0000000000000000000000000000010000000100000006000000000000005443",
        "c12b06000100",
    );
    check_surf(SurfKind::Base, (0, 0), 64, golden);
}

#[test]
fn surf_hash() {
    let golden = concat!(
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "01000000000000000000000000000000ff00647374ff00eddefec70306000000",
        "0000000001000000000000000000000000000000010000000100000006000000",
        "070000008959a44c07000100",
    );
    check_surf(SurfKind::Hash, (7, 0), 64, golden);
}

#[test]
fn surf_real_all_dense() {
    let golden = concat!(
        "0100000000000000000000001000180000000000000000000000000000000080",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000100000004000000040000000500000000000000",
        "000000000000000000000000000000000000000000000027676926f7ff060000",
        "0000000000010000000100000001000000060000000000000000000000000000",
        "00000c0000c9fdded108000100",
    );
    check_surf(SurfKind::Real, (0, 12), 0, golden);
}

#[test]
fn surf_mixed() {
    let golden = concat!(
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "01000000000000000000000000000000ff00647374ff00048cb3760e3f060000",
        "0000000000010000000000000000000000000000000100000001000000060000",
        "00030600007187534609000100",
    );
    check_surf(SurfKind::Mixed, (3, 6), 64, golden);
}

#[test]
fn elastic_of_four_sub_filters() {
    let mut builder = ElasticBuilder::new(6.0, Some(4));
    KEYS.iter().for_each(|key| builder.add(key).expect("in order"));
    let golden = concat!(
        "10220ed0b9acfcad75a19e557989bed8dacedc1570c52dc2c79d8f83a7148c1e",
        "2fd54a46a7ef30ea384912c55e78415306f0f219842b53bcdc2dd39413b621b7",
        "0800000000000000060000000000000007000000b2635c5c11000104",
    );
    assert_eq!(hex(&builder.finish()), golden);
    let filter = Elastic::read(unhex(golden)).expect("golden bytes");
    assert_eq!((filter.directory().count(), filter.directory().key_count()), (4, 6));
    assert!(KEYS.iter().all(|key| filter.may_contain(key)));
}

#[test]
fn snarf() {
    let golden = concat!(
        "00000002200001000f0000000000000005001f000000000056257408c18e2bc0",
        "000000000000000000000000000000000000000001000000ffffffffffffffff",
        "ffffffffffffffffffffffff0600000000000000030000000100000002000000",
        "0000000000000000140000000a000500",
    );
    check_kind(kinds::SNARF, 12.0, golden);
}

#[test]
fn cell() {
    let golden = concat!(
        "0000000000040a31050051db439fe0005125cf67d70c7c010000000000000000",
        "00000000000000000000000001000000ffffffffffffffffffffffffffffffff",
        "ffffffff06000000000000000200000001000000020000000000000000000000",
        "140000000b000500",
    );
    check_kind(kinds::CELL, 12.0, golden);
}

#[test]
fn gap() {
    let golden = concat!(
        "000000010004c6df7aee02476f909170073203cdfd24de6a0000000000000000",
        "00000000000000000000000001000000ffffffffffffffffffffffffffffffff",
        "ffffffff06000000000000000200000001000000020000000000000000000000",
        "140000000c000500",
    );
    check_kind(kinds::GAP, 12.0, golden);
}

#[test]
fn coded() {
    check_kind(
        kinds::CODED,
        12.0,
        concat!(
            "0000001c00030000000800800400ca5d24e4db91000000003e3d373a3b3c3938",
            "3f363534333231302f2e2d2c2b2a2928272625242322213f3e3a3d373c3b393f",
            "38363534333231302f2e2d2c2b2a2928272625242322213f7fc0d783a4b0a828",
            "000000000000000000000000000000000000000001000000ffffffffffffffff",
            "ffffffffffffffffffffffff06000000000000000b0000000100000002000000",
            "00000000000000001400000012000500",
        ),
    );
}

#[test]
fn cell_with_a_model_of_text() {
    check_text(
        FingerprintFilterBuilder::cell(20.0),
        concat!(
            "0000000000050a424100000df17af9dff800000000000000331ea1e236b8199c",
            "000000000000000000000000000000000000000001000000fffd213d58974d1c",
            "0000000000000000800400130001646566696a6c6d6e6f70727374757677ff00",
            "00000000000000000000000000000000000000017f237729da29d22f9941a941",
            "a147b147a94d715f815f7965896569716177597d50834889d089ffff06000000",
            "000000000300000001000000020000000000000000000000100000000b000580",
        ),
    );
}

#[test]
fn gap_with_a_model_of_text() {
    check_text(
        FingerprintFilterBuilder::gap(20.0),
        concat!(
            "000000010005c6cfdae90ebc006f1c1a7b90c000000000007bdb05c30b203c81",
            "000000000000000000000000000000000000000001000000fffd213d58974d1c",
            "0000000000000000800400130001646566696a6c6d6e6f70727374757677ff00",
            "00000000000000000000000000000000000000017f237729da29d22f9941a941",
            "a147b147a94d715f815f7965896569716177597d50834889d089ffff06000000",
            "000000000300000001000000020000000000000000000000100000000c000580",
        ),
    );
}

#[test]
fn coded_with_a_model_of_text() {
    check_text(
        FingerprintFilterBuilder::coded(20.0),
        concat!(
            "0000001c00040000000b00d005bc540e6218ee4e831b7e030000000000000000",
            "3e3d3c3a393b3f3837363534333231302f2e2d2c2b2a2928272625242322213f",
            "3e3a393c3d3b38373f363534333231302f2e2d2c2b2a2928272625242322213f",
            "f7424b0a3192430c000000000000000000000000000000000000000001000000",
            "fffd213d58974d1c0000000000000000800400130001646566696a6c6d6e6f70",
            "727374757677ff0000000000000000000000000000000000000000017f237729",
            "da29d22f9941a941a147b147a94d715f815f7965896569716177597d50834889",
            "d089ffff06000000000000000c00000001000000020000000000000000000000",
            "1000000012000580",
        ),
    );
}

#[test]
fn snarf_without_keys() {
    let golden = concat!(
        "3cabfeccf6e0f251000000000000000000000000000000000000000000000000",
        "00000000000000000a000500",
    );
    check(&FilterOptions::new(kinds::SNARF, 12.0), &[], golden);
}

#[test]
fn rosetta() {
    let usual = FilterOptions::new(kinds::ROSETTA, 100.0);
    check(&usual, &[], "0000eb7d48340d000100");
    check(
        &usual,
        &KEYS,
        concat!(
            "3f741310fbf0ff4b2b3f22ee357e9566b1cc27b80ded7300080c0000000b0b00",
            "00000c0000000001000000000100000000010000000001000000000100000000",
            "012a001175b0c50d000107"
        ),
    );
    let rosetta = RosettaPlan { range_bits: 2, split: RosettaSplit::Variable };
    check_numbers(
        &usual.tuned(FilterTuning::new().with(rosetta)),
        concat!(
            "27d45db5bc477420fea2d335cd4668790ecd0c16fffb75615087308609a4c46d",
            "fd6328e69a068200000000000000000000010f0000000e0c0000000b0a000000",
            "091c00e7d32bd50d000103"
        ),
    );
}

#[test]
fn rencoder() {
    let usual = FilterOptions::new(kinds::RENCODER, 10.0);
    check(&usual, &[], "00000a2358950e000100");
    check(
        &usual,
        &KEYS,
        concat!(
            "df837b3945f5499929ab4a5f5e17ff91cfa87c82c2110300669a721200d99b91",
            "47697c4353d16fd3ffd77eb7c0cfa07bdbf8db1f6e6a04934808751240f468d1",
            "000802070400bd2aa3ec0e00011f"
        ),
    );
    let rencoder = RencoderPlan { probes: 3 };
    check_numbers(
        &usual.tuned(FilterTuning::new().with(rencoder)),
        concat!(
            "f42f6d00d3fdc2930b8940416162aac0ebb5d6c4c0fde31353091780c4c229c2",
            "bda32257588ea264906200c867d004c090922000521221828a124cc02516005a",
            "068200000000000003000a00f2bd71ee0e000110"
        ),
    );
}

#[test]
fn prefix_bloom() {
    let usual = FilterOptions::new(kinds::PREFIX_BLOOM, 40.0);
    check(&usual, &[], "0006010300206c25710f000100");
    check_numbers(&usual, "432d28f8ffabb272c46a6ba9764207dfca00060d03001dd7caea0f000100");
    let prefix = PrefixRule::Separator(b'e');
    check(
        &usual.tuned(FilterTuning::new().with(prefix)),
        &KEYS,
        "b5c69a318169ea44ae77b7dac4570985dd01650c0300d4d2340d0f000100",
    );
}

#[test]
fn prefix_ribbon() {
    let usual = FilterOptions::new(kinds::PREFIX_RIBBON, 40.0);
    check(&usual, &[], "0000cea5a52813000100");
    check_numbers(
        &usual,
        concat!(
            "ea55adbc50cd7ddcdf9621349560f30744853f3cf031f146582688d4ec3f77be",
            "c51f63a9f4701a65adc4054432905b2149fdce57a52bfb6d75971ccfb6465d3a",
            "e34c16e1c929b05438383ba2f3b607e3e424398c6404d3800a161a9174a8ecf6",
            "e947fe307b8a6dbb1f5117056cd2db096ed1110ea23a228a97ffd661ac751516",
            "f009f63885ea3a76f0b1842fc7753f191f107d05ce9b84e29637860447d00f17",
            "294422e1133c6b7517a39feec01dfbf66c7550285b9afd46519fc0a7913d2d2b",
            "58dfe3d032c47898c5200886dfe4387f4233917e872e4988e02aca0413d5aaba",
            "e055adbc50cd7ddcdf9621349560f30706853f3cf031f146582688d4ec3f77be",
            "cc1f63a9f4701a65adc4054432905b211afdce57a52bfb6d75971ccfb6465d3a",
            "384c16e1c929b05438383ba2f3b607e33e24398c6404d3800a161a9174a8ecf6",
            "6847fe307b8a6dbb1f5117056cd2db0976d1110ea23a228a97ffd661ac751516",
            "e209f63885ea3a76f0b1842fc7753f19de107d05ce9b84e29637860447d00f17",
            "634422e1133c6b7517a39feec01dfbf66d7550285b9afd46519fc0a7913d2d2b",
            "020006e00000000101000000000000000e6b7266e3030001000200c000000001",
            "01000000000000000c37a8e2f103000100070000000000000102010000060000",
            "03030f0f23233e3e61614a00f234bb8913000100",
        ),
    );
    let levels: PrefixLevels = "1+sep:e+all".parse().expect("levels");
    check(
        &usual.tuned(FilterTuning::new().with(levels)),
        &KEYS,
        concat!(
            "c155adbc50cd7ddcdf9621349560f30766853f3cf031f146582688d4ec3f77be",
            "e41f63a9f4701a65adc4054432905b2163fdce57a52bfb6d75971ccfb6465d3a",
            "c64c16e1c929b05438383ba2f3b607e3c824398c6404d3800a161a9174a8ecf6",
            "e047fe307b8a6dbb1f5117056cd2db09eb55adbc50cd7ddcdf9621349560f307",
            "45853f3cf031f146582688d4ec3f77bec71f63a9f4701a65adc4054432905b21",
            "4bfdce57a52bfb6d75971ccfb6465d3ae14c16e1c929b05438383ba2f3b607e3",
            "e424398c6404d3800a161a9174a8ecf6eb47fe307b8a6dbb1f5117056cd2db09",
            "ca55adbc50cd7ddcdf9621349560f307f5853f3cf031f146582688d4ec3f77be",
            "f11f63a9f4701a65adc4054432905b21fbfdce57a52bfb6d75971ccfb6465d3a",
            "d74c16e1c929b05438383ba2f3b607e34124398c6404d3800a161a9174a8ecf6",
            "0300017000000001010000000000000007d17edd0f0300010001657000000001",
            "010000000000000007d17edd0f03000100020060000000010100000000000000",
            "060288fec30300010007000102030405060784000064647374ffff8369697272",
            "ffff0465656f6f7575ffff036d6d7676ffff8365656d6dffff826565ffff026c",
            "6cffff8300fcadfdfc13000100",
        ),
    );
}

#[test]
fn arf() {
    let usual = FilterOptions::new(kinds::ARF, 160.0);
    check(&usual, &[], "00008c49bae110000100");
    check(
        &usual,
        &KEYS,
        concat!(
            "00000000dfb4adcc2db3cc2a534d35d332abccb4cc2a534d35cb4a53ad34d52a",
            "534db5cc4c532d33d32a4b2da58a32add0020000000000000000000000000000",
            "000000000000000000000000000000000000004008409000086f010000060090",
            "13d70610000100"
        ),
    );
    check_numbers(
        &usual,
        concat!(
            "000000007bbbb3cc564bcd34cdaad4acaaccacaaaa0200000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "000000000000000055050682000000000000970000000c00322fa58010000100"
        ),
    );
}
