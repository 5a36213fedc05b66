//! Whether a query of the door is worth its time, judged by the thread's last answers.
//! ```text
//! score   raised by each "no", lowered by each "maybe"
//!         above LEAST: query       at LEAST: query one time in REST
//! ```
//! A reader of present keys would pay for each query and gain nothing.
//!
//! Invariant: habits decide how long an answer takes, never what it is.

use std::cell::Cell;

/// Scores of a thread: if there are many doors, they share scores.
const HABITS: usize = 32;
const LEAST: i16 = -24;
const MOST: i16 = 64;
const REST: i16 = 16;

thread_local! {
    static SCORES: [Cell<i16>; HABITS] = const { [const { Cell::new(0) }; HABITS] };
}

/// The kind of a query: the index of the thread's score, and how much a "no" raises it.
#[derive(Clone, Copy)]
pub(crate) struct Habit {
    place: usize,
    worth: i16,
}

impl Habit {
    /// For keys of a family. A "no" saves about ten times the cost of a query.
    pub(crate) fn of_keys(family: u32) -> Habit {
        Habit { place: family as usize * 2 % HABITS, worth: 8 }
    }

    /// For ranges of a family. A "no" saves about a hundred times the cost of a query.
    pub(crate) fn of_ranges(family: u32) -> Habit {
        Habit { place: (family as usize * 2 + 1) % HABITS, worth: 64 }
    }

    /// Whether to query the door.
    #[inline]
    pub(crate) fn is_worth_it(self) -> bool {
        if cfg!(test) {
            return true; // There each query is a test.
        }
        SCORES.with(|scores| {
            let score = &scores[self.place];
            match score.get() {
                now if now > LEAST => true,
                now if now > LEAST - REST => {
                    score.set(now - 1);
                    false
                }
                _ => {
                    score.set(LEAST);
                    true
                }
            }
        })
    }

    /// Learns from the answer of a query.
    #[inline]
    pub(crate) fn learn(self, is_denied: bool) {
        SCORES.with(|scores| {
            let score = &scores[self.place];
            let next = if is_denied { score.get() + self.worth } else { score.get() - 1 };
            score.set(next.clamp(LEAST, MOST));
        });
    }
}
