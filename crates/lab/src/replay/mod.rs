//! Recordings of how a tree grows, flush by flush and merge by merge, with the filter's answers for
//! some keys at every step.
//! ```text
//! step 9   flush 5           level 0  [5,6) [4,5)    key "0b": codes [2,3) -> run 2   digits 2 1
//!                            last     [0,4)
//! step 10  merge [5,6)[4,5) ...
//!
//! grown    a store of its own, step by step          }  Db::follow_tree -> Recorder -> steps
//! run      a store that others load or measure       }  in a file: a JSON line for each step
//! ```
//! A follower of a store's tree sees every change. The guard answers with codes, and
//! `Shape::resolve` turns them into runs. Codes are spans of flush numbers. The GRF paper (section
//! 4.2) writes them as positions, which are the digits of a flush number; `Shape::of_round`
//! computes them.
//! Invariant: a run that holds a followed key is among the runs that the key's codes name.

mod grown;
mod positions;
mod recorder;
mod recording;
mod run;

pub use grown::{ReplayPlan, record_replay};
pub use recording::{
    Recording, RecordingHead, ReplayAnswer, ReplayCode, ReplayDigits, ReplayEvent, ReplayRun,
    ReplayStep,
};
pub use run::{RunRecorder, RunToRecord, read_recording};
