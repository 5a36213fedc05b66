//! Filters with three cells per key: binary fuse and xor.
//! ```text
//! hash ──seed──> mix ─┬─> three places: a < b < c                    (graph.rs: the difference)
//!                     └─> fingerprint = cell[a] ^ cell[b] ^ cell[c]  (peel.rs: fills the cells)
//!
//! bytes   | cells | size u32 | wide u32 | shape u8 | cell bits u8 |
//!         | check u32 | kind u16 | version u8 | seed u8 |
//! ```
//! The cells of an absent key have a random exclusive or, so it is a false positive with
//! probability 2^-bits. In fuse filters, the first cells may have one bit more than the others
//! (`cells.rs`). A key's fingerprint has as many bits as its last cell, so the average cell size
//! can be any number of bits.
//!
//! Invariant: for every added key, the exclusive or of its cells is its fingerprint. No cells: no
//! key was added.

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

/// `binary-fuse`: a binary fuse filter with three cells per key.
pub const BINARY_FUSE: &dyn FilterKind = &TableKind::new(
    "binary-fuse",
    |options| Box::new(BinaryFuseBuilder::new(options.bits_per_key)),
    |bytes| Ok(Box::new(BinaryFuse::read(bytes)?)),
)
.with_tag(Fuse::TAG)
.with_rate_law(RateLaw::of_fingerprints(1.125));

/// `xor`: an xor filter with three cells per key.
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
/// The number of seeds tried before the filter says "maybe" to everything. A try fails now and
/// then.
const TRIES: u8 = 200;

/// A binary fuse filter over checked bytes: 1.125 cells per key, close to each other.
pub type BinaryFuse<B> = ThreeCells<Fuse, B>;
/// Collects the hashes of a table's keys and builds the bytes of a binary fuse filter.
pub type BinaryFuseBuilder = ThreeCellsBuilder<Fuse>;
/// An xor filter over checked bytes: 1.23 cells per key, anywhere.
pub type Xor<B> = ThreeCells<Xored, B>;
/// Collects the hashes of a table's keys and builds the bytes of an xor filter.
pub type XorBuilder = ThreeCellsBuilder<Xored>;

/// Collects the hashes of a table's keys and builds the filter's bytes.
#[derive(Clone, Debug)]
pub struct ThreeCellsBuilder<G> {
    hashes: Vec<u64>,
    bits_per_key: f64,
    graph: PhantomData<G>,
}

impl<G: Graph> ThreeCellsBuilder<G> {
    /// An empty builder. `bits_per_key` may be a fraction; a cell has at most 32 bits. More: more
    /// memory, fewer false positives.
    ///
    /// # Panics
    /// [`finish`](TableFilterBuilder::finish) panics if it is not a number.
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

    /// Returns the theoretical false positive rate at `bits_per_key`, for a large table.
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

    /// Returns the filled cells of these keys, with room for the trailer. None: this seed fails.
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

/// Returns the fingerprint of a key, in the low bits.
#[inline(always)]
fn fingerprint(mix: u64) -> u64 {
    remix(mix, 0x632b_e59b_d9b4_e019)
}

impl<G: Graph> TableFilterBuilder for ThreeCellsBuilder<G> {
    /// Adds a key. Never fails: the order of keys does not matter.
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
            // Equal hashes make every try fail. They are so rare that they are removed only now.
            self.hashes.sort_unstable();
            self.hashes.dedup();
        }
        let graph = G::for_keys(self.hashes.len(), 0);
        let all_maybe = Cells::of_average(graph.cell_count(), 0.0);
        self.image(graph, all_maybe, 0, Vec::new())
    }
}

/// A filter with three cells per key over checked bytes.
#[derive(Clone, Debug)]
pub struct ThreeCells<G, B> {
    bytes: B,
    graph: G,
    cells: Cells,
    seed: u64,
}

impl<G: Graph, B: AsRef<[u8]>> ThreeCells<G, B> {
    /// Checks bytes that the builder made. It does not check the cells, since any bits form a
    /// filter: the owner of the bytes keeps a checksum.
    ///
    /// # Errors
    /// The trailer is damaged or belongs to another kind, or the length is wrong.
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

    /// The average number of bits per cell.
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
