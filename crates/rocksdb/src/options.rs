//! What a door is given.

/// How the filter in front of each column family is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoorOptions {
    /// Memory of the filter in bits per key, keys of the last writes apart. More: fewer questions
    /// are passed on for nothing.
    pub bits_per_key: f64,
    /// Whether writers stop noting keys while nobody asks. The first questions after that find no
    /// filter, until they have cost about as much as the scan that makes one.
    pub may_sleep: bool,
    /// Whether the filter is written beside the database when it is closed, so that the next
    /// opening needs no scan.
    pub is_kept: bool,
}

impl Default for DoorOptions {
    fn default() -> Self {
        DoorOptions { bits_per_key: 14.0, may_sleep: true, is_kept: true }
    }
}

/// What a door has, and what it did since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DoorState {
    /// Whether it answers at this moment.
    pub is_open: bool,
    /// Whether it can ever answer: bytes order the keys of the family.
    pub is_able: bool,
    /// Keys of the filter, some twice.
    pub keys: u64,
    /// Memory of the filter and of recent keys.
    pub bytes: usize,
    /// Questions that were answered "there is nothing" from memory.
    pub denied: u64,
    /// Questions that were passed on to RocksDB.
    pub passed: u64,
    /// Keys among them that RocksDB did not have, since the last scan.
    pub wasted: u64,
    /// Scans of the family that made a filter.
    pub scans: u64,
    /// Keys that these scans read.
    pub scanned_keys: u64,
}
