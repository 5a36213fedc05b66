//! The runs of a version, to which codes can be widened without loss.
//! ```text
//! runs      [0, 40)  [40, 50)  [50, 60)  60  61  62
//! code      57  ->  [50, 60)            61  ->  61      64, flushed after all runs  ->  64
//! ```
//! The paper (section 4.2) drops the digits of a code that the oldest version in use does not need.
//! What is left of a code is an aligned block of flushes that lies in one run. Here it becomes that
//! run's span, for any merge schedule. Each version has a part of its own, so no older version
//! queries this one.
//!
//! Invariant: a widened code contains the code. It meets no run of this version or a later one that
//! the code did not meet.

use alloc::vec::Vec;

use crate::base::shape::{Shape, Span};

/// Runs whose spans meet no other run's span, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    spans: Vec<Span>,
}

impl Runs {
    pub(crate) fn new(shape: &Shape) -> Self {
        let mut all: Vec<Span> = shape.runs().collect();
        all.sort_unstable();
        let mut spans: Vec<Span> = Vec::with_capacity(all.len());
        let mut reached = None;
        for (place, &span) in all.iter().enumerate() {
            let after_all = reached.is_none_or(|end| end <= span.lo());
            let before_next = all.get(place + 1).is_none_or(|next| span.hi() <= next.lo());
            if after_all && before_next {
                spans.push(span);
            }
            reached = reached.max(Some(span.hi()));
        }
        Runs { spans }
    }

    /// Returns the span of the run that contains the code's entries, or the code itself if that is
    /// unknown.
    pub(crate) fn widened(&self, code: Span) -> Span {
        let after = self.spans.partition_point(|run| run.lo() <= code.lo());
        match after.checked_sub(1).map(|place| self.spans[place]) {
            Some(run) if code.hi() <= run.hi() => run,
            _ => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::shape::FlushNumber;

    fn span(lo: u64, hi: u64) -> Span {
        Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty")
    }

    #[test]
    fn codes_become_their_run_where_that_costs_nothing() {
        let levels = vec![vec![span(21, 22), span(20, 21)], vec![span(10, 20)], vec![span(0, 10)]];
        let runs = Runs::new(&Shape { levels });
        assert_eq!(runs.widened(span(13, 14)), span(10, 20));
        assert_eq!(runs.widened(span(10, 20)), span(10, 20));
        assert_eq!(runs.widened(span(3, 4)), span(0, 10));
        assert_eq!(runs.widened(span(21, 22)), span(21, 22));
        assert_eq!(runs.widened(span(22, 23)), span(22, 23), "no run has it yet");
        assert_eq!(runs.widened(span(8, 12)), span(8, 12), "two runs");
        assert_eq!(Runs::default().widened(span(8, 12)), span(8, 12));
    }

    #[test]
    fn runs_that_overlap_are_nobodys_code() {
        let levels = vec![vec![span(30, 31)], vec![span(8, 20), span(5, 7)], vec![span(0, 10)]];
        let runs = Runs::new(&Shape { levels });
        for flush in 0..20 {
            assert_eq!(runs.widened(span(flush, flush + 1)), span(flush, flush + 1));
        }
        assert_eq!(runs.spans, [span(30, 31)]);
    }
}
