//! Closed seeks of which a given share finds nothing (SuRF, section 6, Figure 13). The wider the
//! ranges are, the fewer seeks find nothing.
//! ```text
//! sampled starts -> distances to the next stored key, sorted -> the width that has the share
//! ```
//! For keys of a Poisson process this is the paper's width: the mean gap x ln(1 / share).

use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::questions::queries::{Kind, Queries};
use crate::questions::question_draw::{Draw, closed_width};
use crate::questions::reader_threads::{ReaderThreads, thread_rngs};
use crate::report::{ClosedSeekReport, KindReport};

/// The starts from which a width is computed.
const SAMPLES: usize = 20_000;
/// The largest difference between the actual and the requested share of empty ranges.
const SHARE_OFF_MOST: f64 = 0.02;

/// The width and the shares of one list of questions.
pub(crate) struct ClosedSeeks {
    percent: f64,
    width: u64,
    empty_share: f64,
}

/// Draws the questions of each share.
pub(crate) fn draw_closed_seeks(
    shares: &[f64],
    keys: &KeySet,
    draw: Draw<'_>,
    seed: u64,
    threads: usize,
) -> Result<(Vec<ClosedSeeks>, Vec<ReaderThreads>)> {
    let (mut about, mut all) = (Vec::new(), Vec::new());
    for &share in shares {
        let samples = &mut Rng::new(scramble(seed ^ 7));
        let (width, reached) = closed_width(keys, share, SAMPLES, samples);
        if (reached - share).abs() > SHARE_OFF_MOST {
            return Err(LabError::Plan(format!(
                "--empty {share}: of these keys no width makes so many ranges empty; {width} makes it {reached:.3} (ranges are of \
                 the keys' first eight bytes)"
            )));
        }
        let mut rngs = thread_rngs(seed, 8, threads);
        let readers =
            ReaderThreads::draw(Kind::ClosedSeek, keys, Draw { width, ..draw }, &mut rngs)?;
        let empty_share = empty_share(readers.lists(), keys.stored());
        about.push(ClosedSeeks { percent: (1e8 * share).round() / 1e6, width, empty_share });
        all.push(readers);
    }
    Ok((about, all))
}

fn empty_share(lists: &[Queries], stored: &SortedKeys) -> f64 {
    let count = lists.iter().map(Queries::len).sum::<usize>();
    let is_empty = |list: &Queries, place: usize| {
        let upper = list.upper(place).expect("a closed range");
        stored.first_in(list.lower(place), upper).is_none()
    };
    let empty = lists.iter().map(|list| (0..list.len()).filter(|at| is_empty(list, *at)).count());
    empty.sum::<usize>() as f64 / count.max(1) as f64
}

/// Combines the costs of the questions with their shares, in the same order.
pub(crate) fn closed_seek_reports(
    about: &[ClosedSeeks],
    kinds: &[KindReport],
) -> Vec<ClosedSeekReport> {
    let report = |(closed, cost): (&ClosedSeeks, &KindReport)| ClosedSeekReport {
        empty_percent: closed.percent,
        empty_share: closed.empty_share,
        range_width: closed.width,
        cost: cost.clone(),
    };
    about.iter().zip(kinds).map(report).collect()
}
