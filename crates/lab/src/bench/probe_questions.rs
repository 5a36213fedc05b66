//! The questions of `bench probe`, and the ranges that train filters which learn from ranges.
//! ```text
//! points        a stored key, or one like them                       misses, hits
//! ranges        from a key like the stored ones on                   empty ones
//! with a skew   some of the stored keys are hot, and of those like them as well
//! with training from one of twice as many keys, or from behind it, half of them stored, by
//!               Zipf's law (YCSB's workload C, as in SuRF, appendix B): first those that train,
//!               then mixed ones and the empty ones among them
//! asked, too    what else no stored key answers (unanswered.rs): the runs of a tree are counted
//! ```
//! Invariant: training ranges and measured ranges are drawn separately. Both may begin at the same
//! key.

use trommel_filters::Question;

use crate::bench::probe_plan::ProbePlan;
use crate::error::{LabError, Result};
use crate::keys::key_list::{KeyList, SortedKeys, key_after};
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::keys::skew::{Places, Skew};
use crate::questions::queries::{Kind, Queries};
use crate::questions::question_draw::{Draw, Misses};
use crate::questions::unanswered::Ask;

/// Draws per empty range before the width counts as too wide.
const DRAWS_PER_RANGE: usize = 1000;

/// The questions of a plan.
pub(crate) struct ProbeQuestions {
    pub(crate) miss: Queries,
    pub(crate) hit: Queries,
    pub(crate) empty: Queries,
    /// Ranges with and without a key, as they were drawn. None: no filter is trained.
    pub(crate) mixed: Option<Queries>,
    /// Further kinds of questions.
    pub(crate) unanswered: Vec<(Ask, Queries)>,
    pub(crate) training: Vec<Question>,
}

impl ProbeQuestions {
    pub(crate) fn draw(plan: &ProbePlan, keys: &KeySet) -> Result<Self> {
        let mut rng = Rng::new(scramble(plan.seed ^ 1));
        let how = draw_of(plan);
        let miss = Queries::draw_as(Kind::PointMiss, keys, how, &mut rng)?;
        let hit = Queries::draw_as(Kind::PointHit, keys, how, &mut rng)?;
        let unanswered =
            || plan.asks.iter().map(|ask| (*ask, draw_unanswered(*ask, plan, keys))).collect();
        let Some(training) = plan.training else {
            let empty = Queries::draw_as(Kind::EmptyRange, keys, how, &mut rng)?;
            let (unanswered, training) = (unanswered(), Vec::new());
            return Ok(ProbeQuestions { miss, hit, empty, mixed: None, unanswered, training });
        };
        let ranges = YcsbRanges::new(keys, plan.range_width, plan.correlated, &mut rng)?;
        let training = (0..training).map(|_| ranges.draw(&mut rng));
        let training = training.map(|(lower, upper)| (lower, Some(upper))).collect();
        let (empty, mixed) = ranges.draw_queries(plan.queries, &mut rng)?;
        Ok(ProbeQuestions {
            miss,
            hit,
            empty,
            mixed: Some(mixed),
            unanswered: unanswered(),
            training,
        })
    }
}

/// How points are drawn, and ranges if no filter is trained.
pub(crate) fn draw_of(plan: &ProbePlan) -> Draw<'static> {
    let misses = plan.correlated.map_or(Misses::LikeKeys, Misses::Behind);
    Draw { misses, skew: plan.skew, ..Draw::even(plan.queries, plan.range_width) }
}

/// Questions of one kind; none, if the keys have no such questions.
fn draw_unanswered(ask: Ask, plan: &ProbePlan, keys: &KeySet) -> Queries {
    let width = if ask == Ask::Points { 1 } else { plan.range_width };
    ask.draw(keys, plan.queries, Some(width), &mut Rng::new(scramble(plan.seed ^ 4)))
}

/// Ranges of one width. They begin at a key of a set of which half is stored.
struct YcsbRanges<'k> {
    stored: &'k SortedKeys,
    others: SortedKeys,
    places: Places,
    reach: u64,
    /// They begin at most so far behind their keys. None: at them.
    behind: Option<u64>,
}

impl<'k> YcsbRanges<'k> {
    fn new(keys: &'k KeySet, width: u64, behind: Option<u64>, rng: &mut Rng) -> Result<Self> {
        let stored = keys.stored();
        let mut free = KeyList::new();
        for key in (0..stored.len()).map(|_| keys.draw(rng)) {
            if !stored.holds(&key) {
                free.push(&key);
            }
        }
        if free.is_empty() {
            return Err(LabError::Plan("there is no key like the stored ones that is not".into()));
        }
        let others = SortedKeys::from_list(&free);
        let places = Places::new(Skew::YCSB, 2 * stored.len());
        Ok(YcsbRanges { stored, others, places, reach: width.max(1) - 1, behind })
    }

    fn draw(&self, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
        let place = self.places.draw(rng);
        // Even places are stored keys and odd ones are not, so both halves have hot keys.
        let key = match place % 2 {
            0 => self.stored.get(place / 2),
            _ => self.others.get(place / 2 % self.others.len()),
        };
        let lower = self.behind.map_or(0, |most| 1 + rng.below(most));
        let lower = key_after(key, lower);
        let upper = key_after(&lower, self.reach);
        (lower, upper)
    }

    /// Draws ranges until `count` are empty. Returns the empty ones, and all that were drawn.
    fn draw_queries(&self, count: usize, rng: &mut Rng) -> Result<(Queries, Queries)> {
        let lists = || (KeyList::new(), KeyList::new());
        let (mut empty, mut mixed) = (lists(), lists());
        for _ in 0..count.saturating_mul(DRAWS_PER_RANGE) {
            if empty.0.len() == count {
                break;
            }
            let (lower, upper) = self.draw(rng);
            mixed.0.push(&lower);
            mixed.1.push(&upper);
            if self.stored.first_in(&lower, &upper).is_none() {
                empty.0.push(&lower);
                empty.1.push(&upper);
            }
        }
        if empty.0.len() < count {
            let problem = "too few ranges are empty: use a smaller --range-width";
            return Err(LabError::Plan(problem.into()));
        }
        // A filter sees both kinds as closed ranges.
        let of = |lists: (KeyList, KeyList)| Queries::of(Kind::EmptyRange, lists.0, lists.1);
        Ok((of(empty), of(mixed)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bench::probe_plan::tests::plan;
    use crate::keys::dist::{Dist, FileFormat};
    use crate::keys::key_list::key_before;

    fn drawn(skew: Skew, keys: &KeySet) -> ProbeQuestions {
        ProbeQuestions::draw(&ProbePlan { skew, ..plan() }, keys).expect("drawn")
    }

    fn lowers(queries: &Queries) -> Vec<&[u8]> {
        (0..queries.len()).map(|place| queries.lower(place)).collect()
    }

    #[test] // Records of plans without a skew have these questions.
    fn without_a_skew_questions_are_those_of_the_seed() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(5000), 1).expect("keys");
        let mut rng = Rng::new(scramble(plan().seed ^ 1));
        let kinds = [Kind::PointMiss, Kind::PointHit, Kind::EmptyRange];
        let even = |kind| Queries::draw(kind, &keys, 500, 64, &mut rng).expect("drawn");
        let [miss, hit, empty] = kinds.map(even);
        let found = drawn(Skew::None, &keys);
        assert_eq!(lowers(&found.miss), lowers(&miss));
        assert_eq!(lowers(&found.hit), lowers(&hit));
        assert_eq!(lowers(&found.empty), lowers(&empty));
    }

    #[test]
    fn with_a_skew_some_are_hot_of_stored_keys_and_of_others() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(5000), 1).expect("keys");
        let distinct =
            |queries: &Queries| lowers(queries).into_iter().collect::<HashSet<_>>().len();
        let even = drawn(Skew::None, &keys);
        let again = drawn(Skew::YCSB, &keys);
        let skewed = drawn(Skew::YCSB, &keys);
        assert_eq!(lowers(&skewed.miss), lowers(&again.miss), "a seed has one history");
        assert!(lowers(&skewed.hit).iter().all(|key| keys.stored().holds(key)));
        assert!(!lowers(&skewed.miss).iter().any(|key| keys.stored().holds(key)));
        for (even, skewed) in
            [(&even.miss, &skewed.miss), (&even.hit, &skewed.hit), (&even.empty, &skewed.empty)]
        {
            let (even, skewed) = (distinct(even), distinct(skewed));
            assert!(even > 450 && skewed < 400, "{even}, {skewed}");
        }
    }

    #[test]
    fn half_of_the_keys_at_which_ranges_begin_are_stored() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(5000), 1).expect("keys");
        let mut rng = Rng::new(3);
        let ranges = YcsbRanges::new(&keys, 1 << 30, None, &mut rng).expect("there are others");
        let (empty, mixed) = ranges.draw_queries(500, &mut rng).expect("there is room");
        assert_eq!(empty.len(), 500);
        let from_stored = |place: &usize| keys.stored().holds(mixed.lower(*place));
        let stored = (0..mixed.len()).filter(from_stored).count();
        assert!((0.3..0.7).contains(&(stored as f64 / mixed.len() as f64)), "{stored}");
        for place in 0..empty.len() {
            let upper = empty.upper(place).expect("closed");
            assert_eq!(keys.stored().first_in(empty.lower(place), upper), None);
        }
        let wide = YcsbRanges::new(&keys, 1 << 49, None, &mut rng).expect("keys");
        assert!(wide.draw_queries(10, &mut rng).is_err());
    }

    #[test]
    fn ranges_begin_behind_their_keys_if_that_is_asked_for() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(5000), 1).expect("keys");
        let mut rng = Rng::new(3);
        let ranges = YcsbRanges::new(&keys, 1 << 20, Some(1), &mut rng).expect("there are others");
        let (empty, _) = ranges.draw_queries(500, &mut rng).expect("there is room");
        let before = |place: usize| key_before(empty.lower(place), 1);
        let stored = (0..500).filter(|place| keys.stored().holds(&before(*place))).count();
        assert!((150..350).contains(&stored), "{stored} of 500 right behind a stored key");
        assert!((0..500).all(|place| {
            let key = before(place);
            keys.stored().holds(&key) || ranges.others.holds(&key)
        }));
    }
}
