//! A filter of one's own: a kind, a builder, answers. The store asks it as it asks its own ones.
//! ```text
//! cargo run -p trommel --example own_filter
//! ```
//! The filter knows which first bytes a table's keys have: 256 bits, for points and for ranges.
//! Invariant: the bit of each key's first byte is set. (An empty key has the bit of 0.)

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::filters::{
    Corrupt, FilterKind, HashedKey, KeyRange, OutOfOrder, TableFilter, TableFilterBuilder,
    TableKind, Trace,
};
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options};

/// The name is what files have; without a tag nobody need give out a number.
const FIRST_BYTES: &dyn FilterKind = &TableKind::new(
    "first-bytes",
    |_options| Box::new(FirstBytesBuilder([0; 32])),
    |bytes| match bytes.len() {
        32 => Ok(Box::new(FirstBytes(bytes))),
        _ => Err(Corrupt { at: 0, what: "32 bytes" }),
    },
)
.with_ranges();

struct FirstBytesBuilder([u8; 32]);

impl TableFilterBuilder for FirstBytesBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        let first = first_byte(key);
        self.0[first / 8] |= 1 << (first % 8);
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// Over bytes that a builder made.
struct FirstBytes<B>(B);

impl<B: AsRef<[u8]>> FirstBytes<B> {
    fn has(&self, first: usize) -> bool {
        self.0.as_ref()[first / 8] >> (first % 8) & 1 == 1
    }
}

impl<B: AsRef<[u8]>> TableFilter for FirstBytes<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        FIRST_BYTES
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        trace.touch_bytes(self.0.as_ref());
        self.has(first_byte(key.key()))
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        trace.touch_bytes(self.0.as_ref());
        let last = range.upper().map_or(255, first_byte);
        (first_byte(range.lower())..=last).any(|first| self.has(first))
    }
}

fn first_byte(key: &[u8]) -> usize {
    key.first().copied().map_or(0, usize::from)
}

fn open(disk: &Memory, guard: GuardKind) -> Db {
    let options = Options::new().guard(guard).background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

fn main() {
    // Known by its name from now on, on the command line and in files.
    trommel::filters::register_filter(FIRST_BYTES).expect("nobody else has the name");
    let guard: GuardKind = "first-bytes".parse().expect("it is registered");
    let disk = Memory::new();
    let db = open(&disk, guard);
    for key in ["drum", "grain", "sieve"] {
        db.put(key, "in the table").expect("puts");
    }
    db.flush().expect("flushes");
    assert!(db.get("grain").expect("reads").is_some());
    assert!(db.get("husk").expect("reads").is_none());
    assert!(db.range("e".."g").next().is_none());
    let asked = db.stats().expect("open").point;
    println!("{} gets, {} runs read in vain", asked.queries, asked.false_positives);
    drop(db);
    // The same store under another guard: it is read without the filter.
    let db = open(&disk, GuardKind::Open);
    assert!(db.get("grain").expect("reads").is_some());
    println!(
        "filters that nobody has registered: {:?}",
        db.stats().expect("open").guard.unregistered
    );
}
