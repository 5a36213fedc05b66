//! Schedules flushes and merges, which run as the same steps on threads or in stepped mode.
//! ```text
//! FlushTask, or a submerge -> one step -> ... -> one step -> installed
//! ```
//! Invariants: one flush runs at a time, merges run as `open_merges` allows, and a flush never
//! waits for a merge. A failed flush keeps its number, and holds later ones back until it succeeds
//! (ordering rule 1).

use std::time::Duration;

use crate::error::{Error, Result};
use crate::events::Event;
use crate::plan::background::Background;
use crate::plan::run_limits::SEALED_MAX;
use crate::shared::worker_pool::WorkKind;
use crate::sync::{Arc, Ordering, current, giving_up, lock, now, wait, wait_for};
use crate::tree::write_stalls::Lag;
use crate::write::engine::Engine;
use crate::write::flush::{FlushTask, Flushed};
use crate::write::merge_scheduler::Failed;
use crate::write::work::Work;

/// How often a caller receives the progress of merges.
const TELL_AGAIN: Duration = Duration::from_millis(100);

/// A step of a flush that this thread runs. Once it is dropped, even by a panic, another step may
/// follow.
struct FlushStep<'c> {
    engine: &'c Engine,
    task: Option<FlushTask>,
    /// The new value of the last failure. None: it stays as it is.
    failure: Option<Option<Error>>,
}

impl Drop for FlushStep<'_> {
    fn drop(&mut self) {
        let mut work = lock(&self.engine.work);
        work.flush.busy = None;
        // Who drops a key space in stepped mode does not wait for this step.
        let abandoned = self.task.take_if(|_| self.engine.dropped.is_set());
        work.flush.task = self.task.take();
        if let Some(failure) = self.failure.take() {
            work.flush.failure = failure;
        }
        drop(work);
        if let Some(task) = abandoned {
            task.abandon(self.engine);
        }
        self.engine.work_has_changed();
    }
}

/// A stopped writer. Writers that are stopped at the same time count as one stop.
struct StoppedWriter<'e>(&'e Engine);

impl<'e> StoppedWriter<'e> {
    fn begin(engine: &'e Engine) -> Self {
        let now = engine.env.clock.now();
        let mut work = lock(&engine.work);
        work.stopped_writers += 1;
        let is_first = work.stopped_writers == 1;
        if is_first {
            work.stopped_since = now;
        }
        drop(work);
        let stopped = StoppedWriter(engine);
        if is_first {
            // Counted right away, so that `stats` shows the stop while it lasts.
            engine.counters.stops.add(Duration::ZERO);
            engine.env.tell(Event::WritersStopped);
        }
        stopped
    }
}

impl Drop for StoppedWriter<'_> {
    fn drop(&mut self) {
        let engine = self.0;
        // In a forked child, `work` may be locked forever.
        if engine.life().is_forked() {
            return;
        }
        let mut work = lock(&engine.work);
        work.stopped_writers -= 1;
        if work.stopped_writers > 0 {
            return;
        }
        let time = engine.since(work.stopped_since);
        drop(work);
        engine.counters.stops.add_time(time);
        engine.env.tell(Event::WritersGoOn { time });
    }
}

impl Engine {
    /// Runs one step: of a flush if one is due, else of a merge, else of a refit. Returns false if
    /// nothing is due.
    pub(crate) fn step(&self) -> Result<bool> {
        self.sweep();
        self.seal_if_requested();
        Ok(self.flush_step()? || self.lone_merge_step(None)? || self.refit_step())
    }

    /// Runs one step of the work that `choice` picks among all work that can proceed now. Returns
    /// false if there is none.
    pub(crate) fn step_any(&self, choice: usize) -> Result<bool> {
        self.sweep();
        self.seal_if_requested();
        let work = lock(&self.work);
        let flushes = usize::from(self.is_wanted(WorkKind::Flush, &work));
        let merges = self.merge_choices(&work);
        let refits = usize::from(self.is_refit_due(&work));
        drop(work);
        match choice.checked_rem(flushes + merges + refits) {
            None => Ok(false),
            Some(nth) if nth < flushes => self.flush_step(),
            Some(nth) if nth < flushes + merges => self.lone_merge_step(Some(nth - flushes)),
            Some(_) => Ok(self.refit_step()),
        }
    }

    /// Runs one step of a flush. Returns false if none is due, or another thread runs it.
    pub(crate) fn flush_step(&self) -> Result<bool> {
        let Some(mut step) = self.take_flush() else { return Ok(false) };
        let task = step.task.as_mut().expect("a step of a flush has its task");
        // A failure does not lose what the task has written.
        match task.step(self) {
            Ok(Flushed::Installed { bytes, begun }) => {
                if let Some(memory) = self.memory() {
                    memory.note_flushed(task.memory_bytes());
                }
                (step.task, step.failure) = (None, Some(None));
                self.counters.flushes.fetch_add(1, Ordering::Relaxed);
                drop(step);
                self.sweep_or_call();
                // The flush is recorded as done, so a panicking clock does no harm here.
                self.env.tell(Event::Flushed { bytes, time: self.since(begun) });
            }
            Ok(Flushed::Written { bytes }) => self.rate_limiter.spend(bytes, self.env.clock.now()),
            Err(error) => {
                step.failure = Some(Some(error.clone()));
                self.env.tell_failure("a flush", &error);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Runs one step of a merge in stepped mode, in which a failed merge may be retried at once.
    /// Returns false if there is none.
    fn lone_merge_step(&self, choice: Option<usize>) -> Result<bool> {
        self.merge_step(choice).map_err(|Failed { merge, error, .. }| {
            lock(&self.work).merges.release(merge);
            self.sweep_or_call();
            error
        })
    }

    /// Seals the active memtable if stores that share write memory have requested it, and if it is
    /// possible now. Otherwise the writer or the flush that prevents it calls this thread when it
    /// is done. Returns false if sealing failed.
    pub(crate) fn seal_if_requested(&self) -> bool {
        if !self.memory().is_some_and(|memory| memory.seal_is_requested()) {
            return true;
        }
        let writer = self.commit.try_writer().or_else(|| {
            self.commit.missed.note(&self.workers);
            self.commit.try_writer()
        });
        let Some(mut writer) = writer else { return true };
        let is_done = writer.seal_early(self).is_ok();
        drop(writer);
        self.writer_is_free();
        is_done
    }

    /// Calls the threads that could not seal a memtable while a writer was at work.
    pub(crate) fn writer_is_free(&self) {
        if self.memory().is_some() {
            self.commit.missed.call();
        }
    }

    fn take_flush(&self) -> Option<FlushStep<'_>> {
        let now = self.env.clock.now();
        let mut work = lock(&self.work);
        if work.flush.busy.is_some() {
            return None;
        }
        let task = |sealed| FlushTask::new(sealed, now);
        let oldest = || self.current.pin().sealed.last().map(Arc::clone).map(task);
        let task = work.flush.task.take().or_else(oldest)?;
        work.flush.begin(current().id());
        Some(FlushStep { engine: self, task: Some(task), failure: None })
    }

    /// In stepped mode, when there is no step to run: waits for a step of another thread. Returns
    /// false if no other thread runs one, and nothing is due.
    fn others_went_on(&self) -> bool {
        let (work, own) = (lock(&self.work), current().id());
        let refitting = || work.refit.iter().filter_map(|refit| refit.busy.as_ref());
        let at_work = || work.flush.busy.iter().chain(&work.merging).chain(refitting());
        if at_work().any(|thread| *thread == own) {
            return false;
        }
        if at_work().next().is_some() {
            drop(wait(&self.work_changed, work));
            return true;
        }
        self.is_wanted(WorkKind::Flush, &work) || self.is_wanted(WorkKind::Merge, &work)
    }

    fn is_flush_due(&self, work: &Work) -> bool {
        work.flush.task.is_some() || !self.current.pin().sealed.is_empty()
    }

    /// Whether an idle thread has a step to run, which no other thread runs already.
    pub(crate) fn is_wanted(&self, kind: WorkKind, work: &Work) -> bool {
        match kind {
            WorkKind::Flush => work.flush.busy.is_none() && self.is_flush_due(work),
            WorkKind::Merge => self.merge_choices(work) > 0 || self.is_refit_due(work),
            WorkKind::Keep => false,
        }
    }

    /// Wakes threads that wait for progress, and threads that may continue the work.
    pub(crate) fn work_has_changed(&self) {
        self.work_changed.notify_all();
        self.workers.call(&[WorkKind::Flush, WorkKind::Merge]);
    }

    /// Wakes the threads, since there may be work.
    pub(crate) fn work_appeared(&self) {
        drop(lock(&self.work));
        self.work_has_changed();
    }

    /// Returns how far flushes and merges lag behind.
    pub(crate) fn lag(&self) -> Lag {
        let now = self.current.pin();
        let (options, mut active_bytes) =
            (&self.table_files.options, now.active.memtable.size_bytes());
        // A few entries may refer to many bytes of values, whose garbage is only found once the
        // entries are merged.
        if now.active.values.bytes() >= options.value_file_bytes {
            active_bytes = active_bytes.max(options.write_buffer_bytes);
        }
        let fullness = active_bytes as f64 / options.write_buffer_bytes as f64;
        Lag {
            sealed: now.sealed.len(),
            active_bytes,
            fullness,
            shared: self.memory().map_or(0.0, |memory| memory.fullness()),
            runs: now.lagging_runs,
        }
    }

    /// Whether the active memtable must be sealed before the next write.
    pub(crate) fn must_seal(&self, lag: &Lag) -> bool {
        // After a change of the option, logged and unlogged writes should not share a memtable for
        // longer than necessary.
        let was_logged = || self.current.pin().active.first_log().is_some();
        lag.active_bytes >= self.table_files.options.write_buffer_bytes
            || self.memory().is_some_and(|memory| memory.seal_is_requested())
            || !self.has_log() && was_logged()
    }

    /// For a caller that may give up: waits until a write would not be stopped. Does not wait for
    /// flushes and merges that fail; the write itself reports those.
    pub(crate) fn wait_for_room(&self) -> Result<()> {
        // The write itself asks how far all lags behind: mostly this look is enough.
        let now = self.current.pin();
        let may_stop = now.sealed.len() >= SEALED_MAX || now.lagging_runs >= self.run_limits.stop;
        drop(now);
        if !may_stop
            || self.table_files.options.background == Background::Stepped
            || !self.stops_writers(&lock(&self.work))
        {
            return Ok(());
        }
        let _stopped = StoppedWriter::begin(self);
        self.wait_or_give_up()
    }

    /// Whether a write has to wait for a flush.
    fn lacks_room(&self, lag: &Lag) -> bool {
        lag.sealed >= SEALED_MAX && self.must_seal(lag)
    }

    /// Whether a write is stopped until a flush or a merge has caught up that may still succeed.
    fn stops_writers(&self, work: &Work) -> bool {
        let lag = self.lag();
        let may_flush = work.flush.failure().is_none() && work.panicked.is_none();
        may_flush && self.lacks_room(&lag)
            || lag.runs >= self.run_limits.stop && self.may_merge(work)
    }

    fn wait_or_give_up(&self) -> Result<()> {
        let mut work = lock(&self.work);
        let mut asked_at = now();
        while self.stops_writers(&work) && !work.stopping {
            (work, _) = wait_for(&self.work_changed, &self.work, work, giving_up::STEP);
            if now().saturating_duration_since(asked_at) < giving_up::STEP {
                continue;
            }
            drop(work);
            if giving_up::is_given_up() {
                return Err(Error::Cancelled);
            }
            // This may be a forked child by now, in which `work` may be locked forever.
            self.check_open()?;
            asked_at = now();
            work = lock(&self.work);
        }
        self.check_open()
    }

    /// Waits until there is room for another sealed memtable, or flushing has failed. A failed
    /// flush is retried first, without its pause, since its cause may be gone.
    pub(crate) fn wait_for_flushes(&self) -> Result<()> {
        let crowded = || self.current.pin().sealed.len() >= SEALED_MAX;
        self.stop_writer(crowded, || {
            self.retry_flush();
            self.wait_for_flushes_while(crowded)
        })
    }

    /// Makes the flush thread retry a failed flush without its pause.
    fn retry_flush(&self) {
        lock(&self.work).flush.is_asked_again = true;
        self.work_has_changed();
    }

    /// Waits until the number of lagging runs is below the limit at which writers are stopped.
    /// Failing merges stop no writer: a table that cannot be read is no reason to refuse writes.
    /// They are slowed down nevertheless.
    pub(crate) fn wait_for_merges(&self) -> Result<()> {
        let crowded = || self.current.pin().lagging_runs >= self.run_limits.stop;
        let is_over = |work: &Work| (!crowded() || !self.may_merge(work)).then_some(Ok(()));
        self.stop_writer(crowded, || self.wait_until(is_over))
    }

    /// Whether waiting for a merge can end.
    fn may_merge(&self, work: &Work) -> bool {
        let fails = work.panicked.is_some() || work.merges.failure().is_some();
        !fails && self.has_merges(work)
    }

    /// Stops a writer while `crowded` holds. In stepped mode the stop is only counted.
    fn stop_writer(
        &self,
        crowded: impl Fn() -> bool,
        wait: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if !crowded() {
            return Ok(());
        }
        if self.table_files.options.background == Background::Stepped {
            self.counters.stops.add(Duration::ZERO);
            return Ok(());
        }
        let _stopped = StoppedWriter::begin(self);
        wait()
    }

    /// Waits while `unflushed` holds. Returns an error if flushing has failed.
    fn wait_for_flushes_while(&self, unflushed: impl Fn() -> bool) -> Result<()> {
        self.wait_until(|work| match work.flush.failure().or(work.panicked.as_ref()) {
            _ if !unflushed() => Some(Ok(())),
            failure => failure.map(|cause| Err(Error::stopped(cause))),
        })
    }

    /// Waits until `is_over` returns a result, or the store is closed.
    fn wait_until(&self, is_over: impl Fn(&Work) -> Option<Result<()>>) -> Result<()> {
        let mut work = lock(&self.work);
        loop {
            if let Some(end) = is_over(&work) {
                return end;
            }
            if work.stopping {
                return self.life().check();
            }
            work = wait(&self.work_changed, work);
        }
    }

    /// Flushes the memtables that are sealed now, on threads or in this thread.
    pub(crate) fn flush_sealed(&self) -> Result<()> {
        // More may be sealed meanwhile; only the present ones are waited for.
        let newest = self.current.pin().sealed.first().map(|sealed| sealed.flush);
        let oldest = || self.current.pin().sealed.last().map(|sealed| sealed.flush);
        let is_left = || oldest().is_some() && oldest() <= newest;
        match self.table_files.options.background {
            Background::Stepped => {
                while is_left() && (self.flush_step()? || self.others_went_on()) {}
                Ok(())
            }
            Background::Threads(_) => {
                self.retry_flush();
                self.wait_for_flushes_while(is_left)
            }
        }
    }

    /// Waits until no flush and no merge is due. In stepped mode this thread does them.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        match self.table_files.options.background {
            Background::Stepped => {
                while self.step()? || self.others_went_on() {
                    self.life().check()?;
                }
                Ok(())
            }
            Background::Threads(_) => {
                // What failed before is retried, and may succeed now.
                let mut work = lock(&self.work);
                work.flush.is_asked_again = true;
                work.merges.forget_failures();
                drop(work);
                self.work_has_changed();
                self.wait_for_threads()
            }
        }
    }

    fn wait_for_threads(&self) -> Result<()> {
        self.wait_until(|work| self.end_of_work(work))
    }

    /// Returns a result if the threads have nothing to do, or something has failed. None: they have
    /// work.
    fn end_of_work(&self, work: &Work) -> Option<Result<()>> {
        match work.failure() {
            Some(cause) => Some(Err(Error::stopped(cause))),
            None if work.flush.busy.is_some() || self.is_flush_due(work) => None,
            None => (!self.has_merges(work)).then_some(Ok(())),
        }
    }

    /// Merges everything into one run. Cancels open merges, since their output would be merged
    /// again at once.
    pub(crate) fn merge_everything(&self) -> Result<()> {
        self.insist_on_merging_everything(|| match self.table_files.options.background {
            Background::Stepped => self.wait_idle(),
            // Unlike `wait_idle`, this does not forget that the merge has failed.
            Background::Threads(_) => self.wait_for_threads(),
        })
    }

    /// As `merge_everything`, and repeatedly reports how many entries merges have read since the
    /// call began. If `tell` returns an error, the merge is given up.
    pub(crate) fn merge_everything_telling(
        &self,
        mut tell: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let read = || self.counters.merged_entries.load(Ordering::Relaxed);
        let before = read();
        let mut tell = || tell(read() - before).inspect_err(|_| self.give_up_merges(false));
        self.insist_on_merging_everything(|| match self.table_files.options.background {
            Background::Stepped => {
                while self.has_work() {
                    tell()?;
                    let _ = self.step()? || self.others_went_on();
                    self.life().check()?;
                }
                Ok(())
            }
            Background::Threads(_) => self.wait_for_threads_telling(&mut tell),
        })
    }

    fn has_work(&self) -> bool {
        let work = lock(&self.work);
        self.is_flush_due(&work) || self.has_merges(&work)
    }

    /// Requests a merge of everything. Repeats this if another caller has given up its own request
    /// meanwhile.
    fn insist_on_merging_everything(&self, mut wait: impl FnMut() -> Result<()>) -> Result<()> {
        let given_up = || lock(&self.work).given_up;
        loop {
            let before = given_up();
            if !self.ask_to_merge_everything() {
                return Ok(());
            }
            wait()?;
            if given_up() == before {
                return Ok(());
            }
        }
    }

    /// Requests a merge of everything. Returns false if there is nothing to merge.
    fn ask_to_merge_everything(&self) -> bool {
        let has_runs = !self.current.pin().runs.is_empty();
        if has_runs {
            self.give_up_merges(true);
        }
        has_runs
    }

    /// Cancels open merges. `merge_everything`: whether everything is merged next, instead of what
    /// is due.
    fn give_up_merges(&self, merge_everything: bool) {
        let mut work = lock(&self.work);
        work.merge_everything = merge_everything;
        work.given_up += u64::from(!merge_everything);
        work.merges.forget_failures();
        let cancelled = work.merges.cancel();
        drop(work);
        cancelled.abandon(self);
        self.work_has_changed();
        self.sweep_or_call();
    }

    fn wait_for_threads_telling(&self, tell: &mut impl FnMut() -> Result<()>) -> Result<()> {
        loop {
            let work = lock(&self.work);
            if let Some(end) = self.end_of_work(&work) {
                return end;
            }
            if work.stopping {
                return self.life().check();
            }
            drop(wait_for(&self.work_changed, &self.work, work, TELL_AGAIN));
            tell()?;
        }
    }

    /// Returns the failure that stops writes, flushes or merges, if there is one.
    pub(crate) fn failure(&self) -> Option<String> {
        let of_work = lock(&self.work).failure().map(Error::to_string);
        let of_log = of_work.or_else(|| self.commit.failure());
        of_log.or_else(|| self.table_files.values.store.failure())
    }

    /// Makes the threads end after their current step.
    pub(crate) fn stop(&self) {
        lock(&self.work).stopping = true;
        self.work_has_changed();
    }

    /// Lets threads work again, after `stop`.
    pub(super) fn go_on(&self) {
        lock(&self.work).stopping = false;
    }

    /// Removes the output of flushes and merges that will not be installed. Requires: no step runs.
    pub(crate) fn abandon_work(&self) {
        let mut work = lock(&self.work);
        let (flush, merges) = (work.flush.task.take(), work.merges.close_all());
        let refit = work.refit.as_mut().and_then(|refit| refit.task.take());
        drop(work);
        // A refit has written no files.
        drop(refit);
        if let Some(task) = flush {
            task.abandon(self);
        }
        merges.abandon(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open;
    use crate::plan::options::Options;
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;

    // A second merge thread used to poll, keeping a core busy, until the first one was done.
    #[test]
    fn a_thread_without_work_sleeps_while_another_one_merges() {
        let storage = Arc::new(Memory::new());
        let environment = Environment::new().storage(storage);
        let options = Options::new().background(Background::Stepped);
        let engine = open::open("db".as_ref(), &options, environment).expect("opens");
        for key in [b"drum", b"tuba"] {
            let mut batch = crate::entries::batch::Batch::new();
            batch.put(key, "turns");
            engine.commit.write(&engine, batch, false).expect("writes");
            engine.commit.writer().seal(&engine).expect("seals");
            while engine.flush_step().expect("flushes") {}
        }
        assert!(engine.is_wanted(WorkKind::Merge, &lock(&engine.work)), "two runs wait");
        assert!(engine.lone_merge_step(None).expect("begins"), "a merge is due");
        let mut work = lock(&engine.work);
        let task = work.merges.take(None).expect("it is open");
        assert!(engine.has_merges(&work), "its runs are still there");
        assert!(!engine.is_wanted(WorkKind::Merge, &work), "a thread runs it");
        drop((work, task));
    }
}
