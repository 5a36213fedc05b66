//! Level ids as whole numbers next to the fingerprints, as in SlimDB: the baseline for Chucky.
//! ```text
//! bucket  | id fingerprint | id fingerprint | id fingerprint | id fingerprint |
//! id: log2(slots) bits; fingerprint: the rest
//! ```
//! Ids count from the last slot on, so that an empty bucket is all zeros. Invariant: no bucket
//! overflows.

use trommel_filters::{RunSlot, SlotSet, Trace, TreePlan};

use super::bucket::{
    BUCKET_SLOTS, BucketCodec, Decoded, Encoded, FINGERPRINT_BITS_MIN, Lanes, budget_bits,
};
use super::pages::BUCKET_BITS_MAX;
use super::symbol::BucketBits;

/// Level ids as whole numbers.
#[derive(Clone, Debug)]
pub struct Integers {
    last_slot: u8,
    id_bits: u32,
    fingerprint_bits: u32,
}

impl Integers {
    fn lane_bits(&self) -> u32 {
        self.id_bits + self.fingerprint_bits
    }

    /// Splits bits that begin with a lane into slot and fingerprint.
    #[inline(always)]
    fn lane(&self, bits: u32) -> (u8, u32) {
        let id = (bits >> self.fingerprint_bits & !(u32::MAX << self.id_bits)) as u8;
        (self.last_slot.wrapping_sub(id), bits & !(u32::MAX << self.fingerprint_bits))
    }
}

impl BucketCodec for Integers {
    /// Bits per entry are rounded down; a fingerprint always has its minimum bits.
    fn new(plan: &TreePlan, buckets: usize) -> Self {
        let last_slot = u8::try_from(plan.slots() - 1).expect("a plan has at most 256 slots");
        let id_bits = u8::BITS - last_slot.leading_zeros();
        let most = BUCKET_BITS_MAX / BUCKET_SLOTS as u32;
        let lane_bits = ((budget_bits(plan) / (buckets * BUCKET_SLOTS) as f64) as u32)
            .clamp(id_bits + FINGERPRINT_BITS_MIN, most);
        Integers { last_slot, id_bits, fingerprint_bits: lane_bits - id_bits }
    }

    #[inline(always)]
    fn bucket_bits(&self) -> u32 {
        BUCKET_SLOTS as u32 * self.lane_bits()
    }

    #[inline(always)]
    fn fingerprint_bits(&self, _slot: u8) -> u32 {
        self.fingerprint_bits
    }

    #[inline(always)]
    fn last_slot(&self) -> u8 {
        self.last_slot
    }

    fn decode(&self, value: u128) -> Decoded {
        let lanes: [(u8, u32); BUCKET_SLOTS] = std::array::from_fn(|lane| {
            self.lane((value >> (lane as u32 * self.lane_bits())) as u32)
        });
        Decoded::Whole(Lanes {
            slots: lanes.map(|lane| lane.0),
            fingerprints: lanes.map(|lane| lane.1),
        })
    }

    fn encode(&self, lanes: &Lanes) -> Encoded {
        let mut value = 0;
        for lane in 0..BUCKET_SLOTS {
            let id = u32::from(self.last_slot - lanes.slots[lane]);
            let bits = id << self.fingerprint_bits | lanes.fingerprints[lane];
            value |= u128::from(bits) << (lane as u32 * self.lane_bits());
        }
        Encoded { value, overflowed: false }
    }

    #[inline(always)]
    fn oldest_shifts(&self) -> [u8; BUCKET_SLOTS] {
        std::array::from_fn(|lane| (lane as u32 * self.lane_bits()) as u8)
    }

    #[inline(always)]
    fn matches<T: Trace>(
        &self,
        value: impl BucketBits,
        fingerprint: u32,
        slots: &mut SlotSet,
        _: &mut T,
    ) -> bool {
        let wanted = fingerprint >> (u32::BITS - self.fingerprint_bits);
        for lane in 0..BUCKET_SLOTS as u32 {
            let (slot, held) = self.lane((value >> (lane * self.lane_bits())).low());
            // An empty lane is a zero fingerprint in the last slot, which no key has: see `Lanes`.
            if held == wanted {
                slots.insert(RunSlot(slot));
            }
        }
        true
    }

    fn size_bytes(&self) -> usize {
        size_of::<Integers>()
    }
}
