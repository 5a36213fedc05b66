//! Tests of the simulation: short runs find nothing, and what is broken on purpose is found.

use super::*;
use crate::progress::Silent;

#[test]
fn a_seed_has_one_outcome() {
    let nobody = AtomicU64::new(0);
    for seed in 0..6 {
        let once = run_seed(seed, 1200, open_door, &nobody).expect("nothing is wrong");
        let again = run_seed(seed, 1200, open_door, &nobody).expect("nothing is wrong");
        assert_eq!(once, again, "seed {seed}");
    }
}
