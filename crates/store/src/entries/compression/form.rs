//! What there is to pack bytes with, and the names and numbers of it.
//! ```text
//! Compression   what an option asks for: none, lz4, zstd:3
//! forms         what lies beside a body: 0 plain, 1 LZ4, 2 Zstandard, 3 with a dictionary
//! ```
//! Invariant: a form's number never changes; what is asked for may be packed in a lesser form.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Corrupt;

/// How blocks are made smaller. Each block tells its own way, so a store can be opened with another
/// one at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// With LZ4: fast both ways.
    #[default]
    Lz4,
    /// With Zstandard: smaller and slower. It needs the feature `zstd` of this crate.
    Zstd {
        /// 1 to 22. More: slower writes, mostly smaller blocks. Reads take as long.
        level: u8,
    },
}

/// The levels that Zstandard has, and the one that is meant where none is named.
const LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
const LEVEL: u8 = 3;
/// What the texts begin with that name a level.
const ZSTD: &str = "zstd";

impl Compression {
    /// Whether there is such a level.
    pub(crate) fn is_sensible(self) -> bool {
        !matches!(self, Compression::Zstd { level } if !LEVELS.contains(&level))
    }

    /// Whether this program was built with what it needs.
    pub fn is_built_in(self) -> bool {
        cfg!(feature = "zstd") || !matches!(self, Compression::Zstd { .. })
    }
}

/// True: LZ4; false: none.
impl From<bool> for Compression {
    fn from(compress: bool) -> Self {
        if compress { Compression::Lz4 } else { Compression::None }
    }
}

/// `none`, `lz4`, or `zstd:` and a level. Also `true` and `false`, which older stores have kept.
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

/// How a merge packs what it writes, and how large that becomes.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    pub(crate) compression: Compression,
    /// The largest dictionary. 0: none is made.
    pub(crate) dictionary_bytes: usize,
    /// Each table has a dictionary, and about so many bytes of entries at most.
    pub(crate) table_bytes: u64,
}

/// The form of a body, as it is on disk.
pub(crate) mod forms {
    pub(crate) const PLAIN: u8 = 0;
    pub(crate) const LZ4: u8 = 1;
    pub(crate) const ZSTD: u8 = 2;
    pub(crate) const ZSTD_WITH_DICTIONARY: u8 = 3;
}

/// What people call a form. None: it is not known.
pub(crate) fn form_name(form: u8) -> Option<&'static str> {
    match form {
        forms::PLAIN => Some("none"),
        forms::LZ4 => Some("lz4"),
        forms::ZSTD => Some("zstd"),
        forms::ZSTD_WITH_DICTIONARY => Some("zstd, with the dictionary"),
        _ => None,
    }
}

/// What is packed has at most so many times its bytes. It is what LZ4 reaches; what Zstandard would
/// make still smaller is packed with LZ4.
pub(crate) const RATIO_MAX: usize = 255;

/// The longest dictionary. A table that claims a longer one is damaged.
pub(crate) const DICTIONARY_BYTES_MAX: usize = 1 << 20;

/// The feature of this crate that Zstandard needs.
pub(crate) const FEATURE: &str = "zstd";

/// Why there are no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// They are not as they were written.
    Damaged(&'static str),
    /// This program was built without the feature of this name.
    #[cfg_attr(feature = "zstd", expect(dead_code, reason = "then nothing is lacking"))]
    Lacks(&'static str),
}

impl From<Corrupt> for Unreadable {
    fn from(corrupt: Corrupt) -> Self {
        Unreadable::Damaged(corrupt.what)
    }
}
