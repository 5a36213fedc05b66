//! The text form of how a measured store packs its blocks.
//! ```text
//! none   lz4   zstd:3   zstd:3+dictionary
//! ```
//! Invariant: parsing reverses printing.

use std::fmt;
use std::str::FromStr;

use ::trommel::options::Compression;
use serde::{Deserialize, Serialize};

/// How a store packs its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PeerPacking {
    /// The compression of blocks.
    pub compression: Compression,
    /// The largest dictionary of a table, in bytes; 0: none.
    pub dictionary_bytes: usize,
}

/// The size of a dictionary in the text form, which names no size.
const DICTIONARY_BYTES: usize = 16 << 10;
const WITH_DICTIONARY: &str = "+dictionary";

impl PeerPacking {
    /// Blocks are not compressed.
    pub const NONE: PeerPacking =
        PeerPacking { compression: Compression::None, dictionary_bytes: 0 };

    /// Returns the packings that are compared by default.
    pub fn usual() -> Vec<PeerPacking> {
        let names = ["none", "lz4", "zstd:1", "zstd:3", "zstd:3+dictionary"];
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }
}

impl fmt::Display for PeerPacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = if self.dictionary_bytes > 0 { WITH_DICTIONARY } else { "" };
        write!(f, "{}{with}", self.compression)
    }
}

/// Parses `lz4`, `zstd:3`, `zstd:3+dictionary`.
impl FromStr for PeerPacking {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let without = text.strip_suffix(WITH_DICTIONARY);
        let compression: Compression = without.unwrap_or(text).parse()?;
        let takes_one = matches!(compression, Compression::Zstd { .. });
        if without.is_some() && !takes_one {
            return Err(format!("'{text}': a dictionary is for zstd alone"));
        }
        let dictionary_bytes = if without.is_some() { DICTIONARY_BYTES } else { 0 };
        Ok(PeerPacking { compression, dictionary_bytes })
    }
}

impl From<PeerPacking> for String {
    fn from(packing: PeerPacking) -> String {
        packing.to_string()
    }
}

impl TryFrom<String> for PeerPacking {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for packing in PeerPacking::usual() {
            assert_eq!(packing.to_string().parse(), Ok(packing));
        }
        assert!("lz4+dictionary".parse::<PeerPacking>().is_err());
        assert!("zstd:99".parse::<PeerPacking>().is_err());
    }
}
