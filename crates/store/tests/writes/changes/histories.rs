//! Drawn histories, with crashes and faults, and a reader that keeps its number over them.
//! ```text
//! step     batch, flush, load, fault, crash, reopening      history: batch -> lines, last number
//! reader   what it was told                            ==   a beginning of the history
//! ```

use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Batch, Db, Error, Keyspace, KeyspaceOptions, Options};

use super::{ChangeLine, KEEP_ALL, changes_since, keyspace, line, lines, open_with, options};

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A batch that was written, or may have been.
#[derive(Clone, Debug)]
struct Written {
    /// A key that it alone writes.
    mark: String,
    lines: Vec<String>,
    /// The number of its last write; None: it was refused, and a crash may bring it back.
    last: Option<u64>,
}

const SPACES: [&str; 3] = ["default", "busy", "quiet"];

/// A store, what was written to it, and a reader that keeps its number over crashes.
struct World {
    disk: Memory,
    db: Db,
    options: Options,
    history: Vec<Written>,
    /// What the reader was told.
    delivered: Vec<String>,
    read_to: u64,
    batches: u64,
    /// The newest write past the logs.
    loaded: u64,
    gone: u64,
    asked: u64,
}

impl World {
    fn new(options: Options) -> World {
        let disk = Memory::new();
        let db = open_with(&disk, options.clone());
        let mut world = World {
            disk,
            db,
            options,
            history: Vec::new(),
            delivered: Vec::new(),
            read_to: 0,
            batches: 0,
            loaded: 0,
            gone: 0,
            asked: 0,
        };
        world.spaces();
        world
    }

    fn spaces(&mut self) -> Vec<Keyspace> {
        let small = KeyspaceOptions::new().write_buffer_bytes(9000);
        let busy = || self.db.keyspace("busy", small.clone()).expect("opens");
        SPACES.map(|name| if name == "busy" { busy() } else { keyspace(&self.db, name) }).into()
    }

    fn write(&mut self, draws: &mut Draws) {
        self.batches += 1;
        let mark = format!("batch {:06}", self.batches);
        let (spaces, mut batch) = (self.spaces(), Batch::new());
        let mut lines = vec![line("default", mark.as_bytes(), "= ")];
        batch.put(&mark, "");
        let of_quiet = if draws.below(12) == 0 { 3 } else { 2 };
        for _ in 0..draws.below(4) {
            let place = draws.below(of_quiet) as usize;
            let (name, key) = (SPACES[place], format!("k{:03}", draws.below(200)));
            batch.to(&spaces[place]);
            let kind = match draws.below(8) {
                0 => {
                    batch.delete(&key);
                    "deleted".into()
                }
                1 => {
                    batch.delete_range(&key, format!("{key}~"));
                    format!("deleted to {key}~")
                }
                other => {
                    let value = "v".repeat(1 + (draws.below(40) * other * 8) as usize);
                    batch.put(&key, &value);
                    format!("= {value}")
                }
            };
            lines.push(line(name, key.as_bytes(), &kind));
        }
        let count = lines.len() as u64;
        let synced = draws.below(6) == 0;
        let written = if synced { self.db.write_synced(batch) } else { self.db.write(batch) };
        let last = written.is_ok().then(|| self.db.snapshot().sequence());
        assert!(last.is_none_or(|last| last >= count));
        self.history.push(Written { mark, lines, last });
    }

    /// What was acknowledged, or is there after all: lines, and where batches end.
    fn all_lines(&self) -> Vec<String> {
        let there = self.history.iter().filter(|written| written.last.is_some());
        there.flat_map(|written| written.lines.iter().cloned()).collect()
    }

    /// The reader goes on. It never tells what a crash can take back.
    fn read(&mut self) {
        let mut feed = match self.db.changes_since(self.read_to) {
            Ok(feed) => feed,
            Err(Error::Gone { first, .. }) => return self.begin_anew(first),
            Err(error) => panic!("{error}"),
        };
        loop {
            match feed.next_batch() {
                Ok(Some(batch)) => {
                    self.delivered.extend(lines(&batch).into_iter().map(|(_, line)| line));
                    let ends = self.history.iter().filter_map(|it| it.last);
                    let is_end = ends.into_iter().any(|last| last == batch.sequence());
                    assert!(is_end, "half a batch, up to {}", batch.sequence());
                }
                Ok(None) => break,
                Err(error) => {
                    // That of a fault: nothing is passed over.
                    assert!(matches!(error, Error::Io { .. }), "{error}");
                    break;
                }
            }
        }
        self.read_to = feed.sequence();
    }

    fn begin_anew(&mut self, first: u64) {
        self.gone += 1;
        let keeps_all = self.options.kept_log_bytes == KEEP_ALL;
        assert!(!keeps_all || self.read_to < self.loaded, "{} is kept", self.read_to);
        // As from a snapshot.
        self.disk.mend();
        self.db.sync().expect("syncs");
        self.read_to = self.db.snapshot().sequence();
        assert!(first <= self.read_to + 1);
        self.delivered = self.all_lines();
    }

    /// What was refused is there or not, and what was not durable is gone.
    fn reopen(&mut self, disk: Memory) {
        self.disk = disk;
        let db = open_with(&self.disk, self.options.clone());
        self.db = db;
        let is_there = |written: &Written| self.db.contains_key(&written.mark).expect("reads");
        self.history.retain(is_there);
        // The numbers of those that were refused follow from the numbers around.
        let newest = self.db.snapshot().sequence();
        let mut next = newest + 1;
        for written in self.history.iter_mut().rev() {
            let last = written.last.unwrap_or(next - 1);
            assert!(last < next);
            written.last = Some(last);
            next = last + 1 - written.lines.len() as u64;
        }
        let all = self.all_lines();
        assert!(self.delivered.len() <= all.len(), "the reader was told what is gone");
        assert!(
            self.delivered[..] == all[..self.delivered.len()],
            "the reader was told something else"
        );
    }

    /// A feed from any number tells all that is newer.
    fn check_anew(&mut self, draws: &mut Draws, is_settled: bool) {
        let newest = self.db.snapshot().sequence();
        let since = draws.below(newest + 1);
        self.asked += 1;
        self.disk.mend();
        let (delivered, at) = match changes_since(&self.db, since) {
            Ok(delivered) => delivered,
            Err(Error::Gone { first, .. }) => {
                let keeps_all = self.options.kept_log_bytes == KEEP_ALL;
                assert!(!keeps_all || since < self.loaded, "{since} is kept");
                assert!(first > since + 1 - u64::from(since < self.loaded) && first <= newest + 1);
                changes_since(&self.db, first - 1).expect("begins with what it has named");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let mut expected = Vec::new();
        for written in self.history.iter().filter(|written| written.last.is_some()) {
            let first = written.last.expect("looked at") + 1 - written.lines.len() as u64;
            let numbered = (first..).zip(written.lines.iter().cloned());
            expected.extend(numbered.filter(|(number, _)| *number > since));
        }
        let delivered: Vec<ChangeLine> = delivered.into_iter().flatten().collect();
        assert!(
            delivered.len() <= expected.len() && delivered[..] == expected[..delivered.len()],
            "since {since}"
        );
        assert!(
            !is_settled || (delivered.len() == expected.len() && at == newest),
            "all is durable"
        );
        let after = expected.get(delivered.len());
        assert!(after.is_none_or(|(number, _)| at < *number), "at {at}");
    }

    fn step(&mut self, draws: &mut Draws) {
        match draws.below(100) {
            0..60 => self.write(draws),
            60..75 => {
                let _ = self.db.step();
            }
            75..85 => self.read(),
            85..89 => {
                let spaces = self.spaces();
                let _ = spaces[draws.below(3) as usize].flush();
            }
            89..92 => self.check_anew(draws, false),
            92..94 => {
                if self.db.sync().is_ok() {
                    self.disk.mend();
                    self.check_anew(draws, true);
                }
            }
            94..95 if draws.below(4) == 0 => {
                let key = format!("loaded {:06}", self.batches);
                self.disk.mend();
                let before = self.db.snapshot().sequence();
                // It may have to wait for a flush that has failed.
                let is_loaded = self.db.ingest([(key, "x")]).is_ok();
                self.loaded = if is_loaded { self.db.snapshot().sequence() } else { before + 1 };
            }
            95..97 => self
                .disk
                .fail_at(draws.below(6), [Fault::Io, Fault::NoSpace][self.batches as usize % 2]),
            97 => {
                self.disk.mend();
                self.db.close().expect("closes");
                self.reopen(self.disk.clone());
            }
            98 => self.reopen(self.disk.crash(draws.below(u64::MAX))),
            _ => self.reopen(if draws.below(2) == 0 {
                self.disk.kill()
            } else {
                self.disk.crash_hard()
            }),
        }
    }
}

#[test]
fn any_history_is_told_from_any_number_or_is_gone() {
    let (mut gone, mut asked) = (0, 0);
    for seed in 0..60u64 {
        let kept = [0, KEEP_ALL, 40_000][seed as usize % 3];
        let small = options().write_buffer_bytes(30_000).max_log_bytes(1 << 16);
        let mut world = World::new(small.kept_log_bytes(kept));
        let mut draws = Draws(seed);
        for _ in 0..400 {
            world.step(&mut draws);
        }
        world.disk.mend();
        world.db.sync().expect("syncs");
        world.check_anew(&mut draws, true);
        world.read();
        assert_eq!(world.delivered.len(), world.all_lines().len(), "seed {seed}");
        assert!(world.delivered == world.all_lines(), "seed {seed}");
        assert_eq!(world.db.verify().expect("reads").damage, [""; 0], "seed {seed}");
        (gone, asked) = (gone + world.gone, asked + world.asked);
    }
    assert!(gone > 10 && asked > 500, "{gone} of {asked}");
}
