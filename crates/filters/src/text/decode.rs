//! Decodes a code into bounds on its keys.
//! ```text
//! code(below) < code <= code(above)          found byte by byte, each byte by bisection
//!     "us" "use" "user4" ...                 the codes of these prefixes are below the code
//! ```
//! Invariant: every key with this code or a greater one is at or above `below`. Every key with a
//! smaller code is below `above`.

use alloc::vec::Vec;

use super::code::KeyCode;
use super::encode::{Interval, Lead};
use super::model::TextTables;

/// Bytes that are decoded after the common prefix: more would narrow the bounds little.
const BYTES_MAX: usize = 64;

/// Bounds on the keys around a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysAround {
    /// Every key with this code or a greater one is at or above this key.
    pub below: Vec<u8>,
    /// Every key with a smaller code is below this key. None: no bound is known.
    pub above: Option<Vec<u8>>,
}

impl TextTables<'_> {
    /// Returns bounds on the keys around a code. They are as tight as a short search makes them.
    pub fn keys_around(&self, code: &[u8]) -> KeysAround {
        let (code, mut written) = (without_zeros(code), KeyCode::new());
        let (mut interval, mut row) = self.begin(&Lead::Within(&[]), &mut written);
        let is_less = |mut written: KeyCode, interval: &Interval| {
            interval.clone().finish(self.code_bits, &mut written);
            without_zeros(written.as_bytes()) < code
        };
        if !is_less(written.clone(), &interval) {
            return KeysAround { below: Vec::new(), above: Some(self.prefix.to_vec()) };
        }
        let (mut below, mut above) = (self.prefix.to_vec(), None);
        while below.len() < self.prefix.len() + BYTES_MAX && !self.is_whole(&interval, &written) {
            let lesser = bytes_before(|byte| {
                let (mut interval, mut written) = (interval.clone(), written.clone());
                self.narrow(&mut interval, row, byte, &mut written);
                is_less(written, &interval)
            });
            if let Ok(byte) = u8::try_from(lesser) {
                above = Some([&below[..], &[byte]].concat());
            }
            let Some(byte) = lesser.checked_sub(1) else { break };
            row = self.narrow(&mut interval, row, byte as u8, &mut written);
            below.push(byte as u8);
        }
        KeysAround { below, above }
    }
}

/// The number of byte values before the first one for which `holds` is false.
fn bytes_before(holds: impl Fn(u8) -> bool) -> usize {
    let (mut low, mut high) = (0, 256);
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(middle as u8) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Removes trailing zeros, which a code is implicitly followed by.
fn without_zeros(code: &[u8]) -> &[u8] {
    let len = code.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &code[..len]
}
