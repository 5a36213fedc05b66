//! The block cache: blocks that were read lately, under one budget of bytes.
//! ```text
//! (file, offset) -> Block
//! ```
//! Invariant: a file number is never reused, so an entry never goes stale; entries of removed files
//! age out.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::block::Block;

type Place = (u64, u64);

#[derive(Clone)]
struct BlockBytes;

impl Weighter<Place, Block> for BlockBytes {
    fn weight(&self, _: &Place, block: &Block) -> u64 {
        block.size_bytes() as u64
    }
}

/// Blocks in memory, shared by all tables.
pub(crate) struct BlockCache {
    /// None: nothing is kept.
    blocks: Option<Cache<Place, Block, BlockBytes>>,
}

impl BlockCache {
    /// A guess of a block's size, to guess how many there will be.
    const BLOCK_BYTES: u64 = 4 << 10;
    /// The guess beyond which memory is not set aside at once.
    const BLOCKS_EXPECTED_MAX: u64 = 1 << 18;

    /// A cache of at most so many bytes; of none: no cache.
    pub(crate) fn new(bytes: u64) -> Self {
        let expected = (bytes / Self::BLOCK_BYTES).clamp(1, Self::BLOCKS_EXPECTED_MAX);
        let blocks = || Cache::with_weighter(expected as usize, bytes, BlockBytes);
        BlockCache { blocks: (bytes > 0).then(blocks) }
    }

    /// The block at this offset of this file. None: it is not here.
    #[inline]
    pub(crate) fn get(&self, file: u64, offset: u64) -> Option<Block> {
        self.blocks.as_ref()?.get(&(file, offset))
    }

    pub(crate) fn insert(&self, file: u64, offset: u64, block: Block) {
        if let Some(blocks) = &self.blocks {
            blocks.insert((file, offset), block);
        }
    }

    /// The bytes that are kept now.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, Cache::weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockBuilder;
    use crate::entry::{Entry, Kind, Sequence};

    fn block(value: &[u8]) -> Block {
        let mut builder = BlockBuilder::new();
        builder.add(&Entry { key: b"k", sequence: Sequence(1), kind: Kind::Put, value });
        Block::new(builder.finish()).unwrap()
    }

    #[test]
    fn blocks_are_kept_within_the_budget() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 0, block(b"a"));
        assert!(
            cache.get(1, 0).is_some() && cache.get(1, 1).is_none() && cache.get(2, 0).is_none()
        );
        for offset in 0..2_000 {
            cache.insert(3, offset, block(&[7; 1_000]));
        }
        assert!((1..=1 << 20).contains(&cache.size_bytes()), "{}", cache.size_bytes());
        assert!((0..2_000).any(|offset| cache.get(3, offset).is_some()));
    }

    #[test]
    fn no_budget_is_no_cache() {
        let cache = BlockCache::new(0);
        cache.insert(1, 0, block(b"a"));
        assert!(cache.get(1, 0).is_none() && cache.size_bytes() == 0);
    }
}
