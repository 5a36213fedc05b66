//! The laws of strings.
//! ```text
//! emails    com.boducal@jane.sovit           host reversed: the n-th of 200,000 has a share of
//!                                            1 / n; then one of four kinds of names
//! urls      https://www.boducal.com/tafe/2019/07/gone-wuhat-dose.html
//!                                            the n-th of 100,000 hosts has a share of 1 / n
//! sensors   time (8 bytes) | sensor (8 bytes)
//!                                            2,000 sensors, an event each 0.2 s (Poisson)
//! others    names of parts (composites.rs), UUIDs and digests (identifiers.rs)
//! ```
//! The statistic that matters is the prefix that neighbours share. In e-mail addresses and URLs,
//! all keys of a popular host share it.

use super::composites::{Hosts, JsonKeys, Packages};
use super::identifiers::{Uuids, push_digest};
use super::names::push_name;
use super::schedule::Schedule;
use super::traits::trait_of;
use super::vocabulary::Vocabulary;
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// A law of byte strings.
#[derive(Clone, Debug)]
pub(crate) enum StringLaw {
    Emails(Emails),
    Urls(Urls),
    /// This many events; with more of them the time span grows.
    Sensors {
        events: u64,
    },
    Words(Vocabulary),
    Flights(Schedule),
    Packages(Packages),
    Hosts(Hosts),
    JsonKeys(JsonKeys),
    Uuids(Uuids),
    Digests,
}

impl StringLaw {
    pub(super) fn emails() -> Self {
        StringLaw::Emails(Emails {
            hosts: Zipf::new(1.0, 200_000),
            firsts: Zipf::new(0.8, 3000),
            lasts: Zipf::new(0.6, 200_000),
        })
    }

    pub(super) fn urls() -> Self {
        StringLaw::Urls(Urls {
            hosts: Zipf::new(1.0, 100_000),
            sections: Zipf::new(1.0, 20),
            words: Zipf::new(0.7, 20_000),
        })
    }

    pub(super) fn words() -> Self {
        StringLaw::Words(Vocabulary::of_many_languages())
    }

    pub(super) fn english() -> Self {
        StringLaw::Words(Vocabulary::of_one_language())
    }

    /// Returns a law that is soon exhausted.
    #[cfg(test)]
    pub(crate) fn few_words() -> Self {
        StringLaw::Words(Vocabulary::of_few_stems())
    }

    pub(super) fn flights() -> Self {
        StringLaw::Flights(Schedule::new())
    }

    pub(super) fn packages() -> Self {
        StringLaw::Packages(Packages::new())
    }

    pub(super) fn hosts() -> Self {
        StringLaw::Hosts(Hosts::new())
    }

    pub(super) fn json_keys() -> Self {
        StringLaw::JsonKeys(JsonKeys::new())
    }

    pub(super) fn uuids_of_4(is_text: bool) -> Self {
        StringLaw::Uuids(Uuids::version_4(is_text))
    }

    pub(super) fn uuids_of_7(is_text: bool) -> Self {
        StringLaw::Uuids(Uuids::version_7(is_text))
    }

    /// Appends a drawn key.
    pub(crate) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        match self {
            StringLaw::Emails(emails) => emails.draw(key, rng),
            StringLaw::Urls(urls) => urls.draw(key, rng),
            StringLaw::Sensors { events } => sensor_event(*events, key, rng),
            StringLaw::Words(vocabulary) => vocabulary.draw(key, rng),
            StringLaw::Flights(schedule) => schedule.draw(key, rng),
            StringLaw::Packages(packages) => packages.draw(key, rng),
            StringLaw::Hosts(hosts) => hosts.draw(key, rng),
            StringLaw::JsonKeys(keys) => keys.draw(key, rng),
            StringLaw::Uuids(uuids) => uuids.draw(key, rng),
            StringLaw::Digests => push_digest(key, rng),
        }
    }
}

const SENSORS: u64 = 2000;
/// The mean time between two events of all sensors; of one sensor it is 0.2 s.
const EVENT_GAP_NS: u64 = 100_000;

/// Draws an event. In a Poisson process with a given number of events, each event is uniform over
/// the time span.
fn sensor_event(events: u64, key: &mut Vec<u8>, rng: &mut Rng) {
    let moment = rng.below(events.max(1).saturating_mul(EVENT_GAP_NS));
    key.extend_from_slice(&moment.to_be_bytes());
    key.extend_from_slice(&rng.below(SENSORS).to_be_bytes());
}

/// The top-level domains: forward, reversed, and how many hosts in twenty have them.
const ENDS: [(&str, &str, u64); 8] = [
    ("com", "com", 10),
    ("org", "org", 2),
    ("net", "net", 2),
    ("de", "de", 2),
    ("co.uk", "uk.co", 1),
    ("fr", "fr", 1),
    ("jp", "jp", 1),
    ("edu", "edu", 1),
];

/// Returns the top-level domain of the n-th host, and the bits of its name.
pub(super) fn host(number: u64) -> ((&'static str, &'static str), u64) {
    let drawn = trait_of(31, number);
    let mut left = drawn % 20;
    for (forward, reversed, share) in ENDS {
        if left < share {
            return ((forward, reversed), drawn / 20);
        }
        left -= share;
    }
    unreachable!("twenty are all")
}

/// E-mail addresses with the host reversed.
#[derive(Clone, Debug)]
pub(crate) struct Emails {
    hosts: Zipf,
    firsts: Zipf,
    lasts: Zipf,
}

impl Emails {
    fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let ((_, end), name) = host(self.hosts.draw(rng));
        key.extend_from_slice(end.as_bytes());
        key.push(b'.');
        push_name(key, name, 2, 2);
        key.push(b'@');
        let first = trait_of(32, self.firsts.draw(rng));
        let last = trait_of(33, self.lasts.draw(rng));
        let begin = key.len();
        match rng.below(20) {
            0..7 => {
                push_name(key, first, 1, 2);
                key.push(b'.');
                push_name(key, last, 2, 2);
            }
            7..12 => {
                push_name(key, first, 1, 2);
                key.truncate(begin + 1);
                push_name(key, last, 2, 2);
            }
            12..17 => {
                push_name(key, first, 1, 2);
                let digits = 10u64.pow(1 + rng.below(4) as u32);
                key.extend_from_slice(rng.below(digits).to_string().as_bytes());
            }
            _ => push_name(key, rng.next_u64(), 2, 2),
        }
    }
}

/// Addresses of web pages.
#[derive(Clone, Debug)]
pub(crate) struct Urls {
    hosts: Zipf,
    sections: Zipf,
    words: Zipf,
}

impl Urls {
    fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let ((end, _), name) = host(self.hosts.draw(rng));
        key.extend_from_slice(b"https://www.");
        push_name(key, name, 2, 2);
        key.extend_from_slice(format!(".{end}/").as_bytes());
        push_name(key, trait_of(name, self.sections.draw(rng)), 1, 2);
        if rng.below(2) == 0 {
            let date = format!("/{}/{:02}", 2005 + rng.below(20), 1 + rng.below(12));
            key.extend_from_slice(date.as_bytes());
        }
        for (place, _) in (0..2 + rng.below(4)).enumerate() {
            key.push(if place == 0 { b'/' } else { b'-' });
            push_name(key, trait_of(34, self.words.draw(rng)), 1, 2);
        }
        match rng.below(3) {
            0 => key.extend_from_slice(b".html"),
            1 => key.extend_from_slice(format!("-{}", rng.below(1_000_000)).as_bytes()),
            _ => key.push(b'/'),
        }
    }
}
