//! The search within a block, over its bytes and the offsets of its parts.
//! ```text
//! load all heads -> bisect the restarts -> walk the heads from there -> offset of the value
//! ```
//! Invariant: `split` and `walk` accept any bytes. All other functions rely on a successful walk.

use std::cmp::Ordering;

use trommel_filters::{Corrupt, Reader};

use super::{KIND_BITS, RESTART_SIZE, RESTARTS_AT};
use crate::cost;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::keys::common_prefix;

/// The offsets of a block's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) restart_count: u32,
    /// Where the restarts end and the heads begin.
    pub(super) heads_at: u32,
    /// Where the heads end and the values begin.
    pub(super) values_at: u32,
    pub(super) entry_count: u32,
}

/// The offsets of an entry's head and of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryOffsets {
    pub(crate) head: usize,
    pub(crate) value: usize,
}

/// A decoded entry without the shared start of its key, as offsets in the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed {
    pub(crate) shared: usize,
    pub(crate) key_at: usize,
    pub(crate) value_at: usize,
    /// The place of the next entry: the end of this one's key, and of its value.
    pub(crate) next: EntryOffsets,
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
}

/// The result of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought {
    pub(crate) place: EntryOffsets,
    pub(crate) entry: Parsed,
    /// Whether the entry has the key that was searched for.
    pub(crate) is_of_key: bool,
}

/// A head as far as a search needs it. The tag (sequence number and kind) is skipped undecoded,
/// because a search needs it for few of the entries that it passes.
#[derive(Clone, Copy)]
struct Head {
    shared: usize,
    tag_at: usize,
    key_at: usize,
    value_at: usize,
    next: EntryOffsets,
}

/// Bytes of the lengths in most heads: one byte each, and up to two for the value.
const SHORT_LENGTHS: usize = 4;
/// Bytes that hold any tag whose sequence number is below 2^53.
const SHORT_TAG: usize = size_of::<u64>();

impl Head {
    /// Decodes the three lengths and finds the tag. `None`: the bytes are not a head.
    #[inline(always)]
    fn at(bytes: &[u8], at: EntryOffsets) -> Option<Head> {
        Head::short(bytes, at).or_else(|| Head::long(bytes, at))
    }

    /// The fast path. `None`: a number is longer than usual, or the bytes end too soon.
    #[inline(always)]
    fn short(bytes: &[u8], at: EntryOffsets) -> Option<Head> {
        let start = bytes.get(at.head..)?.first_chunk::<{ SHORT_LENGTHS + SHORT_TAG }>()?;
        let [shared, unshared, low, high, ..] = *start;
        if (shared | unshared) >= 0x80 {
            return None;
        }
        let (mut value_len, mut tag) = (usize::from(low), 3);
        if low >= 0x80 {
            if high >= 0x80 {
                return None;
            }
            (value_len, tag) = (usize::from(low & 0x7f) | usize::from(high) << 7, SHORT_LENGTHS);
        }
        let tag_bytes = start[tag..][..SHORT_TAG].try_into().expect("so many bytes");
        // The last byte of a varint has its highest bit clear.
        let ends = !u64::from_le_bytes(tag_bytes) & 0x8080_8080_8080_8080;
        if ends == 0 {
            return None;
        }
        let (shared, unshared) = (usize::from(shared), usize::from(unshared));
        let tag_at = at.head + tag;
        let key_at = tag_at + ends.trailing_zeros() as usize / 8 + 1;
        let next = EntryOffsets { head: key_at + unshared, value: at.value + value_len };
        Some(Head { shared, tag_at, key_at, value_at: at.value, next })
    }

    #[cold]
    fn long(bytes: &[u8], at: EntryOffsets) -> Option<Head> {
        let mut tag_at = at.head;
        let shared = usize::try_from(varint(bytes, &mut tag_at)?).ok()?;
        let unshared = usize::try_from(varint(bytes, &mut tag_at)?).ok()?;
        let value_len = usize::try_from(varint(bytes, &mut tag_at)?).ok()?;
        let mut key_at = tag_at;
        varint(bytes, &mut key_at)?;
        let next = EntryOffsets {
            head: key_at.checked_add(unshared)?,
            value: at.value.checked_add(value_len)?,
        };
        Some(Head { shared, tag_at, key_at, value_at: at.value, next })
    }

    /// The part of the key that the entry does not share.
    #[inline]
    fn key_end<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.key_at..self.next.head]
    }

    #[inline]
    fn tag(&self, bytes: &[u8]) -> Option<u64> {
        let len = self.key_at - self.tag_at;
        match bytes.get(self.tag_at..).and_then(<[u8]>::first_chunk::<SHORT_TAG>) {
            Some(word) if len <= SHORT_TAG => Some(joined(u64::from_le_bytes(*word), len)),
            _ => varint(bytes, &mut { self.tag_at }),
        }
    }

    #[inline]
    fn sequence(&self, bytes: &[u8]) -> Option<Sequence> {
        Some(Sequence(self.tag(bytes)? >> KIND_BITS))
    }

    /// `None`: no kind has this number.
    #[inline]
    fn parsed(&self, bytes: &[u8]) -> Option<Parsed> {
        let Head { shared, key_at, value_at, next, .. } = *self;
        let tag = self.tag(bytes)?;
        let kind = kind_of(tag)?;
        Some(Parsed { shared, key_at, value_at, next, sequence: Sequence(tag >> KIND_BITS), kind })
    }
}

#[inline]
fn kind_of(tag: u64) -> Option<Kind> {
    match tag & ((1 << KIND_BITS) - 1) {
        0 => Some(Kind::Put),
        other => Kind::from_number(other as u8),
    }
}

/// Decodes the varint in the first `len` bytes of a word, 1 to 8. It joins groups of seven bits
/// pairwise, which needs no loop whose end the processor would have to predict.
#[inline]
fn joined(word: u64, len: usize) -> u64 {
    let sevens = word & 0x7f7f_7f7f_7f7f_7f7f & (u64::MAX >> (64 - 8 * len));
    let by_two = (sevens & 0x7f00_7f00_7f00_7f00) >> 1 | sevens & 0x007f_007f_007f_007f;
    let by_four = (by_two & 0x3fff_0000_3fff_0000) >> 2 | by_two & 0x0000_3fff_0000_3fff;
    (by_four & 0x0fff_ffff_0000_0000) >> 4 | by_four & 0x0fff_ffff
}

/// Decodes a varint, tuned for one or two bytes. `Reader` is the strict decoder.
#[inline]
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

const WALKED: &str = "every entry was parsed when the block was made";

/// A block's bytes with the offsets of its parts: what a search works on.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) parts: Parts,
}

impl<'a> View<'a> {
    /// Decodes the offsets of the parts. The entries are not walked yet, and their count is 0.
    pub(super) fn split(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Corrupt { at: 0, what: "a block of less than 4 GiB" });
        }
        let mut start = Reader::new(bytes);
        let (restart_count, heads_len) = (start.u32()?, start.u32()?);
        start.bytes((restart_count as usize).saturating_mul(RESTART_SIZE))?;
        let heads_at = start.at() as u32;
        start.bytes(heads_len as usize)?;
        let values_at = start.at() as u32;
        let parts = Parts { restart_count, heads_at, values_at, entry_count: 0 };
        Ok(View { bytes, parts })
    }

    /// Checks every length and restart. Returns the number of entries.
    pub(super) fn walk(self) -> Result<u32, Corrupt> {
        let wrong = |at, what| Corrupt { at, what };
        let restart_count = self.parts.restart_count;
        let heads = &self.bytes[..self.parts.values_at as usize];
        let (mut at, mut key_len, mut restarts_seen) = (self.first(), 0, 0);
        let mut entry_count = 0;
        while at.head < heads.len() {
            let head = Head::at(heads, at);
            let entry = head.and_then(|head| head.parsed(heads));
            let entry = entry.ok_or(wrong(at.head, "an entry"))?;
            if entry.next.head > heads.len() || entry.next.value > self.bytes.len() {
                return Err(wrong(at.head, "an entry that ends within the block"));
            }
            let restart = restarts_seen < restart_count && self.restart(restarts_seen) == at;
            restarts_seen += u32::from(restart);
            if entry.shared > if restart { 0 } else { key_len } {
                return Err(wrong(at.head, "a key that shares more than there is"));
            }
            key_len = entry.shared + entry.next.head - entry.key_at;
            at = entry.next;
            entry_count += 1;
        }
        if at != self.end() {
            return Err(wrong(at.value, "values that no entry has"));
        }
        if restarts_seen != restart_count || restart_count == 0 || self.restart(0) != self.first() {
            return Err(wrong(RESTARTS_AT, "restarts that are entries"));
        }
        Ok(entry_count)
    }

    /// Touches all heads at once, since a search would wait for one cache line after another.
    #[inline]
    pub(super) fn load_heads(self) {
        const LINE_BYTES: usize = 64;
        const LINES_MAX: usize = 16;
        let heads = &self.bytes[self.parts.heads_at as usize..self.parts.values_at as usize];
        let lines = heads.iter().step_by(LINE_BYTES).take(LINES_MAX);
        std::hint::black_box(lines.fold(0, |all, byte| all ^ byte));
    }

    /// Finds the first entry that is not before (key, at). Its key begins with the first `shared`
    /// bytes of `key`. The search assembles no key: the length that an entry shares with the
    /// previous one tells most entries apart. This also holds where an entry could share more.
    #[inline]
    pub(super) fn seek(self, key: &[u8], at: Sequence) -> Option<Sought> {
        self.load_heads();
        let mut place = self.restart_not_after(key, at);
        // The length of the prefix that `key` has in common with the previous entry, which is
        // before (key, at).
        let mut matched = 0;
        while place.head < self.parts.values_at as usize {
            let head = self.head(place);
            if head.shared <= matched {
                let (rest, end) = (&key[head.shared..], head.key_end(self.bytes));
                let common = common_prefix(rest, end);
                let order = rest.get(common).cmp(&end.get(common));
                let is_of_key = order == Ordering::Equal;
                if order == Ordering::Less || is_of_key && self.sequence(head) <= at {
                    return Some(Sought { place, entry: self.parsed(head), is_of_key });
                }
                matched = head.shared + common;
            }
            place = head.next;
        }
        None
    }

    /// Returns the place of the last restart whose entry is not after (key, at), or of the first
    /// restart.
    pub(super) fn restart_not_after(self, key: &[u8], at: Sequence) -> EntryOffsets {
        self.last_restart(|restart| {
            let head = self.head(restart);
            match head.key_end(self.bytes).cmp(key) {
                Ordering::Less => true,
                Ordering::Equal => self.sequence(head) >= at,
                Ordering::Greater => false,
            }
        })
    }

    /// See `Block::restart_before_place`.
    pub(super) fn restart_before_place(self, place: EntryOffsets) -> EntryOffsets {
        self.last_restart(|restart| restart.head < place.head)
    }

    /// Returns the place of the last restart that satisfies `is_not_behind`, or of the first
    /// restart.
    #[inline(always)]
    fn last_restart(self, is_not_behind: impl Fn(EntryOffsets) -> bool) -> EntryOffsets {
        let (mut low, mut high) = (0, self.parts.restart_count);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if is_not_behind(self.restart(middle)) { low = middle } else { high = middle }
        }
        self.restart(low)
    }

    /// Requires: `index` is less than the number of restarts.
    fn restart(self, index: u32) -> EntryOffsets {
        let word = |at: usize| {
            let word = self.bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(word) as usize
        };
        let at = RESTARTS_AT + index as usize * RESTART_SIZE;
        let first = self.first();
        EntryOffsets { head: first.head + word(at), value: first.value + word(at + 4) }
    }

    /// The entry at `place`. Requires: an entry is there.
    #[inline(always)]
    pub(super) fn entry(self, place: EntryOffsets) -> Parsed {
        self.parsed(self.head(place))
    }

    #[inline]
    fn head(self, place: EntryOffsets) -> Head {
        cost::step();
        Head::at(self.bytes, place).expect(WALKED)
    }

    #[inline]
    fn sequence(self, head: Head) -> Sequence {
        head.sequence(self.bytes).expect(WALKED)
    }

    #[inline(always)]
    fn parsed(self, head: Head) -> Parsed {
        head.parsed(self.bytes).expect(WALKED)
    }

    pub(super) fn first(self) -> EntryOffsets {
        EntryOffsets { head: self.parts.heads_at as usize, value: self.parts.values_at as usize }
    }

    pub(super) fn end(self) -> EntryOffsets {
        EntryOffsets { head: self.parts.values_at as usize, value: self.bytes.len() }
    }
}
