//! The model: what readers of the store see, and what a crash may leave.
//! ```text
//! base | write  write  write? | write  write      <- seen by readers, without the doubtful ones
//!      '-------- durable -----'                    a crash leaves base and a prefix that has these
//! ```
//! Invariant: a failed write (`write?`) is invisible until the store is reopened. Then it is there
//! as a whole or not at all.

use std::collections::HashSet;

use super::keys::{KeyIndex, Keys};
use super::operands::{Mixed, after};
use super::operation::{Write, key_text};
use crate::keys::rng::scramble;

/// The number of each key's value; 0: the key has none. Writes may also have numbers of operands,
/// for keys whose values never expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(crate) Vec<u32>);

impl State {
    /// Removes the values that expire by this tick.
    pub(crate) fn expire(&mut self, tick: u32) {
        self.0.iter_mut().for_each(|number| *number = shown_at(*number, tick));
    }

    fn apply(&mut self, writes: &[Write]) {
        writes.iter().for_each(|write| {
            let number = &mut self.0[usize::from(write.place)];
            *number = after(*number, write.number);
        });
    }

    /// Returns a digest: a sum over the values, which a single write can update.
    fn digest(&self) -> u64 {
        let each = |(place, &number)| digest_of(place, number);
        self.0.iter().enumerate().map(each).fold(0, u64::wrapping_add)
    }
}

fn digest_of(place: usize, number: u32) -> u64 {
    if number == 0 { 0 } else { scramble((place as u64) << 32 | u64::from(number)) }
}

/// The bit of numbers whose values expire.
const EXPIRING: u32 = 1 << 31;
/// The tick of the expiry is above these bits.
const EXPIRY_SHIFT: u32 = 20;
/// The last tick that fits.
const EXPIRY_MAX: u32 = (EXPIRING >> EXPIRY_SHIFT) - 1;

/// Returns the number of a value that expires at a tick.
pub(crate) fn expiring(number: u32, tick: u32) -> u32 {
    let serial = number & ((1 << EXPIRY_SHIFT) - 1);
    EXPIRING | tick.min(EXPIRY_MAX) << EXPIRY_SHIFT | serial
}

/// Returns the tick at which a number's value expires. None: it never expires.
pub(crate) fn expiry_of(number: u32) -> Option<u32> {
    (number & EXPIRING != 0).then_some(number >> EXPIRY_SHIFT & EXPIRY_MAX)
}

/// The bit of numbers whose values are several MiB; such values do not expire.
const LARGE: u32 = 1 << 30;

/// Returns the number of a value of several MiB. Requires: no other number of the history has this
/// bit.
pub(crate) fn large(number: u32) -> u32 {
    number | LARGE
}

/// The bits of numbers whose values are long enough to be stored apart. Results of operands may
/// have both bits, too.
const LONG: u32 = 3 << 18;

/// Returns the number of a value of about 250 to 5,000 bytes, and rarely of more than 64 KiB.
pub(crate) fn long(number: u32) -> u32 {
    number | LONG
}

/// Whether a value is also put and read as a stream.
pub(crate) fn is_streamed(number: u32) -> bool {
    number & LONG == LONG && number.is_multiple_of(4)
}

/// Returns the length of a long value's filler. Many are near a threshold that options draw.
fn long_filler(draw: u64) -> usize {
    let extra = (draw >> 16) as usize;
    match draw >> 8 & 31 {
        0..6 => 240 + extra % 24,
        6..12 => 1008 + extra % 24,
        12 => (60 << 10) + extra % (100 << 10),
        _ => 246 + extra % 4755,
    }
}

/// Returns the number, or 0 once its value has expired.
pub(crate) fn shown_at(number: u32, tick: u32) -> u32 {
    if expiry_of(number).is_some_and(|expiry| expiry <= tick) { 0 } else { number }
}

/// Returns the value of a number. Number 1 has the empty value.
pub(crate) fn value_of(number: u32) -> Vec<u8> {
    if number <= 1 {
        return Vec::new();
    }
    let draw = scramble(u64::from(number));
    let extra = match draw % 128 {
        _ if number & (EXPIRING | LARGE) == LARGE => (1 + draw as usize % 3) << 20,
        _ if number & LONG == LONG => long_filler(draw),
        0 => 5000,
        1..8 => 300,
        _ => draw as usize >> 8 & 31,
    };
    number.to_le_bytes().into_iter().chain(filler(draw, extra)).collect()
}

/// Returns `bytes` bytes of filler. Half of the draws give bytes that cannot be compressed.
pub(crate) fn filler(draw: u64, bytes: usize) -> impl Iterator<Item = u8> {
    let shrinks = draw >> 60 & 1 == 0;
    (0..bytes as u64).map(move |place| match shrinks {
        true => (draw >> (place % 5 * 8)) as u8,
        false => (scramble(draw.wrapping_add(place / 8)) >> (place % 8 * 8)) as u8,
    })
}

/// Returns the number of a value. None: no number has this value.
pub(crate) fn number_of(value: &[u8]) -> Option<u32> {
    if value.is_empty() {
        return Some(1);
    }
    let number = u32::from_le_bytes(*value.first_chunk()?);
    (number > 1 && value_of(number) == value).then_some(number)
}

/// Returns the merge operator of histories.
pub(crate) fn mixed() -> Mixed {
    Mixed {
        number_of: |value| number_of(value).map(u64::from),
        value_of: |number| value_of(number as u32),
    }
}

/// Writes that landed together, or failed together.
#[derive(Clone, Debug)]
struct WriteGroup {
    writes: Vec<Write>,
    acknowledged: bool,
}

/// How the store came to be reopened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reopened {
    /// Whether all acknowledged writes must be there.
    pub(crate) lossless: bool,
    /// Whether the recovered state is durable, because no bytes wait for a sync.
    pub(crate) power_was_cut: bool,
}

/// The expected contents of a store.
pub(crate) struct Model {
    seen: State,
    base: State,
    groups: Vec<WriteGroup>,
    /// The number of groups that survive any crash.
    durable: usize,
    /// The number of groups that are older than an interval of syncing: the next write makes them
    /// durable.
    overdue: usize,
    doubtful: usize,
    /// The time, in ticks.
    tick: u32,
    /// How often each key was written or deleted.
    written: Vec<u64>,
    /// All values that keys ever had, or would have had.
    ever: HashSet<(KeyIndex, u32)>,
}

/// The most doubtful writes: each doubles the possible states.
const DOUBTFUL_MAX: usize = 6;

impl Model {
    pub(crate) fn new(keys: usize) -> Self {
        let empty = State(vec![0; keys]);
        let (groups, written) = (Vec::new(), vec![0; keys]);
        let (durable, overdue, doubtful, tick) = (0, 0, 0, 0);
        let (seen, base, ever) = (empty.clone(), empty, HashSet::new());
        Model { seen, base, groups, durable, overdue, doubtful, tick, written, ever }
    }

    /// Returns what readers see.
    pub(crate) fn seen(&self) -> &State {
        &self.seen
    }

    /// Returns how often the keys at these places were written.
    pub(crate) fn written(&self, places: std::ops::Range<usize>) -> u64 {
        self.written[places].iter().sum()
    }

    /// Whether a write ever gave the key this value.
    pub(crate) fn was_written(&self, place: KeyIndex, number: u32) -> bool {
        self.ever.contains(&(place, number))
    }

    /// Whether the model can take another write that may fail.
    pub(crate) fn takes_doubt(&self) -> bool {
        self.doubtful < DOUBTFUL_MAX
    }

    pub(crate) fn wrote(&mut self, writes: &[Write], acknowledged: bool) {
        writes.iter().for_each(|write| self.written[usize::from(write.place)] += 1);
        self.ever.extend(writes.iter().map(|write| (write.place, write.number)));
        let shown = |write: &Write| Write { number: shown_at(write.number, self.tick), ..*write };
        let writes: Vec<Write> = writes.iter().map(shown).collect();
        if acknowledged {
            self.seen.apply(&writes);
        }
        self.doubtful += usize::from(!acknowledged);
        self.groups.push(WriteGroup { writes, acknowledged });
    }

    /// Notes that all acknowledged writes are durable.
    pub(crate) fn all_durable(&mut self) {
        self.durable = self.groups.len();
        if self.doubtful == 0 {
            self.base.clone_from(&self.seen);
            self.groups.clear();
            (self.durable, self.overdue) = (0, 0);
        }
    }

    /// Returns the number of groups of writes that the model keeps.
    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Notes that the first `count` groups survive any crash.
    pub(crate) fn durable_groups(&mut self, count: usize) {
        self.durable = self.durable.max(count);
    }

    /// Notes that an interval of syncing has passed, which is one tick.
    pub(crate) fn interval_passed(&mut self) {
        self.overdue = self.groups.len();
        self.tick += 1;
        let tick = self.tick;
        self.seen.expire(tick);
        self.base.expire(tick);
        for write in self.groups.iter_mut().flat_map(|group| &mut group.writes) {
            write.number = shown_at(write.number, tick);
        }
    }

    /// Returns the time, in ticks.
    pub(crate) fn tick(&self) -> u32 {
        self.tick
    }

    /// Notes that groups older than an interval of syncing are durable.
    pub(crate) fn overdue_durable(&mut self) {
        self.durable = self.durable.max(self.overdue);
    }

    /// Compares the contents of a reopened store with the model.
    pub(crate) fn reopened(
        &mut self,
        found: State,
        how: Reopened,
        keys: &Keys,
    ) -> Result<(), String> {
        let least = if how.lossless { self.groups.len() } else { self.durable };
        let Some(kept) = self.longest_match(&found, least) else {
            return Err(self.explain(&found, least, keys));
        };
        self.groups.truncate(kept);
        self.overdue = self.overdue.min(kept);
        self.seen = found;
        if how.power_was_cut {
            self.groups.clear();
            (self.durable, self.overdue, self.doubtful) = (0, 0, 0);
            self.base.clone_from(&self.seen);
        } else {
            self.doubtful = self.groups.iter().filter(|group| !group.acknowledged).count();
        }
        Ok(())
    }

    /// Returns the largest number of groups, at least `least`, after which the state is `found`,
    /// over all choices of the doubtful ones. None: no choice leads to it.
    fn longest_match(&self, found: &State, least: usize) -> Option<usize> {
        let wanted = found.digest();
        let choices = 0u32..1 << self.doubtful;
        choices.filter_map(|choice| self.match_with(choice, wanted, least)).max()
    }

    fn match_with(&self, choice: u32, wanted: u64, least: usize) -> Option<usize> {
        let (mut state, mut digest, mut doubts) = (self.base.clone(), self.base.digest(), 0);
        let mut longest = (least == 0 && digest == wanted).then_some(0);
        for (place, group) in self.groups.iter().enumerate() {
            let there = group.acknowledged || choice >> doubts & 1 == 1;
            doubts += u32::from(!group.acknowledged);
            for write in group.writes.iter().filter(|_| there) {
                let key = usize::from(write.place);
                let (old, new) = (state.0[key], after(state.0[key], write.number));
                state.0[key] = new;
                let change = digest_of(key, new).wrapping_sub(digest_of(key, old));
                digest = digest.wrapping_add(change);
            }
            if place + 1 >= least && digest == wanted {
                longest = Some(place + 1);
            }
        }
        longest
    }

    fn explain(&self, found: &State, least: usize, keys: &Keys) -> String {
        const SHOWN: usize = 5;
        let mut last = self.base.clone();
        let groups = self.groups.iter().filter(|group| group.acknowledged);
        groups.for_each(|group| last.apply(&group.writes));
        let differs = |place: &usize| last.0[*place] != found.0[*place];
        let places: Vec<usize> = (0..last.0.len()).filter(differs).collect();
        let shown = places.iter().take(SHOWN).map(|&place| {
            let key = key_text(keys.get(place as KeyIndex));
            format!("{key} has #{}, the last write gave #{}", found.0[place], last.0[place])
        });
        format!(
            "after opening again the keys are those of no prefix of the {} groups of writes that has the first {least} \
             ({} of them failed); {} keys differ from the last state: {}",
            self.groups.len(),
            self.doubtful,
            places.len(),
            shown.collect::<Vec<_>>().join("; "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::rng::Rng;

    const LOSS: Reopened = Reopened { lossless: false, power_was_cut: true };

    fn put(place: KeyIndex, number: u32) -> Vec<Write> {
        vec![Write { place, number }]
    }

    fn state(numbers: &[u32], len: usize) -> State {
        let mut state = State(numbers.to_vec());
        state.0.resize(len, 0);
        state
    }

    #[test]
    fn values_tell_their_numbers() {
        for number in (1..3000).chain((1..3000).map(|number| expiring(number, number % 50))) {
            assert_eq!(number_of(&value_of(number)), Some(number));
        }
        let large = large(7);
        assert_eq!(number_of(&value_of(large)), Some(large));
        assert!(value_of(large).len() >= 1 << 20 && value_of(7).len() < 1 << 20);
        let lengths: Vec<usize> = (2..3000).map(|number| value_of(long(number)).len()).collect();
        assert!((2..3000).all(|number| number_of(&value_of(long(number))) == Some(long(number))));
        for edge in [256, 1024] {
            assert!(lengths.contains(&edge) && lengths.contains(&(edge - 1)), "{edge} bytes");
        }
        assert!(lengths.iter().all(|len| (244..200 << 10).contains(len)));
        assert_eq!(number_of(b"abc"), None);
        assert_eq!(number_of(&[7, 0, 0, 0]), None, "its filler is missing");
    }

    #[test]
    fn what_expires_is_gone_wherever_it_is() {
        let keys = Keys::draw_from(&mut Rng::new(1));
        let len = keys.len();
        let mut model = Model::new(len);
        let (soon, later, over) = (expiring(5, 1), expiring(6, 2), expiring(7, 0));
        assert_eq!([soon, later, over].map(expiry_of), [Some(1), Some(2), Some(0)]);
        model.wrote(&[put(0, soon), put(1, later), put(2, over)].concat(), true);
        assert_eq!(model.seen(), &state(&[soon, later, 0], len));
        model.interval_passed();
        assert_eq!((model.seen(), model.tick()), (&state(&[0, later, 0], len), 1));
        model.reopened(state(&[0, later, 0], len), LOSS, &keys).expect("all is there");
        assert!(model.was_written(0, soon) && model.was_written(2, over));
    }

    #[test]
    fn a_crash_leaves_a_prefix_with_all_that_is_durable() {
        let keys = Keys::draw_from(&mut Rng::new(1));
        let len = keys.len();
        let after_crash = |numbers: &[u32]| {
            let mut model = Model::new(len);
            model.wrote(&put(0, 5), true);
            model.all_durable();
            model.wrote(&[put(1, 6), put(2, 7)].concat(), true);
            model.wrote(&put(0, 8), false);
            model.wrote(&put(1, 9), true);
            assert_eq!(model.seen(), &state(&[5, 9, 7], len));
            model.reopened(state(numbers, len), LOSS, &keys).is_ok()
        };
        for right in [[5, 0, 0], [5, 6, 7], [8, 6, 7], [8, 9, 7], [5, 9, 7]] {
            assert!(after_crash(&right), "{right:?}");
        }
        for wrong in [[0, 0, 0], [5, 6, 0], [8, 0, 0], [5, 9, 0], [5, 6, 8]] {
            assert!(!after_crash(&wrong), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_is_missing_after_a_peaceful_end() {
        let keys = Keys::draw_from(&mut Rng::new(1));
        let mut model = Model::new(keys.len());
        model.wrote(&put(0, 5), true);
        let peace = Reopened { lossless: true, power_was_cut: false };
        let lost = model.reopened(state(&[], keys.len()), peace, &keys).expect_err("a loss");
        assert!(lost.contains("#0, the last write gave #5"), "{lost}");
        model.reopened(state(&[5], keys.len()), peace, &keys).expect("all is there");
        // The write was not synced, so a crash may still lose it.
        model.reopened(state(&[], keys.len()), LOSS, &keys).expect("a prefix");
    }
}
