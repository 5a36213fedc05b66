//! The buckets of a filter, in pages that clones share until one of them writes.
//! ```text
//! bucket  ─┬─ high bits ──> page table ──> page (shared, reference-counted)
//!          └─ low bits  ──> bits of the page, buckets packed without gaps
//! ```
//! All unwritten pages are the same page, so an empty filter has a page table and one page.
//!
//! Invariant: a page that another clone holds is never written; it is copied.

use std::sync::Arc;

use trommel_filters::Trace;
use trommel_filters::bits::simd::prefetch;

use super::symbol::BucketBits;

/// The maximum size of a bucket in bits: with up to seven bits before it, it fits into one read of
/// sixteen bytes.
pub(super) const BUCKET_BITS_MAX: u32 = 120;

/// Buckets up to this size fit into one read of eight bytes.
const SHORT_BUCKET_BITS_MAX: u32 = 57;

/// The maximum bytes of buckets in a page. A flush of many keys writes to all pages, and copies
/// less often if they are large. A flush of few keys copies a page for each key.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// Padding, as a read of the last bucket may reach past it.
const PADDING: usize = 16;

/// Buckets by number.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// Each clone has its own table, so writing to it needs no check whether it is shared.
    table: Box<[Arc<[u8]>]>,
    bucket_bits: u32,
    /// Binary logarithm of the buckets of a page.
    page_shift: u32,
}

impl Pages {
    /// Zeroed buckets, in pages of at most `2^shift_max` of them. Requires: buckets of 1 to
    /// [`BUCKET_BITS_MAX`] bits.
    pub(super) fn new(buckets: usize, shift_max: u32, bucket_bits: u32) -> Self {
        assert!((1..=BUCKET_BITS_MAX).contains(&bucket_bits), "buckets of {bucket_bits} bits");
        let page_shift = (8 * PAGE_BYTES_MAX / bucket_bits as usize).ilog2().min(shift_max);
        let page_bytes = ((bucket_bits as usize) << page_shift).div_ceil(8) + PADDING;
        let blank: Arc<[u8]> = vec![0; page_bytes].into();
        let table = vec![blank; buckets.div_ceil(1 << page_shift)].into();
        Pages { table, bucket_bits, page_shift }
    }

    /// Returns the page of a bucket, its first byte, and the bits before it in that byte.
    #[inline(always)]
    fn place(&self, bucket: u32) -> (usize, usize, u32) {
        let nth = bucket & ((1 << self.page_shift) - 1);
        let bit = nth * self.bucket_bits;
        ((bucket >> self.page_shift) as usize, (bit / 8) as usize, bit % 8)
    }

    fn mask<B: BucketBits>(&self) -> B {
        B::low_of(u128::MAX) >> (B::BITS - self.bucket_bits)
    }

    /// Prefetches a bucket.
    #[inline(always)]
    pub(super) fn prefetch(&self, bucket: u32) {
        let (page, byte, _) = self.place(bucket);
        prefetch(&self.table[page], byte);
    }

    /// Returns the bytes from a bucket's first one on, and the number of bits before the bucket.
    #[inline(always)]
    fn bytes<T: Trace>(&self, bucket: u32, trace: &mut T) -> (&[u8], u32) {
        let (page, byte, shift) = self.place(bucket);
        let entry = &self.table[page];
        trace.touch(std::ptr::from_ref(entry) as usize, size_of_val(entry));
        let bytes = &entry[byte..];
        trace.touch(bytes.as_ptr() as usize, (shift + self.bucket_bits).div_ceil(8) as usize);
        (bytes, shift)
    }

    /// Whether buckets are so short that a `u64` holds one at any bit offset.
    #[inline(always)]
    pub(super) fn are_words(&self) -> bool {
        self.bucket_bits <= SHORT_BUCKET_BITS_MAX
    }

    /// Reads the bits of a bucket.
    #[inline(always)]
    pub(super) fn read<T: Trace>(&self, bucket: u32, trace: &mut T) -> u128 {
        match self.are_words() {
            true => u128::from(self.read_as::<u64, T>(bucket, trace)),
            false => self.read_as(bucket, trace),
        }
    }

    /// Same as `read`, as another type. Requires: for `u64`, buckets are words.
    #[inline(always)]
    pub(super) fn read_as<B: BucketBits, T: Trace>(&self, bucket: u32, trace: &mut T) -> B {
        let (bytes, shift) = self.bytes(bucket, trace);
        B::read(bytes) >> shift & self.mask::<B>()
    }

    /// Writes a bucket. Requires: `value` has no more bits than a bucket.
    #[inline(always)]
    pub(super) fn write(&mut self, bucket: u32, value: u128) {
        match self.are_words() {
            true => self.write_as(bucket, value as u64),
            false => self.write_as(bucket, value),
        }
    }

    /// Same as `write`, from another type. Requires: for `u64`, buckets are words.
    #[inline(always)]
    pub(super) fn write_as<B: BucketBits>(&mut self, bucket: u32, value: B) {
        let (mask, (page, byte, shift)) = (self.mask::<B>(), self.place(bucket));
        debug_assert!(value & mask == value, "{value:x} has more than {} bits", self.bucket_bits);
        let bytes = &mut self.own(page)[byte..];
        B::change(bytes, |bits| bits & !(mask << shift) | value << shift);
    }

    /// Returns a page to write to, copied if another clone holds it. (`Arc::make_mut` would be a
    /// call.)
    #[inline(always)]
    fn own(&mut self, page: usize) -> &mut [u8] {
        let page = &mut self.table[page];
        if Arc::strong_count(page) > 1 {
            copy(page);
        }
        Arc::get_mut(page).expect("no other clone holds it")
    }

    /// The size of the page table and all pages in bytes, shared or not.
    pub(super) fn size_bytes(&self) -> usize {
        let mut pages: Vec<_> = self.table.iter().map(|page| page.as_ptr()).collect();
        pages.sort_unstable();
        pages.dedup();
        size_of_val(&*self.table) + pages.len() * self.table.first().map_or(0, |page| page.len())
    }

    /// The number of pages that differ from those of `other`.
    #[cfg(test)]
    pub(super) fn copied_since(&self, other: &Pages) -> usize {
        self.table.iter().zip(&*other.table).filter(|(own, old)| !Arc::ptr_eq(own, old)).count()
    }
}

#[cold]
#[inline(never)]
fn copy(page: &mut Arc<[u8]>) {
    *page = Arc::from(&page[..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::Untraced;
    use trommel_filters::hash::scattered;

    #[test]
    fn what_was_written_is_read_and_neighbours_stay() {
        const BUCKETS: u32 = 3000;
        for bucket_bits in [1, 8, 27, 40, 57, 58, 64, 99, 120] {
            let mut pages = Pages::new(BUCKETS as usize, 12, bucket_bits);
            let value = |bucket: u32, round: u64| {
                let wide = u128::from(scattered(u64::from(bucket) + round)) * 0x1_0001_0001_0001;
                wide & (u128::MAX >> (128 - bucket_bits))
            };
            for round in [0, 1 << 40] {
                let blank = pages.clone();
                (0..BUCKETS).for_each(|bucket| pages.write(bucket, value(bucket, round)));
                for bucket in 0..BUCKETS {
                    let read = pages.read(bucket, &mut Untraced);
                    assert_eq!(read, value(bucket, round));
                    if pages.are_words() {
                        assert_eq!(pages.read_as::<u64, _>(bucket, &mut Untraced), read as u64);
                    }
                    let before = if round == 0 { 0 } else { value(bucket, 0) };
                    assert_eq!(blank.read(bucket, &mut Untraced), before);
                }
            }
        }
    }

    #[test]
    fn a_clone_copies_only_the_pages_that_are_written() {
        let mut pages = Pages::new(100_000, 31, 40);
        pages.write(5, 1);
        let old = pages.clone();
        pages.write(6, 2);
        pages.write(7, 2);
        pages.write(90_000, 3);
        assert_eq!(pages.copied_since(&old), 2);
        assert_eq!(old.read(90_000, &mut Untraced), 0);
        let table = size_of_val(&*old.table);
        let sizes = [old.size_bytes(), pages.size_bytes()].map(|bytes| bytes - table);
        let page_bytes = old.table[0].len();
        assert_eq!(sizes, [2, 3].map(|pages| pages * page_bytes), "the blank one is one");
    }
}
