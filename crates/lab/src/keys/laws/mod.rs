//! Laws that keys are drawn from.
//! ```text
//! numbers   uniform, normal, lognormal, clustered, timestamps; stand-ins: borders, networks
//! strings   emails, urls, sensors (16 bytes); stand-ins: vocabulary, schedule
//! ```
//! Invariant: what a law is made of (clusters, bursts, hosts) is the same for every seed; a seed
//! changes the draws alone.

use crate::keys::dist::Dist;
use crate::keys::real_sets::RealSet;
use crate::keys::rng::Rng;
pub(crate) use numbers::NumberLaw;
pub(crate) use text::StringLaw;

mod borders;

mod bursts;

mod names;

mod networks;

mod numbers;

mod schedule;

mod text;
mod traits;

mod vocabulary;
mod weights;

/// Draws keys.
#[derive(Clone, Debug)]
pub(crate) enum Law {
    /// Numbers, as keys of eight bytes.
    Numbers(NumberLaw),
    /// Byte strings.
    Strings(StringLaw),
}

impl Law {
    /// The law of that name for `count` keys. None: the distribution is a set of keys, not a law.
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
            Dist::StandIn(set) => Self::stand_in(*set),
            Dist::Ids | Dist::NaturalEarth | Dist::Real(_) | Dist::File(_) | Dist::Sosd(_) => {
                return None;
            }
        };
        Some(law)
    }

    fn stand_in(set: RealSet) -> Self {
        match set {
            RealSet::Osm => Law::Numbers(NumberLaw::borders()),
            RealSet::Coast => Law::Numbers(NumberLaw::coasts()),
            RealSet::Ipv4 => Law::Numbers(NumberLaw::networks()),
            RealSet::Words => Law::Strings(StringLaw::words()),
            RealSet::English => Law::Strings(StringLaw::english()),
            RealSet::Flights => Law::Strings(StringLaw::flights()),
        }
    }

    /// A key, in the place of what `key` has held.
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
