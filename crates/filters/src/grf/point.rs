//! A single key's answer, in one piece.
//! ```text
//! key --> list ~~~> bucket ~~~> base: in a cell?      -> [0, base end)
//!                     '~~~~~~~> overlay: at the place? -> codes       ~~> is asked for before it is waited for
//! ```
//! Ranges ask for two places and what lies between them; a key has one, so that nothing needs to be kept of it: what is found
//! stays in registers, and base and overlay are searched side by side. Invariant: the answer is that of a range of this key alone.

use super::Part;
use super::base::Role;
use crate::bits::simd::{Work, fastest};
use crate::filter::Trace;
use crate::shape::Codes;

impl Part {
    /// Adds the codes of all entries that may be `key`'s.
    pub(super) fn ask_point<T: Trace>(&self, key: &[u8], codes: &mut Codes, trace: &mut T) {
        fastest(AskPoint { part: self, key, codes, trace });
    }
}

struct AskPoint<'a, T> {
    part: &'a Part,
    key: &'a [u8],
    codes: &'a mut Codes,
    trace: &'a mut T,
}

impl<T: Trace> Work for AskPoint<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AskPoint { part, key, codes, trace } = self;
        let Part { base, overlay, .. } = part;
        base.directory.load_about(key, trace);
        let found = base.list_of(key, trace);
        let across = base.load_about(found, trace);
        let entries = overlay.list(found.list, base);
        entries.load_about(across, trace);
        // Most keys that are spread evenly lie on lines: these have a way of their own, along which all that is known of a key
        // stays in registers.
        let (slot, spot) = match base.positions(found, key) {
            Some(positions) => {
                positions.load();
                let slot = entries.slot(positions.bucket_key().1);
                (slot, base.place_on_line(&positions, trace))
            }
            None => {
                let site = base.locate_in(found, key, trace);
                site.load_block();
                let slot = entries.slot(site.bucket);
                (slot, base.place(&site, Role::Point, trace))
            }
        };
        if base.may_hold(key, &spot) {
            part.base_code().into_iter().for_each(|code| codes.push(code));
        }
        let places = (spot.place(), spot.place());
        entries.collect((spot.bucket, slot), places, codes, trace);
    }
}
