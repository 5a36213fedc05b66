//! Writes a merge into a part whose codes are runs, as the GRF paper's GRF_H does: what shape encoding does without.
//! ```text
//! merge of [50, 51) [51, 52) into [50, 52)
//! its keys --as an inserter's--> places --chunk by chunk--> entries there with an input's code get the output's
//! ```
//! Invariant: an entry's code contains its flush number before and after: the output's span has all inputs' in it.

use super::chunk::{Draft, Move, put_in_order};
use super::place::FRACTION_BITS;
use super::settled::{CODES_MAX, Code, Entry, Recoding, Settled};
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

    /// The part as the merge leaves it. What the merge has no key of is shared with the old part.
    pub fn finish(self) -> Part {
        let (part, places) = self.keys.into_places();
        match part.options.run_codes {
            RunCodes::Shape => part,
            RunCodes::Huffman => {
                let moved = (self.inputs.as_slice(), self.output);
                let overlay = places.recode(&part.overlay, &part.base, moved);
                Part { overlay, ..part }
            }
        }
    }
}

impl Draft {
    /// Entries with those of a merge moved. None: there are none to move.
    pub(super) fn recode(
        &mut self,
        settled: &Settled<'_>,
        moved: &Move<'_>,
        lists: usize,
    ) -> Option<Arc<[u8]>> {
        self.clear();
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
        let (mut at, mut any) = (0, false);
        for entry in entries.iter_mut() {
            let Some(target) = targets[entry.code()] else { continue };
            let first = entry.spot();
            let cut = FRACTION_BITS - usize::from(codes[entry.code()].bits);
            at += moved.spots[at..].partition_point(|&spot| spot < first);
            if moved.spots.get(at).is_some_and(|&spot| spot >> cut == first >> cut) {
                (*entry, any) = (entry.recoded(target), true);
            }
        }
        self.merged += put_in_order(&mut self.entries);
        if any { self.write(lists) } else { None }
    }

    /// Entries with their codes' numbers apart. Requires: an entry.
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
