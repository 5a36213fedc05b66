//! Writes a merge into a part whose codes are runs, as the GRF paper's GRF_H does: what shape encoding does without.
//! ```text
//! merge of [50, 51) [51, 52) into [50, 52)
//! its keys --as an inserter's--> places --chunk by chunk--> entries there with an input's code get the output's
//! ```
//! Invariant: an entry's code contains its flush number before and after: the output's span has all inputs' in it.

use super::chunk::{Draft, Move, put_in_order};
use super::place::{FRACTION_BITS, LISTS_MAX, PLACE_BITS};
use super::settled::{CODES_MAX, Code, Entry, Recoding, Settled};
use super::young::{YOUNG_FLUSHES, Young};
use super::{Inserter, Part, RunCodes};
use crate::shape::{Shape, Span};
use std::sync::Arc;

/// Writes the span of a merge's output beside its keys.
pub struct Recoder {
    keys: Inserter,
    inputs: Vec<Span>,
    output: Span,
}

impl Recoder {
    pub(super) fn new(part: &Part, inputs: &[Span], output: Span) -> Recoder {
        let within = |input: &Span| output.hull(*input) == output;
        assert!(inputs.iter().all(within), "{inputs:?} are merged into {output:?}");
        let keys = part.inserter(output.lo(), &Shape::default());
        Recoder { keys, inputs: inputs.to_vec(), output }
    }

    /// The next key of the output. Requires: above all keys before.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.keys.push(key);
    }

    /// As [`Recoder::push`] of each of these keys of eight bytes.
    pub fn push_words(&mut self, words: &[[u8; 8]]) {
        self.keys.push_words(words);
    }

    /// The part as the merge leaves it. What the merge has no key of is shared with the old part.
    pub fn finish(self) -> Part {
        let (part, places) = self.keys.into_places();
        match part.options.run_codes {
            RunCodes::Shape => part,
            RunCodes::Huffman => {
                let moved = (self.inputs.as_slice(), self.output);
                let overlay = places.recode(&part.overlay, (&part.options, &part.base), moved);
                Part { overlay, ..part }
            }
        }
    }
}

impl Move<'_> {
    /// A bit for each number from `origin` on whose flush is an input as it was flushed.
    pub(super) fn ages(&self, origin: u64) -> u64 {
        let flushes = self.inputs.iter().filter(|span| **span == Span::of_flush(span.lo()));
        let ages = flushes.filter_map(|span| span.lo().0.checked_sub(origin));
        ages.filter(|&age| age < YOUNG_FLUSHES).fold(0, |ages, age| ages | 1 << age)
    }
}

impl Draft {
    /// Settled entries with those of a merge moved, and with the young ones whose bit is set in `ages`, with so many bits, moved
    /// or not. None: there is nothing to move.
    #[inline(never)]
    pub(super) fn recode(
        &mut self,
        settled: Option<Settled<'_>>,
        young: Option<(Young<'_>, u64, u8)>,
        moved: &Move<'_>,
        lists: usize,
    ) -> Option<Arc<[u8]>> {
        self.clear();
        self.entries.clear();
        let any = settled.is_some_and(|settled| self.recode_settled(&settled, moved));
        if !any && young.is_none() {
            return None;
        }
        if let Some((young, ages, bits)) = young {
            self.recode_young(&young, ages, bits, moved);
        }
        self.merged += put_in_order(&mut self.entries);
        self.write(lists)
    }

    /// Takes settled entries over. Whether any was moved.
    fn recode_settled(&mut self, settled: &Settled<'_>, moved: &Move<'_>) -> bool {
        self.merged = settled.merged();
        self.codes.extend(settled.codes());
        let known = self.codes.len();
        let is_input = |code: &Code| moved.inputs.contains(&code.span) && code.span != moved.output;
        let targets: Vec<Option<Recoding>> = (0..known)
            .map(|number| {
                let code = self.codes[number];
                is_input(&code).then(|| self.recoding(Code { span: moved.output, ..code }))
            })
            .collect();
        settled.decode(&mut self.entries);
        let Draft { entries, codes, .. } = self;
        let (mut rest, mut any) = (moved.spots, false);
        for entry in entries.iter_mut() {
            let Some(target) = targets[entry.code()] else { continue };
            let first = entry.spot();
            let cut = FRACTION_BITS - usize::from(codes[entry.code()].bits);
            rest = &rest[rest.partition_point(|&spot| spot < first)..];
            // It stands for all spots that begin as it does.
            if rest.first().is_some_and(|&spot| spot >> cut == first >> cut) {
                (*entry, any) = (entry.recoded(target), true);
            }
        }
        any
    }

    /// Adds those young entries whose bit is set in `ages`.
    fn recode_young(&mut self, young: &Young<'_>, ages: u64, bits: u8, moved: &Move<'_>) {
        for list in 0..LISTS_MAX {
            let first = (list << PLACE_BITS) as u32;
            for &word in young.words(young.list(list)) {
                if ages >> Young::age_of(word) & 1 == 0 {
                    continue;
                }
                let spot = first | Young::place_of(word);
                let is_moved = moved.spots.binary_search(&spot).is_ok();
                let span = if is_moved { moved.output } else { young.code_of(word) };
                let recoding = self.recoding(Code { span, bits });
                self.entries.push(Entry::new(spot).recoded(recoding));
            }
        }
        self.merged += young.merged();
    }

    /// Entries with their codes' numbers apart. Requires: an entry.
    #[cold]
    #[inline(never)]
    pub(super) fn write_apart(&mut self, lists: usize) -> Arc<[u8]> {
        self.order_codes();
        if self.codes.len() > CODES_MAX {
            self.join_codes();
            self.order_codes();
        }
        self.merged += put_in_order(&mut self.entries);
        self.writer.write_apart(&self.entries, &self.codes, lists, self.merged)
    }

    /// Numbers codes by commonness, and drops those that no entry has.
    fn order_codes(&mut self) {
        let mut counts = vec![0u32; self.codes.len()];
        self.entries.iter().for_each(|entry| counts[entry.code()] += 1);
        let mut order: Vec<usize> = (0..counts.len()).filter(|&code| counts[code] > 0).collect();
        order.sort_by_key(|&code| std::cmp::Reverse(counts[code]));
        let mut numbers = vec![0; counts.len()];
        (0u16..).zip(&order).for_each(|(number, &code)| numbers[code] = number);
        for entry in &mut self.entries {
            *entry = Entry(entry.bare().0 | u64::from(numbers[entry.code()]));
        }
        self.codes = order.iter().map(|&code| self.codes[code]).collect();
    }
}
