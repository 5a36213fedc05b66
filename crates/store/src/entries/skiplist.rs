//! The memtable's skip list: sorted entries, one writer at a time, readers without locks.
//! ```text
//! towers   o-----------> [b]-----------> null        level 1
//!          o---> [a]---> [b]---> [c]---> null        level 0: every entry, in order
//! chunk    | node, tower, key, value | node, ... |   never moved, never freed before the list
//! ```
//! Beside each link above level 0 is a number: the greatest sequence number of the marked nodes
//! that the link skips or leads to (`skiplist/newest.rs`). The writer's searches begin near their
//! end (`skiplist/starts.rs`); readers descend the towers.
//!
//! Invariant: a node is complete before a pointer to it is stored (Release). Later only its tower
//! and the numbers beside it change. Readers load pointers (Acquire), so a reader that can reach a
//! node sees it whole. Nodes live as long as the list. A handle that borrows from a node holds the
//! list.
#![expect(unsafe_code, reason = "nodes of varying length that threads read without a lock")]

use std::cmp::Ordering;
use std::ptr::{self, NonNull};

use smallvec::SmallVec;
use trommel_filters::prefetch_at;

use crate::cost;
use crate::entries::entry::{Entry, Kind, Sequence, order};
use crate::entries::keys::key_head;
use crate::entries::skiplist::chunk::{Chunk, HUGE_BYTES, Word};
use crate::entries::skiplist::starts::{ENTRIES_MIN, Nodes, Starts};
use crate::sync::{
    Arc, AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering as Memory, Witness, lock,
};

/// Enough for 14 million entries. Searches in a longer list are slower.
const HEIGHT_MAX: usize = 15;
/// One node in this many has one level more. With a lower value a search visits fewer nodes and
/// waits for memory less often, but a node has more links. (4: an eighth slower; 2: no faster for
/// its memory.)
const BRANCHING: u64 = 3;
const ALIGN: usize = size_of::<Word>();
const _: () = assert!(align_of::<Word>() == ALIGN && ALIGN >= align_of::<Node>());
const _: () = assert!(ALIGN >= align_of::<Link>(), "towers follow their nodes");
const _: () = assert!(size_of::<Node>().is_multiple_of(ALIGN) && ALIGN >= align_of::<Newest>());
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// So memtables from 32 MiB on use huge pages. Smaller ones gain less than new pages cost.
const CHUNK_BYTES_MAX: usize = HUGE_BYTES;
const _: () = assert!(CHUNK_BYTES_MIN.is_multiple_of(ALIGN));
const _: () = assert!(CHUNK_BYTES_MAX <= u32::MAX as usize);

/// The start of a node. Its tower, its key and its value follow in the same memory.
#[repr(C, align(8))]
struct Node {
    /// The first bytes of the key as a number, which decide most comparisons.
    head: u64,
    sequence: u64,
    key_len: u32,
    value_len: u32,
    height: u8,
    kind: Kind,
    witness: Witness, // of all but the tower, for the model checker
}

/// Number of searches that run interleaved. More hide no more latency: a core waits for about as
/// many cache lines at once.
const TOGETHER: usize = 8;

/// A search in progress.
struct Search {
    /// The head of its key.
    head: u64,
    level: usize,
    /// The next node to compare: the successor, on this level, of the last node known to be before
    /// the key.
    after: *mut Node,
}

type Link = AtomicPtr<Node>;
/// The sequence number beside a link.
type Newest = AtomicU64;

/// Memory for nodes, in chunks. Each chunk is as large as all before it, up to a limit. (Every key
/// space has an arena, even if empty, so its numbers have 32 bits.)
struct Arena {
    chunk_bytes_max: u32,
    free_bytes: u32,
    free: *mut u8,
    /// Bytes of all chunks, capped at `CHUNK_BYTES_MAX`.
    all_bytes: u32,
    chunks: Vec<Chunk>,
    random: u64,
    /// `None`: the list is empty, as most lists of many key spaces are.
    hints: Option<Box<Hints>>,
}

/// Where the next insert may begin its search.
struct Hints {
    /// The node added last. `splice` has, for each level, the last node that is not behind it.
    last: *mut Node,
    splice: Splice,
    /// `None`: the list is too short for them to pay.
    starts: Option<Starts<NonNull<Node>>>,
}

/// For each of the lowest levels, a node before an entry; null stands for the list's own tower.
#[derive(Clone, Copy)]
struct Splice {
    before: [*mut Node; HEIGHT_MAX],
    /// The number of levels that are filled.
    known: usize,
}

impl Default for Splice {
    fn default() -> Self {
        Splice { before: [ptr::null_mut(); HEIGHT_MAX], known: 0 }
    }
}

impl Splice {
    /// Fills levels from nodes that `starts` knows before an entry, until `levels` are filled. The
    /// entry belongs in `page`.
    #[inline]
    fn begin(
        &mut self,
        starts: &Starts<NonNull<Node>>,
        list: &SkipList,
        (page, entry): (usize, &Entry<'_>),
        levels: usize,
    ) {
        let is_all = starts.before(list, page, entry, |node, height| {
            if height > self.known {
                self.before[self.known..height].fill(node.as_ptr());
                self.known = height;
            }
            self.known < levels
        });
        // Before the first of these nodes there is only the list's own tower.
        if is_all && self.known < levels {
            self.known = HEIGHT_MAX;
        }
    }

    /// Prepares a search for the next lower level. It begins at the node above, unless a later one
    /// is known.
    #[inline]
    fn lower(&mut self, level: usize) {
        if self.before[level].is_null() {
            self.before[level] = self.before[level + 1];
        }
    }
}

impl Arena {
    /// Allocates `size` bytes. Requires: size > 0, a multiple of `ALIGN`.
    fn take(&mut self, size: usize) -> *mut u8 {
        assert!(size > 0 && size.is_multiple_of(ALIGN), "{size} bytes for a node");
        if size > self.free_bytes as usize {
            let chunk_bytes = self.all_bytes.clamp(CHUNK_BYTES_MIN as u32, self.chunk_bytes_max);
            let chunk_bytes = chunk_bytes as usize;
            if size > chunk_bytes / 4 {
                return self.add_chunk(size);
            }
            self.free = self.add_chunk(chunk_bytes);
            self.free_bytes = chunk_bytes as u32;
        }
        let taken = self.free;
        // SAFETY: `free` points into the last shared chunk, with `free_bytes` >= size bytes behind
        // it.
        self.free = unsafe { taken.add(size) };
        self.free_bytes -= size as u32;
        taken
    }

    /// Requires: size is a multiple of `ALIGN`.
    fn add_chunk(&mut self, size: usize) -> *mut u8 {
        self.all_bytes = (self.all_bytes as usize + size).min(CHUNK_BYTES_MAX) as u32;
        let mut chunk = Chunk::new(size);
        let start = chunk.start();
        self.chunks.push(chunk);
        start
    }

    fn starts(&mut self) -> Option<&mut Starts<NonNull<Node>>> {
        self.hints.as_mut()?.starts.as_mut()
    }

    /// Returns a random height: mostly 1 (xorshift).
    fn draw_height(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let mut bits = self.random;
        let mut height = 1;
        while height < HEIGHT_MAX && bits.is_multiple_of(BRANCHING) {
            bits /= BRANCHING;
            height += 1;
        }
        height
    }
}

/// An insert-only sorted list of entries.
pub(crate) struct SkipList {
    towers: [Link; HEIGHT_MAX],
    /// The numbers beside the list's own links, from level 1 on.
    newest: [Newest; HEIGHT_MAX - 1],
    pub(crate) height: AtomicUsize,
    len: AtomicUsize,
    size_bytes: AtomicUsize,
    arena: Mutex<Arena>,
}

// SAFETY: nodes are plain bytes and atomics, owned by the list, with nothing to drop. The arena's
// pointers are used under its lock alone; readers follow atomic links and read only what was
// complete before it was linked.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl SkipList {
    /// Creates an empty list that expects about `expected_bytes` bytes.
    pub(crate) fn new(expected_bytes: usize) -> Self {
        Self::with_random(expected_bytes, 0x9e37_79b9_7f4a_7c15)
    }

    /// Does the same with another seed for the heights of nodes. Requires: the seed is not 0.
    pub(crate) fn with_random(expected_bytes: usize, random: u64) -> Self {
        let chunk_bytes_max = (expected_bytes / 16).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let chunk_bytes_max = chunk_bytes_max.next_multiple_of(ALIGN) as u32;
        let (chunks, free, free_bytes) = (Vec::new(), ptr::null_mut(), 0);
        let (all_bytes, hints) = (0, None);
        let arena = Arena { chunk_bytes_max, all_bytes, chunks, free, free_bytes, random, hints };
        SkipList {
            towers: Default::default(),
            newest: Default::default(),
            height: AtomicUsize::new(1),
            len: AtomicUsize::new(0),
            size_bytes: AtomicUsize::new(0),
            arena: Mutex::new(arena),
        }
    }

    /// Adds an entry. Requires: no entry with this key and sequence number exists.
    pub(crate) fn insert(&self, entry: &Entry<'_>) {
        self.add(entry, false, || {});
    }

    /// Adds an entry, and marks it so that searches by sequence number find it. Requires: it is
    /// newer than all entries of the list.
    pub(crate) fn insert_marked(&self, entry: &Entry<'_>) {
        self.add(entry, true, || {});
    }

    /// Adds entries in order, with interleaved searches. Requires: as `insert`, for each entry.
    pub(crate) fn insert_all(&self, entries: &[Entry<'_>]) {
        let mut arena = lock(&self.arena);
        let mut left = entries;
        while let Some((next, rest)) = left.split_first() {
            let height = arena.draw_height();
            if let Some(mut splice) = self.splice_behind_last(&arena, next, height) {
                self.add_behind(&mut arena, next, height, &mut splice, false, || {});
                left = rest;
                continue;
            }
            let (together, rest) = left.split_at(left.len().min(TOGETHER));
            let mut heights = [height; TOGETHER];
            heights[1..together.len()].fill_with(|| arena.draw_height());
            let mut splices = self.splices_of(&mut arena, together, &heights);
            for ((entry, height), splice) in together.iter().zip(heights).zip(&mut splices) {
                self.add_behind(&mut arena, entry, height, splice, false, || {});
            }
            left = rest;
        }
    }

    /// Adds an entry. Calls `changed` after each change that readers may see.
    fn add(&self, entry: &Entry<'_>, is_marked: bool, changed: impl Fn()) {
        let mut arena = lock(&self.arena);
        let height = arena.draw_height();
        // A mark is recorded on all levels.
        let levels = if is_marked { HEIGHT_MAX } else { height };
        let behind_last = self.splice_behind_last(&arena, entry, levels);
        let mut splice = behind_last.unwrap_or_else(|| self.splice_of(&mut arena, entry, levels));
        self.add_behind(&mut arena, entry, height, &mut splice, is_marked, changed);
    }

    /// Returns the nodes before an entry that directly follows the one added last. So ascending
    /// keys need no search. `None`: it does not, or fewer than `levels` levels are known. Requires:
    /// the arena is the list's own.
    #[inline]
    fn splice_behind_last(
        &self,
        arena: &Arena,
        entry: &Entry<'_>,
        levels: usize,
    ) -> Option<Splice> {
        let (head, key, at) = (key_head(entry.key), entry.key, entry.sequence);
        let hints = arena.hints.as_ref().filter(|it| self.is_before(it.last, head, key, at))?;
        let after = self.link(hints.last, 0).load(Memory::Relaxed);
        let fits = after.is_null() || !self.is_before(after, head, key, at);
        (fits && hints.splice.known >= levels).then_some(hints.splice)
    }

    /// Finds nodes before an entry on at least `levels` levels.
    #[inline]
    fn splice_of(&self, arena: &mut Arena, entry: &Entry<'_>, levels: usize) -> Splice {
        let mut splice = Splice::default();
        if let Some(starts) = arena.starts() {
            let page = starts.page_of(self, entry);
            splice.begin(starts, self, (page, entry), levels);
        }
        if splice.known < levels {
            let (key, at, lowest) = (entry.key, entry.sequence, splice.known);
            self.around(key, at, lowest, |level, node| splice.before[level] = node);
            splice.known = HEIGHT_MAX;
        }
        splice
    }

    /// Adds a node with links above level 0 to the places where searches may begin. Returns the
    /// bytes of memory that this takes.
    fn note_start(&self, hints: &mut Hints, node: *mut Node) -> usize {
        let Some(starts) = &mut hints.starts else {
            let is_long = self.len() >= ENTRIES_MIN;
            hints.starts = if is_long { Starts::of(self, self.tall_nodes()) } else { None };
            return hints.starts.as_ref().map_or(0, Starts::size_bytes);
        };
        let before = starts.size_bytes();
        let node = NonNull::new(node).expect("a new node");
        starts.add(self, node, self.height_of(node.as_ptr()));
        starts.size_bytes() - before
    }

    /// Returns the nodes with links above level 0, in order, each with its height.
    fn tall_nodes(&self) -> impl Iterator<Item = (NonNull<Node>, usize)> {
        let behind = |node| NonNull::new(self.link(node, 1).load(Memory::Relaxed));
        let nodes = std::iter::successors(behind(ptr::null_mut()), move |it| behind(it.as_ptr()));
        nodes.map(|node| (node, self.height_of(node.as_ptr())))
    }

    /// Advances the nodes of a splice to the last ones before the entry, on `levels` levels.
    /// Returns the node after it on level 0.
    #[inline]
    fn approach(&self, entry: &Entry<'_>, splice: &mut Splice, levels: usize) -> *mut Node {
        let (head, mut after) = (key_head(entry.key), ptr::null_mut());
        for level in (0..levels.min(self.height.load(Memory::Relaxed))).rev() {
            let before = &mut splice.before[level];
            loop {
                after = self.link(*before, level).load(Memory::Relaxed);
                if after.is_null() || !self.is_before(after, head, entry.key, entry.sequence) {
                    break;
                }
                *before = after;
            }
        }
        after
    }

    /// Finds nodes before each entry, on at least as many levels as the entry will have. The
    /// searches are interleaved: while one waits for memory, others proceed.
    fn splices_of(
        &self,
        arena: &mut Arena,
        entries: &[Entry<'_>],
        heights: &[usize; TOGETHER],
    ) -> [Splice; TOGETHER] {
        let mut splices = [Splice::default(); TOGETHER];
        if let Some(starts) = arena.starts() {
            let pages = entries.iter().map(|entry| starts.page_of(self, entry));
            let pages: SmallVec<[usize; TOGETHER]> = pages.collect();
            let belong = pages.into_iter().zip(entries);
            for ((belongs, height), splice) in belong.zip(heights).zip(&mut splices) {
                splice.begin(starts, self, belongs, *height);
                prefetch(splice.before[height - 1]);
            }
        }
        let mut searches = SmallVec::<[Search; TOGETHER]>::new();
        for ((entry, height), splice) in entries.iter().zip(heights).zip(&mut splices) {
            let mut level = height - 1;
            if splice.known < *height {
                *splice = Splice { known: HEIGHT_MAX, ..Splice::default() };
                level = self.height.load(Memory::Relaxed) - 1;
            }
            let after = self.link(splice.before[level], level).load(Memory::Relaxed);
            prefetch(after);
            searches.push(Search { head: key_head(entry.key), level, after });
        }
        let mut are_under_way = true;
        while are_under_way {
            are_under_way = false;
            for ((search, entry), splice) in searches.iter_mut().zip(entries).zip(&mut splices) {
                are_under_way |= self.step(search, entry, splice);
            }
        }
        splices
    }

    /// Advances a search by one node or one level. False: the search has ended.
    #[inline]
    fn step(&self, search: &mut Search, entry: &Entry<'_>, splice: &mut Splice) -> bool {
        let Search { head, level, after } = search;
        if !after.is_null() && self.is_before(*after, *head, entry.key, entry.sequence) {
            splice.before[*level] = *after;
        } else {
            if *level == 0 {
                return false;
            }
            *level -= 1;
            splice.lower(*level);
        }
        *after = self.link(splice.before[*level], *level).load(Memory::Relaxed);
        prefetch(*after);
        true
    }

    /// Links a new node for an entry, after advancing the splice's nodes to it. Requires: the
    /// splice is filled on as many levels as the node has; for a marked entry, on all.
    fn add_behind(
        &self,
        arena: &mut Arena,
        entry: &Entry<'_>,
        height: usize,
        splice: &mut Splice,
        is_marked: bool,
        changed: impl Fn(),
    ) {
        let levels = if is_marked { HEIGHT_MAX } else { height };
        assert!(splice.known >= levels, "{} of {levels} levels are known", splice.known);
        let after = self.approach(entry, splice, levels);
        // Numbers differ mostly, and so no key is loaded.
        let is_same = |it: Entry<'_>| it.sequence == entry.sequence && it.key == entry.key;
        let taken = self.entry_at(after).is_some_and(is_same);
        assert!(!taken, "two entries with {:?} and one key", entry.sequence);
        let (node, size) = new_node(arena, entry, height);
        // A reader that reaches the node at any level may continue at any level. So the node is
        // complete before the first link to it is stored.
        for (level, &before) in splice.before.iter().enumerate().take(height) {
            let next = self.link(before, level).load(Memory::Relaxed);
            // SAFETY: `node` is a node of this list with `height` > level links.
            unsafe { link_of(node, level) }.store(next, Memory::Relaxed);
            if is_marked && level > 0 {
                self.part_newest(node, next, level);
            }
        }
        // Only who holds the arena changes it, and the counters below: no locked step is needed.
        let levels_before = self.height.load(Memory::Relaxed);
        self.height.store(levels_before.max(height), Memory::Relaxed);
        changed();
        for (level, &before) in splice.before.iter().enumerate().take(height) {
            if is_marked && level >= levels_before {
                self.part_newest(before, ptr::null_mut(), level);
            }
            self.link(before, level).store(node, Memory::Release);
            changed();
        }
        if is_marked {
            self.mark(&splice.before, entry.sequence, &changed);
        }
        splice.before[..height].fill(node);
        let none = || Box::new(Hints { last: node, splice: *splice, starts: None });
        let hints = arena.hints.get_or_insert_with(none);
        (hints.last, hints.splice) = (node, *splice);
        self.len.store(self.len() + 1, Memory::Relaxed);
        let of_starts = if height > 1 { self.note_start(hints, node) } else { 0 };
        self.size_bytes.store(self.size_bytes() + size + of_starts, Memory::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Memory::Relaxed)
    }

    /// The memory of the entries, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Memory::Relaxed)
    }

    /// Returns the newest entry of `key` with a sequence number of at most `at`: its number, kind
    /// and value.
    pub(crate) fn find(
        self: &Arc<Self>,
        key: &[u8],
        at: Sequence,
    ) -> Option<(Sequence, Kind, HeldBytes)> {
        let (_, node) = self.around(key, at, 0, |_, _| {});
        let found = self.entry_at(node).filter(|entry| entry.key == key)?;
        Some((found.sequence, found.kind, HeldBytes::of(self, found.value)))
    }

    /// Returns all entries in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let after = |node: &*mut Node| self.link(*node, 0).load(Memory::Acquire);
        let nodes = std::iter::successors(Some(after(&ptr::null_mut())), move |it| Some(after(it)));
        nodes.map_while(|node| self.entry_at(node))
    }

    /// Finds the last node before (key, at) and its successor on level `lowest`, null if there is
    /// none. Calls `passed` with the last node before, for each level from the top down to
    /// `lowest`. Both nodes come from one load of the link, since a second load might return a
    /// newer node.
    #[inline]
    fn around(
        &self,
        key: &[u8],
        at: Sequence,
        lowest: usize,
        mut passed: impl FnMut(usize, *mut Node),
    ) -> (*mut Node, *mut Node) {
        let head = key_head(key);
        let (mut before, mut after) = (ptr::null_mut(), ptr::null_mut());
        for level in (lowest..self.height.load(Memory::Relaxed)).rev() {
            loop {
                after = self.link(before, level).load(Memory::Acquire);
                // Most steps wait for memory, so the next levels' nodes are loaded meanwhile.
                self.prefetch_next(before, level);
                if after.is_null() || !self.is_before(after, head, key, at) {
                    break;
                }
                before = after;
            }
            passed(level, before);
        }
        (before, after)
    }

    /// Prefetches the nodes that follow `before` one and two levels below, so a search that
    /// descends twice waits once. (A model checker would only explore more loads.)
    #[inline]
    fn prefetch_next(&self, before: *mut Node, level: usize) {
        for below in (1..=level.min(2)).filter(|_| !cfg!(any(loom, shuttle))) {
            let next = self.link(before, level - below).load(Memory::Relaxed);
            prefetch_at(next.cast_const().cast(), 1);
        }
    }

    /// Requires: `node` is a node of this list, not null.
    #[inline]
    fn is_before(&self, node: *mut Node, head: u64, key: &[u8], at: Sequence) -> bool {
        // SAFETY: reachable nodes are complete, and live as long as the list.
        let Node { head: node_head, witness, .. } = unsafe { &*node };
        witness.read();
        cost::step();
        if *node_head != head {
            return *node_head < head;
        }
        let entry = self.entry_at(node).expect("the node is not null");
        order((entry.key, entry.sequence), (key, at)) == Ordering::Less
    }

    /// Returns the link of `node` at `level`, or that of the list's own tower for null. Requires:
    /// the node was reached at `level` or above.
    #[inline]
    fn link(&self, node: *mut Node, level: usize) -> &Link {
        if node.is_null() {
            return &self.towers[level];
        }
        // SAFETY: a node that was reached at a level has a link there.
        unsafe { link_of(node, level) }
    }

    /// Returns the number beside a link above level 0. Requires: as `link`.
    #[inline]
    fn newest_slot(&self, node: *mut Node, level: usize) -> &Newest {
        if node.is_null() {
            return &self.newest[level - 1];
        }
        // SAFETY: a node that was reached at a level has a link there, and a number for each link
        // above level 0. They follow the tower in the same memory, at a multiple of `ALIGN`.
        unsafe {
            let height = (*node).height as usize;
            let numbers = node.cast::<u8>().add(offset_of_numbers(height));
            &*numbers.cast::<Newest>().add(level - 1)
        }
    }

    /// Returns the number of levels on which a node has links. Requires: a node of this list.
    #[inline]
    fn height_of(&self, node: *mut Node) -> usize {
        // SAFETY: reachable nodes are complete, and live as long as the list.
        unsafe { (*node).height as usize }
    }

    /// Returns a node's entry. `None`: null. Requires: otherwise a node of this list.
    #[inline]
    fn entry_at(&self, node: *mut Node) -> Option<Entry<'_>> {
        if node.is_null() {
            return None;
        }
        // SAFETY: reachable nodes are complete and never change. Tower, key and value follow the
        // node in the memory that new_node() took for them, which lives as long as the list.
        unsafe {
            (*node).witness.read();
            let Node { sequence, key_len, value_len, height, kind, .. } = *node;
            let key_at = node.cast::<u8>().add(offset_of_key(height as usize));
            let key = std::slice::from_raw_parts(key_at, key_len as usize);
            let value_at = key_at.add(key_len as usize);
            let value = std::slice::from_raw_parts(value_at, value_len as usize);
            Some(Entry { key, sequence: Sequence(sequence), kind, value })
        }
    }
}

impl Nodes for SkipList {
    type Node = NonNull<Node>;

    #[inline]
    fn entry(&self, node: NonNull<Node>) -> Entry<'_> {
        self.entry_at(node.as_ptr()).expect("it is not null")
    }

    #[inline]
    fn is_before(&self, node: NonNull<Node>, head: u64, key: &[u8], at: Sequence) -> bool {
        self.is_before(node.as_ptr(), head, key, at)
    }
}

/// The numbers follow the tower. (Links of four bytes may leave a gap.)
const fn offset_of_numbers(height: usize) -> usize {
    size_of::<Node>() + (height * size_of::<Link>()).next_multiple_of(ALIGN)
}

const fn offset_of_key(height: usize) -> usize {
    offset_of_numbers(height) + (height - 1) * size_of::<Newest>()
}

/// Prefetches a node's head and lowest links. (A model checker gains nothing.)
#[inline]
fn prefetch(node: *mut Node) {
    if !cfg!(any(loom, shuttle)) {
        prefetch_at(node.cast_const().cast(), 1);
        let lowest_links = size_of::<Node>() + size_of::<Link>();
        prefetch_at(node.cast_const().cast::<u8>().wrapping_add(lowest_links), 1);
    }
}

/// Returns a link of a node. The reference must not outlive the node's list.
///
/// # Safety
/// `node` is a node with more than `level` links.
#[inline]
unsafe fn link_of<'a>(node: *mut Node, level: usize) -> &'a Link {
    // SAFETY: the tower follows the node in the same memory, aligned as the node is.
    unsafe { &*node.add(1).cast::<Link>().add(level) }
}

/// Makes a complete node that nothing points to yet. Returns it with its size in bytes.
fn new_node(arena: &mut Arena, entry: &Entry<'_>, height: usize) -> (*mut Node, usize) {
    let key_at = offset_of_key(height);
    let size = (key_at + entry.key.len() + entry.value.len()).next_multiple_of(ALIGN);
    let start = arena.take(size);
    let node = Node {
        head: key_head(entry.key),
        sequence: entry.sequence.0,
        key_len: u32::try_from(entry.key.len()).expect("keys have a bound"),
        value_len: u32::try_from(entry.value.len()).expect("values have a bound"),
        height: height as u8,
        kind: entry.kind,
        witness: Witness::new(),
    };
    node.witness.written();
    // SAFETY: the memory is new, aligned for a node, and long enough for node, tower, key and
    // value. These lie one after the other and so do not overlap with the entry's own bytes.
    unsafe {
        start.cast::<Node>().write(node);
        let tower = start.add(size_of::<Node>()).cast::<Link>();
        (0..height).for_each(|level| tower.add(level).write(Link::default()));
        let newest = start.add(offset_of_numbers(height)).cast::<Newest>();
        (0..height - 1).for_each(|level| newest.add(level).write(Newest::default()));
        let key = start.add(key_at);
        ptr::copy_nonoverlapping(entry.key.as_ptr(), key, entry.key.len());
        let value = key.add(entry.key.len());
        ptr::copy_nonoverlapping(entry.value.as_ptr(), value, entry.value.len());
    }
    (start.cast(), size)
}

mod chunk;
mod cursor;
pub(crate) use cursor::{HeldBytes, ListCursor};

mod newest;
mod starts;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::cursor::Cursor;

    fn put<'a>(key: &'a [u8], sequence: u64, value: &'a [u8]) -> Entry<'a> {
        Entry { key, sequence: Sequence(sequence), kind: Kind::Put, value }
    }

    fn keys(list: &Arc<SkipList>) -> Vec<(Vec<u8>, u64)> {
        let mut cursor = ListCursor::new(Arc::clone(list));
        cursor.seek_first().unwrap();
        let mut keys = Vec::new();
        while let Some(entry) = cursor.entry() {
            keys.push((entry.key.to_vec(), entry.sequence.0));
            cursor.next().unwrap();
        }
        keys
    }

    #[test]
    fn entries_are_in_order_whatever_order_they_came_in() {
        let list = Arc::new(SkipList::new(0));
        let names: [&[u8]; 7] = [b"b", b"", b"a", b"a\0", b"abcdefgh", b"abcdefghi", b"abcdefgh\0"];
        for (place, name) in names.iter().enumerate() {
            list.insert(&put(name, place as u64, name));
            list.insert(&put(name, 100 + place as u64, b"newer"));
        }
        let mut expected = names.map(<[u8]>::to_vec).to_vec();
        expected.sort();
        let found: Vec<_> = keys(&list).into_iter().step_by(2).map(|(key, _)| key).collect();
        assert_eq!(found, expected);
        assert!(keys(&list).chunks(2).all(|pair| pair[0].1 == pair[1].1 + 100));
        let (sequence, _, value) = list.find(b"a\0", Sequence(50)).unwrap();
        assert_eq!((sequence, value.as_slice()), (Sequence(3), &b"a\0"[..]));
        assert!(
            list.find(b"a\0", Sequence(2)).is_none() && list.find(b"c", Sequence::MAX).is_none()
        );
    }

    proptest::proptest! {
        /// One by one or interleaved, in any order and grouping.
        #[test]
        fn entries_that_are_added_together_are_in_order(
            numbers in proptest::collection::vec(0u64..900, 1..900),
            ascend in proptest::bool::ANY,
            groups in proptest::collection::vec(1usize..30, 1..60),
        ) {
            let mut numbers = numbers;
            if ascend {
                numbers.sort_unstable();
            }
            let names: Vec<[u8; 9]> = numbers
                .iter()
                .map(|number| {
                    // Some heads are equal.
                    let mut name = [0; 9];
                    name[..8].copy_from_slice(&(number / 3).to_be_bytes());
                    name[8] = (number % 3) as u8;
                    name
                })
                .collect();
            let places = names.iter().zip(0..);
            let entries: Vec<_> = places.map(|(name, at)| put(name, at, &name[7..])).collect();
            let list = Arc::new(SkipList::new(0));
            let mut left = &entries[..];
            for group in groups.into_iter().chain([entries.len()]) {
                let (now, later) = left.split_at(group.min(left.len()));
                match now {
                    [one] => list.insert(one),
                    some => list.insert_all(some),
                }
                left = later;
            }
            let mut expected: Vec<_> =
                entries.iter().map(|entry| (entry.key.to_vec(), entry.sequence.0)).collect();
            expected.sort_by(|(a, a_at), (b, b_at)| a.cmp(b).then(b_at.cmp(a_at)));
            proptest::prop_assert_eq!(keys(&list), expected);
            proptest::prop_assert_eq!(list.len(), entries.len());
            lock(&list.arena).starts().into_iter().for_each(|starts| starts.check(&list));
            // Each level links existing nodes in order.
            for level in 0..HEIGHT_MAX {
                let next = |node: *mut Node| list.link(node, level).load(Memory::Relaxed);
                let (mut node, mut last) = (next(ptr::null_mut()), None);
                while let Some(entry) = list.entry_at(node) {
                    let here = (entry.key.to_vec(), u64::MAX - entry.sequence.0);
                    proptest::prop_assert!(last.is_none_or(|last| last < here));
                    (node, last) = (next(node), Some(here));
                }
            }
        }
    }

    #[test]
    fn large_values_get_chunks_of_their_own_and_outlive_the_other_handles() {
        let list = Arc::new(SkipList::new(0));
        let large = vec![7; 3 * CHUNK_BYTES_MIN];
        list.insert(&put(b"large", 1, &large));
        list.insert(&put(b"small", 2, b"x"));
        let (_, _, held) = list.find(b"large", Sequence::MAX).unwrap();
        let mut cursor = ListCursor::new(Arc::clone(&list));
        drop(list);
        assert_eq!(held.clone().as_slice(), large);
        cursor.seek_last().unwrap();
        assert_eq!(cursor.value(), b"x");
        cursor.prev().unwrap();
        drop(cursor);
        assert_eq!(held.as_slice(), large);
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "thousands of entries")]
    fn memory_for_many_entries_comes_in_huge_pages() {
        let list = Arc::new(SkipList::new(64 << 20));
        let value = [7; 1000];
        for number in 0..6000_u64 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            list.insert(&put(&key, number, &value));
        }
        let mut arena = lock(&list.arena);
        let huge = arena.chunks.iter_mut().filter(|chunk| matches!(chunk, Chunk::Huge(_)));
        let places: Vec<usize> = huge.map(|chunk| chunk.start().addr()).collect();
        assert!(places.len() > 1 && places.iter().all(|place| place.is_multiple_of(HUGE_BYTES)));
        drop(arena);
        assert_eq!(keys(&list).len(), 6000);
    }

    #[test]
    #[should_panic(expected = "one key")]
    fn an_entry_cannot_be_there_twice() {
        let list = SkipList::new(0);
        list.insert(&put(b"a", 1, b""));
        list.insert(&put(b"a", 1, b""));
    }

    #[test]
    #[should_panic(expected = "one key")]
    fn an_entry_cannot_be_added_twice_together() {
        let list = SkipList::new(0);
        list.insert_all(&[put(b"b", 1, b""), put(b"a", 1, b""), put(b"a", 1, b"")]);
    }

    #[test]
    fn readers_see_whole_entries_while_a_writer_adds() {
        let count = if cfg!(miri) { 60 } else { 20_000 };
        let list = Arc::new(SkipList::new(1 << 16));
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        // Everything counted before is there, in order, with its value.
                        let at_least = done.load(Memory::Acquire);
                        let mut cursor = ListCursor::new(Arc::clone(&list));
                        cursor.seek_first().unwrap();
                        let (mut seen, mut last) = (0, None);
                        while let Some(entry) = cursor.entry() {
                            let number = u64::from_be_bytes(entry.key.try_into().unwrap());
                            assert!(last < Some(number));
                            assert_eq!(entry.value, &entry.key[..entry.key.len() - 1]);
                            (last, seen) = (Some(number), seen + 1);
                            cursor.next().unwrap();
                        }
                        assert!(seen >= at_least, "{seen} of {at_least}");
                        if at_least == count {
                            break;
                        }
                    }
                });
            }
            for number in 0..count as u64 {
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                list.insert(&put(&key, number, &key[..7]));
                done.store(number as usize + 1, Memory::Release);
            }
        });
        assert_eq!(list.len(), count);
    }
}
