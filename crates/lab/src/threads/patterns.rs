//! Patterns that pile up what is cheap one by one: versions of a key, or overlapping range
//! deletions.
//! ```text
//! hot key   put k, put k, put k, ...                              scans pass all versions but one
//! log       put i, delete_range(first .. i - window), put i + 1   as logs and queues are cut
//! ```
//! Invariant: a read stays within the cost limit, however much has piled up.

use trommel::Db;

use super::lane_thread::{HeldViews, LaneThread};
use super::posts::{Doing, Post};
use super::setup::Pattern;
use super::shared::{Sabotage, Shared};
use crate::stress::keys::KeyIndex;
use crate::stress::operation::Write;
use crate::stress::world::Checked;

/// Versions of the key in one batch.
const VERSIONS: usize = 64;

/// Puts between two reads.
const PUTS: usize = 64;

/// Keys of a log that are kept.
const WINDOW: usize = 100;

impl LaneThread {
    /// Makes a few writes of the pattern, and reads a key.
    pub(super) fn follow_pattern(&mut self, db: &Db, shared: &Shared, post: &Post) -> Checked<()> {
        let (_gate, tick) = shared.clock.hold();
        self.come_to(tick, &mut HeldViews::default());
        match self.pattern {
            Pattern::HotKey => {
                post.set(Doing::Said("writes a hot key"));
                self.write_hot_key(db, shared)?;
            }
            Pattern::Log | Pattern::Drawn => {
                for _ in 0..PUTS {
                    post.set(Doing::Said("writes a log, and cuts it"));
                    self.write_log(db, shared)?;
                }
            }
        }
        post.set(Doing::Said("looks for a key"));
        let place = self.keys.draw(&mut self.rng);
        self.check_get(db, shared, place)
    }

    fn write_hot_key(&mut self, db: &Db, shared: &Shared) -> Checked<()> {
        let writes = std::iter::repeat_with(|| Write { place: 0, number: self.drawer.number() });
        let writes: Vec<Write> = writes.take(VERSIONS).collect();
        shared.counts.operations.add(1);
        self.write(shared, &writes, |lane| {
            let writer = lane.writer(db);
            if shared.lies(Sabotage::SplitBatch) {
                return writes
                    .iter()
                    .try_for_each(|w| writer.write(std::slice::from_ref(w), false));
            }
            writer.write(&writes, false)
        })
    }

    fn write_log(&mut self, db: &Db, shared: &Shared) -> Checked<()> {
        let place = self.log_end % self.keys.len();
        self.log_end += 1;
        let put = [Write { place: place as KeyIndex, number: self.drawer.number() }];
        self.write(shared, &put, |lane| lane.writer(db).write(&put, false))?;
        let end = place.saturating_sub(WINDOW);
        let key = |place: usize| self.keys.get(place as KeyIndex).to_vec();
        let (ranges, places) = shared.shares.within(self.index, (&key(0), &key(end)));
        if ranges.is_empty() {
            return Ok(());
        }
        let deleted = places.into_iter().flatten().filter(|&place| self.state.0[place] != 0);
        let deleted: Vec<Write> =
            deleted.map(|place| Write { place: place as KeyIndex, number: 0 }).collect();
        shared.counts.operations.add(2);
        self.write(shared, &deleted, |lane| lane.writer(db).delete_ranges(&[], &ranges, &[], false))
    }
}
