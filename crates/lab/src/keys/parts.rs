//! The first part of a composite key.
//! ```text
//! user-time        user12345678|time00000042       sensors   time (8 bytes)|sensor
//! json-composite   {"tenant":"x",|"type":...       flights   JFKLAX|01172032
//! hosts            com.example.www/|path           emails    com.example@|name
//! urls             https://www.example.com/|path
//! ```
//! Invariant: a first part is a prefix of its key, and no first part is a prefix of another.

use crate::keys::dist::Dist;
use crate::keys::laws::users::USER_BYTES;
use crate::keys::real_sets::RealSet;

/// The rule that separates the first part of a key from the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstPart {
    /// The first part has this many bytes.
    Bytes(usize),
    /// It ends with the first such byte at or after this offset.
    Through(u8, usize),
}

const SENSOR_TIME_BYTES: usize = 8;
const ROUTE_BYTES: usize = 6;
const URL_BEGIN: &str = "https://";

const COMPOSITE: [(Dist, FirstPart); 9] = [
    (Dist::UserTime, FirstPart::Bytes(USER_BYTES)),
    (Dist::UserSessions, FirstPart::Bytes(USER_BYTES)),
    (Dist::JsonComposite, FirstPart::Through(b',', 0)),
    (Dist::Hosts, FirstPart::Through(b'/', 0)),
    (Dist::Sensors, FirstPart::Bytes(SENSOR_TIME_BYTES)),
    (Dist::Emails, FirstPart::Through(b'@', 0)),
    (Dist::Urls, FirstPart::Through(b'/', URL_BEGIN.len())),
    (Dist::Real(RealSet::Flights), FirstPart::Bytes(ROUTE_BYTES)),
    (Dist::StandIn(RealSet::Flights), FirstPart::Bytes(ROUTE_BYTES)),
];

impl FirstPart {
    /// Returns the rule of a distribution. None: its keys have only one part.
    pub(crate) fn of(dist: &Dist) -> Option<FirstPart> {
        COMPOSITE.into_iter().find(|(composite, _)| composite == dist).map(|(_, part)| part)
    }

    /// Returns the names of the distributions whose keys have several parts.
    pub(crate) fn known() -> String {
        COMPOSITE.map(|(dist, _)| dist.to_string()).join(", ")
    }

    /// Returns the first part of a key. None: the key has no other part.
    pub(crate) fn of_key(self, key: &[u8]) -> Option<&[u8]> {
        let end = match self {
            FirstPart::Bytes(bytes) => bytes,
            FirstPart::Through(mark, behind) => {
                let rest = key.get(behind..)?;
                behind + rest.iter().position(|byte| *byte == mark)? + 1
            }
        };
        (end < key.len()).then(|| &key[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::dist::FileFormat;
    use crate::keys::keyset::KeySet;

    #[test]
    fn first_parts_end_where_a_person_would_cut() {
        for (dist, key, first) in [
            (Dist::UserTime, "user00000001time00000002", "user00000001"),
            (Dist::JsonComposite, r#"{"tenant":"a","type":"b","id":1}"#, r#"{"tenant":"a","#),
            (Dist::Hosts, "com.a.www/b/c", "com.a.www/"),
            (Dist::Emails, "com.a@b", "com.a@"),
            (Dist::Urls, "https://www.a.com/b/c", "https://www.a.com/"),
            (Dist::StandIn(RealSet::Flights), "JFKLAX01172032", "JFKLAX"),
        ] {
            let part = FirstPart::of(&dist).expect("composite");
            assert_eq!(part.of_key(key.as_bytes()), Some(first.as_bytes()), "{dist}");
            assert_eq!(part.of_key(&key.as_bytes()[..3]), None);
        }
        assert!(FirstPart::of(&Dist::Uniform).is_none());
        assert!(FirstPart::known().starts_with("user-time, user-sessions, "));
    }

    #[test]
    fn every_key_of_a_composite_set_has_one() {
        for (dist, part) in COMPOSITE {
            let keys = KeySet::new(&dist, FileFormat::Lines, Some(2000), 1).expect("keys");
            assert!(keys.stored().iter().all(|key| part.of_key(key).is_some()), "{dist}");
        }
    }
}
