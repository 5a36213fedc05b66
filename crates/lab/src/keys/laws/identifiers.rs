//! Identifiers that are mostly random: UUIDs and digests.
//! ```text
//! uuid4         122 random bits and two marks                        16 bytes, or 36 as text
//! uuid7         milliseconds (48 bits) by day and in bursts, marks, 74 random bits
//! hex-digests   sha256:ab/cd/ and the other sixty digits of a digest: folders of a store
//! ```
//! The statistic that matters: behind the common prefix, bytes are random, or have one of sixteen
//! values.

use super::bursts::Bursts;
use crate::keys::rng::Rng;

/// The law of UUIDs of one version.
#[derive(Clone, Debug)]
pub(crate) struct Uuids {
    /// The times in version 7. None: version 4.
    moments: Option<Bursts>,
    /// Whether they are text of 36 characters.
    is_text: bool,
}

const NS_PER_MS: u64 = 1_000_000;
/// The bits of the last eight bytes below the variant mark.
const RANDOM_LOW: u64 = (1 << 62) - 1;
const MARK_LOW: u64 = 0b10 << 62;

impl Uuids {
    pub(super) fn version_4(is_text: bool) -> Self {
        Uuids { moments: None, is_text }
    }

    pub(super) fn version_7(is_text: bool) -> Self {
        Uuids { moments: Some(Bursts::new()), is_text }
    }

    pub(super) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let (version, begin) = match &self.moments {
            None => (4, rng.next_u64() >> 16),
            Some(moments) => (7, moments.draw(rng) / NS_PER_MS),
        };
        let high = begin << 16 | version << 12 | rng.below(1 << 12);
        let low = MARK_LOW | rng.next_u64() & RANDOM_LOW;
        if !self.is_text {
            key.extend_from_slice(&high.to_be_bytes());
            key.extend_from_slice(&low.to_be_bytes());
            return;
        }
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        let (d, e) = (low >> 48, low & 0xffff_ffff_ffff);
        key.extend_from_slice(format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}").as_bytes());
    }
}

/// Appends the path of a digest.
pub(super) fn push_digest(key: &mut Vec<u8>, rng: &mut Rng) {
    let words: [u64; 4] = std::array::from_fn(|_| rng.next_u64());
    let digits = words.map(|word| format!("{word:016x}")).concat();
    let path = format!("sha256:{}/{}/{}", &digits[..2], &digits[2..4], &digits[4..]);
    key.extend_from_slice(path.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(uuids: &Uuids) -> Vec<u8> {
        let mut key = Vec::new();
        uuids.draw(&mut key, &mut Rng::new(1));
        key
    }

    #[test]
    fn texts_and_bytes_are_the_same_identifiers() {
        for (bytes, text, version) in [
            (Uuids::version_4(false), Uuids::version_4(true), b'4'),
            (Uuids::version_7(false), Uuids::version_7(true), b'7'),
        ] {
            let (bytes, text) = (drawn(&bytes), drawn(&text));
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let without = String::from_utf8(text.clone()).expect("text").replace('-', "");
            assert!(digits == without && text.len() == 36 && text[14] == version, "{digits}");
            assert!(b"89ab".contains(&text[19]), "{without}");
        }
    }

    #[test]
    fn digests_have_two_folders() {
        let mut key = Vec::new();
        push_digest(&mut key, &mut Rng::new(1));
        assert!(
            key.len() == 73 && key.starts_with(b"sha256:") && key[9] == b'/' && key[12] == b'/'
        );
    }
}
