//! One victim process, from its start to its kill.
//! ```text
//! spawn -> listen ... wait for a time, or for an activity and a moment -> SIGKILL -> listen on
//! ```
//! Invariant: all messages before the end count, and nothing else.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::history::LANES;
use super::wire::{Activity, MESSAGE_BYTES, Message};
use crate::keys::rng::Rng;

/// The signal number of SIGKILL.
const SIGKILL: i32 = 9;
/// How long to wait for an activity to begin.
const PATIENCE: Duration = Duration::from_secs(2);

/// When to kill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aim {
    /// This long after the start.
    After(Duration),
    /// A delay after an activity has begun for the `times`-th time.
    During { activity: Activity, times: u32, delay: Duration },
}

/// Draws a time between two; all orders of magnitude are equally likely.
fn draw_time(rng: &mut Rng, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(least * (most / least).powf(rng.unit()))
}

impl Aim {
    pub(super) fn draw_from(rng: &mut Rng) -> Self {
        const AIMED_AT: [Activity; 6] = [
            Activity::Open,
            Activity::Flush,
            Activity::Merge,
            Activity::Image,
            Activity::Checkpoint,
            Activity::Close,
        ];
        if rng.below(2) == 0 {
            return Aim::After(draw_time(rng, 1e-3, 1.0));
        }
        let (activity, times) = (AIMED_AT[rng.place(AIMED_AT.len())], 1 + rng.below(2) as u32);
        Aim::During { activity, times, delay: draw_time(rng, 10e-6, 5e-3) }
    }
}

/// A checkpoint that was begun: how many writes of each lane were acknowledged before it began, and
/// before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) number: u64,
    pub(super) least: [u32; LANES],
    /// None: it did not end.
    pub(super) most: Option<[u32; LANES]>,
}

/// What a process has reported.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionLog {
    /// Acknowledged writes of each lane.
    pub(super) done: [u32; LANES],
    /// Acknowledged writes that are durable even without a log.
    pub(super) durable: [u32; LANES],
    begun: [u32; Activity::COUNT],
    under_way: [i32; Activity::COUNT],
    pub(super) copies: Vec<Copy>,
    /// Whether a message could not be decoded.
    pub(super) garbled: bool,
    has_ended: bool,
}

impl SessionLog {
    pub(super) fn hear(&mut self, message: Option<Message>) {
        match message {
            Some(Message::Done { lane }) if usize::from(lane) < LANES => {
                self.done[usize::from(lane)] += 1;
            }
            Some(Message::Durable { lane, count }) if usize::from(lane) < LANES => {
                let durable = &mut self.durable[usize::from(lane)];
                *durable = count.min(u32::MAX.into()) as u32;
            }
            Some(Message::Begin { activity, number }) => {
                self.begun[activity as usize] += 1;
                self.under_way[activity as usize] += 1;
                if activity == Activity::Checkpoint {
                    self.copies.push(Copy { number, least: self.done, most: None });
                }
            }
            Some(Message::End { activity, number }) => {
                self.under_way[activity as usize] -= 1;
                let is_copy =
                    |copy: &&mut Copy| activity == Activity::Checkpoint && copy.number == number;
                if let Some(copy) = self.copies.iter_mut().find(is_copy) {
                    copy.most = Some(self.done);
                }
            }
            _ => self.garbled = true,
        }
    }

    /// Whether writers had begun.
    pub(super) fn had_begun(&self) -> bool {
        self.begun[Activity::Write as usize] > 0
    }

    /// Returns the activities that had begun and not ended at the kill.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Activity> {
        Activity::ALL.into_iter().filter(|&activity| self.under_way[activity as usize] > 0)
    }
}

/// The messages received so far, shared with the listener thread.
#[derive(Default)]
struct Ear {
    heard: Mutex<SessionLog>,
    /// Signalled when an activity begins, and when the process has ended.
    news: Condvar,
}

impl Ear {
    fn heard(&self) -> MutexGuard<'_, SessionLog> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens until the write end of the pipe is closed.
    fn listen(&self, mut pipe: ChildStdout) {
        let (mut buffer, mut len) = ([0; 64 * MESSAGE_BYTES], 0);
        // An error ends the stream; earlier messages count.
        while let Ok(read @ 1..) = pipe.read(&mut buffer[len..]) {
            len += read;
            let mut heard = self.heard();
            let (messages, rest) = buffer[..len].as_chunks::<MESSAGE_BYTES>();
            let left = rest.len();
            messages.iter().for_each(|message| heard.hear(Message::decode(message)));
            drop(heard);
            self.news.notify_all();
            buffer.copy_within(len - left..len, 0);
            len = left;
        }
        let mut heard = self.heard();
        heard.garbled |= len > 0;
        heard.has_ended = true;
        drop(heard);
        self.news.notify_all();
    }

    /// Waits until it is time to kill, or the process has ended.
    fn wait_for(&self, aim: Aim) {
        let start = Instant::now();
        let wait = |limit: Duration, arrived: &dyn Fn(&SessionLog) -> bool| {
            let mut heard = self.heard();
            while !heard.has_ended && !arrived(&heard) {
                let Some(left) = limit.checked_sub(start.elapsed()) else { break };
                let waited = self.news.wait_timeout(heard, left);
                heard = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        match aim {
            Aim::After(time) => wait(time, &|_| false),
            Aim::During { activity, times, delay } => {
                wait(PATIENCE, &|heard| heard.begun[activity as usize] >= times);
                std::thread::sleep(delay);
            }
        }
    }
}

/// Runs a process and kills it. An error says why it could not, or that the process ended by
/// itself.
pub(super) fn run(mut command: Command, aim: Aim) -> Result<SessionLog, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| format!("the process cannot start: {error}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(mut stderr)) = (stdout, stderr) else {
        return Err("the process has no pipes".into());
    };
    let ear = Ear::default();
    let status = std::thread::scope(|scope| {
        scope.spawn(|| ear.listen(stdout));
        ear.wait_for(aim);
        // If the process has ended already, its status says so.
        let killed = child.kill();
        killed.and_then(|()| child.wait())
    });
    let status = status.map_err(|error| format!("the process cannot be killed: {error}"))?;
    if status.signal() != Some(SIGKILL) {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        return Err(format!("the process has ended by itself, {status}: {}", said.trim()));
    }
    let heard = ear.heard.into_inner().unwrap_or_else(PoisonError::into_inner);
    if heard.garbled { Err("what the process told cannot be read".into()) } else { Ok(heard) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_and_not_ended_is_under_way() {
        let mut heard = SessionLog::default();
        let checkpoint = Activity::Checkpoint;
        for message in [
            Message::Begin { activity: Activity::Write, number: 0 },
            Message::Begin { activity: checkpoint, number: 0 },
            Message::Done { lane: 2 },
            Message::End { activity: checkpoint, number: 0 },
            Message::Begin { activity: checkpoint, number: 1 },
        ] {
            heard.hear(Some(message));
        }
        assert!(heard.had_begun() && !heard.garbled);
        assert_eq!(heard.under_way().collect::<Vec<_>>(), [Activity::Write, checkpoint]);
        let [whole, cut] = heard.copies[..] else { panic!("{heard:?}") };
        assert_eq!((whole.least[2], whole.most.map(|most| most[2])), (0, Some(1)));
        assert_eq!((cut.number, cut.least[2], cut.most), (1, 1, None));
        heard.hear(Some(Message::Done { lane: LANES as u8 }));
        assert!(heard.garbled);
    }

    #[test]
    fn a_process_that_ends_by_itself_is_no_victim() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo oh dear >&2; exit 3"]);
        let failed = run(command, Aim::After(Duration::from_secs(60))).expect_err("not killed");
        assert!(failed.contains("oh dear") && failed.contains('3'), "{failed}");
    }

    #[test]
    fn kills_are_aimed_at_everything() {
        let mut rng = Rng::new(1);
        let aims: Vec<Aim> = (0..200).map(|_| Aim::draw_from(&mut rng)).collect();
        let times = aims.iter().filter_map(|aim| match aim {
            Aim::After(time) => Some(time.as_secs_f64()),
            Aim::During { .. } => None,
        });
        let times: Vec<f64> = times.collect();
        assert!(times.iter().all(|time| (1e-3..=1.0).contains(time)));
        assert!((60..140).contains(&times.len()));
    }
}
