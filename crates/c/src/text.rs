//! Texts that are given out: one alone, and lists of names.
//!
//! Invariant: a text ends with its first zero, whatever it was made of.

use std::ffi::{CString, c_char};
use std::ptr::null;

/// A text as C has it. A zero in it would end it: another sign stands for that.
pub(crate) fn c_string(text: &str) -> CString {
    let text = text.replace('\0', "\u{fffd}");
    CString::new(text).expect("it has no zero")
}

/// Frees a text that the library gave as `char *`. NULL is none.
///
/// Threads: one, which uses it last.
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
/// Threads: any, at once; but freeing it is the last use.
pub struct trommel_names(Vec<CString>);

impl trommel_names {
    pub(crate) fn of<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Box<trommel_names> {
        Box::new(trommel_names(names.into_iter().map(|name| c_string(name.as_ref())).collect()))
    }
}

/// How many names there are. 0 of NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_names_count(names: *const trommel_names) -> usize {
    plain!(0, names.as_ref().map_or(0, |names| names.0.len()))
}

/// The name at a place, from 0 on. It lives as long as the list. NULL: there is none.
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

/// Frees a list. NULL is none.
///
/// Threads: one, which uses it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_names_free(names: *mut trommel_names) {
    free!(names);
}
