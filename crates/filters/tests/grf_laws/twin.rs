//! The twin, and the laws in one place; `main.rs` has the trees that they are asked of.
//! ```text
//! tree(bits, base, flushes) -> (part, twin)      assert_laws(part, twin)
//! ```
//! Invariant: nothing here knows how the filter works.

use std::collections::{BTreeMap, BTreeSet};

use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, KeySample, Part, PartBuilder, Query,
    RunCodes, Shape, Span, TextModel,
};

use crate::counts::assert_counts;

pub(crate) type Key = Vec<u8>;
pub(crate) type Twin = BTreeMap<Key, BTreeSet<u64>>;

/// The flush number of all base keys, and the base's end.
pub(crate) const BASE_FLUSH: u64 = 3;
pub(crate) const BASE_END: FlushNumber = FlushNumber(4);

pub(crate) fn options(bits_per_key: f64) -> GrfOptions {
    GrfOptions { bits_per_key, ..GrfOptions::default() }
}

pub(crate) fn sorted(keys: impl IntoIterator<Item = Key>) -> Vec<Key> {
    keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

pub(crate) fn base_of(options: &GrfOptions, keys: &[Key]) -> Part {
    let mut builder = PartBuilder::new(options);
    keys.iter().for_each(|key| builder.push(key));
    builder.finish(if keys.is_empty() { FlushNumber(0) } else { BASE_END })
}

/// Every third flush's merge is a carry.
const SIZE_RATIO: u32 = 3;

/// The runs of a tree with lazy leveling before flush `flush`.
pub(crate) fn shape_before(flush: u64) -> Shape {
    Shape::of_round(BASE_END, FlushNumber(flush), SIZE_RATIO)
}

pub(crate) fn insert(part: &Part, flush: u64, keys: &[Key], shape: &Shape) -> Part {
    let mut inserter = part.inserter(FlushNumber(flush), shape);
    keys.iter().for_each(|key| inserter.push(key));
    inserter.finish()
}

/// What becomes of runs while flushes are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    NoMerges,
    LazyLeveling,
}

/// A part and its twin. Flush i of `flushes` has the number BASE_END + i.
pub(crate) fn tree(bits_per_key: f64, base: &[Key], flushes: &[Vec<Key>]) -> (Part, Twin) {
    tree_with(&options(bits_per_key), base, flushes, Schedule::LazyLeveling)
}

/// [`tree`], whatever the fingerprints: the laws hold for all.
pub(crate) fn assert_all_kinds(bits_per_key: f64, base: &[Key], flushes: &[Vec<Key>]) {
    for fingerprints in Fingerprints::ALL {
        for (schedule, point_bits) in [(Schedule::NoMerges, 3), (Schedule::LazyLeveling, 0)] {
            let options = GrfOptions { fingerprints, point_bits, ..options(bits_per_key) };
            let (part, twin) = tree_with(&options, base, flushes, schedule);
            assert_laws(&part, &twin);
        }
    }
    let options = GrfOptions { run_codes: RunCodes::Huffman, ..options(bits_per_key) };
    let (part, twin) = tree_with(&options, base, flushes, Schedule::LazyLeveling);
    assert_laws(&part, &twin);
    assert_with_text(bits_per_key, base, flushes);
}

/// The laws, where a model of text stands in front: learnt from the keys, from some of them alone,
/// and from others.
fn assert_with_text(bits_per_key: f64, base: &[Key], flushes: &[Vec<Key>]) {
    let some: Vec<Key> = base.iter().step_by(7).cloned().collect();
    let others = sorted((0..100u8).map(|place| vec![b'a' + place % 3, b'-', place]));
    for fingerprints in [Fingerprints::Auto, Fingerprints::Cell] {
        // Whole codes, and those of which many tie.
        for (learnt, code_bits, point_bits) in [(base, 512, 0), (&some, 20, 3), (&others, 48, 0)] {
            let options = GrfOptions { fingerprints, point_bits, ..options(bits_per_key) };
            let part = base_of_codes(&options, base, (learnt, code_bits));
            let (part, twin) = grown(part, base, flushes, Schedule::LazyLeveling);
            assert_laws(&part, &twin);
        }
    }
}

/// The part as the merges between two shapes leave it, where these are written.
pub(crate) fn merged(part: &Part, twin: &Twin, before: &Shape, after: &Shape) -> Part {
    let is_new = |output: &Span| !before.runs().any(|run| run == *output);
    after.runs().filter(is_new).fold(part.clone(), |part, output| {
        let inputs: Vec<Span> = before.runs().filter(|run| run.meets(output)).collect();
        let mut recoder = part.recoder(&inputs, output);
        let is_in = |flush: &u64| output.meets(Span::of_flush(FlushNumber(*flush)));
        let keys = twin.iter().filter(|(_, flushes)| flushes.iter().any(is_in));
        keys.for_each(|(key, _)| recoder.push(key));
        recoder.finish()
    })
}

pub(crate) fn tree_with(
    options: &GrfOptions,
    base: &[Key],
    flushes: &[Vec<Key>],
    schedule: Schedule,
) -> (Part, Twin) {
    grown(base_of(options, base), base, flushes, schedule)
}

/// A part of these keys that has a model of text, learnt from others.
pub(crate) fn base_of_codes(
    options: &GrfOptions,
    keys: &[Key],
    (learnt, code_bits): (&[Key], u32),
) -> Part {
    let mut sample = KeySample::default();
    learnt.iter().for_each(|key| sample.push(key));
    let model = TextModel::of(&sample, 1 << 20).with_code_bits(code_bits);
    let mut builder = PartBuilder::new(options).with_text(model, 1 << 20);
    keys.iter().for_each(|key| builder.push(key));
    builder.finish(if keys.is_empty() { FlushNumber(0) } else { BASE_END })
}

/// [`tree`], from a part of its base on.
fn grown(mut part: Part, base: &[Key], flushes: &[Vec<Key>], schedule: Schedule) -> (Part, Twin) {
    let options = *part.options();
    let mut twin = Twin::new();
    for key in base {
        twin.entry(key.clone()).or_default().insert(BASE_FLUSH);
    }
    for (number, keys) in (BASE_END.0..).zip(flushes) {
        let shape = match schedule {
            Schedule::NoMerges => Shape::default(),
            Schedule::LazyLeveling => shape_before(number),
        };
        part = insert(&part, number, keys, &shape);
        for key in keys {
            twin.entry(key.clone()).or_default().insert(number);
        }
        if options.run_codes == RunCodes::Huffman && schedule == Schedule::LazyLeveling {
            let mut before = shape;
            before.levels.insert(0, vec![Span::of_flush(FlushNumber(number))]);
            part = merged(&part, &twin, &before, &shape_before(number + 1));
        }
    }
    (part, twin)
}

pub(crate) fn answer(part: &Part, query: &Query<'_>) -> Codes {
    let mut codes = Codes::new();
    part.candidates(query, &mut codes);
    codes
}

pub(crate) fn assert_point(part: &Part, twin: &Twin, key: &[u8]) {
    let codes = answer(part, &Query::Point(key));
    for &flush in twin.get(key).into_iter().flatten() {
        let found = codes.may_meet(Span::of_flush(FlushNumber(flush)));
        assert!(found, "lost flush {flush} of {key:?}: {codes:?}");
    }
}

pub(crate) fn assert_range(part: &Part, twin: &Twin, lower: &[u8], upper: Option<&[u8]>) {
    let Some(range) = KeyRange::new(lower, upper) else { return };
    let codes = answer(part, &Query::Range(range));
    let bound = upper.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Included);
    let inside = twin.range::<[u8], _>((std::ops::Bound::Included(lower), bound));
    for (key, &flush) in
        inside.flat_map(|(key, flushes)| flushes.iter().map(move |flush| (key, flush)))
    {
        let found = codes.may_meet(Span::of_flush(FlushNumber(flush)));
        assert!(found, "lost flush {flush} of {key:?} in {lower:?}..={upper:?}: {codes:?}");
    }
}

/// The keys of each flush, ascending: whether a wide range has any is soon told.
struct KeysOfFlushes<'t>(BTreeMap<u64, Vec<&'t [u8]>>);

impl<'t> KeysOfFlushes<'t> {
    fn new(twin: &'t Twin) -> Self {
        let mut keys: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
        for (key, flushes) in twin {
            flushes.iter().for_each(|&flush| keys.entry(flush).or_default().push(key));
        }
        KeysOfFlushes(keys)
    }

    /// [`assert_range`].
    fn assert_range(&self, part: &Part, lower: &[u8], upper: Option<&[u8]>) {
        let Some(range) = KeyRange::new(lower, upper) else { return };
        let codes = answer(part, &Query::Range(range));
        for (&flush, keys) in &self.0 {
            let first = keys.get(keys.partition_point(|key| *key < lower));
            let is_inside = |key: &&[u8]| upper.is_none_or(|upper| *key <= upper);
            let Some(key) = first.filter(|key| is_inside(key)) else { continue };
            let found = codes.may_meet(Span::of_flush(FlushNumber(flush)));
            assert!(found, "lost flush {flush} of {key:?} in {lower:?}..={upper:?}: {codes:?}");
        }
    }
}

pub(crate) fn assert_delivered(delivered: &BTreeSet<Span>, key: &[u8], flushes: &BTreeSet<u64>) {
    for &flush in flushes {
        let met = delivered.iter().any(|code| code.meets(Span::of_flush(FlushNumber(flush))));
        assert!(met, "no code of flush {flush} at or before {key:?}: {delivered:?}");
    }
}

/// What a walk wants no more.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Without {
    Nothing,
    /// The base's code, once it was given.
    Base,
    /// All that was given.
    Given,
}

const WITHOUT: [Without; 3] = [Without::Nothing, Without::Base, Without::Given];

/// Walks all keys from `from` on; at each the codes of its flushes are there, whatever is wanted no
/// more once it was given.
pub(crate) fn assert_forward(part: &Part, twin: &Twin, from: &[u8]) {
    WITHOUT.into_iter().for_each(|without| walk_forward(part, twin, from, without));
}

fn walk_forward(part: &Part, twin: &Twin, from: &[u8], without: Without) {
    let mut cursor = part.cursor(from);
    let mut delivered = BTreeSet::new();
    for (key, flushes) in twin.range(from.to_vec()..) {
        let is_wanted =
            |given: &BTreeSet<Span>, code| without != Without::Given || !given.contains(&code);
        while let Some(code) = cursor.next_due(Some(key), |code| is_wanted(&delivered, code)) {
            assert!(delivered.insert(code) || without != Without::Given, "{code:?} again");
            if without == Without::Base && code.lo() == FlushNumber(0) {
                cursor.mute(code);
            }
        }
        assert_delivered(&delivered, key, flushes);
    }
    // Without a bound it comes to an end.
    while cursor.next_due(None, |_| true).is_some() {}
    assert_eq!(cursor.next_due(None, |_| true), None);
}

pub(crate) fn assert_backward(part: &Part, twin: &Twin, from: Option<&[u8]>) {
    WITHOUT.into_iter().for_each(|without| walk_backward(part, twin, from, without));
}

fn walk_backward(part: &Part, twin: &Twin, from: Option<&[u8]>, without: Without) {
    let mut cursor = part.cursor_back(from);
    let mut delivered = BTreeSet::new();
    let bound = from.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Included);
    for (key, flushes) in twin.range::<[u8], _>((std::ops::Bound::Unbounded, bound)).rev() {
        let is_wanted =
            |given: &BTreeSet<Span>, code| without != Without::Given || !given.contains(&code);
        while let Some(code) = cursor.next_due(Some(key), |code| is_wanted(&delivered, code)) {
            assert!(delivered.insert(code) || without != Without::Given, "{code:?} again");
            if without == Without::Base && code.lo() == FlushNumber(0) {
                cursor.mute(code);
            }
        }
        assert_delivered(&delivered, key, flushes);
    }
    while cursor.next_due(None, |_| true).is_some() {}
    assert_eq!(cursor.next_due(None, |_| true), None);
}

/// A key just above and one just below.
pub(crate) fn neighbours(key: &[u8]) -> [Key; 4] {
    let longer = [key, &[0]].concat();
    let far = [key, &[0xff, 0xff]].concat();
    let mut up = key.to_vec();
    let mut down = key.to_vec();
    if let Some(last) = up.last_mut() {
        *last = last.saturating_add(1);
    }
    match down.last().copied() {
        Some(0) => down.truncate(down.len() - 1),
        Some(last) => *down.last_mut().expect("not empty") = last - 1,
        None => {}
    }
    [longer, far, up, down]
}

/// A few keys of the twin, with their neighbours and the ends of the key space.
pub(crate) fn probes(twin: &Twin, most: usize) -> Vec<Key> {
    let step = (twin.len() / most).max(1);
    let keys = twin.keys().step_by(step);
    let near = keys.flat_map(|key| neighbours(key).into_iter().chain([key.clone()]));
    sorted(near.chain([vec![], vec![0], vec![0xff; 9]]))
}

/// Every law, for a part and its twin.
pub(crate) fn assert_laws(part: &Part, twin: &Twin) {
    twin.keys().for_each(|key| assert_point(part, twin, key));
    let keys: Vec<&Key> = twin.keys().collect();
    for (place, key) in keys.iter().enumerate() {
        for apart in [1, 2, 70] {
            let upper = keys.get(place + apart).map(|key| key.as_slice());
            assert_range(part, twin, key, upper);
        }
        let [longer, _, _, down] = neighbours(key);
        assert_range(part, twin, &down, Some(&longer));
    }
    let (probes, keys_of_flushes) = (probes(twin, 12), KeysOfFlushes::new(twin));
    for (place, lower) in probes.iter().enumerate() {
        assert_point(part, twin, lower);
        for upper in &probes[place..] {
            keys_of_flushes.assert_range(part, lower, Some(upper));
        }
        keys_of_flushes.assert_range(part, lower, None);
    }
    for from in probes.iter().step_by(probes.len() / 6 + 1) {
        assert_forward(part, twin, from);
        assert_backward(part, twin, Some(from));
    }
    assert_forward(part, twin, &[]);
    assert_backward(part, twin, None);
    assert_counts(part, twin);
}

pub(crate) fn assert_tree(base: &[Key], flushes: &[Vec<Key>]) {
    for bits_per_key in [6.0, 12.0, 24.0] {
        assert_all_kinds(bits_per_key, base, flushes);
    }
}

/// A generator: xorshift64*.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub(crate) fn number_key(number: u64) -> Key {
    number.to_be_bytes().to_vec()
}

pub(crate) fn numbers(count: usize, mut draw: impl FnMut() -> u64) -> Vec<Key> {
    sorted((0..count).map(|_| number_key(draw())))
}

/// Deals keys out: nine of ten to the base, the others to some flushes.
pub(crate) fn deal(keys: &[Key], flush_count: u64, seed: u64) -> (Vec<Key>, Vec<Vec<Key>>) {
    let mut random = Random(seed);
    let (mut base, mut flushes) = (Vec::new(), vec![Vec::new(); flush_count as usize]);
    for key in keys {
        match random.below(10) {
            0 => flushes[random.below(flush_count) as usize].push(key.clone()),
            _ => base.push(key.clone()),
        }
    }
    (base, flushes)
}

pub(crate) fn assert_dealt(keys: &[Key]) {
    let (base, flushes) = deal(keys, 12, 5);
    assert_tree(&base, &flushes);
    assert_tree(keys, &[]);
    assert_tree(&[], &flushes);
}
