//! An open transaction with its model: what it must read, and whether it may commit.
//! ```text
//! moment + its own writes   -> what it reads
//! what it has read          -> written since by somebody?   -> it must not commit
//! what it has locked        -> nobody else writes or locks it
//! ```

use trommel::{Db, Error, Isolation, Keyspace, Savepoint, Transaction, Value};

use super::super::model::{State, expiry_of, number_of, value_of};
use super::super::operands::{after, operand_of};
use super::super::operation::Write;
use super::super::world::Checked;
use super::step::{Stretch, name};
use super::{KEYS, number_of_key};
use crate::keys::spread::spread_key as key;

/// One life of a key space: dropped and created again, the space has a new life.
pub(super) type Life = u32;

/// Keys of a key space in one of its lives.
pub(super) type Touched = (Life, Stretch);

/// The current key spaces.
pub(super) struct Spaces {
    pub(super) handles: Vec<Keyspace>,
    pub(super) lives: Vec<Life>,
}

impl Spaces {
    pub(super) fn of_place(&self, place: usize) -> &Keyspace {
        &self.handles[place / KEYS]
    }

    pub(super) fn touched(&self, stretch: Stretch) -> Touched {
        (self.lives[stretch.space], stretch)
    }
}

#[derive(Clone)]
enum Own {
    Write(Write),
    DeleteRange(Stretch),
}

impl Own {
    fn stretch(&self) -> Stretch {
        match self {
            Own::Write(write) => Stretch::of_place(usize::from(write.place)),
            Own::DeleteRange(stretch) => *stretch,
        }
    }

    fn is_operand(&self) -> bool {
        matches!(self, Own::Write(write) if operand_of(write.number).is_some())
    }

    fn writes(&self) -> Vec<Write> {
        match self {
            Own::Write(write) => vec![*write],
            Own::DeleteRange(stretch) => stretch.deletions(),
        }
    }
}

pub(super) struct OpenTransaction {
    transaction: Transaction,
    is_serializable: bool,
    moment: State,
    own: Vec<(Life, Own)>,
    noted: Vec<Touched>,
    /// The earliest expiry of the values that were read.
    expiry: Option<u32>,
    /// The locked keys, in order of locking.
    locked: Vec<Touched>,
    /// Whether a read was not noted. The transaction cannot move to a later moment then.
    keeps_moment: bool,
    /// Each savepoint, with the numbers of writes and locks at that time.
    savepoints: Vec<(Savepoint, usize, usize)>,
    /// The number of all writes at its moment.
    begun: usize,
}

/// The current state, and all writes so far.
#[derive(Clone, Copy)]
pub(super) struct Now<'w> {
    pub(super) written: &'w [Touched],
    pub(super) seen: &'w State,
    pub(super) tick: u32,
    pub(super) spaces: &'w Spaces,
}

/// The outcome of a read for update.
pub(super) enum Locked {
    Read,
    /// The key was written since, and the moment cannot move: another read has changed, or was not
    /// noted.
    Refused,
}

/// The expected outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Commits,
    Conflicts,
}

/// The outcome of a commit: the writes, the keys they touch, and the result.
pub(super) struct Outcome {
    pub(super) writes: Vec<Write>,
    pub(super) touched: Vec<Touched>,
    pub(super) verdict: Verdict,
    pub(super) committed: trommel::Result<()>,
}

impl OpenTransaction {
    pub(super) fn begin(db: &Db, is_serializable: bool, seen: &State, begun: usize) -> Self {
        let isolation = if is_serializable { Isolation::Serializable } else { Isolation::Snapshot };
        OpenTransaction {
            transaction: db.transaction_with(isolation),
            is_serializable,
            moment: seen.clone(),
            own: Vec::new(),
            noted: Vec::new(),
            expiry: None,
            locked: Vec::new(),
            keeps_moment: false,
            savepoints: Vec::new(),
            begun,
        }
    }

    pub(super) fn expire(&mut self, tick: u32) {
        self.moment.expire(tick);
    }

    /// Notes that a key space was dropped, and so is empty.
    pub(super) fn lose(&mut self, space: usize) {
        Stretch::whole(space).places().for_each(|place| self.moment.0[place] = 0);
    }

    /// Returns the number that the transaction sees for a key, and whether it has written the key
    /// itself.
    fn number(&self, place: usize, spaces: &Spaces) -> (u32, bool) {
        let (life, key) = spaces.touched(Stretch::of_place(place));
        let hits = |(of, own): &&(Life, Own)| *of == life && own.stretch().meets(key);
        let before = (self.moment.0[place], false);
        self.own.iter().filter(hits).fold(before, |(number, is_own), (_, own)| match own {
            // An operand alone reads the value beneath it.
            Own::Write(write) => (after(number, write.number), is_own || !own.is_operand()),
            Own::DeleteRange(_) => (0, true),
        })
    }

    fn note(&mut self, touched: Touched, numbers: impl IntoIterator<Item = u32>) {
        self.noted.push(touched);
        let expiries = numbers.into_iter().filter_map(expiry_of);
        self.expiry = self.expiry.into_iter().chain(expiries).min();
    }

    /// Reads a key and compares. The inner error is the store's.
    pub(super) fn get(&mut self, place: usize, spaces: &Spaces) -> Checked<trommel::Result<()>> {
        let found = match self.transaction.of(spaces.of_place(place)).get(key(place % KEYS)) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let (expected, is_own) = self.number(place, spaces);
        let touched = spaces.touched(Stretch::of_place(place));
        match self.is_serializable {
            _ if is_own => {}
            true => self.note(touched, [expected]),
            false => self.keeps_moment |= !self.noted.contains(&touched),
        }
        compare(place, found.as_ref(), expected).map(Ok)
    }

    /// Reads a key for update that no other transaction has locked. Moves to a later moment if it
    /// must and can.
    pub(super) fn get_for_update(
        &mut self,
        place: usize,
        now: Now<'_>,
    ) -> Checked<trommel::Result<Locked>> {
        let touched = now.spaces.touched(Stretch::of_place(place));
        let (_, is_own) = self.number(place, now.spaces);
        let is_new = !is_own && meet(&now.written[self.begun..], &touched);
        let must_fail = is_new && (self.keeps_moment || self.has_changed(now));
        let part = self.transaction.of(now.spaces.of_place(place));
        let found = match part.get_for_update(key(place % KEYS)) {
            Err(Error::Conflict { .. } | Error::KeyspaceDropped { .. }) if must_fail => {
                return Ok(Ok(Locked::Refused));
            }
            Err(error) => return Ok(Err(error)),
            Ok(_) if must_fail => return Err("it was locked, though its moment must stay".into()),
            Ok(found) => found,
        };
        if is_new {
            (self.moment, self.begun) = (now.seen.clone(), now.written.len());
        }
        if !self.locked.contains(&touched) {
            self.locked.push(touched);
        }
        let (expected, _) = self.number(place, now.spaces);
        if !is_own {
            self.note(touched, [expected]);
        }
        compare(place, found.as_ref(), expected).map(|()| Ok(Locked::Read))
    }

    /// Whether it has locked a key of these.
    pub(super) fn has_locked(&self, touched: &Touched) -> bool {
        meet(&self.locked, touched)
    }

    pub(super) fn scan(
        &mut self,
        stretch: Stretch,
        back: bool,
        limit: usize,
        spaces: &Spaces,
    ) -> Checked<trommel::Result<()>> {
        let numbers = stretch.places().map(|place| (place, self.number(place, spaces).0));
        let mut expected: Vec<(usize, u32)> = numbers.filter(|(_, number)| *number > 0).collect();
        if back {
            expected.reverse();
        }
        let is_whole = expected.len() < limit;
        expected.truncate(limit);
        let part = self.transaction.of(&spaces.handles[stretch.space]);
        let scan = part.range(key(stretch.from)..key(stretch.to));
        let found: trommel::Result<Vec<_>> =
            if back { scan.rev().take(limit).collect() } else { scan.take(limit).collect() };
        let found = match found {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        self.keeps_moment |= !self.is_serializable;
        if self.is_serializable {
            let last = expected.last().map(|(place, _)| place % KEYS);
            let gone_over = match (is_whole, back, last) {
                (false, false, Some(last)) => Stretch { to: last + 1, ..stretch },
                (false, true, Some(last)) => Stretch { from: last, ..stretch },
                _ => stretch,
            };
            self.note(spaces.touched(gone_over), expected.iter().map(|(_, number)| *number));
        }
        let space = stretch.space * KEYS;
        let found = found.iter().map(|(key, value)| {
            let place = number_of_key(key).map(|number| space + number);
            (place.unwrap_or(usize::MAX), number_of(value).unwrap_or(u32::MAX))
        });
        let found: Vec<(usize, u32)> = found.collect();
        if found != expected {
            let text = |all: &[(usize, u32)]| {
                let each =
                    all.iter().map(|(place, number)| format!("{} = #{number}", name(*place)));
                each.collect::<Vec<_>>().join(", ")
            };
            return Err(format!("a scan gave {}, expected {}", text(&found), text(&expected)));
        }
        Ok(Ok(()))
    }

    pub(super) fn write(&mut self, writes: &[Write], spaces: &Spaces) -> trommel::Result<()> {
        for write in writes {
            let place = usize::from(write.place);
            let (part, key) = (self.transaction.of(spaces.of_place(place)), key(place % KEYS));
            match (write.number, operand_of(write.number)) {
                (0, _) => part.delete(key)?,
                (_, Some(operand)) => part.merge(key, operand)?,
                (number, None) => part.put(key, value_of(number))?,
            }
            let (life, _) = spaces.touched(Stretch::of_place(place));
            self.own.push((life, Own::Write(*write)));
        }
        Ok(())
    }

    pub(super) fn delete_range(
        &mut self,
        stretch: Stretch,
        spaces: &Spaces,
    ) -> trommel::Result<()> {
        let part = self.transaction.of(&spaces.handles[stretch.space]);
        part.delete_range(key(stretch.from), key(stretch.to))?;
        self.own.push((spaces.touched(stretch).0, Own::DeleteRange(stretch)));
        Ok(())
    }

    pub(super) fn set_savepoint(&mut self) {
        let savepoint = self.transaction.savepoint();
        self.savepoints.push((savepoint, self.own.len(), self.locked.len()));
    }

    pub(super) fn roll_back(&mut self) {
        if let Some((savepoint, own, locked)) = self.savepoints.pop() {
            self.transaction.roll_back_to(&savepoint);
            self.own.truncate(own);
            self.locked.truncate(locked);
        }
    }

    /// Commits the transaction.
    pub(super) fn commit(self, synced: bool, now: Now<'_>) -> Outcome {
        let verdict = self.verdict(now);
        let touched = self.own.iter().map(|(life, own)| (*life, own.stretch())).collect();
        let writes = self.own.iter().flat_map(|(_, own)| own.writes()).collect();
        let committed = match synced {
            true => self.transaction.commit_synced(),
            false => self.transaction.commit(),
        };
        let committed = committed.map(|_| ());
        Outcome { writes, touched, verdict, committed }
    }

    fn verdict(&self, now: Now<'_>) -> Verdict {
        if self.own.is_empty() {
            return Verdict::Commits;
        }
        let writes_into_gone = self.own.iter().any(|(life, _)| !now.spaces.lives.contains(life));
        let conflicts = writes_into_gone || self.has_changed(now);
        if conflicts { Verdict::Conflicts } else { Verdict::Commits }
    }

    /// Whether anything that its commit validates has changed.
    fn has_changed(&self, now: Now<'_>) -> bool {
        // Operands apply on top of whatever others have written.
        let own = self.own.iter().filter(|(_, own)| !own.is_operand());
        let own = own.map(|(life, own)| (*life, own.stretch()));
        let also = own.filter(|_| !self.is_serializable);
        let mut noted = self.noted.iter().copied().chain(also);
        let written = &now.written[self.begun..];
        let is_gone = |(life, _): &Touched| !now.spaces.lives.contains(life);
        let is_over = self.expiry.is_some_and(|expiry| expiry <= now.tick);
        is_over || noted.any(|touched| meet(written, &touched) || is_gone(&touched))
    }
}

fn meet(all: &[Touched], (life, stretch): &Touched) -> bool {
    all.iter().any(|(of, other)| of == life && other.meets(*stretch))
}

/// Compares the value of a key with its expected number.
pub(super) fn compare(place: usize, found: Option<&Value>, expected: u32) -> Checked<()> {
    let found = found.map_or(Some(0), |value| number_of(value));
    if found == Some(expected) {
        return Ok(());
    }
    let found = found.map_or("bytes that were never written".into(), |number| format!("#{number}"));
    Err(format!("{} has {found}, expected #{expected}", name(place)))
}
