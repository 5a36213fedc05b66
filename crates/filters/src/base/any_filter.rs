//! Table filters and their builders as trait objects.
//! ```text
//! Bloom: TableFilter               ──> dyn AnyFilter            blanket impl for every filter
//! BloomBuilder: TableFilterBuilder ──> dyn AnyFilterBuilder
//! ```
//! [`TableFilter`] is monomorphized for each filter and trace, so a probe contains no call. Here
//! each query costs one dynamic call.
//!
//! Invariant: the object gives the filter's answers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::{
    HashedKey, LowerBound, OutOfOrder, TableFilter, TableFilterBuilder, Trace, UpperBound,
};
use crate::base::key_list::KeyList;
use crate::base::kind::FilterKind;
use crate::base::query::KeyRange;
use crate::base::rank::CountBounds;

/// A table filter of any kind. Every [`TableFilter`] implements it.
pub trait AnyFilter: Send + Sync {
    /// See [`TableFilter::kind`].
    fn kind(&self) -> &'static dyn FilterKind;
    /// See [`TableFilter::bytes`].
    fn bytes(&self) -> &[u8];
    /// See [`TableFilter::size_bytes`].
    fn size_bytes(&self) -> usize;
    /// See [`TableFilter::may_contain`].
    fn may_contain(&self, key: &[u8]) -> bool;
    /// See [`TableFilter::may_contain_hashed`].
    fn may_contain_hashed(&self, key: &HashedKey<'_>) -> bool;
    /// See [`TableFilter::may_contain_traced`].
    fn may_contain_traced(&self, key: &HashedKey<'_>, trace: &mut dyn Trace) -> bool;
    /// See [`TableFilter::may_overlap`].
    fn may_overlap(&self, range: &KeyRange<'_>) -> bool;
    /// See [`TableFilter::may_overlap_traced`].
    fn may_overlap_traced(&self, range: &KeyRange<'_>, trace: &mut dyn Trace) -> bool;
    /// False: the table has no key that begins with `prefix`. True: it may have one.
    fn may_contain_prefix(&self, prefix: &[u8]) -> bool {
        self.may_overlap(&KeyRange::of_prefix(prefix, &mut Vec::new()))
    }
    /// See [`TableFilter::lower_bound`].
    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound>;
    /// See [`TableFilter::upper_bound`].
    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound>;
    /// See [`TableFilter::count`].
    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds>;
}

impl<F: TableFilter + Send + Sync> AnyFilter for F {
    fn kind(&self) -> &'static dyn FilterKind {
        TableFilter::kind(self)
    }

    fn bytes(&self) -> &[u8] {
        TableFilter::bytes(self)
    }

    fn size_bytes(&self) -> usize {
        TableFilter::size_bytes(self)
    }

    fn may_contain(&self, key: &[u8]) -> bool {
        TableFilter::may_contain(self, key)
    }

    fn may_contain_hashed(&self, key: &HashedKey<'_>) -> bool {
        TableFilter::may_contain_hashed(self, key)
    }

    fn may_contain_traced(&self, key: &HashedKey<'_>, mut trace: &mut dyn Trace) -> bool {
        TableFilter::may_contain_traced(self, key, &mut trace)
    }

    fn may_overlap(&self, range: &KeyRange<'_>) -> bool {
        TableFilter::may_overlap(self, range)
    }

    fn may_overlap_traced(&self, range: &KeyRange<'_>, mut trace: &mut dyn Trace) -> bool {
        TableFilter::may_overlap_traced(self, range, &mut trace)
    }

    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        TableFilter::lower_bound(self, key)
    }

    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        TableFilter::upper_bound(self, key)
    }

    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        TableFilter::count(self, range)
    }
}

/// A builder of any kind of table filter. Every [`TableFilterBuilder`] implements it.
pub trait AnyFilterBuilder: Send {
    /// See [`TableFilterBuilder::add`].
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder>;
    /// Adds keys as [`add`](Self::add) does, with one dynamic call for all of them. After an error
    /// the keys before the refused one are added.
    fn add_batch(&mut self, keys: &KeyList) -> Result<(), OutOfOrder>;
    /// See [`TableFilterBuilder::finish`].
    fn finish(self: Box<Self>) -> Vec<u8>;
}

impl<B: TableFilterBuilder + Send> AnyFilterBuilder for B {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        TableFilterBuilder::add(self, key)
    }

    fn add_batch(&mut self, keys: &KeyList) -> Result<(), OutOfOrder> {
        keys.iter().try_for_each(|key| TableFilterBuilder::add(self, key))
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        TableFilterBuilder::finish(*self)
    }
}
