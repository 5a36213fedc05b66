//! Laws of keys that come in groups, such as all rows of a user or both ends of an interval.
//! ```text
//! group      all its keys are drawn at once
//! set        groups until there are enough keys; one key in eight, at random, is held out
//! ```
//! Single draws would separate what belongs together: a start would hardly ever have its end.

use super::intervals::Intervals;
use super::{networks6, ranges, users};
use crate::keys::dist::Dist;
use crate::keys::key_list::KeyList;
use crate::keys::real_sets::RealSet;
use crate::keys::rng::Rng;

/// A law of groups of keys.
#[derive(Clone, Debug)]
pub(crate) enum GroupLaw {
    /// The rows of a user.
    Users,
    UserSessions,
    /// Both ends of time intervals.
    Intervals(Intervals),
    /// Both ends of networks.
    Ranges,
    /// First addresses of consecutive networks.
    Networks6,
}

impl GroupLaw {
    /// Returns the law of a distribution. None: its keys do not come in groups.
    pub(crate) fn of(dist: &Dist) -> Option<Self> {
        match dist {
            Dist::UserTime => Some(GroupLaw::Users),
            Dist::UserSessions => Some(GroupLaw::UserSessions),
            Dist::Intervals => Some(GroupLaw::Intervals(Intervals::new())),
            Dist::StandIn(RealSet::Ipv4Ranges) => Some(GroupLaw::Ranges),
            Dist::StandIn(RealSet::Ipv6) => Some(GroupLaw::Networks6),
            _ => None,
        }
    }

    /// Adds the keys of one group, at least one.
    pub(crate) fn draw(&self, keys: &mut KeyList, rng: &mut Rng) {
        match self {
            GroupLaw::Users => users::draw(keys, rng),
            GroupLaw::UserSessions => users::draw_sessions(keys, rng),
            GroupLaw::Intervals(intervals) => intervals.draw(keys, rng),
            GroupLaw::Ranges => ranges::draw(keys, rng),
            GroupLaw::Networks6 => networks6::draw(keys, rng),
        }
    }
}
