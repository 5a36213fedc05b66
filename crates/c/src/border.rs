//! The border to C: pointers become references and slices, results become what C expects, and
//! nothing unwinds across.
//! ```text
//! in     handle, bytes, text, path, list, out     null where none may be: Failure
//! out    () -> true    Box<T> -> *mut T    CString -> *mut char     Failure -> false or NULL
//! ```
//! Invariant: each exported function uses one of `call!`, `plain!` and `free!`.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;

use crate::error::{Failure, trommel_error};

/// The result of a call.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Runs the body of a function that can fail, and reports the error at `$error`.
macro_rules! call {
    ($error:ident, $body:expr) => {
        // SAFETY: the caller keeps what lib.rs asks for of pointers, as long as the call lasts.
        unsafe { $crate::border::call($error, || -> $crate::border::Outcome<_> { $body }) }
    };
}

/// Runs the body of a function that cannot fail. `$otherwise`: its result if the body panics.
macro_rules! plain {
    ($otherwise:expr, $body:expr) => {{
        // SAFETY: the caller keeps what lib.rs asks for of pointers, as long as the call lasts.
        let body = || unsafe { $body };
        $crate::border::plain($otherwise, body)
    }};
}

/// Frees a handle. Does nothing for null.
macro_rules! free {
    ($handle:ident) => {
        // SAFETY: the caller has the handle from this library, and uses it no more.
        unsafe { $crate::border::free($handle) }
    };
}

/// A result that crosses the border.
pub(crate) trait Given {
    /// Its form in C.
    type Raw;
    /// The value returned after an error.
    const NONE: Self::Raw;

    fn raw(self) -> Self::Raw;
}

impl Given for () {
    type Raw = bool;
    const NONE: bool = false;

    fn raw(self) -> bool {
        true
    }
}

impl<T> Given for Box<T> {
    type Raw = *mut T;
    const NONE: *mut T = null_mut();

    fn raw(self) -> *mut T {
        Box::into_raw(self)
    }
}

impl Given for CString {
    type Raw = *mut c_char;
    const NONE: *mut c_char = null_mut();

    fn raw(self) -> *mut c_char {
        self.into_raw()
    }
}

/// Runs `body`; reports its error or panic at `error`. Requires: `error` is null, or can be
/// written.
pub(crate) unsafe fn call<T: Given>(
    error: *mut *mut trommel_error,
    body: impl FnOnce() -> Outcome<T>,
) -> T::Raw {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let outcome = outcome.unwrap_or_else(|payload| Err(Failure::panicked(&message_of(payload))));
    let (raw, failure) = match outcome {
        Ok(given) => (given.raw(), None),
        Err(failure) => (T::NONE, Some(failure)),
    };
    if !error.is_null() {
        let told = failure.map_or(null_mut(), |failure| failure.boxed().raw());
        // SAFETY: required.
        unsafe { error.write(told) };
    }
    raw
}

pub(crate) fn plain<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        message_of(payload);
        otherwise
    })
}

/// Frees a handle. Requires: null, or a handle that crossed the border and is not used any more.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: required; `Given` made it of a box.
        let handle = unsafe { Box::from_raw(handle) };
        plain((), || drop(handle));
    }
}

/// Returns the message of a panic.
fn message_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|payload| payload.downcast::<String>().map(|text| *text));
    text.unwrap_or_else(|payload| {
        // Dropping the payload may panic, too.
        std::mem::forget(payload);
        "without a word".into()
    })
}

/// Returns a handle; an error if it is null. Requires: null, or a handle of this library.
pub(crate) unsafe fn handle<'a, T>(what: &str, handle: *const T) -> Outcome<&'a T> {
    // SAFETY: required.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// Like [`handle`], for a handle that nobody else uses meanwhile.
pub(crate) unsafe fn handle_mut<'a, T>(what: &str, handle: *mut T) -> Outcome<&'a mut T> {
    // SAFETY: required.
    unsafe { handle.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// Returns a list as a slice. Requires: `items` points to `count` items.
pub(crate) unsafe fn list<'a, T>(what: &str, items: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(Failure::argument(format!("{what} is NULL, and {count} are to be there")));
    }
    check_count::<T>(what, count)?;
    // SAFETY: required; they are no more than can be.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// Like [`list`], for places of results, which need not be initialized.
pub(crate) unsafe fn places<'a, T>(
    what: &str,
    items: *mut T,
    count: usize,
) -> Outcome<&'a mut [MaybeUninit<T>]> {
    if count == 0 {
        return Ok(&mut []);
    }
    if items.is_null() {
        return Err(Failure::argument(format!("{what} is NULL, and has room for {count}")));
    }
    check_count::<T>(what, count)?;
    // SAFETY: required; they are no more than can be, and need not be set.
    Ok(unsafe { std::slice::from_raw_parts_mut(items.cast(), count) })
}

fn check_count<T>(what: &str, count: usize) -> Outcome<()> {
    match count.checked_mul(size_of::<T>().max(1)) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Failure::argument(format!("{what}: {count} are more than memory can have"))),
    }
}

/// Returns bytes as a slice. Requires: `data` points to `len` bytes.
pub(crate) unsafe fn bytes<'a>(what: &str, data: *const c_void, len: usize) -> Outcome<&'a [u8]> {
    // SAFETY: required.
    unsafe { list(what, data.cast(), len) }
}

/// Like [`bytes`]; null with a length of 0 means None.
pub(crate) unsafe fn some_bytes<'a>(
    what: &str,
    data: *const c_void,
    len: usize,
) -> Outcome<Option<&'a [u8]>> {
    if data.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: required.
    unsafe { bytes(what, data, len) }.map(Some)
}

/// Returns a text; an error if it is not UTF-8. Requires: null, or a text that ends with a zero.
pub(crate) unsafe fn text<'a>(what: &str, text: *const c_char) -> Outcome<&'a str> {
    // SAFETY: required.
    unsafe { c_text(what, text) }?
        .to_str()
        .map_err(|_| Failure::argument(format!("{what} is no text in UTF-8")))
}

unsafe fn c_text<'a>(what: &str, text: *const c_char) -> Outcome<&'a CStr> {
    if text.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: required of `text` and `path`.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Returns a path in the system's encoding. Requires: as [`text`].
#[cfg(unix)]
pub(crate) unsafe fn path<'a>(what: &str, path: *const c_char) -> Outcome<&'a Path> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: required.
    let bytes = unsafe { c_text(what, path) }?.to_bytes();
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// Returns a path in UTF-8. Requires: as [`text`].
#[cfg(not(unix))]
pub(crate) unsafe fn path<'a>(what: &str, path: *const c_char) -> Outcome<&'a Path> {
    // SAFETY: required.
    unsafe { text(what, path) }.map(Path::new)
}

/// A place for a result, which the caller may have left out.
pub(crate) struct Out<'a, T>(Option<&'a mut MaybeUninit<T>>);

impl<T> Out<'_, T> {
    pub(crate) fn set(self, value: T) {
        if let Some(place) = self.0 {
            place.write(value);
        }
    }
}

/// Returns a place for a result; an error if it is null. Requires: null, or it can be written.
pub(crate) unsafe fn out<'a, T>(what: &str, place: *mut T) -> Outcome<Out<'a, T>> {
    if place.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: required.
    Ok(unsafe { out_if(place) })
}

/// Returns a place for a result that may be null. Requires: as [`out`].
pub(crate) unsafe fn out_if<'a, T>(place: *mut T) -> Out<'a, T> {
    // SAFETY: required; it need not be set.
    Out(unsafe { place.cast::<MaybeUninit<T>>().as_mut() })
}

/// Copies bytes to the beginning of a buffer. Requires: the buffer has room for them.
pub(crate) fn copy_to(buffer: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    for (place, byte) in buffer[..bytes.len()].iter_mut().zip(bytes) {
        place.write(*byte);
    }
}

/// Returns the raw form of an optional value; null for None.
pub(crate) fn raw_if<T: Given<Raw = *mut H>, H>(given: Option<T>) -> *mut H {
    given.map_or(null_mut(), Given::raw)
}
