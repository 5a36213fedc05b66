//! The merge operator of histories, and its model.
//! ```text
//! value's number n, operand (a, b)    n' = 2 + (a n + b) mod P
//! ```
//! The result of several operands depends on their order, and equals that of a single operand.

use trommel::merge_operators::{MergeError, MergeOperator};

use crate::keys::rng::scramble;

/// A prime below the numbers of values that expire.
const P: u64 = 1_048_573;

/// The bit of numbers that are operands instead of values.
const OPERAND: u32 = 1 << 29;

/// Returns the operand of a number. Requires: no value's number has this bit.
pub(crate) fn operand(number: u32) -> u32 {
    number | OPERAND
}

/// Whether a number is an operand's. Numbers of expiring or large values have higher bits.
fn is_operand(number: u32) -> bool {
    number & !(OPERAND - 1) == OPERAND
}

/// Returns the bytes of an operand. None: the number is no operand's.
pub(crate) fn operand_of(number: u32) -> Option<[u8; 8]> {
    is_operand(number).then(|| Mix::of(number).bytes())
}

/// Returns the number of a key's value after a write.
pub(crate) fn after(before: u32, written: u32) -> u32 {
    match is_operand(written) {
        true => Mix::of(written).applied_to(u64::from(before)) as u32,
        false => written,
    }
}

/// Returns the number of a key's value after an operand.
pub(crate) fn merged(before: u64, operand: u32) -> u64 {
    Mix::of(operand).applied_to(before)
}

#[derive(Clone, Copy)]
struct Mix {
    a: u64,
    b: u64,
}

impl Mix {
    fn of(number: u32) -> Self {
        let draw = scramble(u64::from(number));
        Mix { a: 1 + draw % (P - 1), b: (draw >> 32) % P }
    }

    fn applied_to(self, number: u64) -> u64 {
        2 + (self.a * (number % P) + self.b) % P
    }

    /// Returns the operand that has the effect of this one and then `next`.
    fn then(self, next: Mix) -> Self {
        Mix { a: self.a * next.a % P, b: (next.a * (self.b + 2) + next.b) % P }
    }

    fn bytes(self) -> [u8; 8] {
        (self.a << 32 | self.b).to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let both = u64::from_le_bytes(bytes.try_into().ok()?);
        let mix = Mix { a: both >> 32, b: both & u64::from(u32::MAX) };
        (mix.a < P && mix.b < P).then_some(mix)
    }
}

/// The merge operator, for values that encode their numbers.
#[derive(Clone, Copy)]
pub(crate) struct Mixed {
    /// Returns the number of a value. None: no number has this value.
    pub(crate) number_of: fn(&[u8]) -> Option<u64>,
    pub(crate) value_of: fn(u64) -> Vec<u8>,
}

impl MergeOperator for Mixed {
    fn name(&self) -> &'static str {
        "stress-mixed"
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, MergeError> {
        let wrong = |what: &str, bytes: &[u8]| MergeError::from(format!("{what}: {bytes:?}"));
        let number = |bytes| (self.number_of)(bytes).ok_or_else(|| wrong("no value", bytes));
        let before = existing.map_or(Ok(0), number)?;
        let made = operands.iter().try_fold(before, |before, bytes| {
            let mix = Mix::of_bytes(bytes).ok_or_else(|| wrong("no operand", bytes))?;
            Ok::<u64, MergeError>(mix.applied_to(before))
        })?;
        Ok((self.value_of)(made))
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(Mix::of_bytes(older)?.then(Mix::of_bytes(newer)?).bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_can_be_combined_and_depend_on_their_order() {
        let mixed = super::super::model::mixed();
        let mut orders = 0;
        for number in 2..500u32 {
            let [one, other] = [number, number + 1000].map(|number| Mix::of(operand(number)));
            let before = u64::from(number);
            let both = other.applied_to(one.applied_to(before));
            assert_eq!(one.then(other).applied_to(before), both);
            orders += u32::from(one.applied_to(other.applied_to(before)) != both);
            let bytes = [one, other].map(Mix::bytes);
            let combined = mixed.combine(b"", &bytes[0], &bytes[1]).expect("they are operands");
            for operands in [&[&bytes[0][..], &bytes[1]][..], &[&combined]] {
                let value = (mixed.value_of)(before);
                let made = mixed.merge(b"", Some(&value), operands).expect("makes one");
                assert_eq!((mixed.number_of)(&made), Some(both));
            }
            assert_eq!(u64::from(after(number, operand(number))), one.applied_to(before));
        }
        assert!(orders > 490);
    }
}
