//! Fills a store before it is measured.
//! ```text
//! places 0, 1, 2 ... -> keys, and the values that belong to them -> batches -> flushed, settled
//! ```
//! Invariant: when filling returns, no flush and no merge is due.

use trommel::{Batch, Db};

use crate::error::Result;
use crate::keys::values::fill_value;
use crate::progress::Progress;

/// Keys in one batch.
const BATCH_KEYS: u64 = 1000;

/// Writes `keys` keys with values of `value_bytes` bytes. `key_of` gives the key of a place.
pub(crate) fn fill(
    db: &Db,
    (keys, value_bytes): (u64, usize),
    key_of: impl Fn(u64) -> [u8; 8],
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("filling", keys);
    let mut value = Vec::new();
    for first in (0..keys).step_by(BATCH_KEYS as usize) {
        let mut batch = Batch::new();
        let last = keys.min(first + BATCH_KEYS);
        for key in (first..last).map(&key_of) {
            fill_value(&mut value, &key, value_bytes);
            batch.put(key, &value);
        }
        db.write(batch)?;
        progress.advance(last - first);
        progress.look(db);
    }
    db.flush()?;
    Ok(db.settle()?)
}
