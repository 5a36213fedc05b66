//! Options by name and text, for stores, key spaces, followers and filters.
//!
//! Invariant: a text that is no value of its option is an error when it is set.

use std::ffi::{CString, c_char};
use std::ptr::null_mut;

use serde_json::json;
use store::options::{OptionInfo, OptionValues};
use store::{KeyspaceOptions, Options};

use crate::border::{Outcome, handle, handle_mut, plain, text};
use crate::error::trommel_error;
use crate::library::know_guards;
use crate::text::c_string;

/// Options, of which some are set; all others have their defaults. Calls copy them.
///
/// Threads: one at a time; any at once while none sets an option.
pub struct trommel_options {
    /// The options before any was set.
    base: Options,
    options: Options,
    /// The names and texts that were set.
    set: Vec<(String, String)>,
    for_now: Vec<String>,
}

impl trommel_options {
    fn of(base: Options) -> Box<trommel_options> {
        let options = base.clone();
        Box::new(trommel_options { base, options, set: Vec::new(), for_now: Vec::new() })
    }

    pub(crate) fn of_store(&self) -> Options {
        let for_now = self.for_now.iter();
        for_now.fold(self.options.clone(), |options, name| options.for_now(name))
    }

    /// Returns options for a key space; options of the whole store are an error there.
    pub(crate) fn of_keyspace(&self) -> Outcome<KeyspaceOptions> {
        let mut options = KeyspaceOptions::from(self.base.clone());
        for (name, text) in &self.set {
            options.set(name, text)?;
        }
        Ok(self.for_now.iter().fold(options, |options, name| options.for_now(name)))
    }

    pub(crate) fn values(&self) -> &OptionValues {
        &self.options
    }
}

/// Creates options of which none is set. Free them with trommel_options_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_options_new() -> *mut trommel_options {
    plain(null_mut(), || {
        know_guards();
        Box::into_raw(trommel_options::of(Options::default()))
    })
}

/// Creates options from a preset for a kind of machine: "server", "small-device" or "many-stores".
///
/// Threads: any. Errors: TROMMEL_OPTION: there is no such preset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_options_preset(
    name: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut trommel_options {
    call!(error, {
        know_guards();
        Ok(trommel_options::of(Options::preset(text("name", name)?)?))
    })
}

/// Sets an option from its text, such as "write_buffer_bytes" and "64MiB". trommel_options_list
/// names all options.
///
/// Threads: one at a time. Errors: TROMMEL_OPTION: there is no such option, or the text is no value
/// of it; then nothing is set. Limits of values are checked where the options are used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_options_set(
    options: *mut trommel_options,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let options = handle_mut("options", options)?;
        let (name, value) = (text("name", name)?, text("value", value)?);
        options.options.set(name, value)?;
        options.set.push((name.to_owned(), value.to_owned()));
        Ok(())
    })
}

/// Makes an option hold for one opening only, while the store keeps its own value.
///
/// Threads: one at a time. Errors: TROMMEL_OPTION: there is no such option.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_options_for_now(
    options: *mut trommel_options,
    name: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (options, name) = (handle_mut("options", options)?, text("name", name)?);
        options.options.text_of(name)?;
        options.for_now.push(name.to_owned());
        Ok(())
    })
}

/// Returns the text of an option: as set, or its default. Free it with trommel_text_free.
///
/// Threads: one at a time. Errors: TROMMEL_OPTION: there is no such option.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_options_get(
    options: *const trommel_options,
    name: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        let options = handle("options", options)?;
        Ok(c_string(&options.options.text_of(text("name", name)?)?))
    })
}

/// Returns all options as JSON: a list of objects with "name", "kind", "limits", "default", "help"
/// and "of_keyspace". The last one says whether a key space may have its own value. Free it with
/// trommel_text_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_options_list(error: *mut *mut trommel_error) -> *mut c_char {
    call!(error, {
        know_guards();
        Ok(list())
    })
}

fn list() -> CString {
    let of_keyspaces: Vec<&str> = KeyspaceOptions::list().map(|option| option.name).collect();
    let of_store = Options::list().iter().map(|option: &OptionInfo| {
        json!({
            "name": option.name, "kind": option.kind, "limits": option.limits,
            "default": option.default_text(), "help": option.help.trim(),
            "of_keyspace": of_keyspaces.contains(&option.name),
        })
    });
    let of_filters = Options::filter_list().into_iter().map(|option| {
        json!({
            "name": option.name, "kind": "filter", "limits": option.limits,
            "default": option.default_text(), "help": option.help.trim(), "of_keyspace": true,
        })
    });
    let all: Vec<serde_json::Value> = of_store.chain(of_filters).collect();
    c_string(&serde_json::Value::from(all).to_string())
}

/// Frees options. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_options_free(options: *mut trommel_options) {
    free!(options);
}

/// Returns the options of a handle; for null, options of which none is set. Requires: null, or a
/// handle.
pub(crate) unsafe fn options_or_none(options: *const trommel_options) -> Options {
    // SAFETY: required.
    unsafe { options.as_ref() }.map(trommel_options::of_store).unwrap_or_default()
}

/// Like [`options_or_none`], for a key space. Requires: null, or a handle.
pub(crate) unsafe fn keyspace_options_or_none(
    options: *const trommel_options,
) -> Outcome<KeyspaceOptions> {
    // SAFETY: required.
    match unsafe { options.as_ref() } {
        Some(options) => options.of_keyspace(),
        None => Ok(KeyspaceOptions::new()),
    }
}
