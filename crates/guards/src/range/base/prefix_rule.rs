//! The rule that defines the prefix of a key.
//! ```text
//! 6        the first six bytes
//! sep:/    everything up to the first slash, inclusive
//! ```
//! Invariant: every key that begins with another key's prefix has the same prefix.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Tuning;

/// The rule that defines the prefix of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixRule {
    /// The first bytes of a key. Shorter keys have no prefix.
    Fixed(u8),
    /// Everything up to the first occurrence of this byte, inclusive. Keys without it have no
    /// prefix.
    Separator(u8),
}

impl Default for PrefixRule {
    /// Six bytes: for eight-byte numbers, this suits ranges that do not cross a multiple of 65,536.
    fn default() -> Self {
        PrefixRule::Fixed(6)
    }
}

impl Tuning for PrefixRule {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        (*self == PrefixRule::Fixed(0)).then_some(("filter.prefix", "must be 1 to 255 bytes"))
    }
}

impl fmt::Display for PrefixRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixRule::Fixed(bytes) => bytes.fmt(f),
            PrefixRule::Separator(byte @ b'!'..=b'~') => write!(f, "sep:{}", char::from(*byte)),
            PrefixRule::Separator(byte) => write!(f, "sep:0x{byte:02x}"),
        }
    }
}

impl FromStr for PrefixRule {
    /// The error lists the allowed values.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || "a number of bytes, 1 to 255, or sep:/ or sep:0x2f".to_string();
        let Some(byte) = text.strip_prefix("sep:") else {
            let bytes = text.parse::<u8>().ok().filter(|bytes| *bytes > 0);
            return bytes.map(PrefixRule::Fixed).ok_or_else(known);
        };
        match (byte.as_bytes(), byte.strip_prefix("0x")) {
            ([byte], _) => Ok(PrefixRule::Separator(*byte)),
            (_, Some(hex)) => {
                u8::from_str_radix(hex, 16).map(PrefixRule::Separator).map_err(|_| known())
            }
            _ => Err(known()),
        }
    }
}

impl PrefixRule {
    /// Returns the prefix of a key. Every key that begins with this prefix has the same prefix.
    /// None: the key has none.
    pub fn prefix_of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match *self {
            PrefixRule::Fixed(len) => key.get(..usize::from(len)),
            PrefixRule::Separator(byte) => {
                key.iter().position(|&found| found == byte).map(|at| &key[..=at])
            }
        }
    }

    /// Encodes the rule for files.
    pub(crate) fn encode(self) -> [u8; 2] {
        match self {
            PrefixRule::Fixed(len) => [0, len],
            PrefixRule::Separator(byte) => [1, byte],
        }
    }

    /// Decodes a rule. None: the bytes encode no rule.
    pub(crate) fn decode(encoded: [u8; 2]) -> Option<Self> {
        match encoded {
            [0, len] => Some(PrefixRule::Fixed(len)),
            [1, byte] => Some(PrefixRule::Separator(byte)),
            _ => None,
        }
    }
}
