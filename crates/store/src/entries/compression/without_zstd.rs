//! The stand-in for Zstandard in a build without it: errors that name the missing feature.
//! ```text
//! write    options that select it are refused; LZ4 takes its place
//! read     blocks of other forms are still readable
//! ```
//! Invariant: no result depends on the bytes.

use super::form::{FEATURE, Unreadable};

/// Has no values.
pub(super) enum Encoder {}

impl Encoder {
    pub(super) fn new(_level: u8) -> Option<Encoder> {
        None
    }

    pub(super) fn compress(
        &mut self,
        _raw: &[u8],
        _dictionary: Option<&EncoderDictionary>,
        _into: &mut [u8],
    ) -> Option<usize> {
        match *self {}
    }
}

/// Has no values.
#[derive(Debug)]
pub(crate) enum EncoderDictionary {}

impl EncoderDictionary {
    pub(crate) fn new(_bytes: Vec<u8>, _level: u8) -> Option<EncoderDictionary> {
        None
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match *self {}
    }
}

/// A dictionary of a file. Nothing of it is kept.
pub(crate) struct Dictionary;

impl Dictionary {
    pub(crate) fn new(_bytes: &[u8]) -> Option<Dictionary> {
        Some(Dictionary)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        0
    }
}

pub(super) fn claimed_len(_packed: &[u8]) -> Result<Option<u64>, Unreadable> {
    Err(Unreadable::Lacks(FEATURE))
}

pub(super) fn decompress(
    _packed: &[u8],
    _dictionary: Option<&Dictionary>,
    _into: &mut [u8],
) -> Result<Option<usize>, Unreadable> {
    Err(Unreadable::Lacks(FEATURE))
}

pub(crate) fn train(_pieces: &[u8], _lens: &[usize], _bytes_max: usize) -> Option<Vec<u8>> {
    None
}
