//! What a power cut, or the end of a process, does to the simulated disk.
//! ```text
//! before   [ synced | a b c d e f ]
//! after    [ synced | a b c           cut at any byte
//!          [ synced | a b c 0 0       then zeros, or garbage
//!          [ synced | a 0 c 0 e f     or holes: later sectors were written before earlier ones
//! ```
//! Invariants: synced data survives. The same disk and the same seed give the same result.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Content, File, MemoryState, NameChange, apply_change, is_root};
use crate::sync::{Arc, Mutex, lock as lock_mutex};

/// The units in which disks write. The smallest one is for small stores in tests.
const SECTOR_BYTES: [usize; 3] = [64, 512, 4096];

/// What a crash does to unsynced data.
pub(super) enum Fate {
    Lost,
    Drawn(Random),
    /// Everything stays, and is still unsynced: only the process has ended.
    Kept,
}

/// SplitMix64: small, and the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`. Requires: bound > 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Returns the disk after a crash, without its locks and faults.
pub(super) fn after_crash(state: &MemoryState, mut fate: Fate) -> MemoryState {
    let mut names_synced = state.names_synced.clone();
    let mut dirs = state.dirs.clone();
    let is_kept = matches!(fate, Fate::Kept);
    match &mut fate {
        Fate::Kept => {}
        Fate::Lost => dirs.retain(|dir| state.dirs_synced.contains(dir)),
        Fate::Drawn(random) => {
            let changes = surviving(&state.changes, random);
            changes.into_iter().for_each(|change| apply_change(&mut names_synced, change));
            dirs.retain(|dir| state.dirs_synced.contains(dir) || random.below(2) == 0);
        }
    }
    // The content of a lost folder is lost, too.
    let reachable =
        |path: &Path| path.ancestors().skip(1).all(|dir| is_root(dir) || dirs.contains(dir));
    let dirs: BTreeSet<PathBuf> = dirs.iter().filter(|dir| reachable(dir)).cloned().collect();
    names_synced.retain(|path, _| reachable(path));
    let dirs_synced = if is_kept { &state.dirs_synced } else { &dirs }.clone();
    let mut copies = Copies { fate, made: BTreeMap::new() };
    let names_synced = copies.of_names(&names_synced);
    let (names, changes) = match is_kept {
        true => (copies.of_names(&state.names), copies.of_changes(&state.changes)),
        false => (names_synced.clone(), Vec::new()),
    };
    let maps_files = state.maps_files;
    let rest = MemoryState { maps_files, ..MemoryState::default() };
    MemoryState { dirs, dirs_synced, names, names_synced, changes, ..rest }
}

/// Returns the changes of names that survive a crash: all, none, those up to a point, or any.
fn surviving<'a>(changes: &'a [NameChange], random: &mut Random) -> Vec<&'a NameChange> {
    let cut = random.below(changes.len() + 1);
    match random.below(4) {
        0 => Vec::new(),
        1 => changes.iter().collect(),
        2 => changes[..cut].iter().collect(),
        _ => changes.iter().filter(|_| random.below(2) == 0).collect(),
    }
}

/// New files under the same names. Names that shared a file share its copy.
struct Copies {
    fate: Fate,
    made: BTreeMap<*const Mutex<Content>, File>,
}

impl Copies {
    fn of(&mut self, file: &File) -> File {
        let fate = &mut self.fate;
        let copy = || Arc::new(Mutex::new(content_after_crash(&lock_mutex(file), fate)));
        Arc::clone(self.made.entry(Arc::as_ptr(file)).or_insert_with(copy))
    }

    fn of_names(&mut self, names: &BTreeMap<PathBuf, File>) -> BTreeMap<PathBuf, File> {
        names.iter().map(|(path, file)| (path.clone(), self.of(file))).collect()
    }

    fn of_changes(&mut self, changes: &[NameChange]) -> Vec<NameChange> {
        let mut copied = |change: &NameChange| {
            let names = change.iter();
            names.map(|(path, file)| (path.clone(), file.as_ref().map(|f| self.of(f)))).collect()
        };
        changes.iter().map(&mut copied).collect()
    }
}

fn content_after_crash(content: &Content, fate: &mut Fate) -> Content {
    let mut bytes = content.bytes[..content.synced_len].to_vec();
    let unsynced = &content.bytes[content.synced_len..];
    match fate {
        Fate::Kept => return content.clone(),
        Fate::Lost => {}
        Fate::Drawn(random) => {
            let kept = random.below(unsynced.len() - content.ahead + 1);
            let torn = random.below(unsynced.len() - kept + 1);
            bytes.extend_from_slice(&unsynced[..kept]);
            match random.below(5) {
                0 => bytes.extend(std::iter::repeat_n(0, torn)),
                1 if content.synced_len > 0 => bytes.extend((0..torn).map(|_| random.next() as u8)),
                2 => {
                    bytes.extend_from_slice(&unsynced[kept..]);
                    punch_sectors(&mut bytes, content.synced_len, random);
                }
                _ => {}
            }
            if content.ahead + content.cut > 0 && random.below(2) == 0 {
                bytes.extend(std::iter::repeat_n(0, content.ahead + content.cut));
            }
        }
    }
    Content { synced_len: bytes.len(), bytes, ..Content::default() }
}

/// Puts zeros in place of some sectors, from `start` on.
fn punch_sectors(bytes: &mut [u8], start: usize, random: &mut Random) {
    let (end, unit) = (bytes.len(), SECTOR_BYTES[random.below(SECTOR_BYTES.len())]);
    let sectors = start / unit..end.div_ceil(unit);
    for sector in sectors.filter(|_| random.below(2) == 0) {
        let first = (sector * unit).max(start);
        bytes[first..((sector + 1) * unit).min(end)].fill(0);
    }
}
