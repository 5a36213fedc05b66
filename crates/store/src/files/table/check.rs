//! Verifies a table: its entries must match its index, its properties and its filters.
//! ```text
//! block by block:  order, bounds, separators, filter
//! end:             counts against properties, the end of the file
//! ```
//! Invariant: it visits every entry once, in the order of the file.

use trommel_filters::{HashUse, KeyRange, LowerBound, UpperBound, hash_key};

use super::filter_section::FilterSection;
use super::{Table, TableFilter};
use crate::entries::block::Block;
use crate::entries::block_cursor::BlockCursor;
use crate::entries::cursor::Reads;
use crate::entries::entry::{Entry, Sequence, order};
use crate::entries::expiry::EXPIRY_BYTES;
use crate::entries::keys::successor;
use crate::error;
use crate::files::table::format::{Properties, is_filter_tag};
use crate::files::table::named_values::NamedValues;

impl Table {
    /// Reads the whole file again. Checks every checksum, the order of entries, the index and the
    /// counts, and that no filter denies a key.
    pub(crate) fn verify(&self) -> error::Result<()> {
        // Filters come last: damage to one must not hide damage to entries.
        let others = self.sections.iter().filter(|section| !is_filter_tag(section.tag));
        for section in others {
            self.opened.section(section)?;
        }
        let (filters, damage) = self.load_filters();
        let (hashes, wrong_hashes) = match self.key_hashes() {
            Ok(hashes) => (hashes, Ok(())),
            Err(wrong) => (None, Err(wrong)),
        };
        let mut check = Check::new(self.properties(), filters, hashes);
        for number in 0..self.block_count() {
            let block = self.block_past_cache(number, &mut Reads::default())?;
            let (offset, _) = self.index.block(number);
            let wrong = |what| self.opened.corrupt(offset, format!("data block {number}: {what}"));
            check.block(self, number, block).map_err(wrong)?;
        }
        check.end(self).map_err(|what| self.opened.corrupt(0, what))?;
        self.check_end_of_file()?;
        wrong_hashes.and(damage)
    }

    /// Loads all readable filters, in use or not. Also returns the error of the first unreadable
    /// one.
    fn load_filters(&self) -> (Vec<TableFilter>, error::Result<()>) {
        let (mut filters, mut damage) = (Vec::new(), Ok(()));
        for at in FilterSection::all(&self.opened, &self.sections) {
            let loaded = match at.kind() {
                Some(kind) => at.load(&self.opened, kind).map(|filter| filters.push(filter)),
                None => self.opened.section(&at.section).map(drop),
            };
            damage = damage.and(loaded);
        }
        (filters, damage)
    }

    /// Checks that the file's end is unchanged since the opening. The next opening finds everything
    /// else from there.
    pub(super) fn check_end_of_file(&self) -> error::Result<()> {
        let opened = &self.opened;
        let size = opened.bytes.size().map_err(|error| opened.failed(0, error))?;
        if size != self.size {
            let what = format!("it has {size} bytes, and had {} when it was opened", self.size);
            return Err(opened.corrupt(size.min(self.size), what));
        }
        if opened.sections(size)? != self.sections {
            return Err(opened.corrupt(size, "its sections are not those that it was opened with"));
        }
        Ok(())
    }
}

/// What was seen so far.
pub(super) struct Check {
    filters: Vec<TableFilter>,
    seen: Properties,
    values: NamedValues,
    last_sequence: Sequence,
    /// Hashes of the keys still to come, if the table has hashes.
    hashes: Option<std::vec::IntoIter<u64>>,
}

type Wrong = &'static str;

fn require(holds: bool, what: Wrong) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(what) }
}

/// Whether each key shares its whole common prefix with the previous key, or nothing. Searches rely
/// on that; otherwise they would miss entries that a scan finds.
fn shares_all(block: &Block) -> bool {
    let (mut key, mut place) = (Vec::new(), block.first());
    while let Some(entry) = block.entry_at(place) {
        let end = block.bytes(entry.key_at..entry.next.head);
        let could_share_more = key.get(entry.shared).is_some_and(|next| end.first() == Some(next));
        if entry.shared > 0 && could_share_more {
            return false;
        }
        key.truncate(entry.shared);
        key.extend_from_slice(end);
        place = entry.next;
    }
    true
}

/// Whether a filter never denies a key. Asks it for the key, for its count, for ranges around it,
/// and for bounds on both sides. `before` is the previous key of the table, if there is one.
fn knows(filter: &TableFilter, before: Option<&[u8]>, key: &[u8]) -> bool {
    let below = just_below(key).filter(|below| before.is_none_or(|before| before < &below[..]));
    let (from, after) = (before.map(successor), successor(key));
    let lowers = [Some(key), below.as_deref(), from.as_deref()];
    let overlaps = |lower: &[u8], upper: &[u8]| {
        KeyRange::new(lower, Some(upper)).is_none_or(|range| filter.may_overlap(&range))
    };
    filter.may_contain(key)
        && filter.count(&KeyRange::of_key(key)).is_none_or(|count| count.most > 0)
        && lowers.into_iter().flatten().all(|lower| {
            goes_on(filter, lower, key) && overlaps(lower, key) && overlaps(lower, &after)
        })
        && goes_back(filter, key, key)
        && goes_back(filter, &after, key)
}

/// Returns a key slightly less than `key`. `None`: there is none.
fn just_below(key: &[u8]) -> Option<Vec<u8>> {
    let (&last, head) = key.split_last()?;
    let less = last.checked_sub(1).map(|less| [less, 0xff]);
    Some([head, less.as_ref().map_or(&[][..], |end| &end[..])].concat())
}

/// Whether the filter's lower bound for `lower` admits `key`, the table's first key from `lower`
/// on.
fn goes_on(filter: &TableFilter, lower: &[u8], key: &[u8]) -> bool {
    match filter.lower_bound(lower) {
        None => true,
        Some(LowerBound::End) => false,
        Some(LowerBound::From { key: bound, .. }) => lower <= &bound[..] && &bound[..] <= key,
    }
}

/// Whether the filter's upper bound for `upper` admits `key`.
fn goes_back(filter: &TableFilter, upper: &[u8], key: &[u8]) -> bool {
    match filter.upper_bound(upper) {
        None => true,
        Some(UpperBound::Start) => false,
        Some(UpperBound::Before { end, .. }) => key < &end[..],
    }
}

impl Check {
    /// Begins a check. Every key must be known to all `filters`, and have its hash among `hashes`.
    pub(super) fn new(
        said: &Properties,
        filters: Vec<TableFilter>,
        hashes: Option<Vec<u64>>,
    ) -> Self {
        let seen = Properties::of_file(said.file, said.keyspace);
        let hashes = hashes.map(Vec::into_iter);
        let values = NamedValues::default();
        Check { filters, seen, values, last_sequence: Sequence::default(), hashes }
    }

    /// The last key so far.
    fn last_key(&self) -> Option<&[u8]> {
        (self.seen.entries > 0).then_some(&self.seen.last_key[..])
    }

    pub(super) fn block(
        &mut self,
        table: &Table,
        number: usize,
        block: Block,
    ) -> Result<(), Wrong> {
        require(shares_all(&block), "a key that shares less than it has in common")?;
        let mut cursor = BlockCursor::new(block);
        cursor.seek_first();
        if let Some(first) = cursor.entry() {
            self.block_start(table, number, first.key)?;
        }
        while let Some(entry) = cursor.entry() {
            self.entry(table, number, &entry)?;
            cursor.next();
        }
        Ok(())
    }

    /// A key must be found in the block where it begins, and in those that continue it.
    fn block_start(&self, table: &Table, number: usize, key: &[u8]) -> Result<(), Wrong> {
        let same_key = self.last_key() == Some(key);
        let continues = table.index.fences.continues(number, key);
        require(continues == same_key, "the index is wrong about a key over several blocks")
    }

    fn entry(&mut self, table: &Table, number: usize, entry: &Entry<'_>) -> Result<(), Wrong> {
        let &Entry { key, sequence, kind, value } = entry;
        let before = self.last_key();
        let follows = |before| order((before, self.last_sequence), (key, sequence)).is_lt();
        let in_order = before.is_none_or(follows);
        require(in_order, "entries that are out of order")?;
        let found_at = table.first_block_of(key);
        let continues = found_at < number && table.index.fences.continues(number, key);
        require(found_at == number || continues, "a key on the wrong side of a separator")?;
        let is_new_key = before != Some(key);
        if is_new_key {
            let known = self.filters.iter().all(|filter| knows(filter, before, key));
            require(known, "a key that the table's filter does not know")?;
        }
        let is_whole = !kind.has_expiry() || value.len() >= EXPIRY_BYTES;
        require(is_whole, "an expiry that is not whole")?;
        let (value, is_first) = (entry.value_ref().transpose(), before.is_none());
        let value = value.map_err(|_| "a reference to a value that cannot be")?;
        value.iter().for_each(|at| self.values.count(at));
        if is_first {
            self.seen.first_key = key.to_vec();
        }
        self.seen.count(entry);
        key.clone_into(&mut self.seen.last_key);
        self.last_sequence = sequence;
        let Some(hashes) = self.hashes.as_mut().filter(|_| is_new_key) else { return Ok(()) };
        let is_its_own = hashes.next() == Some(hash_key(key, HashUse::Chucky));
        require(is_its_own, "a hash that is not of its key")
    }

    pub(super) fn end(mut self, table: &Table) -> Result<(), Wrong> {
        self.seen.count_tombstones(table.tombstones());
        let same = self.seen == table.properties;
        require(same, "the entries are not those that the properties tell of")?;
        let same = self.values == *table.named_values();
        require(same, "the references are not those that the table tells of")?;
        let no_more = self.hashes.as_ref().is_none_or(|hashes| hashes.as_slice().is_empty());
        require(no_more, "hashes of keys that are not there")
    }
}
