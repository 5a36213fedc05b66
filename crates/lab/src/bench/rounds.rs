//! Rounds in which all sides take turns, in one process, so that a noisy machine is noisy to all of
//! them.
//! ```text
//! round 1   a b c      round 2   b c a      round 3   c a b  ...      median of each
//! ```
//! Invariant: every side runs once per round.

use std::time::Instant;

use crate::median::median;

/// The default number of rounds; the median counts.
pub const ROUNDS: usize = 7;

/// Returns nanoseconds per operation of each side: the median of [`ROUNDS`] rounds. `run` does all
/// operations of one side once, and returns their number.
pub(crate) fn medians_ns<E>(
    sides: usize,
    run: impl FnMut(usize) -> Result<u64, E>,
) -> Result<Vec<f64>, E> {
    let mut times = rounds_ns(sides, run)?;
    Ok(times.iter_mut().map(|times| median(times)).collect())
}

/// Like [`medians_ns`], but returns the time of every round, in the order of the rounds.
pub(crate) fn rounds_ns<E>(
    sides: usize,
    run: impl FnMut(usize) -> Result<u64, E>,
) -> Result<Vec<Vec<f64>>, E> {
    so_many_rounds_ns((sides, ROUNDS), run)
}

/// Like [`rounds_ns`], with a given number of rounds.
pub(crate) fn so_many_rounds_ns<E>(
    (sides, rounds): (usize, usize),
    mut run: impl FnMut(usize) -> Result<u64, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut times = vec![Vec::new(); sides];
    for (_, side) in turns(sides, rounds) {
        let start = Instant::now();
        let ops = run(side)?;
        times[side].push(start.elapsed().as_nanos() as f64 / ops.max(1) as f64);
    }
    Ok(times)
}

/// Returns the round and the side of each turn.
pub(crate) fn turns(sides: usize, rounds: usize) -> impl Iterator<Item = (usize, usize)> {
    let of_round = move |round| (0..sides).map(move |turn| (round, (round + turn) % sides));
    (0..rounds).flat_map(of_round)
}

/// Returns the 99th percentile; 0 for no numbers.
pub(crate) fn p99(numbers: &mut [u64]) -> f64 {
    if numbers.is_empty() {
        return 0.0;
    }
    let place = (numbers.len() * 99).div_ceil(100) - 1;
    *numbers.select_nth_unstable(place).1 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_take_turns() {
        let mut order = Vec::new();
        let medians = medians_ns(3, |side| {
            order.push(side);
            Ok::<u64, ()>(1)
        });
        assert_eq!(medians.map(|medians| medians.len()), Ok(3));
        assert_eq!(order.len(), 3 * ROUNDS);
        assert_eq!(order[..6], [0, 1, 2, 1, 2, 0]);
        assert_eq!(medians_ns(2, |_| Err::<u64, _>("stop")), Err("stop"));
    }

    #[test]
    fn percentiles() {
        assert_eq!(p99(&mut (1..=200).rev().collect::<Vec<_>>()), 198.0);
        assert_eq!((p99(&mut [5]), p99(&mut [])), (5.0, 0.0));
    }
}
