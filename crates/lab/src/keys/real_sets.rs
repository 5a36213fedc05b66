//! Real sets of keys, which `scripts/fetch-keys.py` downloads into a folder. Machines without a
//! network use their stand-ins.
//! ```text
//! file                 what it has                             stand-in (laws/), alike in
//! osm.u64le            vertices of time zones, OpenStreetMap   borders: gaps of all magnitudes
//! coast.u64le          vertices of coast lines, GSHHG          borders, more and longer: same
//! ipv4.u64le           first addresses of networks by city     networks: trailing zeros
//! ipv4-ranges.u64le    both ends of networks by country        ranges: half of all gaps are one
//! ipv6.u64le           upper halves of their first addresses   networks6: trailing zeros
//! words.txt            words of many languages                 vocabulary: shared stems
//! english.txt          a large list of English words           vocabulary of one language
//! packages.txt         names of the packages of Debian         packages: shared begins and ends
//! flights.txt          departures in the United States         schedule: long shared prefixes
//! ```

use std::path::{Path, PathBuf};

use crate::keys::dist::FileFormat;

/// A set of real keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealSet {
    /// Vertices of the borders of time zones, as Morton codes (OpenStreetMap).
    Osm,
    /// Vertices of coast lines, as Morton codes.
    Coast,
    /// First addresses of networks by city (IPv4).
    Ipv4,
    /// Both ends of networks by country (IPv4).
    Ipv4Ranges,
    /// Upper halves of the first addresses of networks by country (IPv6).
    Ipv6,
    /// Words of many languages.
    Words,
    /// English words.
    English,
    /// Names of Debian packages.
    Packages,
    /// Departures: origin, destination, month, day, hour, minute.
    Flights,
}

/// The folder of downloaded keys, unless the environment names another one.
const FOLDER: &str = "data/fetched";
const FOLDER_VARIABLE: &str = "TROMMEL_KEYS";

impl RealSet {
    /// All real sets.
    pub const ALL: [RealSet; 9] = [
        RealSet::Osm,
        RealSet::Coast,
        RealSet::Ipv4,
        RealSet::Ipv4Ranges,
        RealSet::Ipv6,
        RealSet::Words,
        RealSet::English,
        RealSet::Packages,
        RealSet::Flights,
    ];

    /// Returns the name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            RealSet::Osm => "osm",
            RealSet::Coast => "coast",
            RealSet::Ipv4 => "ipv4",
            RealSet::Ipv4Ranges => "ipv4-ranges",
            RealSet::Ipv6 => "ipv6",
            RealSet::Words => "words",
            RealSet::English => "english",
            RealSet::Packages => "packages",
            RealSet::Flights => "flights",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Returns the format of its file.
    pub(crate) fn format(self) -> FileFormat {
        match self {
            RealSet::Osm | RealSet::Coast => FileFormat::U64le,
            RealSet::Ipv4 | RealSet::Ipv4Ranges | RealSet::Ipv6 => FileFormat::U64le,
            RealSet::Words | RealSet::English => FileFormat::Lines,
            RealSet::Packages | RealSet::Flights => FileFormat::Lines,
        }
    }

    /// Returns the path of its file in a folder, whether or not the file exists.
    pub(crate) fn path(self, folder: &Path) -> PathBuf {
        let ending = match self.format() {
            FileFormat::U64le => "u64le",
            FileFormat::Lines => "txt",
        };
        folder.join(format!("{}.{ending}", self.name()))
    }
}

/// Returns the folder of downloaded keys.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(FOLDER_VARIABLE).map_or_else(|| FOLDER.into(), PathBuf::from)
}
