//! The expected contents of key spaces, some of which have no log.
//! ```text
//! with a log      one history: a crash leaves a prefix of it, over all of them alike
//! without one     a history for each: a prefix, too, that has what was flushed
//! ```
//! Invariant: readers see the writes of all models together.

use super::super::keys::Keys;
use super::super::model::{Model, Reopened, State};
use super::super::operation::Write;

/// The models of all key spaces.
pub(super) struct Models {
    /// What readers see, in all key spaces.
    seen: State,
    logged: Model,
    /// The models of key spaces without a log. None: the key space has a log.
    unlogged: Vec<Option<Unlogged>>,
    /// Keys of each key space.
    keys: usize,
}

/// A key space without a log.
struct Unlogged {
    model: Model,
    /// For each group of writes, the newest sequence number visible at that time.
    ends: Vec<u64>,
}

impl Models {
    /// Creates the models of key spaces, with a log or without. `keys`: the keys of each.
    pub(super) fn new(have_logs: &[bool], keys: usize) -> Self {
        let model = || Model::new(have_logs.len() * keys);
        let unlogged =
            |has_log: &bool| (!has_log).then(|| Unlogged { model: model(), ends: Vec::new() });
        let unlogged = have_logs.iter().map(unlogged).collect();
        Models { seen: model().seen().clone(), logged: model(), unlogged, keys }
    }

    /// Returns what readers see.
    pub(super) fn seen(&self) -> &State {
        &self.seen
    }

    /// Returns the time, in ticks.
    pub(super) fn tick(&self) -> u32 {
        self.logged.tick()
    }

    pub(super) fn has_log(&self, space: usize) -> bool {
        self.unlogged[space].is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Model> {
        let unlogged = self.unlogged.iter().flatten().map(|unlogged| &unlogged.model);
        unlogged.chain([&self.logged])
    }

    /// Whether the models can take another write that may fail.
    pub(super) fn takes_doubt(&self) -> bool {
        self.all().all(Model::takes_doubt)
    }

    /// Notes writes. `visible`: the newest number that readers see now. Returns whether the log has
    /// some of the writes.
    pub(super) fn wrote(&mut self, writes: &[Write], acknowledged: bool, visible: u64) -> bool {
        let keys = self.keys;
        let in_space = |write: &Write| usize::from(write.place) / keys;
        let (logged, unlogged): (Vec<Write>, Vec<Write>) =
            writes.iter().partition(|write| self.has_log(in_space(write)));
        for (space, own) in self.unlogged.iter_mut().enumerate() {
            let Some(Unlogged { model, ends }) = own else { continue };
            let of_space: Vec<Write> =
                unlogged.iter().filter(|write| in_space(write) == space).copied().collect();
            if !of_space.is_empty() {
                model.wrote(&of_space, acknowledged);
                ends.push(visible);
            }
        }
        if !logged.is_empty() {
            self.logged.wrote(&logged, acknowledged);
        }
        self.see();
        !logged.is_empty()
    }

    /// Notes that all acknowledged writes of key spaces with a log are durable.
    pub(super) fn all_durable(&mut self) {
        self.logged.all_durable();
    }

    /// Notes that a key space without a log is durable up to this number.
    pub(super) fn flushed_through(&mut self, space: usize, number: u64) {
        if let Some(Unlogged { model, ends }) = &mut self.unlogged[space] {
            let count = ends.partition_point(|end| *end <= number);
            model.durable_groups(count);
            if count == ends.len() {
                model.all_durable();
                ends.truncate(model.group_count());
            }
        }
    }

    pub(super) fn overdue_durable(&mut self) {
        self.logged.overdue_durable();
    }

    /// Notes that an interval of syncing has passed, which is one tick.
    pub(super) fn interval_passed(&mut self) {
        self.logged.interval_passed();
        let unlogged = self.unlogged.iter_mut().flatten();
        unlogged.for_each(|unlogged| unlogged.model.interval_passed());
        self.see();
    }

    /// Compares the contents of a reopened store with the model. `flushed`: whether closing flushed
    /// the memtables. `visible`: the newest sequence number.
    pub(super) fn reopened(
        &mut self,
        found: &State,
        how: Reopened,
        (flushed, visible): (bool, u64),
        keys: &Keys,
    ) -> Result<(), String> {
        let mut with_log = found.clone();
        for (space, own) in self.unlogged.iter_mut().enumerate() {
            let Some(Unlogged { model, ends }) = own else { continue };
            let mut of_space = State(vec![0; found.0.len()]);
            for place in space * self.keys..(space + 1) * self.keys {
                std::mem::swap(&mut of_space.0[place], &mut with_log.0[place]);
            }
            let matched = model.reopened(of_space, Reopened { lossless: flushed, ..how }, keys);
            matched.map_err(|wrong| format!("{space}, which has no log: {wrong}"))?;
            ends.truncate(model.group_count());
            // The numbers of lost writes are given again.
            ends.iter_mut().for_each(|end| *end = visible.min(*end));
        }
        self.logged.reopened(with_log, how, keys)?;
        self.see();
        Ok(())
    }

    fn see(&mut self) {
        let mut seen = State(vec![0; self.seen.0.len()]);
        for model in self.all() {
            seen.0.iter_mut().zip(&model.seen().0).for_each(|(all, own)| *all += own);
        }
        self.seen = seen;
    }
}
