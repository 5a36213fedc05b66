//! Rows of users, the most common composite key: `user` 8 digits `time` 8 digits.
//! ```text
//! user            any of 10^8; has 1 to 18 rows, all as likely: 9.5 on average
//! user-time       a row at any of 10^8 moments
//! user-sessions   up to three sessions, anywhere; each as long as 10^2 to 10^5
//!                 a row in one of them, so long after its start as an exponential law says
//! ```
//! The statistic that matters: twelve bytes distinguish users, and rows of sessions are clustered.

use crate::keys::key_list::KeyList;
use crate::keys::rng::Rng;

/// Numbers of users and moments are below this.
pub(crate) const BELOW: u64 = 100_000_000;
/// The length of a key's prefix that ends with the user.
pub(crate) const USER_BYTES: usize = 12;

const ROWS_MOST: u64 = 18;
const SESSIONS_MOST: u64 = 3;
/// The shortest and the longest session, as powers of ten.
const LENGTHS: [f64; 2] = [2.0, 5.0];

/// Returns the row of a user at a moment. Requires: both are below `BELOW`.
pub(crate) fn row(user: u64, moment: u64) -> Vec<u8> {
    format!("user{user:08}time{moment:08}").into_bytes()
}

/// A session of a user.
struct Session {
    start: u64,
    length: f64,
}

impl Session {
    fn draw(rng: &mut Rng) -> Self {
        let start = rng.below(BELOW);
        let exponent = LENGTHS[0] + (LENGTHS[1] - LENGTHS[0]) * rng.unit();
        Session { start, length: 10f64.powf(exponent) }
    }

    fn moment(&self, rng: &mut Rng) -> u64 {
        let behind = -(1.0 - rng.unit()).ln() * self.length;
        (self.start + behind as u64) % BELOW
    }
}

/// Adds all rows of a user, at uniform moments.
pub(super) fn draw(keys: &mut KeyList, rng: &mut Rng) {
    let user = rng.below(BELOW);
    (0..1 + rng.below(ROWS_MOST)).for_each(|_| keys.push(&row(user, rng.below(BELOW))));
}

/// Adds all rows of a user, in sessions.
pub(super) fn draw_sessions(keys: &mut KeyList, rng: &mut Rng) {
    let user = rng.below(BELOW);
    let sessions = 1 + rng.below(SESSIONS_MOST);
    let sessions: Vec<Session> = (0..sessions).map(|_| Session::draw(rng)).collect();
    for _ in 0..1 + rng.below(ROWS_MOST) {
        let moment = sessions[rng.place(sessions.len())].moment(rng);
        keys.push(&row(user, moment));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn users_have_few_rows_that_crowd() {
        let (mut keys, mut rng) = (KeyList::new(), Rng::new(1));
        (0..2000).for_each(|_| draw_sessions(&mut keys, &mut rng));
        let mut moments: HashMap<&[u8], Vec<u64>> = HashMap::new();
        for key in keys.iter() {
            assert!(key.len() == 24 && key[..4] == *b"user" && key[12..16] == *b"time");
            let moment = std::str::from_utf8(&key[16..]).expect("digits").parse();
            moments.entry(&key[..USER_BYTES]).or_default().push(moment.expect("a number"));
        }
        assert!(moments.len() > 1990 && moments.values().all(|rows| rows.len() <= 36));
        assert!((18_000..20_000).contains(&keys.len()), "{} rows", keys.len());
        let mut near = 0;
        for rows in moments.values_mut() {
            rows.sort_unstable();
            near += rows.windows(2).filter(|pair| pair[1] - pair[0] < BELOW / 1000).count();
        }
        assert!(near > keys.len() / 2, "{near} rows are close behind another");
    }
}
