//! Values that may be stored apart: which numbers have long values, streams that put and read them,
//! and scans of keys.
//! ```text
//! long   about as long as the thresholds of options, and more      some are put as a stream
//! read   whole, in parts from any place, or not at all             always what was put
//! ```
//! Invariant: draws of values do not change other draws of a history.

use std::io::{Cursor, ErrorKind, Read as _, Seek, SeekFrom};
use std::sync::Arc;

use trommel::{Db, Keyspace, ValueReader};

use super::held::entries_of;
use super::keys::{Edges, Keys};
use super::model::{State, is_streamed, large, long, value_of};
use super::operation::{StressOperation, key_text, range_text};
use crate::keys::rng::Rng;

/// One stream in this many is longer than a piece, in histories with such streams.
const LARGE_EVERY: u64 = 24;
/// One put in this many is a stream that ends too early.
const CUT_EVERY: u64 = 40;
/// The most bytes of one part of a reading.
const PART_MAX: usize = 9000;

/// The result of a comparison: an error of the check, or the store's own result.
type Compared<T> = Result<trommel::Result<T>, String>;

/// Draws which values are long.
pub(crate) struct ValueDrawer {
    rng: Rng,
    share: f64,
    has_large: bool,
}

impl ValueDrawer {
    /// Creates the drawer of a history. Some histories have no long values, and in some most are
    /// long.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0a9a_7a1e);
        let share = [0.0, 0.05, 0.3, 0.3, 0.8][rng.place(5)];
        let has_large = rng.below(8) == 0;
        ValueDrawer { rng, share, has_large }
    }

    /// Creates the drawer of a history that is repeated many times with all answers kept. Some
    /// values of every second seed are long.
    #[cfg(test)]
    pub(crate) fn few(seed: u64) -> Self {
        let share = if seed.is_multiple_of(2) { 0.0 } else { 0.02 };
        ValueDrawer { share, has_large: false, ..ValueDrawer::of_seed(seed) }
    }

    /// Creates a drawer without long values.
    pub(crate) fn short() -> Self {
        ValueDrawer { rng: Rng::new(0), share: 0.0, has_large: false }
    }

    /// Returns the number of a new value, which may be long.
    pub(crate) fn number(&mut self, number: u32) -> u32 {
        if self.rng.unit() >= self.share {
            return number;
        }
        let long = long(number);
        match self.has_large && is_streamed(long) && self.rng.below(LARGE_EVERY) == 0 {
            true => large(long),
            false => long,
        }
    }

    /// Draws how many steps after the kill of a process the power is cut. None: it is not cut.
    pub(crate) fn cut_after_kill(&mut self) -> Option<u32> {
        let cuts = self.share > 0.0 && self.rng.below(2) == 0;
        cuts.then(|| 2 + self.rng.below(4) as u32)
    }

    /// Replaces some operations by similar ones with streams.
    pub(crate) fn instead_of(
        &mut self,
        operation: StressOperation,
        keys: &Keys,
    ) -> StressOperation {
        if self.share == 0.0 {
            return operation;
        }
        match operation {
            StressOperation::Write { writes, .. }
                if writes.len() == 1 && writes[0].number > 1 && self.rng.below(CUT_EVERY) == 0 =>
            {
                StressOperation::CutStream(writes[0])
            }
            StressOperation::OpenScan { .. } if self.rng.below(3) == 0 => {
                StressOperation::OpenReader(keys.draw(&mut self.rng))
            }
            StressOperation::MoveScan { which, .. } if self.rng.below(3) == 0 => {
                StressOperation::ReadOn { which, seed: self.rng.next_u64() }
            }
            other => other,
        }
    }
}

/// Puts a value, in some cases as a stream.
pub(crate) fn put(
    space: &Keyspace,
    key: &[u8],
    number: u32,
    value: Vec<u8>,
) -> trommel::Result<()> {
    match is_streamed(number) {
        true => space.put_reader(key, value.len() as u64, Cursor::new(value)),
        false => space.put(key, value),
    }
}

/// Puts a stream that ends too early, and checks that nothing is written, whatever the disk does.
pub(crate) fn cut_stream(space: &Keyspace, key: &[u8], number: u32) -> Result<(), String> {
    let value = value_of(number);
    let length = value.len() as u64 + 1;
    match space.put_reader(key, length, Cursor::new(value)) {
        Err(trommel::Error::Io { .. } | trommel::Error::Stopped { .. }) => Ok(()),
        other => Err(format!("a stream that ends too early gives {other:?}")),
    }
}

/// A reader of a value, and the number of the value.
pub(crate) struct HeldReader {
    reader: ValueReader,
    number: u32,
}

impl HeldReader {
    /// Opens a reader of a key with this number. None: the number is 0. The inner error is the
    /// store's.
    pub(crate) fn open(space: &Keyspace, key: &[u8], number: u32) -> Compared<Option<Self>> {
        let reader = match space.get_reader(key) {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(error)),
        };
        let expected = (number != 0).then(|| value_of(number).len() as u64);
        if reader.as_ref().map(ValueReader::len) != expected {
            let key = key_text(key);
            return Err(format!("{key}: a reader {reader:?}, expected #{number} (0: nothing)"));
        }
        Ok(Ok(reader.map(|reader| HeldReader { reader, number })))
    }

    /// Reads some parts, or everything in order, and compares. The inner error is the store's.
    pub(crate) fn read_parts(&mut self, rng: &mut Rng) -> Compared<()> {
        let expected = value_of(self.number);
        if rng.below(3) == 0 {
            return self.read_at(0, &expected);
        }
        for _ in 0..1 + rng.place(3) {
            let at = rng.place(expected.len() + 1);
            let end = (at + rng.place(PART_MAX)).min(expected.len());
            if let Err(error) = self.read_at(at, &expected[at..end])? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn read_at(&mut self, at: usize, expected: &[u8]) -> Compared<()> {
        let mut found = vec![0; expected.len()];
        let read = self.reader.seek(SeekFrom::Start(at as u64));
        match read.and_then(|_| self.reader.read_exact(&mut found)) {
            Ok(()) if found == expected => Ok(Ok(())),
            Ok(()) => Err(format!("a reader of #{} gives other bytes at {at}", self.number)),
            // The value is damaged or too short.
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
            {
                Err(format!("a reader of #{} at {at}: {error}", self.number))
            }
            Err(error) => {
                let (path, source) = ("a reader".into(), Arc::new(error));
                Ok(Err(trommel::Error::Io { path, source }))
            }
        }
    }
}

/// Reads parts of a key's value, or checks that there is none if its number is 0. The inner error
/// is the store's.
pub(crate) fn read_through(space: &Keyspace, key: &[u8], number: u32) -> Compared<()> {
    match HeldReader::open(space, key, number)? {
        Ok(Some(mut reader)) => reader.read_parts(&mut Rng::new(number.into())),
        opened => Ok(opened.map(|_| ())),
    }
}

/// Checks that a scan of keys returns the keys of a range, and no values. The inner error is the
/// store's.
pub(crate) fn keys_alone(db: &Db, edges: &Edges, keys: &Keys, state: &State) -> Compared<()> {
    let own = db
        .range(edges.clone())
        .keys_only()
        .filter(|entry| entry.as_ref().map_or(true, |(key, _)| !keys.is_foreign(key)));
    let found: Vec<_> = match own.collect::<trommel::Result<_>>() {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let expected = entries_of(state, keys.places(edges)).map(|write| keys.get(write.place));
    if found.iter().map(|(key, _)| &key[..]).eq(expected) {
        return Ok(Ok(()));
    }
    Err(format!("{}: {} keys alone, and not those that are there", range_text(edges), found.len()))
}
