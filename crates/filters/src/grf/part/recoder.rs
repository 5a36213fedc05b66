//! Writes a merge into a part whose codes are runs, as the GRF paper's GRF_H does: what shape
//! encoding does without.
//! ```text
//! merge of [50, 51) [51, 52) into [50, 52)
//! its keys --as an inserter's--> places
//! places --chunk by chunk--> entries there: an input's code becomes the output's
//! ```
//! Invariant: an entry's code contains its flush number before and after: the output's span has all
//! inputs' in it.

use alloc::vec::Vec;

use crate::base::shape::{Shape, Span};
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::options::RunCodes;
use crate::grf::overlay::chunk::{Draft, Move, put_in_order};
use crate::grf::overlay::packed::{CODES_MAX, Code, Entry, Packed, Recoding};
use crate::grf::part::Part;
use crate::grf::part::inserter::Inserter;
use alloc::sync::Arc;

impl Part {
    /// Starts to write the span of a merge's output beside its keys, which are pushed in order. The
    /// spans `inputs` are those of the merged runs. A part with [`RunCodes::Shape`] stays as it is.
    /// Requires: the output's span has all inputs' in it.
    ///
    /// A key that is not pushed keeps its span, which meets the output's. Nothing is lost if a key
    /// was dropped, or if a merge takes a part of a run. The output's span contains the flush
    /// number of each entry, so the new part is right for older versions, too. At worst it names
    /// more of the merge's inputs than hold the key.
    pub fn recoder(&self, inputs: &[Span], output: Span) -> Recoder {
        let within = |input: &Span| output.hull(*input) == output;
        assert!(inputs.iter().all(within), "{inputs:?} are merged into {output:?}");
        let keys = self.inserter(output.lo(), &Shape::default());
        Recoder { keys, inputs: inputs.to_vec(), output }
    }
}

/// Writes the span of a merge's output beside its keys.
pub struct Recoder {
    keys: Inserter,
    inputs: Vec<Span>,
    output: Span,
}

impl Recoder {
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

impl Draft {
    /// Packed entries, with those of a merge moved. None: there is nothing to move.
    #[inline(never)]
    pub(crate) fn recode(
        &mut self,
        packed: &Packed<'_>,
        moved: &Move<'_>,
        lists: usize,
    ) -> Option<Arc<[u8]>> {
        self.clear();
        self.entries.clear();
        if !self.recode_packed(packed, moved) {
            return None;
        }
        self.merged += put_in_order(&mut self.entries);
        self.write(lists)
    }

    /// Takes packed entries over. Whether any was moved.
    fn recode_packed(&mut self, packed: &Packed<'_>, moved: &Move<'_>) -> bool {
        self.merged = packed.merged();
        self.codes.extend(packed.codes());
        let known = self.codes.len();
        let is_input = |code: &Code| moved.inputs.contains(&code.span) && code.span != moved.output;
        let targets: Vec<Option<Recoding>> = (0..known)
            .map(|number| {
                let code = self.codes[number];
                is_input(&code).then(|| self.recoding(Code { span: moved.output, ..code }))
            })
            .collect();
        packed.decode(&mut self.entries);
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

    /// Entries with their codes' numbers apart. Requires: an entry.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_apart(&mut self, lists: usize) -> Arc<[u8]> {
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
        order.sort_by_key(|&code| core::cmp::Reverse(counts[code]));
        let mut numbers = vec![0; counts.len()];
        (0u16..).zip(&order).for_each(|(number, &code)| numbers[code] = number);
        for entry in &mut self.entries {
            *entry = Entry(entry.bare().0 | u64::from(numbers[entry.code()]));
        }
        self.codes = order.iter().map(|&code| self.codes[code]).collect();
    }
}
