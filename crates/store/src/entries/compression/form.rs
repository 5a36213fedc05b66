//! Compression options and forms: their names and numbers.
//! ```text
//! Compression   what an option selects: none, lz4, zstd:3
//! forms         what is stored beside a body: 0 plain, 1 LZ4, 2 Zstandard, 3 with a dictionary
//! ```
//! Invariant: the number of a form never changes. Data may be stored in a simpler form than
//! selected.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Corrupt;

/// How blocks are compressed. Each block records its own form, so a store can be opened with
/// another setting at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4: fast in both directions.
    #[default]
    Lz4,
    /// Zstandard: smaller and slower. It needs this crate's feature `zstd`.
    Zstd {
        /// 1 to 22. More: slower writes, mostly smaller blocks. The speed of reads does not change.
        level: u8,
    },
}

/// The levels of Zstandard, and the default level.
const LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
const LEVEL: u8 = 3;
/// Prefix of the texts that name a level.
const ZSTD: &str = "zstd";

impl Compression {
    /// Whether the level exists.
    pub(crate) fn is_sensible(self) -> bool {
        !matches!(self, Compression::Zstd { level } if !LEVELS.contains(&level))
    }

    /// Whether this program was built with the features that this needs.
    pub fn is_built_in(self) -> bool {
        cfg!(feature = "zstd") || !matches!(self, Compression::Zstd { .. })
    }
}

/// True: LZ4. False: none.
impl From<bool> for Compression {
    fn from(compress: bool) -> Self {
        if compress { Compression::Lz4 } else { Compression::None }
    }
}

/// Parses `none`, `lz4`, or `zstd:` and a level. Also accepts `true` and `false`, from options that
/// older stores kept.
impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("'{text}' is none of: none, lz4, zstd:1 to zstd:22");
        match text {
            "none" | "false" | "no" | "off" | "0" => Ok(Compression::None),
            "lz4" | "true" | "yes" | "on" | "1" => Ok(Compression::Lz4),
            ZSTD => Ok(Compression::Zstd { level: LEVEL }),
            _ => {
                let level = text.strip_prefix(ZSTD).and_then(|rest| rest.strip_prefix(':'));
                let level = level.and_then(|level| level.parse().ok()).ok_or_else(unknown)?;
                let zstd = Compression::Zstd { level };
                zstd.is_sensible().then_some(zstd).ok_or_else(unknown)
            }
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zstd { level } => write!(f, "{ZSTD}:{level}"),
        }
    }
}

/// How a merge compresses its output, and how large that becomes.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    pub(crate) compression: Compression,
    /// The maximum size of a dictionary in bytes. 0: none is made.
    pub(crate) dictionary_bytes: usize,
    /// Bytes of entries that a table has at most, about. Each table has its own dictionary.
    pub(crate) table_bytes: u64,
}

/// The forms of a body, by their numbers on disk.
pub(crate) mod forms {
    pub(crate) const PLAIN: u8 = 0;
    pub(crate) const LZ4: u8 = 1;
    pub(crate) const ZSTD: u8 = 2;
    pub(crate) const ZSTD_WITH_DICTIONARY: u8 = 3;
}

/// Returns the name of a form. `None`: the form is unknown.
pub(crate) fn form_name(form: u8) -> Option<&'static str> {
    match form {
        forms::PLAIN => Some("none"),
        forms::LZ4 => Some("lz4"),
        forms::ZSTD => Some("zstd"),
        forms::ZSTD_WITH_DICTIONARY => Some("zstd, with the dictionary"),
        _ => None,
    }
}

/// Maximum compression ratio that is accepted. It is the limit of LZ4; what Zstandard would shrink
/// further is stored with LZ4.
pub(crate) const RATIO_MAX: usize = 255;

/// The maximum length of a dictionary. A table that claims a longer one is damaged.
pub(crate) const DICTIONARY_BYTES_MAX: usize = 1 << 20;

/// The feature of this crate that Zstandard needs.
pub(crate) const FEATURE: &str = "zstd";

/// Why bytes could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The bytes are damaged.
    Damaged(&'static str),
    /// The program was built without the feature of this name.
    #[cfg_attr(feature = "zstd", expect(dead_code, reason = "then nothing is lacking"))]
    Lacks(&'static str),
}

impl From<Corrupt> for Unreadable {
    fn from(corrupt: Corrupt) -> Self {
        Unreadable::Damaged(corrupt.what)
    }
}
