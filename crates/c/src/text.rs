//! Texts for the caller: single texts, and lists of names.
//!
//! Invariant: a text ends at its first zero, whatever it was made of.

use std::ffi::{CString, c_char};
use std::ptr::null;

/// Converts a text to C. A zero in it would end it, so a replacement character takes its place.
pub(crate) fn c_string(text: &str) -> CString {
    let text = text.replace('\0', "\u{fffd}");
    CString::new(text).expect("it has no zero")
}

/// Frees a text that the library returned as `char *`. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_text_free(text: *mut c_char) {
    plain!(
        (),
        if !text.is_null() {
            drop(CString::from_raw(text));
        }
    );
}

/// A list of names.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_names(Vec<CString>);

impl trommel_names {
    pub(crate) fn of<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Box<trommel_names> {
        Box::new(trommel_names(names.into_iter().map(|name| c_string(name.as_ref())).collect()))
    }
}

/// Returns the number of names; 0 for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_names_count(names: *const trommel_names) -> usize {
    plain!(0, names.as_ref().map_or(0, |names| names.0.len()))
}

/// Returns the name at a place, counted from 0. It lives as long as the list. NULL: there is none.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_names_get(
    names: *const trommel_names,
    place: usize,
) -> *const c_char {
    plain!(null(), {
        let name = names.as_ref().and_then(|names| names.0.get(place));
        name.map_or(null(), |name| name.as_ptr())
    })
}

/// Frees a list. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_names_free(names: *mut trommel_names) {
    free!(names);
}
