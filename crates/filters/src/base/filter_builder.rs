//! A builder for hosts that call a filter's builder through `&mut self`.
//! ```text
//! add(&mut self), add, add ──> finish(&mut self) ──> bytes        add, add ──> finish ──> bytes
//! ```
//! Invariant: if a key came out of order, `finish` returns an error, never a filter that denies a
//! key.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::base::any_filter::AnyFilterBuilder;
use crate::base::filter::OutOfOrder;
use crate::base::kind::FilterOptions;

/// Builds filters of one table, one after the other. It suits programs that call their builders
/// through `&mut self`.
///
/// ```
/// use trommel_filters::{AlignedBytes, FilterBuilder, FilterOptions, kinds};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut builder = FilterBuilder::new(FilterOptions::new(kinds::SURF_REAL, 16.0));
/// builder.add(b"bern")?;
/// builder.add(b"zug")?;
/// let filter = kinds::SURF_REAL.read(AlignedBytes::from_slice(&builder.finish()?))?;
/// assert!(filter.may_contain_prefix(b"be") && !filter.may_contain_prefix(b"x"));
/// # Ok(())
/// # }
/// ```
pub struct FilterBuilder {
    options: FilterOptions,
    builder: Box<dyn AnyFilterBuilder>,
    keys: usize,
    refused: Option<OutOfOrder>,
}

impl FilterBuilder {
    /// A builder without keys.
    pub fn new(options: FilterOptions) -> FilterBuilder {
        FilterBuilder { builder: options.builder(), options, keys: 0, refused: None }
    }

    /// Adds the next key. Keys come in ascending order. Equal keys in a row count once.
    ///
    /// # Errors
    /// `key` is below the last one. [`finish`](Self::finish) then fails, too.
    pub fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.keys += 1;
        let added = self.builder.add(key);
        if let Err(refused) = &added {
            self.refused.get_or_insert_with(|| refused.clone());
        }
        added
    }

    /// The number of keys added since the last `finish`, duplicates included.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Returns the bytes of a filter of the keys added since the last `finish`, and leaves the
    /// builder empty.
    ///
    /// # Errors
    /// A key came out of order, so there is no such filter.
    pub fn finish(&mut self) -> Result<Vec<u8>, OutOfOrder> {
        let builder = core::mem::replace(&mut self.builder, self.options.builder());
        self.keys = 0;
        match self.refused.take() {
            Some(refused) => Err(refused),
            None => Ok(builder.finish()),
        }
    }
}

impl fmt::Debug for FilterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::AlignedBytes;
    use crate::kinds::SURF_BASE;

    #[test]
    fn a_builder_builds_one_filter_after_the_other() {
        let mut builder = FilterBuilder::new(FilterOptions::new(SURF_BASE, 10.0));
        for key in [b"b", b"d"] {
            builder.add(key).expect("in order");
            assert_eq!(builder.keys(), 1);
            let bytes = builder.finish().expect("in order");
            let filter = SURF_BASE.read(AlignedBytes::from_slice(&bytes)).expect("just built");
            assert_eq!(filter.bytes(), bytes);
            assert!(filter.may_contain(key) && !filter.may_contain(b"c"));
        }
    }

    #[test]
    fn keys_out_of_order_make_no_filter() {
        let mut builder = FilterBuilder::new(FilterOptions::new(SURF_BASE, 10.0));
        builder.add(b"b").expect("in order");
        assert!(builder.add(b"a").is_err());
        builder.add(b"c").expect("above the last one that was taken");
        assert!(builder.finish().is_err());
        builder.add(b"a").expect("it begins anew");
        assert!(builder.finish().is_ok());
    }
}
