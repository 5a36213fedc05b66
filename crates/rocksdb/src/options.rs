//! The options and the state of a door.

/// Options of the door in front of each column family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoorOptions {
    /// Memory of the filter in bits per key, without that of recent keys. More bits: fewer queries
    /// are passed on for nothing.
    pub bits_per_key: f64,
    /// Whether writers stop noting keys while there are no queries. The first queries after that
    /// find no filter, until they have cost about as much as the scan that builds one.
    pub may_sleep: bool,
    /// Whether closing writes the filter beside the database, so that the next opening needs no
    /// scan.
    pub is_kept: bool,
}

impl Default for DoorOptions {
    fn default() -> Self {
        DoorOptions { bits_per_key: 14.0, may_sleep: true, is_kept: true }
    }
}

/// The state of a door, and what it did since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DoorState {
    /// Whether it can answer at this moment.
    pub is_open: bool,
    /// Whether it can ever answer: the family's keys are ordered bytewise.
    pub is_able: bool,
    /// Keys of the filter; some are counted twice.
    pub keys: u64,
    /// Memory of the filter and of recent keys, in bytes.
    pub bytes: usize,
    /// Queries that the door answered from memory: nothing there.
    pub denied: u64,
    /// Queries that the door passed on to RocksDB.
    pub passed: u64,
    /// Passed keys since the last scan that RocksDB did not have.
    pub wasted: u64,
    /// Scans of the family that built a filter.
    pub scans: u64,
    /// Keys that these scans read.
    pub scanned_keys: u64,
}
