//! Filters of three cells a key: binary fuse and xor.
//! ```text
//! hash ──seed──> mix ─┬─> three places: a < b < c                    (graph.rs: what differs)
//!                     └─> fingerprint = cell[a] ^ cell[b] ^ cell[c]  (peel.rs: how to fill them)
//!
//! bytes   | cells | size u32 | wide u32 | shape u8 | cell bits u8 |
//!         | check u32 | kind u16 | version u8 | seed u8 |
//! ```
//! A key that was not added finds three cells whose sum is anything: it is taken for one with a
//! chance of 2^-bits. In fuse filters, the first cells may have one bit more than the others
//! (`cells.rs`). A key's fingerprint has as many bits as its last cell, so the average bits of a
//! cell can be any number.
//!
//! Invariant: for every key that was added, the sum of its cells is its fingerprint. No cells:
//! nothing was added.

mod cells;
mod graph;
mod peel;

use std::marker::PhantomData;

use cells::{Cells, READ_BYTES};
use trommel_filters::hash::{HashUse, grouped, hash_key, remix, scattered};
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, OutOfOrder, RateLaw, Reader, Signature, TableFilter,
    TableFilterBuilder, TableKind, Trace, Untraced, Writer, payload_bits,
};

use graph::{Fuse, Graph, Xored};

/// `binary-fuse`: a binary fuse filter of three cells a key.
pub const BINARY_FUSE: &dyn FilterKind = &TableKind::new(
    "binary-fuse",
    |options| Box::new(BinaryFuseBuilder::new(options.bits_per_key)),
    |bytes| Ok(Box::new(BinaryFuse::read(bytes)?)),
)
.with_tag(Fuse::TAG)
.with_rate_law(RateLaw::of_fingerprints(1.125));

/// `xor`: an xor filter of three cells a key.
pub const XOR: &dyn FilterKind = &TableKind::new(
    "xor",
    |options| Box::new(XorBuilder::new(options.bits_per_key)),
    |bytes| Ok(Box::new(Xor::read(bytes)?)),
)
.with_tag(Xored::TAG)
.with_rate_law(RateLaw::of_fingerprints(1.23));

/// Fields: u32 size, u32 wide, u8 shape, u8 cell bits.
const FIELDS_BYTES: usize = 4 + 4 + 1 + 1;
const TRAILER_BYTES: usize = FIELDS_BYTES + Signature::BYTES;
const _: () = assert!(TRAILER_BYTES >= READ_BYTES, "what follows the cells");
const VERSION: u8 = 1;
/// Seeds that are tried before the filter says "maybe" to everything. One try in some fails.
const TRIES: u8 = 200;

/// A binary fuse filter over checked bytes: 1.125 cells per key, which lie near each other.
pub type BinaryFuse<B> = ThreeCells<Fuse, B>;
/// Collects the hashes of a table's keys, then makes the bytes of a binary fuse filter.
pub type BinaryFuseBuilder = ThreeCellsBuilder<Fuse>;
/// An xor filter over checked bytes: 1.23 cells per key, anywhere.
pub type Xor<B> = ThreeCells<Xored, B>;
/// Collects the hashes of a table's keys, then makes the bytes of an xor filter.
pub type XorBuilder = ThreeCellsBuilder<Xored>;

/// Collects the hashes of a table's keys, then makes the filter's bytes.
#[derive(Clone, Debug)]
pub struct ThreeCellsBuilder<G> {
    hashes: Vec<u64>,
    bits_per_key: f64,
    graph: PhantomData<G>,
}

impl<G: Graph> ThreeCellsBuilder<G> {
    /// No key yet. More bits per key (a fraction is fine; at most 32 in a cell): more memory, fewer
    /// false positives. Requires: a number.
    pub fn new(bits_per_key: f64) -> Self {
        ThreeCellsBuilder { hashes: Vec::new(), bits_per_key, graph: PhantomData }
    }

    /// Adds a key by its hash for [`HashUse::Table`].
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// The false positive rate that theory promises for so many bits per key of a large table.
    pub fn expected_rate(bits_per_key: f64) -> f64 {
        let cells = G::cells(1 << 20, bits_per_key * (1 << 20) as f64 / G::CELLS_PER_KEY);
        let narrow = 0.5f64.powi(cells.bits() as i32);
        narrow * (1.0 - cells.wide() as f64 / f64::from(1 << 20) / 2.0)
    }

    fn image(&self, graph: G, cells: Cells, seed: u8, mut bytes: Vec<u8>) -> Vec<u8> {
        let (size, shape) = graph.encode();
        let mut fields = Writer::new();
        fields.u32(size);
        fields.u32(u32::try_from(cells.wide()).expect("no more than cells"));
        fields.u8(shape);
        fields.u8(cells.bits() as u8);
        bytes.truncate(cells.size_bytes() as usize);
        Signature { tag: G::TAG, version: VERSION, parameter: seed }
            .sign(fields.as_slice(), &mut bytes);
        bytes
    }

    /// The bytes with the cells of these keys filled, and whatever follows. None: not with this
    /// seed.
    fn filled(hashes: &[u64], seed: u8, graph: G, cells: &Cells) -> Option<Vec<u8>> {
        let key = scattered(seed.into());
        let mut mixed = grouped(hashes, |hash| remix(hash, key));
        mixed.iter_mut().for_each(|hash| *hash = remix(*hash, key));
        let peeled = peel::peel(&graph, mixed)?;
        let mut bytes = vec![0; cells.size_bytes() as usize + TRAILER_BYTES];
        peeled.fill(&graph, cells, &mut bytes);
        Some(bytes)
    }
}

/// What the sum of a key's cells is to be, in the low bits.
#[inline(always)]
fn fingerprint(mix: u64) -> u64 {
    remix(mix, 0x632b_e59b_d9b4_e019)
}

impl<G: Graph> TableFilterBuilder for ThreeCellsBuilder<G> {
    /// Never fails: the order of keys does not matter here.
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.add_hash(hash_key(key, HashUse::Table));
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        for seed in 0..TRIES {
            let keys = self.hashes.len();
            let graph = G::for_keys(keys, seed);
            let payload = payload_bits(keys, self.bits_per_key, TRAILER_BYTES);
            let cells = G::cells(graph.cell_count(), payload.max(graph.least_bits(keys, payload)));
            if let Some(bytes) = Self::filled(&self.hashes, seed, graph, &cells) {
                return self.image(graph, cells, seed, bytes);
            }
            // Equal hashes never get cells of their own. They are so rare that they are looked for
            // only now.
            self.hashes.sort_unstable();
            self.hashes.dedup();
        }
        let graph = G::for_keys(self.hashes.len(), 0);
        let all_maybe = Cells::of_average(graph.cell_count(), 0.0);
        self.image(graph, all_maybe, 0, Vec::new())
    }
}

/// A filter of three cells a key over checked bytes.
#[derive(Clone, Debug)]
pub struct ThreeCells<G, B> {
    bytes: B,
    graph: G,
    cells: Cells,
    seed: u64,
}

impl<G: Graph, B: AsRef<[u8]>> ThreeCells<G, B> {
    /// Checks bytes that the builder made. What lies in the cells is not checked, for any cells are
    /// a filter: the owner of the bytes keeps a checksum.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let image = bytes.as_ref();
        let (fields, seed) = Signature::fields(image, (G::TAG, VERSION), FIELDS_BYTES)?;
        let at = image.len() - TRAILER_BYTES;
        let mut input = Reader::new(fields);
        let (size, wide, shape) = (input.u32()?, input.u32()? as usize, input.u8()?);
        let bits = u32::from(input.u8()?);
        let graph = G::decode(size, shape).ok_or(Corrupt { at, what: "a shape of cells" })?;
        let cells = Cells::new(graph.cell_count(), bits, wide);
        let cells = cells.filter(|cells| cells.size_bytes() == at as u64);
        let cells = cells.ok_or(Corrupt { at, what: "as many cells as there are bytes for" })?;
        Ok(ThreeCells { bytes, graph, cells, seed: scattered(seed.into()) })
    }

    /// The bits of a cell, on average.
    pub fn cell_bits(&self) -> f64 {
        let count = self.graph.cell_count().max(1);
        f64::from(self.cells.bits()) + self.cells.wide() as f64 / count as f64
    }

    /// False: no key with this hash for [`HashUse::Table`] was added. True: one may have been.
    #[inline]
    pub fn may_contain_hash(&self, hash: u64) -> bool {
        self.probe(hash, &mut Untraced)
    }

    #[inline]
    fn probe<T: Trace>(&self, hash: u64, trace: &mut T) -> bool {
        if self.graph.is_empty() {
            return false; // no cells, no keys
        }
        let (bytes, mix) = (self.bytes.as_ref(), remix(hash, self.seed));
        self.cells.sum_to(bytes, self.graph.places(mix), fingerprint(mix), trace)
    }
}

impl<G: Graph, B: AsRef<[u8]>> TableFilter for ThreeCells<G, B> {
    fn kind(&self) -> &'static dyn FilterKind {
        G::KIND
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.probe(key.hash(), trace)
    }
}

#[cfg(test)]
mod tests;
