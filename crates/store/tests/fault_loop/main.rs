//! Faults at every single operation of the disk, in every phase of a store's life.
//! ```text
//! open (new, old), write, flush, merge, checkpoint, close  x  EIO, ENOSPC  x  once,
//! streams in and out, values that are moved                    until mended  x  guards, syncs
//! for n in 0..:  prepare -> the n-th operation of the phase fails -> read -> crash
//!     -> mend, go on -> open again
//! ```
//! Invariants: reads work, or say that the disk fails; nothing acknowledged is lost; what gave an
//! error is not seen before the store is opened again, and then as a whole or not at all; when the
//! fault is over, writing goes on; what holds it up is told by `stats`.

mod faulty;

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use faulty::Bed;
use trommel::Environment;
use trommel::storage::Storage;
use trommel::testing::Fault;
use trommel::{Background, Batch, Db, Error, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const STORE: &str = "db";
const COPY: &str = "copy";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Create,
    Open,
    Write,
    Flush,
    Merge,
    Checkpoint,
    Close,
    WriteStream,
    ReadStream,
    MoveValues,
}

impl Phase {
    /// Whether it shows something of such values: of packed ones too little garbage is left for a
    /// merge that moves the others.
    fn is_of(self, values: Values) -> bool {
        match self {
            Phase::WriteStream | Phase::ReadStream => values.bytes > APART,
            Phase::MoveValues => values.bytes > APART && values.is_noise,
            _ => true,
        }
    }
}

const PHASES: [Phase; 10] = [
    Phase::Create,
    Phase::Open,
    Phase::Write,
    Phase::Flush,
    Phase::Merge,
    Phase::Checkpoint,
    Phase::Close,
    Phase::WriteStream,
    Phase::ReadStream,
    Phase::MoveValues,
];

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
struct Mode {
    guard: GuardKind,
    sync: SyncPolicy,
    values: Values,
}

#[derive(Clone, Copy, Debug)]
struct Values {
    /// With more than `APART` they are in files of their own.
    bytes: usize,
    /// Whether nothing makes them shorter. Else each byte is the first one.
    is_noise: bool,
}

const SHORT: Values = Values { bytes: 40, is_noise: false };
const EVEN: Values = Values { bytes: 500, is_noise: false };
const NOISE: Values = Values { bytes: 500, is_noise: true };

impl Values {
    /// Its first byte tells the number.
    fn of(self, number: u32) -> Vec<u8> {
        let mut value = vec![number as u8; self.bytes];
        if self.is_noise {
            let drawn = value.iter_mut().skip(1).zip(noise(u64::from(number)));
            drawn.for_each(|(byte, drawn)| *byte = drawn);
        }
        value
    }
}

/// What does not compress.
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten()
}

/// The key of a value that is written and read as a stream, in more than one piece.
const STREAM: &str = "stream";
const STREAM_BYTES: usize = (512 << 10) + 100_000;
/// Places in it that are read alone.
const STREAM_STEP: usize = 50_000;
static STREAMED: LazyLock<Vec<u8>> = LazyLock::new(|| noise(7).take(STREAM_BYTES).collect());

/// From so many bytes on values are apart.
const APART: usize = 256;

const MODES: [Mode; 7] = [
    Mode { guard: GuardKind::Grf, sync: SyncPolicy::Always, values: SHORT },
    Mode { guard: GuardKind::Locator(kinds::CHUCKY), sync: SyncPolicy::Always, values: SHORT },
    Mode { guard: GuardKind::Open, sync: SyncPolicy::Always, values: SHORT },
    Mode { guard: GuardKind::Open, sync: SyncPolicy::Never, values: SHORT },
    Mode { guard: GuardKind::Grf, sync: SyncPolicy::Always, values: EVEN },
    Mode { guard: GuardKind::Open, sync: SyncPolicy::Never, values: NOISE },
    Mode { guard: GuardKind::Grf, sync: SyncPolicy::Always, values: NOISE },
];

fn open(storage: Arc<dyn Storage>, folder: &Path, mode: Mode) -> trommel::Result<Db> {
    let Mode { guard, sync, .. } = mode;
    let options = Options::new()
        .guard(guard)
        .size_ratio(2)
        .write_buffer_bytes(1024)
        .block_bytes(256)
        // Reads are to reach the disk.
        .block_cache_bytes(0)
        .value_threshold(APART)
        .value_file_bytes(4096)
        .value_garbage_share(0.05)
        .sync(sync)
        .background(Background::Stepped);
    let environment = Environment::new().storage(storage);
    Db::open_with(folder, options, environment)
}

/// Writes of which each has two keys, that stand and fall together.
#[derive(Clone)]
struct Model {
    values: Values,
    acknowledged: BTreeMap<String, u32>,
    /// They gave an error.
    doubtful: Vec<u32>,
    /// Whether the stream was acknowledged, or gave an error. None: it was not written.
    stream: Option<bool>,
}

fn keys_of(number: u32) -> [String; 2] {
    [format!("{:03} left of {number}", number % 10), format!("right of {number:03}")]
}

impl Model {
    fn new(mode: Mode) -> Model {
        let (acknowledged, doubtful) = (BTreeMap::new(), Vec::new());
        Model { values: mode.values, acknowledged, doubtful, stream: None }
    }

    fn write(&mut self, db: &Db, number: u32) -> trommel::Result<()> {
        let mut batch = Batch::new();
        for key in keys_of(number) {
            batch.put(key, self.values.of(number));
        }
        let written = db.write(batch);
        match written {
            Ok(()) => self.acknowledged.extend(keys_of(number).map(|key| (key, number))),
            Err(_) => self.doubtful.push(number),
        }
        written
    }

    fn delete(&mut self, db: &Db, number: u32) {
        for key in keys_of(number) {
            db.delete(&key).expect("deletes");
            self.acknowledged.remove(&key);
        }
    }

    fn write_stream(&mut self, db: &Db) -> trommel::Result<()> {
        let written = db.put_reader(STREAM, STREAM_BYTES as u64, &STREAMED[..]);
        self.stream = Some(written.is_ok());
        written
    }

    /// Compares all that a store holds. `reopened`: what gave an error may be there, as a whole.
    fn check(&self, db: &Db, reopened: bool) -> trommel::Result<()> {
        let (mut found, mut has_stream) = (BTreeMap::new(), false);
        for entry in db.range(..) {
            let (key, value) = entry?;
            let key = String::from_utf8(key.to_vec()).expect("text");
            if key == STREAM {
                assert!(*value == **STREAMED, "another stream is there");
                has_stream = true;
                continue;
            }
            let number = u32::from(value[0]);
            assert!(*value == *self.values.of(number), "{key} has another value");
            found.insert(key, number);
        }
        match self.stream {
            Some(true) => assert!(has_stream, "the stream is gone"),
            Some(false) if reopened => {}
            _ => assert!(!has_stream, "a stream that was not written is there"),
        }
        for &number in self.doubtful.iter().filter(|_| reopened) {
            let both = keys_of(number).map(|key| found.remove(&key));
            assert!(both == [None; 2] || both == [Some(number); 2], "half of {number} is there");
        }
        assert_eq!(found, self.acknowledged);
        for (key, number) in &self.acknowledged {
            let value = db.get(key)?;
            assert_eq!(value.as_deref(), Some(&self.values.of(*number)[..]), "{key}");
        }
        for key in self.doubtful.iter().filter(|_| !reopened).flat_map(|number| keys_of(*number)) {
            assert!(db.get(&key)?.is_none(), "{key}: it gave an error, and is seen");
        }
        Ok(())
    }
}

/// A store with several runs, full memtables and something in its log.
fn prepare(bed: &Bed, mode: Mode) -> (Db, Model) {
    let db = open(bed.storage(), &bed.folder(STORE), mode).expect("opens");
    let mut model = Model::new(mode);
    for number in 0..24 {
        model.write(&db, number).expect("writes");
        match number {
            11 => db.compact().expect("compacts"),
            17 => db.flush().expect("flushes"),
            19 => model.delete(&db, 5),
            _ => {}
        }
    }
    (db, model)
}

/// What a phase needs besides.
fn prepare_for(phase: Phase, db: &Db, model: &mut Model) {
    match phase {
        Phase::ReadStream => model.write_stream(db).expect("writes"),
        // Each file of values has garbage then, and others that stay.
        Phase::MoveValues => (0..24).step_by(2).for_each(|number| model.delete(db, number)),
        _ => {}
    }
}

/// Reads the stream from its begin to its end, and then in some places, backward.
fn read_stream(db: &Db) -> trommel::Result<()> {
    let mut reader = db.get_reader(STREAM)?.expect("it is there");
    let as_error = |source| Error::Io { path: STREAM.into(), source: Arc::new(source) };
    let mut all = Vec::new();
    reader.read_to_end(&mut all).map_err(as_error)?;
    assert!(all == *STREAMED, "another stream was read");
    for at in (0..STREAM_BYTES).step_by(STREAM_STEP).rev() {
        let mut byte = [0];
        reader.seek(SeekFrom::Start(at as u64)).map_err(as_error)?;
        reader.read_exact(&mut byte).map_err(as_error)?;
        assert_eq!(byte[0], STREAMED[at], "at {at}");
    }
    Ok(())
}

fn value_files(bed: &Bed) -> Vec<String> {
    let mut names = bed.storage().list(&bed.folder(STORE)).unwrap_or_default();
    names.retain(|name| name.ends_with(".value"));
    names
}

/// Does what the phase is about. Gives the store if it is open then, and the first error.
fn act(bed: &Bed, mode: Mode, phase: Phase, db: Option<Db>, model: &mut Model) -> Acted {
    let Some(db) = db else {
        return match open(bed.storage(), &bed.folder(STORE), mode) {
            Ok(db) => (Some(db), None),
            Err(error) => (None, Some(error)),
        };
    };
    let mut first = None;
    let mut note = |done: trommel::Result<()>| {
        if let Err(error) = done {
            first.get_or_insert(error);
        }
    };
    match phase {
        Phase::Write => {
            for number in 100..116 {
                note(model.write(&db, number));
                if number % 5 == 0 {
                    note(db.step().map(drop));
                }
            }
        }
        Phase::Flush => note(db.flush()),
        Phase::Merge | Phase::MoveValues => note(db.compact()),
        Phase::WriteStream => {
            note(model.write_stream(&db));
            note(db.flush());
        }
        Phase::ReadStream => note(read_stream(&db)),
        Phase::Checkpoint => note(db.checkpoint(bed.folder(COPY))),
        Phase::Close => return (None, db.close().err()),
        Phase::Create | Phase::Open => unreachable!("the store is open"),
    }
    (Some(db), first)
}

type Acted = (Option<Db>, Option<Error>);

/// One fault.
#[derive(Clone, Copy, Debug)]
struct Case {
    phase: Phase,
    mode: Mode,
    kind: Fault,
    lasts: bool,
    n: u64,
}

impl Case {
    /// Runs it. False: the phase has no more than `n` operations.
    fn run(self, bed: &Bed) -> bool {
        let Case { phase, mode, kind, lasts, n } = self;
        let (db, mut model) = match phase {
            Phase::Create => (None, Model::new(mode)),
            Phase::Open => (None, prepare(bed, mode).1),
            _ => {
                let (db, mut model) = prepare(bed, mode);
                prepare_for(phase, &db, &mut model);
                (Some(db), model)
            }
        };
        let old = value_files(bed);
        let before = bed.operations();
        bed.arm(n, kind, lasts);
        let (db, error) = act(bed, mode, phase, db, &mut model);
        if bed.operations() - before <= n {
            bed.mend();
            assert!(error.is_none(), "{error:?}, and nothing has failed");
            let is_moved = value_files(bed).iter().any(|name| !old.contains(name));
            assert!(is_moved || phase != Phase::MoveValues, "no value was moved");
            return false;
        }
        let db = self.read_while_it_fails(db, error.as_ref(), &mut model);
        self.crash(bed, error.is_none(), &model);
        bed.mend();
        let db = db.unwrap_or_else(|| {
            // What failed while it was opened or closed is over when it is opened again.
            let db = open(bed.storage(), &bed.folder(STORE), mode).expect("opens");
            model.check(&db, true).expect("reads");
            model = Model { acknowledged: contents(&db), ..Model::new(mode) };
            db
        });
        self.go_on(&db, &mut model);
        if phase == Phase::Checkpoint {
            self.check_copy(bed, error.is_none(), &model);
        }
        db.close().expect("closes");
        let disk: Arc<dyn Storage> = match bed {
            Bed::Simulated(disk) => Arc::new(disk.crash_hard()),
            Bed::Real(..) => bed.storage(),
        };
        let db = open(disk, &bed.folder(STORE), mode).expect("opens");
        model.check(&db, true).expect("reads");
        true
    }

    /// Reads go on, and what holds writing up is told.
    fn read_while_it_fails(
        self,
        db: Option<Db>,
        error: Option<&Error>,
        model: &mut Model,
    ) -> Option<Db> {
        if let Some(error) = error {
            self.is_the_fault(&error.to_string());
        }
        let db = db?;
        match model.check(&db, false) {
            Ok(()) => {}
            Err(read) => {
                assert!(self.lasts && self.kind == Fault::Io, "a read fails: {read}");
                self.is_the_fault(&read.to_string());
            }
        }
        if self.lasts {
            if let Err(refused) = model.write(&db, 120) {
                let failure =
                    db.stats().expect("open").failure.expect("stats tell what holds writing up");
                self.is_the_fault(&refused.to_string());
                self.is_the_fault(&failure);
            }
            let works = matches!(
                self.phase,
                Phase::Write | Phase::Flush | Phase::Merge | Phase::MoveValues
            );
            if works && error.is_some() {
                self.is_the_fault(
                    &db.stats().expect("open").failure.expect("stats tell what does not go on"),
                );
            }
        }
        Some(db)
    }

    /// The text names the fault.
    fn is_the_fault(self, text: &str) {
        let name = match self.kind {
            Fault::Io => "input/output error",
            Fault::NoSpace => "no storage space",
        };
        assert!(text.contains(name), "{text}");
    }

    /// A power cut while the disk fails loses nothing that is durable, and the end of the process
    /// nothing at all.
    fn crash(self, bed: &Bed, is_done: bool, model: &Model) {
        let Bed::Simulated(disk) = bed else { return };
        let saves = matches!(
            self.phase,
            Phase::Flush | Phase::Merge | Phase::Close | Phase::WriteStream | Phase::MoveValues
        );
        // While the fault lasts, one more write was acknowledged, perhaps.
        let is_durable = self.mode.sync == SyncPolicy::Always || (is_done && saves && !self.lasts);
        let cuts =
            if is_durable { vec![disk.crash_hard(), disk.crash(self.n)] } else { Vec::new() };
        for disk in cuts.into_iter().chain([disk.kill()]) {
            let db = open(Arc::new(disk), Path::new(STORE), self.mode).expect("opens");
            model.check(&db, true).expect("reads");
        }
    }

    /// When the fault is over, all goes on without opening the store again.
    fn go_on(self, db: &Db, model: &mut Model) {
        model.write(db, 121).expect("writing goes on");
        db.flush().expect("flushing goes on");
        db.compact().expect("merging goes on");
        assert_eq!(db.stats().expect("open").failure, None);
        model.check(db, false).expect("reads");
        let damage = db.verify().expect("verifies").damage;
        assert!(damage.is_empty(), "{damage:?}");
    }

    /// A checkpoint that was acknowledged is whole; one that was not is refused, or whole.
    fn check_copy(self, bed: &Bed, is_acknowledged: bool, model: &Model) {
        let options = Options::new().create_if_missing(false);
        let environment = Environment::new().storage(bed.storage());
        match Db::open_with(bed.folder(COPY), options, environment) {
            Ok(copy) => {
                // What was written since is not in it.
                let later = |key: &&String| !key.ends_with("120") && !key.ends_with("121");
                let expected: Vec<&String> = model.acknowledged.keys().filter(later).collect();
                assert_eq!(contents(&copy).keys().collect::<Vec<_>>(), expected);
                assert!(copy.verify().expect("verifies").damage.is_empty());
            }
            Err(Error::FileMissing { .. } | Error::NotAStore { .. } | Error::Missing { .. }) => {
                assert!(!is_acknowledged)
            }
            Err(error) => panic!("the checkpoint does not open: {error}"),
        }
    }
}

fn contents(db: &Db) -> BTreeMap<String, u32> {
    let entries = db.range(..).map(|entry| entry.expect("reads"));
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).expect("text");
    entries.map(|(key, value)| (text(&key), u32::from(value[0]))).collect()
}

/// Runs a case. A panic in it says which case it was.
fn run(case: Case, bed: &Bed) -> bool {
    struct NamesItsCase(Case);
    impl Drop for NamesItsCase {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("in {:?}", self.0);
            }
        }
    }
    let named = NamesItsCase(case);
    named.0.run(bed)
}

/// Faults of these kinds, once and lasting, in all phases, `operations` of each phase. Gives how
/// many cases there were.
fn all_cases(
    modes: &[Mode],
    kinds: &[Fault],
    bed: impl Fn() -> Bed,
    operations: impl Fn(u64) -> Box<dyn Iterator<Item = u64>>,
) -> u64 {
    let mut cases = 0;
    for phase in PHASES {
        for &mode in modes.iter().filter(|mode| phase.is_of(mode.values)) {
            for (kind, lasts) in kinds.iter().flat_map(|&kind| [(kind, false), (kind, true)]) {
                let in_phase = operations(cases)
                    .take_while(|&n| run(Case { phase, mode, kind, lasts, n }, &bed()))
                    .count();
                assert!(in_phase > 0, "{phase:?}: no operation could fail");
                cases += in_phase as u64;
            }
        }
    }
    cases
}

fn assert_nothing_is_lost_whatever_operation_fails(kind: Fault) {
    let every = |_| Box::new(0u64..) as Box<dyn Iterator<Item = u64>>;
    let cases = all_cases(&MODES, &[kind], Bed::simulated, every);
    println!("{cases} faults in memory");
    assert!(cases > 500, "{cases}");
}

#[test]
fn an_error_at_any_operation_of_any_phase_loses_nothing() {
    assert_nothing_is_lost_whatever_operation_fails(Fault::Io);
}

#[test]
fn a_full_disk_at_any_operation_of_any_phase_loses_nothing() {
    assert_nothing_is_lost_whatever_operation_fails(Fault::NoSpace);
}

#[test]
fn a_fault_on_the_real_disk_loses_nothing() {
    // Each time other operations.
    let some = |cases| Box::new((cases % 7..).step_by(23)) as Box<dyn Iterator<Item = u64>>;
    let kinds = [Fault::Io, Fault::NoSpace];
    let cases = all_cases(&[MODES[0], MODES[6]], &kinds, Bed::real, some);
    println!("{cases} faults on the real disk");
    assert!(cases > 50, "{cases}");
}
