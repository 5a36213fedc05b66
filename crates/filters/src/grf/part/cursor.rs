//! Iterates over a part's entries in key order, forward or backward, with a bound on each entry's
//! key.
//! ```text
//! bucket by bucket:  cells of the base, old entries, young entries: three sorted sources
//! forward            the source with the smallest next view, if that is at most the current key's
//!                    view, or if its bucket comes before
//! backward           the same with the largest views, mirrored
//! quiet              keys up to some word need no entry: one comparison settles most keys of a
//!                    long scan
//! ```
//! Invariant: for each key of the part in the cursor's range, its code is returned at or before the
//! key itself, if it is wanted.

use crate::base::filter::Untraced;
use crate::base::shape::Span;
use crate::grf::base::Role;
use crate::grf::base::bounds::BucketViews;
use crate::grf::overlay::bucket_entries::BucketEntries;
use crate::grf::part::Part;
use crate::grf::sizes::{OLD, YOUNG};
use crate::text::code::KeyCode;
use core::ops::Range;

impl Part {
    /// Returns a cursor over the entries that may have keys from `from` on, in key order.
    pub fn cursor(&self, from: &[u8]) -> Cursor {
        self.cursor_on(Some(from))
    }

    /// Returns a cursor over the entries that may have keys up to `from` (None: the end), in
    /// reverse key order.
    pub fn cursor_back(&self, from: Option<&[u8]>) -> CursorBack {
        self.cursor_on(from)
    }

    /// Returns a cursor in either direction. `from` None: from the first entry in its direction.
    pub fn cursor_on<const BACK: bool>(&self, from: Option<&[u8]>) -> Cursor<BACK> {
        Cursor::new(self.clone(), from.or((!BACK).then_some(&[])))
    }
}

/// A bucket, and a key's view in that bucket's list.
type Position = ((usize, usize), u64);

/// Iterates over the codes of entries from some key on, in key order; with `BACK`, in reverse.
pub struct Cursor<const BACK: bool = false> {
    part: Part,
    bucket: (usize, usize),
    views: BucketViews,
    /// The range of ranks of the bucket's base keys not returned yet.
    keys: Range<usize>,
    entries: BucketEntries<BACK>,
    /// The next entry of each source, if it is known.
    heads: [Option<Head>; SOURCES.len()],
    muted: Option<Span>,
    /// Forward: no entry is due for keys with a smaller word. Backward: with a larger one.
    quiet: Option<u64>,
}

/// Iterates over the codes of entries up to some key, in reverse key order.
pub type CursorBack = Cursor<true>;

/// A source of entries.
#[derive(Clone, Copy)]
enum Source {
    Keys,
    /// The overlay entries of a tier.
    Entries(usize),
}

const SOURCES: [Source; 3] = [Source::Keys, Source::Entries(OLD), Source::Entries(YOUNG)];

/// The next entry of a source: the view from which on it is due, and its code.
#[derive(Clone, Copy)]
struct Head {
    view: u64,
    code: Span,
}

impl<const BACK: bool> Cursor<BACK> {
    pub(super) fn new(part: Part, from: Option<&[u8]>) -> Self {
        let (views, entries) = (BucketViews::default(), BucketEntries::default());
        let bucket = part.base().last_bucket();
        let (keys, heads, muted, quiet) = (0..0, [None; SOURCES.len()], None, None);
        let mut cursor = Cursor { part, bucket, views, keys, entries, heads, muted, quiet };
        cursor.begin(from);
        cursor
    }

    /// Skips entries with `code` from now on, for callers that already know of its run. One code at
    /// a time.
    pub fn mute(&mut self, code: Span) {
        self.muted = Some(code);
    }

    /// Moves to the bucket of a key, and to the first entries there. Without a key: to the last
    /// bucket.
    fn begin(&mut self, from: Option<&[u8]>) {
        let part = self.part.clone();
        let Some(from) = from else { return self.read(self.bucket, true) };
        let mut code = KeyCode::new();
        let from = part.base().name(from, &mut code);
        let low = part.spot(from, Role::Low, &mut Untraced);
        let spot = if BACK { part.spot(from, Role::High(&low), &mut Untraced) } else { low };
        self.bucket = spot.bucket_key();
        self.views.read(part.base(), self.bucket);
        let (before, through) = spot.ranks();
        self.keys = if BACK { 0..through } else { before..part.base().key_count(self.bucket) };
        self.entries.read((part.overlay(), part.base()), self.bucket, Some(&spot));
    }

    /// Moves to a bucket. `keys`: whether base keys are wanted.
    fn read(&mut self, bucket: (usize, usize), keys: bool) {
        (self.bucket, self.heads) = (bucket, [None; SOURCES.len()]);
        self.views.read(self.part.base(), bucket);
        self.keys = if keys { 0..self.part.base().key_count(bucket) } else { 0..0 };
        self.entries.read((self.part.overlay(), self.part.base()), bucket, None);
    }

    /// Whether nothing is due at `key`, by one comparison. False: the cursor must look closer.
    #[inline]
    fn is_quiet(&self, key: &[u8]) -> bool {
        let Some(quiet) = self.quiet else { return false };
        let word = self.part.base().directory.word(key);
        word.is_ok_and(|word| if BACK { word > quiet } else { word < quiet })
    }

    /// Returns the code of the next wanted entry whose key may be at `key` or before it, in the
    /// cursor's direction. `key` None: no bound. Returns None if no such entry is left. Later calls
    /// continue from there with a key further on. Unwanted entries are skipped for good.
    pub fn next_due(&mut self, key: Option<&[u8]>, wanted: impl Fn(Span) -> bool) -> Option<Span> {
        let Some((text, key)) = self.part.base().text.as_deref().zip(key) else {
            return self.next_due_at(key, wanted);
        };
        let mut code = KeyCode::new();
        let code = text.encode(key, &mut code);
        self.next_due_at(Some(code), wanted)
    }

    /// Same as [`Cursor::next_due`], for a name.
    #[inline(always)]
    fn next_due_at(&mut self, key: Option<&[u8]>, wanted: impl Fn(Span) -> bool) -> Option<Span> {
        if key.is_some_and(|key| self.is_quiet(key)) {
            return None;
        }
        let limit = key.map(|key| self.position(key));
        let muted = self.muted;
        let wanted = |code: Span| Some(code) != muted && wanted(code);
        let code_of_keys = self.part.base_code().filter(|code| wanted(*code));
        loop {
            let nearest = self.nearest(code_of_keys, wanted);
            let Some((place, head)) = nearest else {
                let after = self.bucket_on();
                let is_due =
                    |after| limit.is_none_or(|(bucket, _)| !Self::is_before(bucket, after));
                if let Some(after) = after.filter(|after| is_due(*after)) {
                    self.read(after, code_of_keys.is_some());
                    continue;
                }
                self.quiet = self.quiet_until(None);
                return None;
            };
            if limit.is_none_or(|limit| self.is_due(head.view, limit)) {
                self.heads[place] = None;
                self.pass(SOURCES[place]);
                return Some(head.code);
            }
            self.quiet = self.quiet_until(Some(head.view));
            return None;
        }
    }

    /// Returns the nearest next entry and its source.
    fn nearest(
        &mut self,
        code_of_keys: Option<Span>,
        wanted: impl Fn(Span) -> bool,
    ) -> Option<(usize, Head)> {
        let mut nearest: Option<(usize, Head)> = None;
        for (place, source) in SOURCES.into_iter().enumerate() {
            let known = self.heads[place].filter(|head| wanted(head.code));
            let head = known.or_else(|| self.peek(source, code_of_keys, &wanted));
            self.heads[place] = head;
            let is_nearer = |head: &Head| {
                nearest.is_none_or(|(_, other)| {
                    if BACK { head.view > other.view } else { head.view < other.view }
                })
            };
            nearest = head.filter(is_nearer).map(|head| (place, head)).or(nearest);
        }
        nearest
    }

    /// Returns the next wanted entry of a source.
    fn peek(
        &mut self,
        source: Source,
        code_of_keys: Option<Span>,
        wanted: impl Fn(Span) -> bool,
    ) -> Option<Head> {
        let ((low, high), code) = match source {
            Source::Keys => {
                let (code, keys) = (code_of_keys?, self.keys.clone());
                let rank = if BACK { keys.last() } else { keys.min() }?;
                (self.views.of_key(self.part.base(), self.bucket, rank), code)
            }
            Source::Entries(tier) => {
                let entry = self.entries.peek(tier, wanted)?;
                (self.views.of_fraction(entry.fraction, entry.bits), entry.code)
            }
        };
        Some(Head { view: if BACK { high } else { low }, code })
    }

    fn pass(&mut self, source: Source) {
        match source {
            Source::Keys if BACK => self.keys.end -= 1,
            Source::Keys => self.keys.start += 1,
            Source::Entries(tier) => self.entries.pass(tier),
        }
    }

    /// Whether an entry of this bucket that is due from `view` on is due at a position.
    fn is_due(&self, view: u64, (bucket, limit): Position) -> bool {
        Self::is_before(self.bucket, bucket)
            || self.bucket == bucket && if BACK { view >= limit } else { view <= limit }
    }

    /// Whether one bucket comes before another in the cursor's direction.
    fn is_before(one: (usize, usize), other: (usize, usize)) -> bool {
        if BACK { one > other } else { one < other }
    }

    fn bucket_on(&self) -> Option<(usize, usize)> {
        let base = self.part.base();
        if BACK { base.bucket_before(self.bucket) } else { base.bucket_after(self.bucket) }
    }

    /// Returns the word up to which nothing is due. `nearest`: the view of the bucket's nearest
    /// entry, if any is left.
    fn quiet_until(&self, nearest: Option<u64>) -> Option<u64> {
        let base = self.part.base();
        match nearest {
            // Keys without the group's prefix are above all views.
            Some(u64::MAX) if BACK => None,
            Some(view) => base.word_at_view(self.bucket.0, view),
            None if BACK => base.word_at_bucket(self.bucket),
            None => base.word_at_bucket((self.bucket.0, self.bucket.1 + 1)),
        }
    }

    /// Returns the position of a key, which is probably in this bucket.
    fn position(&self, key: &[u8]) -> Position {
        let base = self.part.base();
        match base.view_within(self.bucket, key) {
            Some(view) => (self.bucket, view),
            None => {
                let site = base.locate(key, &mut Untraced);
                (site.bucket_key(), site.view)
            }
        }
    }
}
