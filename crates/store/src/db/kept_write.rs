//! Writes of one key: each uses the memory of the last one that its thread has made.
//! ```text
//! put -> KEPT: nothing -> a new write            -> written, cleared -> KEPT
//! put -> KEPT          -> the same one, empty    -> written, cleared -> KEPT
//! ```
//! Invariant: what is kept is empty, and takes little memory.

use std::cell::Cell;

use crate::write::conflicts::Write;

/// More memory for a key and a value is not kept.
const KEPT_BYTES_MAX: usize = 4 << 10;

thread_local! {
    static KEPT: Cell<Option<Box<Write>>> = const { Cell::new(None) };
}

/// Does some work with an empty write. Whatever it leaves there is forgotten.
pub(super) fn with_write<T>(work: impl FnOnce(&mut Write) -> T) -> T {
    // A thread that ends has none any more, and may still write.
    let mut write = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let done = work(&mut write);
    write.clear_to(KEPT_BYTES_MAX);
    let _ = KEPT.try_with(|kept| kept.set(Some(write)));
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocation_counter::measure;

    #[test]
    fn nothing_of_a_write_is_kept_but_little_memory() {
        let long = vec![7_u8; 1 << 20];
        let taken = measure(|| {
            with_write(|write| {
                write.batch.only_if("key", None).put("key", &long);
                write.reads = Some(Box::default());
            });
        });
        assert!(taken.bytes_current < 2 * KEPT_BYTES_MAX as i64, "{taken:?}");
        with_write(|write| {
            assert!(write.batch.is_empty() && write.batch.take_expected().is_empty());
            assert!(write.conditions.is_empty() && write.reads.is_none());
        });
    }

    #[test]
    fn a_write_within_another_one_has_its_own() {
        with_write(|outer| {
            outer.batch.put("outer", "value");
            with_write(|inner| assert!(inner.batch.is_empty()));
            assert_eq!(outer.batch.len(), 1);
        });
    }
}
