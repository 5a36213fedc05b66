//! A part as bytes, to be read back when the store opens.
//! ```text
//! magic | version | options | end, entries, bits of fractions
//!       | directory | arena | overlay's chunks | checksum
//! ```
//! The radix table is not stored: it is derived from the separators.
//!
//! Invariant: bytes of another length or with a flipped bit are an error, never a part. (Bytes with
//! a forged checksum may give a part that panics: an image guards against accidents only.)

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::hash::checksum;
use crate::base::shape::FlushNumber;
use crate::base::wire::{Corrupt, Reader, Writer};
use crate::fingerprint::Fingerprints;
use crate::fingerprint::directory::{Directory, Prefix, radix_table};
use crate::fingerprint::empty_queries::{EmptyQueries, EmptyQuery};
use crate::fingerprint::gap::WINDOW;
use crate::fingerprint::group::GROUP_ALIGN;
use crate::fingerprint::hashes::POINT_BITS_MAX;
use crate::fingerprint::query_mix::QueryMix;
use crate::fingerprint::separator_tails::SeparatorTails;
use crate::fingerprint::starts::GroupStarts;
use crate::grf::base::Base;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::options::GrfOptions;
use crate::grf::options::RunCodes;
use crate::grf::overlay::chunk::Chunk;
use crate::grf::overlay::packed::Packed;
use crate::grf::overlay::{Overlay, lists_of};
use crate::grf::part::Part;
use crate::grf::part::builder::kept_queries;
use crate::text::model::TextModel;
use alloc::sync::Arc;
use core::ops::Range;

const MAGIC: &[u8; 8] = b"TRMLGRF\0";
/// A flag next to the tag of the fingerprints: codes are Huffman-coded runs.
const HUFFMAN_TAG: u8 = 0x10;
const CHECKSUM_BYTES: usize = size_of::<u64>();
/// The approximate size of magic, version, options, counts and lengths.
const FIXED_BYTES: usize = 96;
/// The length of a chunk's entries nearly always takes at most this many bytes.
const CHUNK_LENGTH_BYTES: usize = 3;

impl Fingerprints {
    fn tag(self) -> u8 {
        match self {
            Fingerprints::Auto => 0,
            Fingerprints::Spline => 1,
            Fingerprints::Gap => 2,
            Fingerprints::Cell => 3,
            Fingerprints::Coded => 4,
        }
    }
}

impl Part {
    /// The version of the image format. It also changes if a filter stores different information of
    /// its keys. So measurements are never attributed to another version.
    pub const IMAGE_VERSION: u32 = 10;

    /// Appends the part's image, from which [`Part::read_image`] restores it.
    pub fn write_image(&self, out: &mut Vec<u8>) {
        self.write_image_with(&self.base.empty_queries, out);
    }

    /// Same as [`Part::write_image`], with `queries` in place of its own, so that newer queries
    /// are included. The image keeps as many as a part of this size does.
    pub fn write_image_with(&self, queries: &EmptyQueries, out: &mut Vec<u8>) {
        let queries = queries.thinned(0..queries.len(), kept_queries(self.base.entries));
        let before = out.len();
        let mut image = Writer::new();
        image.reserve(self.image_bytes());
        image.bytes(MAGIC);
        image.u32(Self::IMAGE_VERSION);
        write_options(&self.options, &mut image);
        write_base(&self.base, &queries, &mut image);
        write_overlay(&self.overlay, &mut image);
        image.u64(checksum(image.as_slice()));
        if before == 0 {
            *out = image.finish();
        } else {
            out.extend_from_slice(image.as_slice());
        }
    }

    /// Estimates the size of the image in bytes.
    fn image_bytes(&self) -> usize {
        let mut chunks = 0;
        self.overlay.measure(|bytes| chunks += bytes);
        let lengths = 2 * self.overlay.root.len() * CHUNK_LENGTH_BYTES;
        let tables = self.base.directory.allocations().into_iter();
        let directory: usize = tables.chain(self.base.starts.allocations()).sum();
        FIXED_BYTES + directory + self.base.arena.len() + chunks + lengths
    }

    /// Reads a part from its image.
    ///
    /// # Errors
    /// The bytes are no image, damaged, or of another version.
    pub fn read_image(bytes: &[u8]) -> Result<Part, Corrupt> {
        check(bytes)?;
        Part::of_checked_image(bytes.to_vec())
    }

    /// Same as [`Part::read_image`], from owned bytes, most of which are not copied. It does not
    /// verify the checksum. Requires: the caller has verified with a checksum of its own that the
    /// bytes are as written.
    pub fn of_checked_image(mut bytes: Vec<u8>) -> Result<Part, Corrupt> {
        let mut input = Reader::new(body(&bytes)?);
        input.bytes(MAGIC.len() + size_of::<u32>())?;
        let options = read_options(&mut input)?;
        let (mut base, arena) = read_base(&mut input)?;
        let overlay = read_overlay(&base, &mut input)?;
        input.end()?;
        if !arena.is_empty() {
            // The arena is nearly all of the image. Moved to the front, it needs no memory of its
            // own.
            bytes.truncate(arena.end);
            bytes.drain(..arena.start);
            bytes.resize(arena.len() + WINDOW, 0);
            base.arena = bytes.into_boxed_slice();
        }
        Ok(Part { options, base: Arc::new(base), overlay })
    }
}

/// Checks the image's checksum.
fn check(bytes: &[u8]) -> Result<(), Corrupt> {
    let body = body(bytes)?;
    if checksum(body).to_le_bytes() != bytes[body.len()..] {
        return Err(Corrupt { at: body.len(), what: "the checksum of an image" });
    }
    Ok(())
}

/// Returns the image without its checksum. Error: it is too short, or of an unknown version.
fn body(bytes: &[u8]) -> Result<&[u8], Corrupt> {
    let mut input = Reader::new(bytes);
    if input.bytes(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(Corrupt { at: 0, what: "the beginning of a filter's image" });
    }
    if input.u32()? != Part::IMAGE_VERSION {
        return Err(Corrupt { at: MAGIC.len(), what: "a version of images that is known" });
    }
    let end = bytes.len().checked_sub(CHECKSUM_BYTES);
    Ok(&bytes[..end.ok_or_else(|| input.corrupt("a whole image"))?])
}

fn write_options(options: &GrfOptions, out: &mut Writer) {
    out.u64(options.bits_per_key.to_bits());
    out.u32(options.size_ratio);
    let run_codes = match options.run_codes {
        RunCodes::Shape => 0,
        RunCodes::Huffman => HUFFMAN_TAG,
    };
    out.u8(options.fingerprints.tag() | run_codes);
    out.u8(options.point_bits);
}

fn read_options(input: &mut Reader<'_>) -> Result<GrfOptions, Corrupt> {
    let bits_per_key = f64::from_bits(input.u64()?);
    let size_ratio = input.u32()?;
    let tag = input.u8()?;
    let run_codes = if tag & HUFFMAN_TAG == 0 { RunCodes::Shape } else { RunCodes::Huffman };
    let known = Fingerprints::ALL.into_iter().find(|kind| kind.tag() == tag & !HUFFMAN_TAG);
    let fingerprints = known.ok_or_else(|| input.corrupt("fingerprints that are known"))?;
    let point_bits = input.u8()?;
    if usize::from(point_bits) > POINT_BITS_MAX {
        return Err(input.corrupt("so many hash bits"));
    }
    Ok(GrfOptions { bits_per_key, size_ratio, run_codes, fingerprints, point_bits })
}

fn write_base(base: &Base, queries: &EmptyQueries, out: &mut Writer) {
    out.u64(base.end.0);
    out.u64(base.entries);
    out.u8(base.packed_steps);
    out.u8(base.point_bits as u8);
    out.u8(base.one_length as u8);
    out.u8(base.query_mix.to_byte());
    write_queries(queries, out);
    out.u64(base.overlay_keys);
    out.u8(u8::from(base.text.is_some()));
    base.text.iter().for_each(|text| text.write(out));
    write_directory(&base.directory, out);
    base.starts.low.iter().for_each(|&start| out.u32(start));
    out.varint(base.starts.wraps.len() as u64);
    base.starts.wraps.iter().for_each(|&group| out.u32(group));
    out.string(&base.arena[..base.arena.len().saturating_sub(WINDOW)]);
}

/// Reads the base without its arena, and returns the arena's range in the image.
fn read_base(input: &mut Reader<'_>) -> Result<(Base, Range<usize>), Corrupt> {
    let end = FlushNumber(input.u64()?);
    let entries = input.u64()?;
    let packed_steps = input.u8()?;
    if f64::from(packed_steps) > Base::PACKED_STEPS * FRACTION_BITS as f64 {
        return Err(input.corrupt("fractions of so many bits"));
    }
    let point_bits = usize::from(input.u8()?);
    if point_bits > POINT_BITS_MAX {
        return Err(input.corrupt("so many hash bits"));
    }
    let one_length = usize::from(input.u8()?);
    if one_length > Base::ONE_LENGTH_MAX || one_length > 0 && point_bits == 0 {
        return Err(input.corrupt("keys of so many bytes"));
    }
    let query_mix = QueryMix::of_byte(input.u8()?);
    let empty_queries = read_queries(input)?;
    let overlay_keys = input.u64()?;
    let text = match input.u8()? {
        0 => None,
        1 => Some(Box::new(TextModel::read(input)?)),
        _ => return Err(input.corrupt("whether there is a model of text")),
    };
    let directory = read_directory(input)?;
    let low = read_numbers(input, directory.len())?;
    let wraps = input.len()?;
    let starts = GroupStarts { low, wraps: read_numbers(input, wraps)? };
    let len = input.string()?.len();
    let arena = input.at() - len..input.at();
    let last = directory.offsets.last().map_or(0, |&offset| u64::from(offset));
    let is_beyond = last * GROUP_ALIGN as u64 >= len as u64;
    if !directory.is_empty() && (len == 0 || is_beyond) {
        return Err(input.corrupt("an arena with all groups"));
    }
    let base = Base {
        arena: Box::default(),
        directory,
        starts,
        end,
        entries,
        packed_steps,
        overlay_keys,
        point_bits,
        one_length,
        query_mix,
        empty_queries,
        text,
    };
    Ok((base, arena))
}

fn write_queries(queries: &EmptyQueries, out: &mut Writer) {
    out.varint(queries.len() as u64);
    for query in queries.iter() {
        out.string(query.key);
        out.u8(u8::from(query.is_point));
    }
}

fn read_queries(input: &mut Reader<'_>) -> Result<EmptyQueries, Corrupt> {
    let count = input.len()?;
    if count > EmptyQueries::MAX {
        return Err(input.corrupt("so many questions"));
    }
    let mut queries = EmptyQueries::default();
    for _ in 0..count {
        let key = input.string()?;
        let is_point = match input.u8()? {
            kind @ (0 | 1) => kind == 1,
            _ => return Err(input.corrupt("whether a question is for a single key")),
        };
        if key.len() > EmptyQueries::KEY_BYTES_MAX
            || !queries.push_in_order(EmptyQuery { key, is_point })
        {
            return Err(input.corrupt("questions in order"));
        }
    }
    Ok(queries)
}

fn write_directory(directory: &Directory, out: &mut Writer) {
    out.string(directory.prefix.bytes());
    out.string(&directory.last);
    out.varint(directory.separators.len() as u64);
    directory.separators.iter().for_each(|&separator| out.u64(separator));
    directory.offsets.iter().for_each(|&offset| out.u32(offset));
    out.u8(u8::from(directory.tails.is_some()));
    if let Some(tails) = &directory.tails {
        tails.ends.iter().for_each(|&end| out.u32(end));
        out.string(&tails.bytes);
    }
}

fn read_directory(input: &mut Reader<'_>) -> Result<Directory, Corrupt> {
    let prefix = Prefix::new(input.string()?.into());
    let last = input.string()?.into();
    let groups = input.len()?;
    let separators = read_words(input, groups)?;
    let offsets = read_numbers(input, groups)?;
    if !separators.is_sorted() || !offsets.is_sorted() {
        return Err(input.corrupt("groups in order"));
    }
    let tails = match input.u8()? {
        0 => None,
        1 => Some(read_separator_tails(input, groups)?),
        _ => return Err(input.corrupt("whether there are further bytes of separators")),
    };
    let (radix, radix_shift) = radix_table(&separators);
    Ok(Directory { prefix, separators, offsets, tails, radix, radix_shift, last })
}

fn read_separator_tails(input: &mut Reader<'_>, groups: usize) -> Result<SeparatorTails, Corrupt> {
    let ends = read_numbers(input, groups)?;
    let bytes: Box<[u8]> = input.string()?.into();
    let all = ends.last().map_or(0, |&end| end as usize);
    if !ends.is_sorted() || all != bytes.len() {
        return Err(input.corrupt("the ends of all separators"));
    }
    Ok(SeparatorTails { ends, bytes })
}

/// Reads `count` numbers of eight bytes each.
fn read_words(input: &mut Reader<'_>, count: usize) -> Result<Box<[u64]>, Corrupt> {
    let bytes = input.bytes(count.saturating_mul(size_of::<u64>()))?;
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Reads `count` numbers of four bytes each.
fn read_numbers(input: &mut Reader<'_>, count: usize) -> Result<Box<[u32]>, Corrupt> {
    let bytes = input.bytes(count.saturating_mul(size_of::<u32>()))?;
    let (numbers, _) = bytes.as_chunks();
    Ok(numbers.iter().map(|number| u32::from_le_bytes(*number)).collect())
}

/// Writes chunks as they are in memory; an empty tier is an empty string.
fn write_overlay(overlay: &Overlay, out: &mut Writer) {
    out.varint(overlay.root.len() as u64);
    for chunk in overlay.root.iter() {
        chunk.tiers.iter().for_each(|bytes| out.string(bytes.as_deref().unwrap_or(&[])));
    }
}

fn read_overlay(base: &Base, input: &mut Reader<'_>) -> Result<Overlay, Corrupt> {
    let count = input.len()?;
    if count != Overlay::empty(base).root.len() {
        return Err(input.corrupt("a chunk for every few groups"));
    }
    let mut chunk = |index| {
        let lists = lists_of(index, base).count;
        let mut chunk = Chunk::default();
        for tier in &mut chunk.tiers {
            let packed = input.string()?;
            if !packed.is_empty() && !Packed::is_valid(packed, lists) {
                return Err(input.corrupt("packed entries"));
            }
            *tier = (!packed.is_empty()).then(|| Arc::from(packed));
        }
        Ok(chunk)
    };
    let root: Arc<[Chunk]> = (0..count).map(&mut chunk).collect::<Result<_, Corrupt>>()?;
    let keys = root.iter().map(Chunk::entries).map(|entries| entries.kept + entries.merged).sum();
    Ok(Overlay { root, keys })
}
