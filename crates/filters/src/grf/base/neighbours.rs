//! Finds the places of several keys in one block, which is read once for all of them.

use crate::base::filter::Untraced;
use crate::bits::simd::fastest;
use crate::fingerprint::gap::GapBlock;
use crate::fingerprint::read_cells::ReadCells;
use crate::grf::base::{Base, Role, Site, Within, place_by_gaps};

/// Fewer keys search one by one: most searches end before the block does.
const KEYS_LEAST: usize = 3;

impl Base {
    /// Calls `give` with each site's payload and the place of its key. Requires: all sites are in
    /// one bucket.
    #[inline(always)]
    pub(crate) fn places_in_bucket<N: Copy>(
        &self,
        sites: &[(N, Site<'_>)],
        cells: &mut ReadCells,
        mut give: impl FnMut(N, u32),
    ) {
        let is_read =
            sites.len() >= KEYS_LEAST && sites.iter().any(|(_, site)| self.read_cells(site, cells));
        for (beside, site) in sites {
            let spot = match &site.within {
                Within::Gaps { extent, .. } | Within::Coded { extent, .. } if is_read => {
                    let find = |number| cells.find(number, extent.start);
                    place_by_gaps(site, Role::Point, extent, cells.count(), find)
                }
                _ => self.place(site, Role::Point, &mut Untraced),
            };
            give(*beside, spot.place());
        }
    }

    /// Reads the cells of a site's block. Returns false if it has none.
    #[inline(always)]
    fn read_cells(&self, site: &Site<'_>, cells: &mut ReadCells) -> bool {
        match &site.within {
            Within::Gaps { bytes, extent } => {
                let block = GapBlock::new(bytes);
                cells.clear();
                fastest(
                    #[inline(always)]
                    || block.for_each_bounds(extent.start, |start, last| cells.push(start, last)),
                );
                true
            }
            Within::Coded { block, extent } => {
                let block = block.read(self.point_bits);
                cells.clear();
                fastest(
                    #[inline(always)]
                    || block.for_each_bounds(extent.start, |start, last| cells.push(start, last)),
                );
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::base::shape::FlushNumber;
    use crate::fingerprint::Fingerprints;
    use crate::grf::GrfOptions;
    use crate::grf::part::builder::PartBuilder;

    fn sorted(count: u64, number: impl Fn(u64) -> u64) -> Vec<[u8; 8]> {
        let mut keys: Vec<_> = (0..count).map(|at| number(at).to_be_bytes()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    #[test]
    fn neighbours_have_the_places_that_each_has_alone() {
        let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let clustered = |at: u64| (at % 40) << 58 ^ spread(at) >> (20 + at % 40);
        // Ends of consecutive networks, some of which are missing.
        let networks = |at: u64| {
            let end = (spread(at) >> 40) % 3000;
            ((end / 2 + end % 2) << 8) - end % 2
        };
        let sets: [&dyn Fn(u64) -> u64; 3] = [&spread, &clustered, &networks];
        let kinds = [Fingerprints::Gap, Fingerprints::Coded, Fingerprints::Cell];
        for (numbers, fingerprints) in sets.iter().flat_map(|set| kinds.map(|kind| (set, kind))) {
            let options = GrfOptions { fingerprints, ..GrfOptions::default() };
            let mut builder = PartBuilder::new(&options);
            sorted(2000, numbers).iter().for_each(|key| builder.push(key));
            let part = builder.finish(FlushNumber(1));
            let base = part.base();
            let asked = sorted(9000, |at| numbers(at + 1500));
            let sites: Vec<_> =
                asked.iter().enumerate().map(|s| (s.0, base.locate(s.1, &mut Untraced))).collect();
            let (mut cells, mut together) = (ReadCells::default(), 0);
            for sites in sites.chunk_by(|(_, a), (_, b)| a.bucket_key() == b.bucket_key()) {
                together += usize::from(sites.len() >= KEYS_LEAST);
                base.places_in_bucket(sites, &mut cells, |at, place| {
                    let alone = base.place(&sites[at - sites[0].0].1, Role::Point, &mut Untraced);
                    assert_eq!(place, alone.place(), "{fingerprints:?}: {:?}", asked[at]);
                });
            }
            assert!(together > 20, "{together} blocks with several keys");
        }
    }
}
