//! Entries of a global filter whose runs were merged, changed behind a right checksum.
//! ```text
//! input    (place u16, change u8) ...
//!          of the image's last part, where the entries of flushes are: xor
//! ```
//! Invariant: such an image is refused, or all that a store does with its part ends without a
//! panic.

use std::sync::LazyLock;

use trommel_filters::{
    Codes, FlushNumber, GrfOptions, KeyRange, Part, PartBuilder, Query, RunCodes, Shape, Span,
};

/// The first flush after the base.
const FIRST: u64 = 7;
/// The first flush that comes after the image.
const NEXT: u64 = 16;
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// An image, and where the entries of flushes begin in it.
struct Image {
    bytes: Vec<u8>,
    entries_at: usize,
}

static IMAGES: LazyLock<[Image; 2]> =
    LazyLock::new(|| [RunCodes::Shape, RunCodes::Huffman].map(image));

/// Keys without pattern, ascending.
fn keys(numbers: std::ops::Range<u64>) -> Vec<[u8; 8]> {
    let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut keys: Vec<_> = numbers.map(spread).collect();
    keys.sort_unstable();
    keys
}

fn image(run_codes: RunCodes) -> Image {
    let mut builder = PartBuilder::new(&GrfOptions { run_codes, ..GrfOptions::default() });
    keys(0..260).iter().for_each(|key| builder.push(key));
    let base = builder.finish(FlushNumber(FIRST));
    let of_flush = |flush: u64| keys(300 + flush * 9..309 + flush * 9);
    let part =
        (FIRST..NEXT).fold(base.clone(), |part, flush| insert(&part, flush, &of_flush(flush)));
    let part = merge(&part, (FIRST, FIRST + 2), &keys(363..381));
    let part = merge(&part, (FIRST + 2, FIRST + 4), &keys(381..399));
    let part = part.collect_garbage(&shape(FIRST + 33));
    let [bytes, before] = [&part, &base].map(|part| {
        let mut bytes = Vec::new();
        part.write_image(&mut bytes);
        bytes
    });
    let entries_at = bytes.iter().zip(before).take_while(|(one, other)| **one == *other).count();
    Image { bytes, entries_at }
}

fn shape(next: u64) -> Shape {
    Shape::of_round(FlushNumber(FIRST), FlushNumber(next), 3)
}

fn insert(part: &Part, flush: u64, keys: &[[u8; 8]]) -> Part {
    let mut inserter = part.inserter(FlushNumber(flush), &shape(flush));
    keys.iter().for_each(|key| inserter.push(key));
    inserter.finish()
}

/// The part after a merge of the flushes from one to another.
fn merge(part: &Part, (lo, hi): (u64, u64), keys: &[[u8; 8]]) -> Part {
    let span = |lo, hi| Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty");
    let inputs: Vec<Span> = (lo..hi).map(|flush| span(flush, flush + 1)).collect();
    let mut recoder = part.recoder(&inputs, span(lo, hi));
    keys.iter().for_each(|key| recoder.push(key));
    recoder.finish()
}

/// Reads and uses an image with changes, its codes as shapes (0) or as runs (1).
pub(crate) fn body(run_codes: usize, changes: &[u8]) {
    let Image { bytes, entries_at } = &IMAGES[run_codes];
    let mut damaged = bytes.clone();
    let len = bytes.len() - CHECKSUM_BYTES - entries_at;
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % len;
        damaged[entries_at + place] ^= change[2];
    }
    if let Ok(part) = Part::of_checked_image(damaged) {
        use_part(&part);
    }
}

/// All that a store does with a part.
fn use_part(part: &Part) {
    let (some, mut codes) = (keys(290..330), Codes::new());
    for key in &some {
        part.candidates(&Query::Point(key), &mut codes);
    }
    part.candidates(&Query::Range(KeyRange::all()), &mut codes);
    let (mut forward, mut back) = (part.cursor(&[]), part.cursor_back(None));
    let all = std::iter::from_fn(|| forward.next_due(None, |_| true)).take(1 << 16).count();
    let all_back = std::iter::from_fn(|| back.next_due(None, |_| true)).take(1 << 16).count();
    assert!(all < 1 << 16 && all_back < 1 << 16, "a cursor without an end");
    let part = merge(&insert(part, NEXT, &some), (FIRST + 2, FIRST + 6), &some);
    part.collect_garbage(&shape(NEXT + 40)).write_image(&mut Vec::new());
}
