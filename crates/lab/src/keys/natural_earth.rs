//! The keys that ship with Trommel: vertices of borders and coasts (see data/README.md).
//! ```text
//! magic | count | origin of the grid | step of the grid | differences of Morton codes (varints)
//!                                             grid point -> longitude, latitude in 32 bits -> key
//! ```
//! Invariant: decoding never panics. The file is compiled in, so the demo runs from anywhere.

use trommel_filters::{Corrupt, Reader};

use crate::keys::key_list::SortedKeys;

static SHIPPED: &[u8] = include_bytes!("../../../../data/natural-earth-10m.keys");
const MAGIC: &[u8; 8] = b"TROMKEY1";

/// Returns the shipped keys.
pub fn natural_earth() -> SortedKeys {
    decode(SHIPPED).expect("the bytes are part of the program, and a test decodes them")
}

/// A grid of whole numbers over the map, in units of 2^-64 of the whole extent.
struct Grid {
    origin: u64,
    step: u64,
}

impl Grid {
    /// Returns the 32-bit coordinate of a grid line; lines beyond the end are clamped to it.
    fn scaled(&self, line: u64) -> u32 {
        let place = u128::from(self.origin) + u128::from(self.step) * u128::from(line);
        u32::try_from(place >> 32).unwrap_or(u32::MAX)
    }
}

fn decode(bytes: &[u8]) -> Result<SortedKeys, Corrupt> {
    let mut input = Reader::new(bytes);
    if input.bytes(MAGIC.len())? != MAGIC {
        return Err(Corrupt { at: 0, what: "a file of keys" });
    }
    let count = input.u32()?;
    let origins = [input.u64()?, input.u64()?];
    let steps = [input.u64()?, input.u64()?];
    let [longitudes, latitudes] = [0, 1].map(|i| Grid { origin: origins[i], step: steps[i] });
    let mut keys = Vec::new();
    let mut code = 0u64;
    for _ in 0..count {
        let difference = input.varint()?;
        code = code.checked_add(difference).ok_or(input.corrupt("a code of at most 64 bits"))?;
        let longitude = longitudes.scaled(every_other_bit(code));
        let latitude = latitudes.scaled(every_other_bit(code >> 1));
        keys.push(morton(longitude, latitude));
    }
    input.end()?;
    Ok(SortedKeys::from_integers(keys))
}

/// Returns the Morton code of a point: longitude in the even bits, latitude in the odd bits.
pub fn morton(longitude: u32, latitude: u32) -> u64 {
    spread(longitude) | spread(latitude) << 1
}

const HALVING: [(u32, u64); 5] = [
    (1, 0x3333_3333_3333_3333),
    (2, 0x0f0f_0f0f_0f0f_0f0f),
    (4, 0x00ff_00ff_00ff_00ff),
    (8, 0x0000_ffff_0000_ffff),
    (16, 0x0000_0000_ffff_ffff),
];
const EVEN_BITS: u64 = 0x5555_5555_5555_5555;

/// Inserts a zero after each bit of a number.
fn spread(number: u32) -> u64 {
    let masks = [EVEN_BITS, HALVING[0].1, HALVING[1].1, HALVING[2].1, HALVING[3].1];
    let moves = HALVING.iter().rev().zip(masks.iter().rev());
    moves.fold(u64::from(number), |bits, ((shift, _), mask)| (bits | bits << shift) & mask)
}

/// Compacts the even bits of a code, the inverse of `spread`.
fn every_other_bit(code: u64) -> u64 {
    HALVING.iter().fold(code & EVEN_BITS, |bits, (shift, mask)| (bits | bits >> shift) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_keys_decode() {
        let keys = natural_earth();
        assert_eq!(keys.len(), 472_391);
        assert!(keys.iter().is_sorted() && keys.iter().all(|key| key.len() == 8));
    }

    #[test]
    fn bits_spread_and_come_back() {
        for number in [0, 1, 2, 0xffff, 0x1234_5678, u32::MAX] {
            assert_eq!(every_other_bit(spread(number)), u64::from(number));
            let plain: u64 = (0..32).map(|bit| u64::from(number >> bit & 1) << (2 * bit)).sum();
            assert_eq!(spread(number), plain);
        }
        assert_eq!(morton(0b11, 0b01), 0b0111);
    }

    #[test]
    fn damaged_bytes_are_errors_or_other_keys_but_never_a_panic() {
        for len in (0..60).chain([SHIPPED.len() - 1]) {
            assert!(decode(&SHIPPED[..len]).is_err(), "{len} bytes decode");
        }
        assert!(decode(&[SHIPPED, &[0]].concat()).is_err());
        let small = [&SHIPPED[..8], &3u32.to_le_bytes(), &SHIPPED[12..44], &[5, 1, 9]].concat();
        assert_eq!(decode(&small).map(|keys| keys.len()), Ok(3));
        for bit in 0..small.len() * 8 {
            let mut damaged = small.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = decode(&damaged);
        }
        let huge = [&small[..44], &[0xff; 9], &[1], &[0xff; 9], &[1, 0]].concat();
        assert!(decode(&huge).is_err());
    }
}
