//! A filter by itself: sorted keys in, "surely not" or "maybe" out.
//! ```text
//! "TRMLPYF1"   length of the kind's name: 1   its name   checksum: 4   the filter's bytes
//! ```
//! The checksum is the CRC32C of all other bytes, in little-endian order. The Python package reads
//! and writes the same bytes.
//!
//! Invariant: no added key, and no range with an added key, gets the answer false.

use jni_sys::{jboolean, jbyteArray, jdouble, jint, jlong};
use trommel_filters::{
    AlignedBytes, AnyFilter, AnyFilterBuilder, FilterKind, FilterOptions, KeyRange,
};
use trommel_guards::kinds::TABLE_FILTERS;

use crate::border::Handle;
use crate::bytes::{Room, cut, texts};
use crate::error::{Failure, Outcome};
use crate::store::text;

const MAGIC: &[u8; 8] = b"TRMLPYF1";
const CHECKSUM_BYTES: usize = 4;
/// Bits per key that are allowed.
const BITS: std::ops::RangeInclusive<f64> = 1.0..=64.0;

/// A builder of a filter.
pub(crate) struct Builder {
    /// None: the filter was built.
    builder: Option<Box<dyn AnyFilterBuilder>>,
    kind: &'static dyn FilterKind,
}

/// A filter, and the bytes that it was built as.
pub(crate) struct Filter {
    filter: Box<dyn AnyFilter>,
    bytes: Vec<u8>,
}

impl Filter {
    fn read(kind: &'static dyn FilterKind, bytes: Vec<u8>) -> Outcome<Box<Filter>> {
        let read = kind.read(AlignedBytes::from_slice(&bytes));
        let filter = read.map_err(|corrupt| Failure::corrupt(corrupt.to_string()))?;
        Ok(Box::new(Filter { filter, bytes }))
    }
}

fn kinds() -> impl Iterator<Item = &'static dyn FilterKind> {
    TABLE_FILTERS.into_iter().filter(|kind| kind.sub_filters().is_none())
}

/// Returns the kind with a name.
fn kind_of(name: &str) -> Outcome<&'static dyn FilterKind> {
    kinds().find(|kind| kind.name() == name).ok_or_else(|| {
        let names = kinds().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        Failure::argument(format!("kind: there is no filter {name:?}; there are: {names}"))
    })
}

/// The CRC32C of all bytes except itself. Bytes that begin differently are refused before.
fn checksum(name: &[u8], bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let begin = crc32c::crc32c_append(crc32c::crc32c(MAGIC), &[name.len() as u8]);
    crc32c::crc32c_append(crc32c::crc32c_append(begin, name), bytes).to_le_bytes()
}

/// Reads a filter.
fn filter_of(data: &[u8]) -> Outcome<Box<Filter>> {
    let damaged = |what: &str| Failure::corrupt(format!("these bytes are no filter: {what}"));
    let early = || damaged("they end early");
    let rest = data.strip_prefix(MAGIC).ok_or_else(|| damaged("they do not begin as one"))?;
    let (&[len], rest) = rest.split_first_chunk().ok_or_else(early)?;
    let (name, rest) = rest.split_at_checked(len.into()).ok_or_else(early)?;
    let (sum, bytes) = rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(early)?;
    if checksum(name, bytes) != *sum {
        return Err(damaged("the checksum differs"));
    }
    let name = std::str::from_utf8(name).map_err(|_| damaged("the kind has no name"))?;
    Filter::read(kind_of(name)?, bytes.to_vec())
}

native! {
    "filterKinds" fn filter_kinds(env) -> jbyteArray {
        env.new_bytes(&texts(kinds().map(|kind| kind.name()))?)
    }
}

native! {
    "filterBuilder" fn filter_builder(
        env,
        kind: jbyteArray,
        kind_len: jint,
        bits_per_key: jdouble,
    ) -> Box<Builder> {
        if !BITS.contains(&bits_per_key) {
            let (least, most) = (BITS.start(), BITS.end());
            let message = format!("bitsPerKey: {bits_per_key}: must be {least} to {most}");
            return Err(Failure::argument(message));
        }
        let mut room = Room::new();
        let kind = kind_of(text(env, &mut room, kind, kind_len)?)?;
        let builder = Some(FilterOptions::new(kind, bits_per_key).builder());
        Ok(Box::new(Builder { builder, kind }))
    }
}

native! {
    /// Adds a list of keys, which continue in ascending order.
    "filterAdd" fn filter_add(env, of: Handle<Builder>, keys: jbyteArray, len: jint) -> () {
        let (mut of, mut room) = (of, Room::new());
        let keys = cut(env.bytes(&mut room, keys, len)?)?;
        let builder = of.get_mut()?.builder.as_mut();
        let builder = builder.ok_or_else(|| Failure::closed("builder"))?;
        Ok(keys.into_iter().try_for_each(|key| builder.add(key))?)
    }
}

native! {
    "filterBuild" fn filter_build(_env, of: Handle<Builder>) -> Box<Filter> {
        let mut of = of;
        let Builder { builder, kind } = of.get_mut()?;
        let builder = builder.take().ok_or_else(|| Failure::closed("builder"))?;
        Filter::read(*kind, builder.finish())
    }
}

native! {
    "freeFilterBuilder" fn free_filter_builder(_env, of: Handle<Builder>) -> () {
        drop(of.take()?);
        Ok(())
    }
}

native! {
    "filterOf" fn filter_from_bytes(env, bytes: jbyteArray, len: jint) -> Box<Filter> {
        let mut room = Room::new();
        filter_of(env.bytes(&mut room, bytes, len)?)
    }
}

native! {
    "filterBytes" fn filter_bytes(env, of: Handle<Filter>) -> jbyteArray {
        let Filter { filter, bytes } = of.get()?;
        let name = filter.kind().name().as_bytes();
        let len = [u8::try_from(name.len()).map_err(|_| Failure::argument("the name is long"))?];
        let all = [&MAGIC[..], &len, name, &checksum(name, bytes), bytes].concat();
        env.new_bytes(&all)
    }
}

native! {
    "filterKind" fn filter_kind(env, of: Handle<Filter>) -> jbyteArray {
        env.new_bytes(of.get()?.filter.kind().name().as_bytes())
    }
}

native! {
    "filterKnowsRanges" fn filter_knows_ranges(_env, of: Handle<Filter>) -> jboolean {
        Ok(of.get()?.filter.kind().knows_ranges())
    }
}

native! {
    "filterSize" fn filter_size(_env, of: Handle<Filter>) -> jlong {
        Ok(of.get()?.filter.size_bytes() as jlong)
    }
}

native! {
    "filterMayContain" fn filter_may_contain(
        env,
        of: Handle<Filter>,
        key: jbyteArray,
        key_len: jint,
    ) -> jboolean {
        let mut room = Room::new();
        Ok(of.get()?.filter.may_contain(env.bytes(&mut room, key, key_len)?))
    }
}

native! {
    "filterMayContainRange" fn filter_may_contain_range(
        env,
        of: Handle<Filter>,
        from: jbyteArray,
        from_len: jint,
        to: jbyteArray,
        to_len: jint,
    ) -> jboolean {
        let (mut from_room, mut to_room) = (Room::new(), Room::new());
        let from = env.some_bytes(&mut from_room, from, from_len)?.unwrap_or_default();
        let to = env.some_bytes(&mut to_room, to, to_len)?;
        if to.is_some_and(|to| to <= from) {
            return Ok(false);
        }
        // `KeyRange` includes its last key. If `to` ends with a zero byte, the key before it is
        // `to` without that byte. Otherwise `to` itself takes part: one key more than the range
        // has.
        let last = to.map(|to| to.strip_suffix(&[0]).unwrap_or(to));
        let filter = &of.get()?.filter;
        Ok(KeyRange::new(from, last).is_none_or(|range| filter.may_overlap(&range)))
    }
}

native! {
    "freeFilter" fn free_filter(_env, of: Handle<Filter>) -> () {
        drop(of.take()?);
        Ok(())
    }
}
