//! A blocked Bloom filter out of any bytes.
//! ```text
//! input   bytes of the filter
//! ```
//! Invariant: a filter of any bits answers every question, and the same over aligned memory.

use trommel_filters::{AlignedBytes, BlockedBloom, TableFilter};

pub(crate) fn bloom(input: &[u8]) {
    let plain = BlockedBloom::read(input.to_vec());
    let aligned = BlockedBloom::read(AlignedBytes::from_slice(input));
    let (plain, aligned) = match (plain, aligned) {
        (Ok(plain), Ok(aligned)) => (plain, aligned),
        (Err(wrong), Err(other)) => {
            assert!(wrong == other && wrong.at <= input.len(), "{wrong}, {other}");
            return;
        }
        (plain, _) => panic!("read over one memory alone: {}", plain.is_ok()),
    };
    assert!((1..=16).contains(&plain.probes()) && plain.size_bytes() == input.len());
    for (place, key) in input.chunks(5).chain([&b""[..]]).enumerate() {
        assert_eq!(plain.may_contain(key), aligned.may_contain(key), "{key:?}");
        let hash = u64::MAX >> (place % 64);
        assert_eq!(plain.may_contain_hash(hash), aligned.may_contain_hash(hash), "{hash:x}");
    }
}
