//! Whether asking is worth its time, as the thread's last questions were answered.
//! ```text
//! score   raised by each "no", lowered by each "maybe"
//!         above LEAST: ask         at LEAST: ask one time in REST
//! ```
//! A reader of keys that are there would pay for each question and gain nothing. Invariant: it
//! decides how long an answer takes, never what it is.

use std::cell::Cell;

/// Habits of a thread: doors share them where there are many.
const HABITS: usize = 32;
const LEAST: i16 = -24;
const MOST: i16 = 64;
const REST: i16 = 16;

thread_local! {
    static SCORES: [Cell<i16>; HABITS] = const { [const { Cell::new(0) }; HABITS] };
}

/// What a question is about: an index of a thread's scores, and what a "no" is worth.
#[derive(Clone, Copy)]
pub(crate) struct Habit {
    place: usize,
    worth: i16,
}

impl Habit {
    /// Of keys of a family. A "no" saves some ten times what a question takes.
    pub(crate) fn of_keys(family: u32) -> Habit {
        Habit { place: family as usize * 2 % HABITS, worth: 8 }
    }

    /// Of ranges of a family. A "no" saves some hundred times what a question takes.
    pub(crate) fn of_ranges(family: u32) -> Habit {
        Habit { place: (family as usize * 2 + 1) % HABITS, worth: 64 }
    }

    /// Whether to ask.
    #[inline]
    pub(crate) fn is_worth_it(self) -> bool {
        if cfg!(test) {
            return true; // There each question is a test.
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

    /// What a question was answered.
    #[inline]
    pub(crate) fn learn(self, is_denied: bool) {
        SCORES.with(|scores| {
            let score = &scores[self.place];
            let next = if is_denied { score.get() + self.worth } else { score.get() - 1 };
            score.set(next.clamp(LEAST, MOST));
        });
    }
}
