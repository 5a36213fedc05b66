//! The sources of keys by name, and the formats of files of keys.
//! ```text
//! a law           uniform, normal, timestamps, emails, ...     draws (laws/)
//! user-time, ...  a law of groups: one key in eight is held out (laws/groups.rs)
//! ids             0, 1, 2, ... without one in eleven           dense
//! natural-earth   the keys that ship
//! osm, words, ... a real set that was fetched, else its stand-in law (real_sets.rs)
//! file:, sosd:    the keys of a file
//! ```
//! Invariant: a name in a report works on the command line, too, and gives the same keys.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::LabError;
use crate::keys::real_sets::RealSet;

/// A source of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dist {
    /// 50 random bits.
    Uniform,
    /// 64 random bits (as in the SuRF paper, section 4).
    Uniform64,
    /// A normal distribution over 2^50 (GRF paper, section 6.1).
    Normal,
    /// A lognormal distribution over 2^50 (as in SOSD).
    Lognormal,
    /// A thousand clusters; their widths span six orders of magnitude.
    Clustered,
    /// Numbers from 0 on; one in eleven, at random, is not stored.
    Ids,
    /// Moments of a year in nanoseconds: more by day than by night, and half of them in bursts.
    Timestamps,
    /// A time and one of 2,000 sensors, 16 bytes (SuRF paper, section 6).
    Sensors,
    /// Addresses with their host reversed, `com.example@name` (as in the SuRF paper, section 4).
    Emails,
    /// URLs of pages, whose first bytes are alike.
    Urls,
    /// Rows of users: `user`, 8 digits, `time`, 8 digits.
    UserTime,
    /// Like `UserTime`, but a user's rows come in sessions.
    UserSessions,
    /// Both ends of time intervals, in microseconds.
    Intervals,
    /// Reversed host names with paths.
    Hosts,
    /// Random UUIDs, 16 bytes.
    Uuid4,
    /// Random UUIDs as text, 36 bytes.
    Uuid4Text,
    /// UUIDs that begin with a time, 16 bytes.
    Uuid7,
    /// UUIDs that begin with a time, as text, 36 bytes.
    Uuid7Text,
    /// Hexadecimal digests, in folders named by their first digits.
    HexDigests,
    /// Tenant, type and id in JSON syntax.
    JsonComposite,
    /// The keys that ship with Trommel: vertices of borders and coasts.
    NaturalEarth,
    /// A real set if it was downloaded, or else its stand-in.
    Real(RealSet),
    /// The stand-in of a real set, even if that set was downloaded.
    StandIn(RealSet),
    /// The keys of a file, of which every eighth is held out.
    File(PathBuf),
    /// The keys of a binary file of SOSD, of which every eighth is held out.
    Sosd(PathBuf),
}

const NAMED: [(&str, Dist); 21] = [
    ("uniform", Dist::Uniform),
    ("uniform64", Dist::Uniform64),
    ("normal", Dist::Normal),
    ("lognormal", Dist::Lognormal),
    ("clustered", Dist::Clustered),
    ("ids", Dist::Ids),
    ("timestamps", Dist::Timestamps),
    ("sensors", Dist::Sensors),
    ("emails", Dist::Emails),
    ("urls", Dist::Urls),
    ("user-time", Dist::UserTime),
    ("user-sessions", Dist::UserSessions),
    ("intervals", Dist::Intervals),
    ("hosts", Dist::Hosts),
    ("uuid4", Dist::Uuid4),
    ("uuid4-text", Dist::Uuid4Text),
    ("uuid7", Dist::Uuid7),
    ("uuid7-text", Dist::Uuid7Text),
    ("hex-digests", Dist::HexDigests),
    ("json-composite", Dist::JsonComposite),
    ("natural-earth", Dist::NaturalEarth),
];
const STAND_IN: &str = "-stand-in";

impl Dist {
    /// Returns the known names.
    pub fn known() -> String {
        let laws = NAMED.map(|(name, _)| name);
        let sets = RealSet::ALL.map(RealSet::name);
        let names: Vec<&str> = laws.into_iter().chain(sets).collect();
        format!("{}, file:PATH, sosd:PATH", names.join(", "))
    }

    /// Replaces a real set that is not in the folder by its stand-in.
    pub(crate) fn in_folder(&self, folder: &Path) -> Dist {
        match self {
            Dist::Real(set) if !set.path(folder).is_file() => Dist::StandIn(*set),
            other => other.clone(),
        }
    }

    /// Whether the keys are a fixed set. Requires: `in_folder` returned this value.
    pub(crate) fn is_set(&self) -> bool {
        matches!(self, Dist::NaturalEarth | Dist::Real(_) | Dist::File(_) | Dist::Sosd(_))
    }
}

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dist::File(path) => write!(f, "file:{}", path.display()),
            Dist::Sosd(path) => write!(f, "sosd:{}", path.display()),
            Dist::Real(set) => f.write_str(set.name()),
            Dist::StandIn(set) => write!(f, "{}{STAND_IN}", set.name()),
            named => {
                let known = NAMED.iter().find(|(_, dist)| dist == named);
                f.write_str(known.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Dist {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let path = |kind| name.strip_prefix(kind).filter(|path| !path.is_empty());
        if let Some(path) = path("file:") {
            return Ok(Dist::File(path.into()));
        }
        if let Some(path) = path("sosd:") {
            return Ok(Dist::Sosd(path.into()));
        }
        let law = NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, dist)| dist);
        let real = || RealSet::named(name).map(Dist::Real);
        let stand_in = || RealSet::named(name.strip_suffix(STAND_IN)?).map(Dist::StandIn);
        law.or_else(real).or_else(stand_in).ok_or_else(|| {
            let known = Dist::known();
            LabError::Plan(format!("there is no distribution '{name}'; there are: {known}"))
        })
    }
}

/// The format of a file of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One key per line.
    Lines,
    /// Eight-byte numbers, little-endian.
    U64le,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [FileFormat; 2] = [FileFormat::Lines, FileFormat::U64le];

    /// Returns the name in commands.
    pub fn name(self) -> &'static str {
        match self {
            FileFormat::Lines => "lines",
            FileFormat::U64le => "u64le",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(FileFormat::name).join(", ");
            LabError::Plan(format!("there is no file format '{name}'; there are: {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_unknown_ones_list_the_known() {
        let laws = NAMED.map(|(name, _)| name);
        let others = ["file:a/b", "sosd:c", "osm", "words-stand-in"];
        for name in laws.into_iter().chain(RealSet::ALL.map(RealSet::name)).chain(others) {
            assert_eq!(name.parse::<Dist>().expect("known").to_string(), name);
        }
        for unknown in ["zipf", "file:", "sosd:", "", "-stand-in", "uniform-stand-in"] {
            let message = unknown.parse::<Dist>().expect_err("unknown").to_string();
            assert!(message.contains("uniform, uniform64, normal, lognormal"), "{message}");
            assert!(message.contains("osm, ") && message.contains("sosd:PATH"), "{message}");
        }
        let message = "u32".parse::<FileFormat>().expect_err("unknown").to_string();
        assert!(message.contains("lines, u64le"), "{message}");
    }

    #[test]
    fn a_set_that_was_not_fetched_is_its_stand_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let (osm, osm_stand_in) = (Dist::Real(RealSet::Osm), Dist::StandIn(RealSet::Osm));
        assert_eq!(osm.in_folder(folder.path()), osm_stand_in);
        assert!(!osm_stand_in.is_set());
        std::fs::write(RealSet::Osm.path(folder.path()), [0; 80]).expect("written");
        assert_eq!(osm.in_folder(folder.path()), osm);
        assert!(osm.is_set());
        assert_eq!(osm_stand_in.in_folder(folder.path()), osm_stand_in);
        assert_eq!(Dist::Ids.in_folder(folder.path()), Dist::Ids);
    }
}
