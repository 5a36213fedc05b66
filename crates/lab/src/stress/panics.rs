//! Turns panics into results: a panic of the store is a finding, with its location.
//! ```text
//! caught(work) -> the work's result, or "panic at file:line: message"
//! ```
//! Invariant: panics of other threads are printed as usual.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The message of this thread's panic. None: this thread is not watched.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

static INSTALLED: Once = Once::new();

/// Runs `work`; a panic in it is an error, and nothing is printed.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    INSTALLED.call_once(install);
    SAID.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(work));
    let said = SAID.take().unwrap_or_default();
    result.unwrap_or_else(|_| Err(said))
}

fn install() {
    let before = take_hook();
    set_hook(Box::new(move |info| {
        let watched = SAID.with_borrow_mut(|said| note(said, info));
        if !watched {
            before(info);
        }
    }));
}

fn note(said: &mut Option<String>, info: &PanicHookInfo<'_>) -> bool {
    let Some(said) = said else { return false };
    // The first panic is the cause.
    if said.is_empty() {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let message = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let (place, message) = (place.unwrap_or_default(), message.unwrap_or("no message"));
        *said = format!("panic at {place}: {message}");
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_place() {
        let failed = caught::<()>(|| panic!("oh {}", 7)).expect_err("a panic");
        assert!(failed.contains("panics.rs") && failed.ends_with("oh 7"), "{failed}");
        assert_eq!(caught(|| Ok(1)), Ok(1));
        assert_eq!(caught::<()>(|| Err("no".into())), Err("no".into()));
    }
}
