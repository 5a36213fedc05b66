//! Records a merge in a part whose codes are runs, as the GRF paper's GRF_H does. Shape encoding
//! does not need this.
//! ```text
//! merge of [50, 51) [51, 52) into [50, 52)
//! its keys --as in an inserter--> places
//! places --chunk by chunk--> entries there: the code of an input becomes the output's
//! ```
//! Invariant: an entry's code contains its flush number before and after, since the output's span
//! contains all inputs' spans.

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
    /// Returns a recoder that replaces the spans `inputs` of merged runs by the merge's `output`,
    /// for the keys pushed to it. A part with [`RunCodes::Shape`] does not change.
    ///
    /// A key that is not pushed keeps its span, which meets the output's. So nothing is lost if a
    /// key was dropped, or if a merge takes a part of a run. The output's span contains each
    /// entry's flush number, so the new part is right for older versions, too. At worst it names
    /// more of the merge's inputs than hold the key.
    ///
    /// # Panics
    /// The output's span does not contain all inputs' spans.
    pub fn recoder(&self, inputs: &[Span], output: Span) -> Recoder {
        let within = |input: &Span| output.hull(*input) == output;
        assert!(inputs.iter().all(within), "{inputs:?} are merged into {output:?}");
        let keys = self.inserter(output.lo(), &Shape::default());
        Recoder { keys, inputs: inputs.to_vec(), output }
    }
}

/// Replaces the spans of merged runs by the output's span.
pub struct Recoder {
    keys: Inserter,
    inputs: Vec<Span>,
    output: Span,
}

impl Recoder {
    /// Adds the next key of the output. Requires: it is above all previous keys.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.keys.push(key);
    }

    /// Same as [`Recoder::push`] for each of `words`.
    pub fn push_words(&mut self, words: &[[u8; 8]]) {
        self.keys.push_words(words);
    }

    /// Returns the part after the merge. It shares what the merge did not touch with the old part.
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
    /// Returns the packed entries with those of a merge recoded. None: no entry changes.
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

    /// Takes over packed entries and recodes some. Returns whether any changed.
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
            // An entry stands for all spots that share its prefix.
            if rest.first().is_some_and(|&spot| spot >> cut == first >> cut) {
                (*entry, any) = (entry.recoded(target), true);
            }
        }
        any
    }

    /// Writes entries with the numbers of their codes stored separately. Requires: there are
    /// entries.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_with_codes_apart(&mut self, lists: usize) -> Arc<[u8]> {
        self.order_codes();
        if self.codes.len() > CODES_MAX {
            self.join_codes();
            self.order_codes();
        }
        self.merged += put_in_order(&mut self.entries);
        self.writer.write_with_codes_apart(&self.entries, &self.codes, lists, self.merged)
    }

    /// Numbers codes by frequency, and drops unused ones.
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
