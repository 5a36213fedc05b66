//! Tests of compression: round trips, plain storage of what does not pay, no memory for hostile
//! bytes.

use proptest::prelude::*;

use super::*;

const ALL: [Compression; 5] = [
    Compression::None,
    Compression::Lz4,
    Compression::Zstd { level: 1 },
    Compression::Zstd { level: 3 },
    Compression::Zstd { level: 19 },
];

fn packed(raw: &[u8], compression: Compression) -> (u8, Vec<u8>) {
    let mut out = b"before".to_vec();
    let form = Packer::new(compression, None).pack(raw, &mut out);
    (form, out.split_off(b"before".len()))
}

fn unpacked(form: u8, body: &[u8]) -> Result<Vec<u8>, Unreadable> {
    unpack((form, body), None, u64::MAX, |bytes| Ok(bytes.to_vec()))
}

/// Pseudo-random bytes, which do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn texts_are_read_as_they_are_written() {
    for compression in ALL {
        assert_eq!(compression.to_string().parse(), Ok(compression));
    }
    assert_eq!("zstd".parse(), Ok(Compression::Zstd { level: 3 }));
    assert_eq!("true".parse(), Ok(Compression::Lz4), "as older stores have kept it");
    assert_eq!("false".parse(), Ok(Compression::None), "as older stores have kept it");
    for wrong in ["", "zstd:", "zstd:0", "zstd:23", "zstd:-1", "zstd:x", "zstd3", "LZ4", "snappy"] {
        let problem = wrong.parse::<Compression>().expect_err(wrong);
        assert!(problem.contains("zstd:1 to zstd:22"), "{problem}");
    }
    assert!(!Compression::Zstd { level: 0 }.is_sensible());
}

#[test]
fn what_does_not_shrink_by_an_eighth_is_plain() {
    for compression in ALL {
        for noisy in 0..=1024usize {
            // The noise does not compress. The rest compresses to almost nothing.
            let raw = [noise(noisy), vec![7; 1024 - noisy]].concat();
            let (form, body) = packed(&raw, compression);
            let pays = body.len() <= raw.len() - raw.len() / 8;
            assert_eq!(form == forms::PLAIN, !pays, "{compression}, {noisy} bytes of noise");
            assert_eq!(unpacked(form, &body), Ok(raw));
        }
        assert_eq!(packed(&noise(1024), compression).0, forms::PLAIN);
        assert_eq!(packed(&[], compression), (forms::PLAIN, Vec::new()));
    }
    assert_eq!(packed(&[7; 1024], Compression::Lz4).0, forms::LZ4);
}

#[test]
fn nothing_is_packed_into_less_than_is_believed() {
    // Zstandard would need about 130 bytes for this; LZ4 reaches a ratio of 255.
    let zeros = vec![0; 4 << 20];
    for compression in ALL {
        let (form, body) = packed(&zeros, compression);
        assert!(zeros.len() / RATIO_MAX <= body.len(), "{compression}: {} bytes", body.len());
        assert_eq!(form == forms::PLAIN, compression == Compression::None);
        assert!(unpacked(form, &body) == Ok(zeros.clone()), "{compression}");
    }
}

/// Makes a body that claims a length of `len` bytes.
fn claiming(len: u64, packed: &[u8]) -> Vec<u8> {
    let mut out = trommel_filters::Writer::new();
    out.varint(len);
    out.bytes(packed);
    out.finish()
}

fn no_bytes(_: &[u8]) -> Result<(), trommel_filters::Corrupt> {
    Ok(())
}

/// Returns the peak memory of an operation that must fail.
fn bytes_taken(fails: impl Fn() -> Result<(), Unreadable>) -> u64 {
    allocation_counter::measure(|| assert!(fails().is_err(), "it is believed")).bytes_max
}

#[test]
fn bombs_are_refused_before_memory_is_taken() {
    let (most, long) = (1u64 << 40, vec![0xff; 1000]);
    for form in [forms::LZ4, forms::ZSTD, forms::ZSTD_WITH_DICTIONARY] {
        for len in [16 << 20, 1 << 32, most, most + 1, u64::from(u32::MAX), u64::MAX] {
            let body = claiming(len, &long);
            assert!(bytes_taken(|| unpack((form, &body), None, most, no_bytes)) < 4096, "{len}");
        }
        // The length is plausible for the body, but exceeds the maximum of a piece.
        let refused = unpack((form, &claiming(1001, &long)), None, 1000, |bytes| Ok(bytes.len()));
        assert!(refused.is_err(), "form {form}");
        assert!(unpack((form, &[]), None, most, |bytes| Ok(bytes.len())).is_err());
    }
    for form in 4..=u8::MAX {
        assert!(unpacked(form, &claiming(10, &long)).is_err(), "form {form}");
        assert_eq!(form_name(form), None);
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn without_the_feature_an_error_names_it() {
    for form in [forms::ZSTD, forms::ZSTD_WITH_DICTIONARY] {
        let dictionary = Dictionary::new(b"any");
        let body = claiming(10, b"packed");
        let refused = unpack((form, &body), dictionary.as_ref(), 100, |bytes| Ok(bytes.len()));
        assert_eq!(refused, Err(Unreadable::Lacks("zstd")), "form {form}");
    }
    assert!(!Compression::Zstd { level: 3 }.is_built_in() && Compression::Lz4.is_built_in());
}

#[cfg(feature = "zstd")]
mod with_zstd {
    use super::*;
    use crate::sync::{Arc, OnceLock};

    /// Pieces that have much in common with each other, but compress little by themselves.
    fn pieces(count: u64) -> Vec<Vec<u8>> {
        let piece = |number: u64| {
            let row = |row: u64| {
                let mixed = (number * 16 + row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                format!(
                    "{{\"id\":{mixed},\"station\":\"Zug {}\",\"platform\":{}}}",
                    mixed % 97,
                    mixed % 7
                )
            };
            (0..8).map(row).collect::<String>().into_bytes()
        };
        (0..count).map(piece).collect()
    }

    fn trained() -> Vec<u8> {
        let pieces = pieces(200);
        let lens: Vec<usize> = pieces.iter().map(Vec::len).collect();
        train(&pieces.concat(), &lens, 4096).expect("they have much in common")
    }

    /// The dictionary, trained once.
    fn dictionary() -> Vec<u8> {
        static LEARNED: OnceLock<Vec<u8>> = OnceLock::new();
        LEARNED.get_or_init(trained).clone()
    }

    #[test]
    fn a_frame_that_claims_another_length_is_refused() {
        let raw = pieces(1).concat();
        let (form, body) = packed(&raw, Compression::Zstd { level: 3 });
        assert_eq!(form, forms::ZSTD);
        let frame = &body[2..];
        let len = raw.len() as u64;
        assert_eq!(claiming(len, frame), body);
        for wrong in [len - 1, len + 1, 0, 2 * len] {
            assert!(unpacked(form, &claiming(wrong, frame)).is_err(), "{wrong} bytes");
        }
        // Two frames, the first of which already has the claimed length.
        assert!(unpacked(form, &claiming(len, &[frame, frame].concat())).is_err());
    }

    #[test]
    fn a_frame_that_is_as_long_as_it_claims_is_a_bomb_all_the_same() {
        let zeros = vec![0; 16 << 20];
        let mut frame = vec![0; 1 << 16];
        let mut encoder = zstd::Encoder::new(3).expect("there is memory");
        let len = encoder.compress(&zeros, None, &mut frame).expect("there is room");
        assert!(len < 4096, "{len} bytes");
        let body = claiming(zeros.len() as u64, &frame[..len]);
        assert!(bytes_taken(|| unpack((forms::ZSTD, &body), None, u64::MAX, no_bytes)) < 4096);
    }

    #[test]
    fn a_dictionary_makes_pieces_smaller_and_is_needed_to_read_them() {
        let dictionary = trained();
        assert_eq!(dictionary, trained(), "the same sample gives the same bytes");
        assert!((256..=4096).contains(&dictionary.len()), "{} bytes", dictionary.len());
        let reading = Dictionary::new(&dictionary).expect("it is one");
        assert!(reading.heap_bytes() > dictionary.len());
        let writing = Arc::new(EncoderDictionary::new(dictionary, 3).expect("it is one"));
        let zstd = Compression::Zstd { level: 3 };
        let mut packer = Packer::new(zstd, Some(Arc::clone(&writing)));
        for raw in pieces(300).split_off(200) {
            let mut body = Vec::new();
            assert_eq!(packer.pack(&raw, &mut body), forms::ZSTD_WITH_DICTIONARY);
            assert!(4 * body.len() < 3 * packed(&raw, zstd).1.len(), "{} bytes", body.len());
            let form = forms::ZSTD_WITH_DICTIONARY;
            let with =
                |dictionary| unpack((form, &body), dictionary, 1 << 20, |raw| Ok(raw.to_vec()));
            assert_eq!(with(Some(&reading)), Ok(raw.clone()));
            assert!(matches!(with(None), Err(Unreadable::Damaged(_))));
            // The form decides whether a dictionary is used, not its presence.
            let (form, body) = packed(&raw, zstd);
            let plain = unpack((form, &body), Some(&reading), 1 << 20, |bytes| Ok(bytes.to_vec()));
            assert_eq!(plain, Ok(raw));
        }
    }

    #[test]
    fn too_few_pieces_make_no_dictionary() {
        assert_eq!(train(&[], &[], 4096), None);
        assert_eq!(train(b"one", &[3], 4096), None);
    }

    proptest! {
        #[test]
        fn rubbish_with_a_dictionary_is_an_error_or_bytes(
            dictionary in prop::collection::vec(any::<u8>(), 0..300),
            is_trained in any::<bool>(),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            piece in 200u64..220,
        ) {
            let mut bytes = if is_trained { self::dictionary() } else { dictionary };
            let raw = pieces(piece + 1).pop().expect("one");
            let mut body = Vec::new();
            let writing = EncoderDictionary::new(self::dictionary(), 3).map(Arc::new);
            Packer::new(Compression::Zstd { level: 3 }, writing).pack(&raw, &mut body);
            for (index, value) in flips {
                let len = bytes.len() + body.len();
                let at = index.index(len);
                match at.checked_sub(bytes.len()) {
                    Some(at) => body[at] = value,
                    None => bytes[at] = value,
                }
            }
            if let Some(dictionary) = Dictionary::new(&bytes) {
                let form = forms::ZSTD_WITH_DICTIONARY;
                let read = unpack((form, &body), Some(&dictionary), 1 << 16, |raw| Ok(raw.len()));
                prop_assert!(read.is_ok_and(|len| len <= 1 << 16) || read.is_err());
            }
        }
    }
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..20), 1usize..400), 0..20),
        compression in prop::sample::select(ALL.to_vec()),
    ) {
        let raw: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
        let (form, body) = packed(&raw, compression);
        prop_assert!(form_name(form).is_some());
        prop_assert_eq!(unpacked(form, &body), Ok(raw));
    }

    #[test]
    fn rubbish_is_an_error_or_bytes_of_the_length_that_it_claims(
        form in 0u8..5,
        raw in prop::collection::vec(0u8..4, 0..600),
        compression in prop::sample::select(ALL.to_vec()),
        as_packed in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let (form, mut body) = if as_packed { packed(&raw, compression) } else { (form, raw) };
        for (index, value) in &flips {
            let at = index.index(body.len().max(1));
            if let Some(byte) = body.get_mut(at) {
                *byte = *value;
            }
        }
        let claimed = trommel_filters::Reader::new(&body).len();
        if let Ok(bytes) = unpacked(form, &body) {
            let is_as_long = form == forms::PLAIN || claimed == Ok(bytes.len());
            prop_assert!(is_as_long && bytes.len() / RATIO_MAX <= body.len());
        }
    }
}
