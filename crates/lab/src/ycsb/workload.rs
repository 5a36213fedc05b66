//! YCSB's core workloads: the shares of the kinds of operations.
//! ```text
//! A  read 50, update 50      B  read 95, update 5      C  read 100
//! D  read 95, insert 5       E  scan 95, insert 5      F  read 50, read and write back 50
//! ```
//! Invariant: the shares are those of Cooper et al., Benchmarking Cloud Serving Systems with YCSB
//! (2010), and of its core package.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::keys::rng::Rng;
use crate::ycsb::request::Distribution;

/// One of the core workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Workload {
    /// Update heavy.
    A,
    /// Read mostly.
    B,
    /// Read only.
    C,
    /// Reads of recently inserted keys.
    D,
    /// Short ranges.
    E,
    /// Read-modify-write.
    F,
}

/// An operation on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Gets a stored key.
    Read,
    /// Writes a stored key without reading it.
    Update,
    /// Writes a new key.
    Insert,
    /// Reads the entries at and after a stored key.
    Scan,
    /// Gets a value, then writes another one; both are timed as one operation.
    ReadModifyWrite,
}

impl Operation {
    /// All kinds.
    pub const ALL: [Operation; 5] = [
        Operation::Read,
        Operation::Update,
        Operation::Insert,
        Operation::Scan,
        Operation::ReadModifyWrite,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Scan => "scan",
            Operation::ReadModifyWrite => "read_modify_write",
        }
    }

    /// Whether it reads from the store.
    pub(crate) fn reads(self) -> bool {
        !matches!(self, Operation::Update | Operation::Insert)
    }
}

impl Workload {
    /// All core workloads.
    pub const ALL: [Workload; 6] =
        [Workload::A, Workload::B, Workload::C, Workload::D, Workload::E, Workload::F];

    /// The most entries of a scan. All lengths from 1 to this are equally likely.
    pub(crate) const SCAN_MAX: usize = 100;

    /// Returns the letter in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Workload::A => "A",
            Workload::B => "B",
            Workload::C => "C",
            Workload::D => "D",
            Workload::E => "E",
            Workload::F => "F",
        }
    }

    /// Returns the percentage of each kind of operation.
    pub fn shares(self) -> &'static [(Operation, u64)] {
        match self {
            Workload::A => &[(Operation::Read, 50), (Operation::Update, 50)],
            Workload::B => &[(Operation::Read, 95), (Operation::Update, 5)],
            Workload::C => &[(Operation::Read, 100)],
            Workload::D => &[(Operation::Read, 95), (Operation::Insert, 5)],
            Workload::E => &[(Operation::Scan, 95), (Operation::Insert, 5)],
            Workload::F => &[(Operation::Read, 50), (Operation::ReadModifyWrite, 50)],
        }
    }

    /// Returns the default distribution of keys.
    pub fn distribution(self) -> Distribution {
        match self {
            Workload::D => Distribution::Latest(Distribution::EXPONENT),
            _ => Distribution::Zipfian(Distribution::EXPONENT),
        }
    }

    /// Returns the percentage of a kind of operation.
    pub(crate) fn share(self, operation: Operation) -> u64 {
        self.shares().iter().find(|(kind, _)| *kind == operation).map_or(0, |(_, share)| *share)
    }

    /// Draws the next operation.
    pub(crate) fn draw(self, rng: &mut Rng) -> Operation {
        let mut drawn = rng.below(100);
        for (operation, share) in self.shares() {
            if drawn < *share {
                return *operation;
            }
            drawn -= share;
        }
        unreachable!("shares are of a hundred")
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let known = Self::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| {
            LabError::Plan(format!("there is no workload '{name}'; there are: A, B, C, D, E, F"))
        })
    }
}

impl TryFrom<String> for Workload {
    type Error = LabError;

    fn try_from(name: String) -> Result<Self, LabError> {
        name.parse()
    }
}

impl From<Workload> for String {
    fn from(workload: Workload) -> String {
        workload.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_core_package() {
        let share = |workload: Workload| Operation::ALL.map(|kind| workload.share(kind));
        assert_eq!(share(Workload::A), [50, 50, 0, 0, 0]);
        assert_eq!(share(Workload::B), [95, 5, 0, 0, 0]);
        assert_eq!(share(Workload::C), [100, 0, 0, 0, 0]);
        assert_eq!(share(Workload::D), [95, 0, 5, 0, 0]);
        assert_eq!(share(Workload::E), [0, 0, 5, 95, 0]);
        assert_eq!(share(Workload::F), [50, 0, 0, 0, 50]);
    }

    #[test]
    fn operations_come_in_these_shares() {
        const DRAWS: u64 = 100_000;
        for workload in Workload::ALL {
            let mut rng = Rng::new(7);
            let mut counts = [0u64; 5];
            (0..DRAWS).for_each(|_| counts[workload.draw(&mut rng) as usize] += 1);
            for (kind, count) in Operation::ALL.into_iter().zip(counts) {
                let expected = (DRAWS * workload.share(kind) / 100) as f64;
                let noise = 5.0 * expected.sqrt();
                assert!((count as f64 - expected).abs() <= noise, "{workload}: {kind:?} {count}");
            }
        }
    }

    #[test]
    fn names_are_read_back_and_unknown_ones_list_the_known() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse::<Workload>().expect("known"), workload);
            let lower = workload.name().to_lowercase();
            assert_eq!(lower.parse::<Workload>().expect("known"), workload);
        }
        for unknown in ["G", "AB", "", "workloada"] {
            let message = unknown.parse::<Workload>().expect_err("unknown").to_string();
            assert!(message.contains("A, B, C, D, E, F"), "{message}");
        }
    }
}
