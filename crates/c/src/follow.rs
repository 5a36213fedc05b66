//! Followers: read a store that another process writes.
//!
//! Invariant: a follower changes nothing in the folder.

use std::ffi::c_char;
use std::ptr::null_mut;
use std::time::Duration;

use store::{Db, FollowOptions, Follower, Moment};

use crate::border::{Given, handle, out, out_if, path, text};
use crate::db::Opening;
use crate::error::trommel_error;
use crate::json::{stats_json, text_of, verify_json};
use crate::library::know_guards;
use crate::options::{options_or_none, trommel_options};
use crate::snapshot::trommel_snapshot;
use crate::text::{c_string, trommel_names};

/// A follower of a store. It shows the store at one moment; trommel_follower_catch_up advances it.
/// Take a snapshot to read.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_follower(Follower);

/// All key spaces of a followed store at one moment.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_moment(Moment);

/// How far a follower lags behind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct trommel_staleness {
    /// The number of the newest write that reads see.
    pub sequence: u64,
    /// Milliseconds since the follower's last successful look.
    pub since_look: u64,
    /// Milliseconds since a look last found something new.
    pub since_news: u64,
}

/// Follows a store that another process writes, or none. `options`: NULL for the defaults.
/// `interval`: how often a thread catches up, in milliseconds; 0: only calls do.
///
/// Threads: any. Errors: TROMMEL_MISSING, TROMMEL_NOT_A_STORE, TROMMEL_VERSION, TROMMEL_CORRUPT,
/// TROMMEL_FILE_MISSING.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follow(
    folder: *const c_char,
    options: *const trommel_options,
    interval: u64,
    error: *mut *mut trommel_error,
) -> *mut trommel_follower {
    call!(error, {
        know_guards();
        let interval = (interval > 0).then(|| Duration::from_millis(interval));
        let options = FollowOptions::new().options(options_or_none(options)).interval(interval);
        Ok(Box::new(trommel_follower(Db::follow(path("folder", folder)?, options)?)))
    })
}

/// Advances to what the writer has made visible since. `moved`: NULL, or set to whether anything
/// was new.
///
/// Threads: any. Errors: TROMMEL_CORRUPT, TROMMEL_FILE_MISSING, TROMMEL_IO: the follower stays
/// where it was, and the next call tries again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_catch_up(
    follower: *const trommel_follower,
    moved: *mut bool,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let has_moved = handle("follower", follower)?.0.catch_up()?;
        out_if(moved).set(has_moved);
        Ok(())
    })
}

/// Returns how far it lags behind. `failure`: NULL, or set to why the last look failed: a text to
/// be freed with trommel_text_free, or NULL if it succeeded.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_staleness(
    follower: *const trommel_follower,
    staleness: *mut trommel_staleness,
    failure: *mut *mut c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (follower, place) = (handle("follower", follower)?, out("staleness", staleness)?);
        let now = follower.0.staleness();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        place.set(trommel_staleness {
            sequence: now.sequence,
            since_look: milliseconds(now.since_look),
            since_news: milliseconds(now.since_news),
        });
        if !failure.is_null() {
            let text = now.failure.map_or(null_mut(), |failure| c_string(&failure).raw());
            out_if(failure).set(text);
        }
        Ok(())
    })
}

/// Returns a key space as the follower shows it now. `keyspace`: its name; NULL: the default one.
/// Free it with trommel_snapshot_free.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE: it does not exist, or not yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_snapshot(
    follower: *const trommel_follower,
    keyspace: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut trommel_snapshot {
    call!(error, {
        let follower = &handle("follower", follower)?.0;
        let snapshot = match keyspace.is_null() {
            true => follower.snapshot()?,
            false => follower.keyspace(text("keyspace", keyspace)?)?.snapshot()?,
        };
        Ok(trommel_snapshot::boxed(snapshot, Opening::new()))
    })
}

/// Returns the names of its key spaces, the default one first. Free them with trommel_names_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_keyspaces(
    follower: *const trommel_follower,
    error: *mut *mut trommel_error,
) -> *mut trommel_names {
    call!(error, Ok(trommel_names::of(handle("follower", follower)?.0.keyspaces())))
}

/// Returns the current moment of all key spaces. Free it with trommel_moment_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_moment(
    follower: *const trommel_follower,
    error: *mut *mut trommel_error,
) -> *mut trommel_moment {
    call!(error, Ok(Box::new(trommel_moment(handle("follower", follower)?.0.moment()?))))
}

/// Returns the number of the last write that a moment sees; 0 for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_moment_sequence(moment: *const trommel_moment) -> u64 {
    plain!(0, moment.as_ref().map_or(0, |moment| moment.0.sequence()))
}

/// Returns a key space at that moment. `keyspace`: its name; NULL: the default one. Free it with
/// trommel_snapshot_free.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_moment_snapshot(
    moment: *const trommel_moment,
    keyspace: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut trommel_snapshot {
    call!(error, {
        let moment = &handle("moment", moment)?.0;
        let name = if keyspace.is_null() { "default" } else { text("keyspace", keyspace)? };
        Ok(trommel_snapshot::boxed(moment.keyspace(name)?, Opening::new()))
    })
}

/// Frees a moment. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_moment_free(moment: *mut trommel_moment) {
    free!(moment);
}

/// Returns the follower's statistics of a key space, as JSON. `keyspace`: its name; NULL: the
/// default one. Free it with trommel_text_free.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_stats(
    follower: *const trommel_follower,
    keyspace: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        let follower = &handle("follower", follower)?.0;
        let stats = match keyspace.is_null() {
            true => follower.stats()?,
            false => follower.keyspace(text("keyspace", keyspace)?)?.stats()?,
        };
        Ok(text_of(&stats_json(&stats)))
    })
}

/// Verifies the current moment, like trommel_verify.
///
/// Threads: any. Errors: as of trommel_verify; TROMMEL_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_verify(
    follower: *const trommel_follower,
    damages: *mut usize,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        let report = handle("follower", follower)?.0.verify()?;
        out_if(damages).set(report.damage.len());
        Ok(text_of(&verify_json(&report)))
    })
}

/// Makes an independent store of the current moment in a folder that is empty or does not exist.
/// Files are copied.
///
/// Threads: any. Errors: TROMMEL_NOT_EMPTY, TROMMEL_GONE, TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_checkpoint(
    follower: *const trommel_follower,
    folder: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("follower", follower)?.0.checkpoint(path("folder", folder)?)?))
}

/// Closes a follower. Its snapshots and scans return TROMMEL_CLOSED from then on. The handle must
/// still be freed.
///
/// Threads: any, at once with all other calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_close(
    follower: *const trommel_follower,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("follower", follower)?.0.close()?))
}

/// Closes a follower and frees its handle. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_follower_free(follower: *mut trommel_follower) {
    plain!(
        (),
        if let Some(follower) = follower.as_ref() {
            let _ = follower.0.close();
        }
    );
    free!(follower);
}
