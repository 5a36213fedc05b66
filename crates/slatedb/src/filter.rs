//! The filter of one SST, and its builder, as SlateDB calls them.
//! ```text
//! | the filter, as its kind encodes it | its checksum, 8 bytes |
//! ```
//! Invariant: no point, prefix or range with an added key is denied, not even by damaged bytes.

use std::ops::Bound;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterBuilder, FilterQuery, FilterTarget, RowEntry};
use trommel_filters::hash::checksum;
use trommel_filters::{AlignedBytes, AnyFilter, FilterKind, FilterOptions, KeyRange};

/// Kinds leave checksums to the owner of their bytes: with a flipped bit, most would deny keys.
pub(crate) const CHECKSUM_BYTES: usize = size_of::<u64>();

/// A filter, shared between SlateDB's cache and its readers.
#[derive(Clone)]
pub(crate) struct SstFilter(Arc<Read>);

enum Read {
    /// A filter with its checksum.
    Filter(Box<dyn AnyFilter>, [u8; CHECKSUM_BYTES]),
    /// Bytes that cannot be read: they deny nothing, and are written back unchanged.
    Unreadable(Bytes),
}

impl SstFilter {
    /// Reads a filter of this kind.
    pub(crate) fn read(kind: &dyn FilterKind, data: &[u8]) -> SstFilter {
        let read = read(kind, data);
        SstFilter(Arc::new(read.unwrap_or_else(|| Read::Unreadable(Bytes::copy_from_slice(data)))))
    }

    /// Wraps what a builder of the kind made. No bytes are no filter, and deny nothing.
    fn of_built(kind: &dyn FilterKind, mut bytes: Vec<u8>) -> SstFilter {
        if !bytes.is_empty() {
            let sum = checksum(&bytes).to_le_bytes();
            bytes.extend_from_slice(&sum);
        }
        SstFilter::read(kind, &bytes)
    }
}

/// None: the bytes are damaged, or are no filter of this kind.
fn read(kind: &dyn FilterKind, data: &[u8]) -> Option<Read> {
    let (bytes, sum) = data.split_last_chunk::<CHECKSUM_BYTES>()?;
    if checksum(bytes).to_le_bytes() != *sum {
        return None;
    }
    let filter = kind.read(AlignedBytes::from_slice(bytes)).ok()?;
    (filter.kind().name() == kind.name()).then_some(Read::Filter(filter, *sum))
}

impl Filter for SstFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        let Read::Filter(filter, _) = &*self.0 else { return true };
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
        match &*self.0 {
            Read::Filter(filter, sum) => {
                writer.put_slice(filter.bytes());
                writer.put_slice(sum);
            }
            Read::Unreadable(bytes) => writer.put_slice(bytes),
        }
    }

    fn size(&self) -> usize {
        match &*self.0 {
            Read::Filter(filter, sum) => filter.bytes().len() + sum.len(),
            Read::Unreadable(bytes) => bytes.len(),
        }
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        // The filter owns its memory already, of exactly its size.
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
    /// Adds the key of every entry, even of a tombstone: denying its key would unhide older values.
    fn add_entry(&mut self, entry: &RowEntry) {
        // A key out of order makes no filter: `build` finds out.
        let _ = self.builder.add(&entry.key);
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let bytes = self.builder.finish().unwrap_or_default();
        Arc::new(SstFilter::of_built(self.kind, bytes))
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
        let written = encoded(&*filter);
        assert_eq!(filter.clamp_allocated_size().size(), written.len());
        let read = policy.decode(&written);
        assert!(read.might_match(&FilterQuery::point(Bytes::from_static(b"zug"))));
    }

    fn point(key: &[u8]) -> FilterQuery {
        FilterQuery::point(Bytes::copy_from_slice(key))
    }

    fn key(number: u64) -> [u8; 8] {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
    }

    fn encoded(filter: &dyn Filter) -> Vec<u8> {
        let mut written = Vec::new();
        filter.encode(&mut written);
        assert_eq!(written.len(), filter.size());
        written
    }

    /// Builds a filter of 300 keys, and returns its bytes.
    fn built(policy: &TrommelFilterPolicy) -> Vec<u8> {
        let mut keys: Vec<[u8; 8]> = (0..300).map(key).collect();
        keys.sort_unstable();
        let mut builder = policy.builder();
        keys.iter().for_each(|key| builder.add_entry(&entry(key, 1)));
        encoded(&*builder.build())
    }

    /// Counts which of 900 keys a filter denies.
    fn denied(filter: &dyn Filter) -> usize {
        (0..900).filter(|&number| !filter.might_match(&point(&key(number)))).count()
    }

    fn of_every_kind() -> impl Iterator<Item = TrommelFilterPolicy> {
        let of = |kind| TrommelFilterPolicy::new(FilterOptions::new(kind, 12.0));
        kinds::TABLE_FILTERS.into_iter().map(of)
    }

    fn assert_denies_nothing(policy: &TrommelFilterPolicy, bytes: &[u8]) {
        let filter = policy.decode(bytes);
        assert_eq!(denied(&*filter), 0, "{}", policy.name());
        assert!(filter.might_match(&range(Bound::Unbounded, Bound::Unbounded)));
        assert_eq!(encoded(&*filter), bytes, "{}", policy.name());
    }

    #[test]
    fn what_was_not_written_so_denies_nothing_and_stays_as_it_is() {
        for policy in of_every_kind() {
            let written = built(&policy);
            let read = policy.decode(&written);
            // ARF learns from queries which keys to deny, and there were none.
            assert!(denied(&*read) > 0 || policy.name().contains(":arf:"), "{}", policy.name());
            assert_eq!(encoded(&*read), written);
            for at in 0..written.len() {
                let mut flipped = written.clone();
                flipped[at] ^= 1 << (at % 8);
                assert_denies_nothing(&policy, &flipped);
            }
            for len in (0..written.len()).step_by(7).chain([written.len() - 1]) {
                assert_denies_nothing(&policy, &written[..len]);
                assert_denies_nothing(&policy, &written[written.len() - len..]);
            }
            assert_denies_nothing(&policy, b"not a filter");
            assert_denies_nothing(&policy, &[0xff; 300]);
            assert_denies_nothing(&policy, &[&written[..], b"and more"].concat());
        }
    }

    #[test]
    fn filters_of_another_kind_deny_nothing() {
        let all: Vec<(TrommelFilterPolicy, Vec<u8>)> =
            of_every_kind().map(|policy| (policy.clone(), built(&policy))).collect();
        for (policy, _) in &all {
            for (_, bytes) in all.iter().filter(|(other, _)| other.name() != policy.name()) {
                assert_denies_nothing(policy, bytes);
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
        assert_eq!(name(TrommelFilterPolicy::cell(10.0)), "trommel:cell:v2");
        assert_eq!(name(TrommelFilterPolicy::cell(20.0)), "trommel:cell:v2");
        assert_eq!(name(TrommelFilterPolicy::coded(14.0)), "trommel:coded:v2");
    }
}
