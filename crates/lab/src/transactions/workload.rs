//! The workloads by name.
//!
//! Invariant: a name means the same workload here and in the plan for another process.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::transactions::TransactionsPlan;
use crate::transactions::absent::Absent;
use crate::transactions::inserts::{Inserts, Way};
use crate::transactions::numbers::{Change, Numbers};
use crate::transactions::tpcc::Tpcc;
use crate::transactions::work::Work;

/// A workload of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TransactionWorkload {
    /// New keys by `put_if_absent`. One key in eight is stored already, or about to be.
    UniqueInsert,
    /// The same by transactions: get, put, commit.
    UniqueInsertTransaction,
    /// Increments of a few counters that all clients share.
    CounterHot,
    /// Increments of as many counters as there are keys.
    CounterCold,
    /// Ten gets and two puts.
    Read10Write2,
    /// A scan of many entries and a put.
    LongScan,
    /// New orders, payments and order status of TPC-C, with secondary indexes.
    Tpcc,
    /// `put_if_absent` of absent keys, compared with plain puts.
    PutIfAbsent,
}

impl TransactionWorkload {
    /// All workloads.
    pub const ALL: [TransactionWorkload; 8] = [
        TransactionWorkload::UniqueInsert,
        TransactionWorkload::UniqueInsertTransaction,
        TransactionWorkload::CounterHot,
        TransactionWorkload::CounterCold,
        TransactionWorkload::Read10Write2,
        TransactionWorkload::LongScan,
        TransactionWorkload::Tpcc,
        TransactionWorkload::PutIfAbsent,
    ];

    /// Returns the name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            TransactionWorkload::UniqueInsert => "unique-insert",
            TransactionWorkload::UniqueInsertTransaction => "unique-insert-tx",
            TransactionWorkload::CounterHot => "counter-hot",
            TransactionWorkload::CounterCold => "counter-cold",
            TransactionWorkload::Read10Write2 => "read10-write2",
            TransactionWorkload::LongScan => "long-scan",
            TransactionWorkload::Tpcc => "tpcc",
            TransactionWorkload::PutIfAbsent => "put-if-absent",
        }
    }

    /// Creates the workload for a new store.
    pub(crate) fn work(self, plan: &TransactionsPlan) -> Box<dyn Work> {
        let (keys, value_bytes, seed) = (plan.keys, plan.value_bytes, plan.stores.seed);
        let numbers =
            |change| -> Box<dyn Work> { Box::new(Numbers { change, keys, value_bytes, seed }) };
        let inserts =
            |way| -> Box<dyn Work> { Box::new(Inserts::new(way, keys, value_bytes, seed)) };
        match self {
            TransactionWorkload::UniqueInsert => inserts(Way::Single),
            TransactionWorkload::UniqueInsertTransaction => inserts(Way::Transaction),
            TransactionWorkload::CounterHot => numbers(Change::Count { counters: plan.hot }),
            TransactionWorkload::CounterCold => numbers(Change::Count { counters: keys }),
            TransactionWorkload::Read10Write2 => numbers(Change::Transfer),
            TransactionWorkload::LongScan => numbers(Change::Scan { entries: plan.scan_entries }),
            TransactionWorkload::Tpcc => Box::new(Tpcc::new(plan.warehouses, keys, seed)),
            TransactionWorkload::PutIfAbsent => Box::new(Absent { keys, value_bytes, seed }),
        }
    }
}

impl fmt::Display for TransactionWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TransactionWorkload {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let known = Self::ALL.into_iter().find(|known| known.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(TransactionWorkload::name).join(", ");
            LabError::Plan(format!("there is no workload '{name}'; there are: {names}"))
        })
    }
}

impl TryFrom<String> for TransactionWorkload {
    type Error = LabError;

    fn try_from(name: String) -> Result<Self, LabError> {
        name.parse()
    }
}

impl From<TransactionWorkload> for String {
    fn from(workload: TransactionWorkload) -> String {
        workload.to_string()
    }
}
