//! The laws, or distributions, that keys are drawn from.
//! ```text
//! numbers   uniform, normal, lognormal, clustered, timestamps; stand-ins: borders, networks
//! strings   emails, urls, sensors, hosts, JSON, UUIDs; stand-ins: vocabulary, schedule, packages
//! groups    users, intervals; stand-ins: ranges, networks6      keys that belong together
//! ```
//! Invariant: the parts of a law (clusters, bursts, hosts) are the same for every seed; only the
//! draws depend on the seed.

use crate::keys::dist::Dist;
use crate::keys::real_sets::RealSet;
use crate::keys::rng::Rng;
pub(crate) use groups::GroupLaw;
pub(crate) use numbers::NumberLaw;
pub(crate) use text::StringLaw;

mod borders;

mod bursts;

mod composites;

mod groups;

mod identifiers;

mod intervals;

mod names;

mod networks;

mod networks6;

mod numbers;

mod ranges;

mod schedule;

mod text;
mod traits;

pub(crate) mod users;

mod vocabulary;
mod weights;

/// A law of single keys.
#[derive(Clone, Debug)]
pub(crate) enum Law {
    /// Numbers, as keys of eight bytes.
    Numbers(NumberLaw),
    /// Byte strings.
    Strings(StringLaw),
}

impl Law {
    /// Returns the law of a distribution for `count` keys. None: its keys form a set, or come in
    /// groups.
    pub(crate) fn of(dist: &Dist, count: usize) -> Option<Self> {
        let law = match dist {
            Dist::Uniform => Law::Numbers(NumberLaw::Uniform),
            Dist::Uniform64 => Law::Numbers(NumberLaw::Uniform64),
            Dist::Normal => Law::Numbers(NumberLaw::Normal),
            Dist::Lognormal => Law::Numbers(NumberLaw::Lognormal),
            Dist::Clustered => Law::Numbers(NumberLaw::clustered()),
            Dist::Timestamps => Law::Numbers(NumberLaw::timestamps()),
            Dist::Sensors => Law::Strings(StringLaw::Sensors { events: count as u64 }),
            Dist::Emails => Law::Strings(StringLaw::emails()),
            Dist::Urls => Law::Strings(StringLaw::urls()),
            Dist::Hosts => Law::Strings(StringLaw::hosts()),
            Dist::JsonComposite => Law::Strings(StringLaw::json_keys()),
            Dist::Uuid4 => Law::Strings(StringLaw::uuids_of_4(false)),
            Dist::Uuid4Text => Law::Strings(StringLaw::uuids_of_4(true)),
            Dist::Uuid7 => Law::Strings(StringLaw::uuids_of_7(false)),
            Dist::Uuid7Text => Law::Strings(StringLaw::uuids_of_7(true)),
            Dist::HexDigests => Law::Strings(StringLaw::Digests),
            Dist::StandIn(set) => return Self::stand_in(*set),
            Dist::UserTime | Dist::UserSessions | Dist::Intervals => return None,
            Dist::Ids | Dist::NaturalEarth | Dist::Real(_) | Dist::File(_) | Dist::Sosd(_) => {
                return None;
            }
        };
        Some(law)
    }

    fn stand_in(set: RealSet) -> Option<Self> {
        let law = match set {
            RealSet::Osm => Law::Numbers(NumberLaw::borders()),
            RealSet::Coast => Law::Numbers(NumberLaw::coasts()),
            RealSet::Ipv4 => Law::Numbers(NumberLaw::networks()),
            RealSet::Ipv4Ranges | RealSet::Ipv6 => return None,
            RealSet::Words => Law::Strings(StringLaw::words()),
            RealSet::English => Law::Strings(StringLaw::english()),
            RealSet::Packages => Law::Strings(StringLaw::packages()),
            RealSet::Flights => Law::Strings(StringLaw::flights()),
        };
        Some(law)
    }

    /// Replaces `key` by a drawn key.
    pub(crate) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        key.clear();
        match self {
            Law::Numbers(law) => key.extend_from_slice(&law.draw(rng).to_be_bytes()),
            Law::Strings(law) => law.draw(key, rng),
        }
    }
}

#[cfg(test)]
mod tests;
