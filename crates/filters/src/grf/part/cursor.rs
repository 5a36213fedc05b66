//! Goes through a part's entries in key order, forward or backward, each with a bound on its keys.
//! ```text
//! bucket by bucket:  cells of the base, old entries, young entries: three sorted stretches
//! forward            the nearest of their next ones, if its least view is at most the view of the
//!                    current key, or if its bucket lies before
//! backward           the same with greatest views, mirrored
//! quiet              keys up to some word need nothing of it: one comparison tells most of a long
//!                    scan's keys
//! ```
//! Invariant: for each key of the part within the cursor's range, its code is given at or before
//! the key itself, if it is wanted.

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
    /// The entries that may have keys from `from` on, in key order.
    pub fn cursor(&self, from: &[u8]) -> Cursor {
        self.cursor_on(Some(from))
    }

    /// The entries that may have keys up to `from` (None: up to the end), in reverse key order.
    pub fn cursor_back(&self, from: Option<&[u8]>) -> CursorBack {
        self.cursor_on(from)
    }

    /// Either of both; `from` None: from the end that is first on the way.
    pub fn cursor_on<const BACK: bool>(&self, from: Option<&[u8]>) -> Cursor<BACK> {
        Cursor::new(self.clone(), from.or((!BACK).then_some(&[])))
    }
}

/// A key's bucket and its view in that bucket's list.
type Position = ((usize, usize), u64);

/// The codes of the entries from some key on, in key order; `BACK`: up to some key, in reverse.
pub struct Cursor<const BACK: bool = false> {
    part: Part,
    bucket: (usize, usize),
    views: BucketViews,
    /// The bucket's keys in the base that were not given yet, by their rank.
    keys: Range<usize>,
    entries: BucketEntries<BACK>,
    /// What was found out of the next one of each source.
    heads: [Option<Head>; SOURCES.len()],
    muted: Option<Span>,
    /// Forward, nothing is due for keys with a lesser word than this; backward, with a greater one.
    quiet: Option<u64>,
}

/// The codes of the entries up to some key, in reverse key order.
pub type CursorBack = Cursor<true>;

/// What an entry is one of.
#[derive(Clone, Copy)]
enum Source {
    Keys,
    /// Of a tier.
    Entries(usize),
}

const SOURCES: [Source; 3] = [Source::Keys, Source::Entries(OLD), Source::Entries(YOUNG)];

/// The next one of a source: the view at which it begins to be due, and its code.
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

    /// Gives `code` no more: what it stands for is known. One code at a time.
    pub fn mute(&mut self, code: Span) {
        self.muted = Some(code);
    }

    /// Goes to the bucket of a key, and there to the first entries on its way. Without a key, it
    /// goes to the last bucket.
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

    /// Goes to a bucket. Without `keys`, those of the base are not wanted.
    fn read(&mut self, bucket: (usize, usize), keys: bool) {
        (self.bucket, self.heads) = (bucket, [None; SOURCES.len()]);
        self.views.read(self.part.base(), bucket);
        self.keys = if keys { 0..self.part.base().key_count(bucket) } else { 0..0 };
        self.entries.read((self.part.overlay(), self.part.base()), bucket, None);
    }

    /// Whether nothing is due at `key`, as one comparison tells. False: it has to be looked at.
    #[inline]
    fn is_quiet(&self, key: &[u8]) -> bool {
        let Some(quiet) = self.quiet else { return false };
        let word = self.part.base().directory.word(key);
        word.is_ok_and(|word| if BACK { word > quiet } else { word < quiet })
    }

    /// The code of the next wanted entry, if a key of it may be at `key` or come before it on the
    /// way. `key` None: no bound. Gives None if no such entry is left with a key from the cursor's
    /// start up to `key`. A later call with a key further on goes on. What is not wanted once is
    /// passed over, and not given later.
    pub fn next_due(&mut self, key: Option<&[u8]>, wanted: impl Fn(Span) -> bool) -> Option<Span> {
        let Some((text, key)) = self.part.base().text.as_deref().zip(key) else {
            return self.next_due_at(key, wanted);
        };
        let mut code = KeyCode::new();
        let code = text.encode(key, &mut code);
        self.next_due_at(Some(code), wanted)
    }

    /// As [`Cursor::next_due`], for a code if there is a model of text.
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

    /// The source whose next one is nearest, and that one.
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

    /// Looks at the next one of a source that is wanted.
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

    /// Whether what begins to be due at a view of this bucket is due at a position.
    fn is_due(&self, view: u64, (bucket, limit): Position) -> bool {
        Self::is_before(self.bucket, bucket)
            || self.bucket == bucket && if BACK { view >= limit } else { view <= limit }
    }

    /// Whether one bucket comes before another on the way.
    fn is_before(one: (usize, usize), other: (usize, usize)) -> bool {
        if BACK { one > other } else { one < other }
    }

    fn bucket_on(&self) -> Option<(usize, usize)> {
        let base = self.part.base();
        if BACK { base.bucket_before(self.bucket) } else { base.bucket_after(self.bucket) }
    }

    /// The word up to which nothing is due, where the nearest of what is left in the bucket begins
    /// to be so at a view.
    fn quiet_until(&self, nearest: Option<u64>) -> Option<u64> {
        let base = self.part.base();
        match nearest {
            // Keys that lack the group's prefix are above all views.
            Some(u64::MAX) if BACK => None,
            Some(view) => base.word_at_view(self.bucket.0, view),
            None if BACK => base.word_at_bucket(self.bucket),
            None => base.word_at_bucket((self.bucket.0, self.bucket.1 + 1)),
        }
    }

    /// The position of a key, which probably lies in this bucket.
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
