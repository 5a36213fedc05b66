//! Stand-alone filters: sorted keys become bytes, and bytes answer whether a key or a range may be
//! there.
//! ```text
//! builder -- keys in ascending order --> bytes, kept anywhere --> filter: false proves absence
//! ```
//! Invariant: bytes of any origin give a filter or an error. An error while answering gives
//! "maybe".

use std::ffi::{c_char, c_void};
use std::ptr::null;

use trommel_filters::{
    AlignedBytes, AnyFilter, AnyFilterBuilder, FilterKind, FilterOptions, KeyRange, read_filter,
};
use trommel_guards::kinds::TABLE_FILTERS;

use crate::border::{Outcome, bytes, handle, handle_mut, some_bytes, text};
use crate::bounds::trommel_bytes;
use crate::error::{Failure, trommel_error};
use crate::options::trommel_options;
use crate::text::{c_string, trommel_names};
use crate::value::trommel_value;

/// The allowed bits per key, as in a store's option.
const BITS: std::ops::RangeInclusive<f64> = 1.0..=64.0;

/// Builds a filter from keys in ascending order.
///
/// Threads: one at a time, not always the same one.
pub struct trommel_filter_builder(Option<Box<dyn AnyFilterBuilder>>);

/// A filter of some keys. It errs in one direction only: "no" proves that a key is not there.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_filter {
    filter: Box<dyn AnyFilter>,
    kind: std::ffi::CString,
}

fn kind_of(name: &str) -> Outcome<&'static dyn FilterKind> {
    let known = TABLE_FILTERS.into_iter().find(|kind| kind.name() == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = TABLE_FILTERS.iter().map(|kind| kind.name()).collect();
        Failure::argument(format!("there is no filter '{name}'; there are: {}", names.join(", ")))
    })
}

/// Creates a builder. Requires: `options` is null, or a handle.
unsafe fn builder(
    kind: &str,
    bits_per_key: f64,
    options: *const trommel_options,
) -> Outcome<Box<dyn AnyFilterBuilder>> {
    if !BITS.contains(&bits_per_key) {
        let (least, most) = (BITS.start(), BITS.end());
        let message = format!("{bits_per_key} bits per key: must be {least} to {most}");
        return Err(Failure::argument(message));
    }
    let new = FilterOptions::new(kind_of(kind)?, bits_per_key);
    // SAFETY: required.
    let tuned = match unsafe { options.as_ref() } {
        Some(options) => new.tuned(options.values().filter.clone()),
        None => new,
    };
    Ok(tuned.builder())
}

/// Returns the names of the kinds of filters. Free them with trommel_names_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_kinds(
    error: *mut *mut trommel_error,
) -> *mut trommel_names {
    call!(error, Ok(trommel_names::of(TABLE_FILTERS.iter().map(|kind| kind.name()))))
}

/// Returns whether filters of a kind answer for ranges. Others say "maybe" to every range of more
/// than one key. False for an unknown kind.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_kind_knows_ranges(kind: *const c_char) -> bool {
    plain!(false, {
        let kind = text("kind", kind).and_then(kind_of);
        kind.is_ok_and(|kind| kind.knows_ranges())
    })
}

/// Creates a builder of a filter of a kind, with 1 to 64 bits per key. `options`: NULL for the
/// defaults; only options of filters matter. Free it with trommel_filter_builder_free.
///
/// Threads: any. Errors: TROMMEL_ARGUMENT: the kind is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_builder_new(
    kind: *const c_char,
    bits_per_key: f64,
    options: *const trommel_options,
    error: *mut *mut trommel_error,
) -> *mut trommel_filter_builder {
    call!(error, {
        let builder = builder(text("kind", kind)?, bits_per_key, options)?;
        Ok(Box::new(trommel_filter_builder(Some(builder))))
    })
}

/// Adds a key, which must not be less than the previous one. Equal keys count once.
///
/// Threads: one at a time. Errors: TROMMEL_UNSORTED: the key was not added, and the builder is
/// unchanged. TROMMEL_ARGUMENT: the builder is finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_builder_add(
    builder: *mut trommel_filter_builder,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let builder = handle_mut("builder", builder)?.0.as_mut().ok_or_else(finished)?;
        Ok(builder.add(bytes("key", key, key_len)?)?)
    })
}

fn finished() -> Failure {
    Failure::argument("the builder is finished: take another one")
}

/// Returns the filter's bytes, for trommel_filter_read. The builder is then finished, and must
/// still be freed.
///
/// Threads: one at a time. Errors: TROMMEL_ARGUMENT: it was already finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_builder_finish(
    builder: *mut trommel_filter_builder,
    error: *mut *mut trommel_error,
) -> *mut trommel_value {
    call!(error, {
        let builder = handle_mut("builder", builder)?.0.take().ok_or_else(finished)?;
        Ok(trommel_value::of_bytes(builder.finish()))
    })
}

/// Frees a builder. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_builder_free(builder: *mut trommel_filter_builder) {
    free!(builder);
}

/// Returns the bytes of a filter of an array of keys in ascending order.
///
/// Threads: any. Errors: TROMMEL_UNSORTED, from kinds that need the order; TROMMEL_ARGUMENT: the
/// kind is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_build(
    kind: *const c_char,
    bits_per_key: f64,
    keys: *const trommel_bytes,
    count: usize,
    error: *mut *mut trommel_error,
) -> *mut trommel_value {
    call!(error, {
        let mut builder = builder(text("kind", kind)?, bits_per_key, null())?;
        for key in trommel_bytes::slices("keys", keys, count)? {
            builder.add(key)?;
        }
        Ok(trommel_value::of_bytes(builder.finish()))
    })
}

/// Reads a filter of a kind from its bytes, which it copies. `kind`: NULL to detect it from the
/// bytes. Bytes of any origin are safe, but they need a checksum of their owner's. Damaged bytes
/// may give a filter with wrong answers. Free it with trommel_filter_free.
///
/// Threads: any. Errors: TROMMEL_NO_FILTER: the bytes are no such filter. TROMMEL_ARGUMENT: the
/// kind is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_read(
    kind: *const c_char,
    data: *const c_void,
    len: usize,
    error: *mut *mut trommel_error,
) -> *mut trommel_filter {
    call!(error, {
        let data = AlignedBytes::from_slice(bytes("data", data, len)?);
        let read = match kind.is_null() {
            true => read_filter(data, &TABLE_FILTERS),
            false => kind_of(text("kind", kind)?)?.read(data),
        };
        let filter = read.map_err(|corrupt| Failure::no_filter(format!("no filter: {corrupt}")))?;
        let kind = c_string(filter.kind().name());
        Ok(Box::new(trommel_filter { filter, kind }))
    })
}

/// Returns false if the key is certainly not there, and true if it may be. True for a NULL filter
/// or an invalid key.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_may_contain(
    filter: *const trommel_filter,
    key: *const c_void,
    key_len: usize,
) -> bool {
    plain!(true, {
        let filter = handle("filter", filter);
        let asked = filter.and_then(|filter| Ok((filter, bytes("key", key, key_len)?)));
        asked.map_or(true, |(filter, key)| filter.filter.may_contain(key))
    })
}

/// Returns false if certainly no key from `from` to `to`, both included, is there, and true if one
/// may be. NULL with a length of 0 means no bound on that side. True for a NULL filter; false for a
/// range that ends before it begins.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_may_contain_range(
    filter: *const trommel_filter,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
) -> bool {
    plain!(true, {
        let asked = handle("filter", filter).and_then(|filter| {
            let (from, to) = (bytes("from", from, from_len)?, some_bytes("to", to, to_len)?);
            Ok((filter, KeyRange::new(from, to)))
        });
        match asked {
            Ok((filter, Some(range))) => filter.filter.may_overlap(&range),
            Ok((_, None)) => false,
            Err(_) => true,
        }
    })
}

/// Returns the name of its kind, which lives as long as the filter. NULL for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_kind(filter: *const trommel_filter) -> *const c_char {
    plain!(null(), filter.as_ref().map_or(null(), |filter| filter.kind.as_ptr()))
}

/// Returns its size in bytes; 0 for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_size(filter: *const trommel_filter) -> usize {
    plain!(0, filter.as_ref().map_or(0, |filter| filter.filter.size_bytes()))
}

/// Frees a filter. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_filter_free(filter: *mut trommel_filter) {
    free!(filter);
}
