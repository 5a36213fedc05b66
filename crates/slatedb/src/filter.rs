//! The filter of one SST, and its builder, as SlateDB calls them.
//!
//! Invariant: a key that was added is never denied, in a point, prefix or range; whatever the bytes
//! are.

use std::ops::Bound;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterBuilder, FilterQuery, FilterTarget, RowEntry};
use trommel_filters::{AlignedBytes, AnyFilter, FilterKind, FilterOptions, KeyRange};

/// Shared: the cache may keep it beside who reads it.
#[derive(Clone)]
pub(crate) struct SstFilter(Arc<Read>);

enum Read {
    Filter(Box<dyn AnyFilter>),
    /// Bytes that cannot be read: they deny nothing, and are written as they were.
    Unreadable(Bytes),
}

impl SstFilter {
    /// Of a policy whose filters are of this kind.
    pub(crate) fn read(kind: &dyn FilterKind, data: &[u8]) -> SstFilter {
        let read = match kind.read(AlignedBytes::from_slice(data)) {
            Ok(filter) => Read::Filter(filter),
            Err(_) => Read::Unreadable(Bytes::copy_from_slice(data)),
        };
        SstFilter(Arc::new(read))
    }

    fn bytes(&self) -> &[u8] {
        match &*self.0 {
            Read::Filter(filter) => filter.bytes(),
            Read::Unreadable(bytes) => bytes,
        }
    }
}

impl Filter for SstFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        let Read::Filter(filter) = &*self.0 else { return true };
        match &query.target {
            FilterTarget::Point(key) => filter.may_contain(key),
            FilterTarget::Prefix(prefix) => filter.may_contain_prefix(prefix),
            FilterTarget::Range { lower, upper } => {
                let range = KeyRange::of_bounds(as_slice(lower), as_slice(upper));
                range.is_some_and(|range| filter.may_overlap(&range))
            }
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(self.bytes());
    }

    fn size(&self) -> usize {
        self.bytes().len()
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        // It was read into memory of its own, of its size.
        Arc::new(self.clone())
    }
}

fn as_slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

/// Builds the filter of an SST.
pub(crate) struct SstFilterBuilder {
    kind: &'static dyn FilterKind,
    builder: trommel_filters::FilterBuilder,
}

impl SstFilterBuilder {
    pub(crate) fn new(options: FilterOptions) -> SstFilterBuilder {
        SstFilterBuilder {
            kind: options.kind,
            builder: trommel_filters::FilterBuilder::new(options),
        }
    }
}

impl FilterBuilder for SstFilterBuilder {
    /// Of every entry: of a deletion, too, since a key that is denied hides it.
    fn add_entry(&mut self, entry: &RowEntry) {
        // What is not in order makes no filter: `build` tells.
        let _ = self.builder.add(&entry.key);
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        // No bytes are no filter: it denies nothing.
        let bytes = self.builder.finish().unwrap_or_default();
        Arc::new(SstFilter::read(self.kind, &bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slatedb::{FilterPolicy as _, ValueDeletable};
    use trommel_guards::kinds;

    use crate::TrommelFilterPolicy;

    fn entry(key: &[u8], seq: u64) -> RowEntry {
        let (key, value) = (Bytes::copy_from_slice(key), ValueDeletable::Tombstone);
        RowEntry { key, value, seq, create_ts: None, expire_ts: None }
    }

    fn range(lower: Bound<&'static [u8]>, upper: Bound<&'static [u8]>) -> FilterQuery {
        FilterQuery::range(lower.map(Bytes::from_static), upper.map(Bytes::from_static))
    }

    #[test]
    fn every_version_of_a_key_and_every_deletion_is_there() {
        let policy = TrommelFilterPolicy::cell(14.0);
        let mut builder = policy.builder();
        for (key, number) in [(&b"bern"[..], 9), (b"bern", 4), (b"zug", 2)] {
            builder.add_entry(&entry(key, number));
        }
        let filter = builder.build();
        assert!(filter.might_match(&FilterQuery::point(Bytes::from_static(b"bern"))));
        assert!(filter.might_match(&FilterQuery::prefix(Bytes::from_static(b"z"))));
        assert!(!filter.might_match(&FilterQuery::prefix(Bytes::from_static(b"x"))));
        use Bound::{Excluded, Included, Unbounded};
        assert!(filter.might_match(&range(Unbounded, Included(b"bern"))));
        assert!(!filter.might_match(&range(Included(b"c"), Excluded(b"y"))));
        assert!(!filter.might_match(&range(Included(b"zug"), Excluded(b"zug"))));
        assert!(filter.might_match(&range(Included(b"zug"), Unbounded)));
        let mut written = Vec::new();
        filter.encode(&mut written);
        assert_eq!(
            (written.len(), filter.clamp_allocated_size().size()),
            (filter.size(), filter.size())
        );
        let read = policy.decode(&written);
        assert!(read.might_match(&FilterQuery::point(Bytes::from_static(b"zug"))));
    }

    #[test]
    fn what_cannot_be_read_denies_nothing_and_stays_as_it_is() {
        for kind in kinds::TABLE_FILTERS {
            let policy = TrommelFilterPolicy::new(FilterOptions::new(kind, 12.0));
            for bytes in [&b""[..], b"not a filter", &[0xff; 300]] {
                let filter = policy.decode(bytes);
                assert!(filter.might_match(&FilterQuery::point(Bytes::from_static(b"a"))));
                assert!(filter.might_match(&range(Bound::Unbounded, Bound::Unbounded)));
                let mut written = Vec::new();
                filter.encode(&mut written);
                assert_eq!(written, bytes, "{}", kind.name());
            }
        }
    }

    #[test]
    fn parts_of_keys_are_asked_for() {
        let policy = TrommelFilterPolicy::prefixes(20.0, "5+10".parse().expect("levels"));
        let mut builder = policy.builder();
        builder.add_entry(&entry(b"user7time12", 1));
        let filter = builder.build();
        assert!(filter.might_match(&FilterQuery::prefix(Bytes::from_static(b"user7"))));
        assert!(!filter.might_match(&FilterQuery::prefix(Bytes::from_static(b"user8"))));
        use Bound::{Excluded, Included};
        assert!(filter.might_match(&range(Included(b"user7time10"), Excluded(b"user7time19"))));
        assert!(!filter.might_match(&range(Included(b"user7time20"), Excluded(b"user7time29"))));
    }

    #[test]
    fn entries_out_of_order_make_a_filter_that_denies_nothing() {
        let mut builder = TrommelFilterPolicy::gap(14.0).builder();
        ["b", "a"].iter().for_each(|key| builder.add_entry(&entry(key.as_bytes(), 1)));
        let filter = builder.build();
        assert!(filter.might_match(&FilterQuery::point(Bytes::from_static(b"q"))));
        assert_eq!(filter.size(), 0);
    }

    #[test]
    fn names_tell_kinds_apart_and_bits_not() {
        let name = |policy: TrommelFilterPolicy| policy.name().to_owned();
        assert_eq!(name(TrommelFilterPolicy::cell(10.0)), "trommel:cell:v1");
        assert_eq!(name(TrommelFilterPolicy::cell(20.0)), "trommel:cell:v1");
        assert_eq!(name(TrommelFilterPolicy::coded(14.0)), "trommel:coded:v1");
    }
}
