//! Threads that ask filters at once: all of them one filter, or each one of its own.
//! ```text
//! alone    0 [questions]                  the filter
//! shared   0 [questions]  1 [questions]   all threads that filter
//! apart    0 [questions]  1 [questions]   thread 0 that filter, the others copies of it
//! ```
//! Threads that share nothing do not wait for each other: what they answer together is what so many
//! cores of the machine are worth.
//! Invariant: a thread has the same questions in all three ways, and ways and filters take turns.

use std::convert::Infallible;
use std::hint::black_box;

use trommel_filters::{Codes, Question};

use crate::bench::fit_bits::Fit;
use crate::bench::probe_filters::{Built, ProbedFilter, build_copy};
use crate::bench::probe_plan::ProbePlan;
use crate::bench::probe_questions::draw_of;
use crate::bench::rounds::rounds_ns;
use crate::error::Result;
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::questions::queries::{Kind, Queries};
use crate::questions::reader_threads::{ReaderThreads, thread_rngs};
use crate::report::ProbeThreads;

/// Tells their generators from those of other questions.
const STREAM: u64 = 5;
/// Alone, shared, apart.
const WAYS: usize = 3;

/// What threads answer of each filter: points, half of them stored keys. None: the plan has one
/// thread.
pub(crate) fn answers_at_once(
    plan: &ProbePlan,
    built: &[(Built, Fit)],
    keys: &KeySet,
    training: &[Question],
) -> Result<Vec<Option<ProbeThreads>>> {
    if plan.threads == 1 {
        return Ok(vec![None; built.len()]);
    }
    let rngs = &mut thread_rngs(plan.seed, STREAM, plan.threads);
    let readers = ReaderThreads::draw(Kind::PointHalf, keys, draw_of(plan), rngs)?;
    let mut copies: Vec<Vec<ProbedFilter>> = Vec::new();
    for (built, fit) in built {
        let fitted = ProbePlan { bits_per_key: fit.setting, ..plan.clone() };
        let copy = |_| build_copy(built.guard, &fitted, keys.stored(), training);
        copies.push((1..plan.threads).map(copy).collect::<Result<_>>()?);
    }
    let filters = built.iter().map(|(built, _)| &built.filter).zip(&copies);
    let ways: Vec<Vec<&ProbedFilter>> = filters
        .flat_map(|(one, copies)| {
            let apart = std::iter::once(one).chain(copies).collect();
            [vec![one], vec![one; plan.threads], apart]
        })
        .collect();
    let rounds = rounds_ns(ways.len(), |way| {
        Ok::<_, Infallible>(ask_at_once(&ways[way], readers.lists(), keys.stored()))
    });
    let rounds = rounds.unwrap_or_else(|never| match never {});
    let of_filters = rounds.as_chunks::<WAYS>().0.iter();
    Ok(of_filters.map(|ways| Some(ProbeThreads::of(plan.threads, ways))).collect())
}

/// A thread for each of the filters asks it all of its questions; the first one is this thread.
/// Returns how many questions that were.
fn ask_at_once(filters: &[&ProbedFilter], lists: &[Queries], stored: &SortedKeys) -> u64 {
    let lists = &lists[..filters.len()];
    std::thread::scope(|scope| {
        let others = filters.iter().zip(lists).skip(1);
        let others: Vec<_> =
            others.map(|(filter, list)| scope.spawn(move || ask(filter, list, stored))).collect();
        ask(filters[0], &lists[0], stored);
        others.into_iter().for_each(|other| other.join().expect("no thread panics"));
    });
    lists.iter().map(|list| list.len() as u64).sum()
}

fn ask(filter: &ProbedFilter, list: &Queries, stored: &SortedKeys) {
    let mut codes = Codes::new();
    for place in 0..list.len() {
        black_box(filter.may_hold(&list.query(place, stored), &mut codes));
    }
}
