//! What is there of Zstandard in a program that was built without it: errors that name the feature.
//! ```text
//! write    options that ask for it are refused; LZ4 takes its place
//! read     other blocks of the file are read
//! ```
//! Invariant: no answer of it depends on bytes.

use super::form::{FEATURE, Unreadable};

/// There is none.
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

/// There is none.
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

/// A dictionary of a file, of which nothing is kept.
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
