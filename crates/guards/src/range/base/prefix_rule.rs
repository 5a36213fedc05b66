//! What the prefix of a key is.
//! ```text
//! 6        the first six bytes
//! sep:/    all up to the first slash, which is part of it
//! ```
//! Invariant: every key that begins with a prefix has that prefix.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Tuning;

/// What the prefix of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixRule {
    /// So many first bytes. Keys with fewer bytes have none.
    Fixed(u8),
    /// All up to the first such byte, which is part of it. Keys without it have none.
    Separator(u8),
}

impl Default for PrefixRule {
    /// Six bytes: of numbers of eight bytes, ranges that do not cross a multiple of 65,536.
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
    /// What there is.
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
    /// The prefix of a key. Every key that begins with a prefix has that prefix.
    pub fn prefix_of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match *self {
            PrefixRule::Fixed(len) => key.get(..usize::from(len)),
            PrefixRule::Separator(byte) => {
                key.iter().position(|&found| found == byte).map(|at| &key[..=at])
            }
        }
    }

    /// As a file has it.
    pub(crate) fn encode(self) -> [u8; 2] {
        match self {
            PrefixRule::Fixed(len) => [0, len],
            PrefixRule::Separator(byte) => [1, byte],
        }
    }

    /// None: no rule is encoded so.
    pub(crate) fn decode(encoded: [u8; 2]) -> Option<Self> {
        match encoded {
            [0, len] => Some(PrefixRule::Fixed(len)),
            [1, byte] => Some(PrefixRule::Separator(byte)),
            _ => None,
        }
    }
}
