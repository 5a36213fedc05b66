//! The bytes that occur at each of the first places of keys, and where keys end.
//! ```text
//! user17/  user23/   place 0: u    place 4: 1, 2    place 5: 3 to 7    place 7: keys end
//! ```
//! A walk through a range skips byte strings that cannot be keys: between two neighbouring decimal
//! numbers, these are 197 strings of three bytes.
//!
//! Invariant: a byte that a key has at a place is in the place's alphabet, which may have more.

use trommel_filters::{Corrupt, Reader, Writer};

/// The maximum number of places with alphabets.
pub(super) const PLACES_MAX: usize = 64;
/// The maximum number of intervals of an alphabet in a file; neighbouring ones are joined.
const PIECES_MAX: usize = 8;
/// A flag in files: keys end before this place.
const ENDS: u8 = 0x80;

/// What occurs at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alphabet {
    bytes: [u64; 4],
    /// Whether keys end before the place.
    pub(super) ends: bool,
}

impl Alphabet {
    fn insert(&mut self, byte: u8) {
        self.bytes[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.bytes[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    /// Returns the smallest byte at or above `from`.
    pub(super) fn next(&self, from: u8) -> Option<u8> {
        let first = usize::from(from / 64);
        let rest = self.bytes[first] & (u64::MAX << (from % 64));
        let mut words = std::iter::once(rest).chain(self.bytes[first + 1..].iter().copied());
        let at = words.position(|word| word != 0)?;
        let word = if at == 0 { rest } else { self.bytes[first + at] };
        Some(((first + at) * 64) as u8 + word.trailing_zeros() as u8)
    }

    /// Returns the first and last bytes of its intervals, joined until a file can have them.
    fn pieces(&self) -> Vec<(u8, u8)> {
        let mut pieces: Vec<(u8, u8)> = Vec::new();
        for byte in (0..=u8::MAX).filter(|&byte| self.has(byte)) {
            match pieces.last_mut() {
                Some((_, last)) if *last + 1 == byte => *last = byte,
                _ => pieces.push((byte, byte)),
            }
        }
        while pieces.len() > PIECES_MAX {
            let gap = |at: &usize| pieces[at + 1].0 - pieces[*at].1;
            let nearest = (0..pieces.len() - 1).min_by_key(gap).expect("there are several");
            pieces[nearest].1 = pieces[nearest + 1].1;
            pieces.remove(nearest + 1);
        }
        pieces
    }

    fn write(&self, out: &mut Writer) {
        let pieces = self.pieces();
        out.u8(pieces.len() as u8 | if self.ends { ENDS } else { 0 });
        for (first, last) in pieces {
            out.u8(first);
            out.u8(last);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Alphabet, Corrupt> {
        let head = input.u8()?;
        let mut alphabet = Alphabet { bytes: [0; 4], ends: head & ENDS != 0 };
        for _ in 0..head & !ENDS {
            let (first, last) = (input.u8()?, input.u8()?);
            (first..=last).for_each(|byte| alphabet.insert(byte));
        }
        Ok(alphabet)
    }
}

/// Collects the bytes at each place.
#[derive(Clone, Debug, Default)]
pub(super) struct AlphabetBuilder {
    places: Vec<Alphabet>,
}

impl AlphabetBuilder {
    /// Adds a key whose first `seen` bytes were in a previous key.
    pub(super) fn add(&mut self, key: &[u8], seen: usize) {
        let head = &key[..key.len().min(PLACES_MAX)];
        self.places.resize(self.places.len().max(head.len() + 1), Alphabet::default());
        for (place, &byte) in head.iter().enumerate().skip(seen) {
            self.places[place].insert(byte);
        }
        self.places[head.len()].ends |= key.len() < PLACES_MAX;
    }

    /// Returns the alphabets of the first `places` places, and whether keys end after them.
    pub(super) fn finish(mut self, places: usize) -> Alphabets {
        self.places.truncate((places + 1).min(PLACES_MAX));
        let mut alphabets = Alphabets::default();
        for alphabet in self.places {
            let known = alphabets.all.iter().position(|other| *other == alphabet);
            let number = known.unwrap_or(alphabets.all.len());
            if known.is_none() {
                alphabets.all.push(alphabet);
            }
            alphabets.of_place.push(number as u8);
        }
        alphabets
    }
}

/// The alphabets of the first places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Alphabets {
    /// The distinct alphabets.
    all: Vec<Alphabet>,
    of_place: Vec<u8>,
}

impl Alphabets {
    /// Returns the alphabet of a place. None: unknown.
    pub(super) fn at(&self, place: usize) -> Option<&Alphabet> {
        self.of_place.get(place).map(|&number| &self.all[usize::from(number)])
    }

    /// Whether keys may end before a place.
    pub(super) fn may_end(&self, place: usize) -> bool {
        self.at(place).is_none_or(|alphabet| alphabet.ends)
    }

    /// Whether a key may begin with `start`.
    pub(super) fn may_begin(&self, start: &[u8]) -> bool {
        let known = start.iter().zip(&self.of_place);
        known.into_iter().all(|(&byte, &number)| self.all[usize::from(number)].has(byte))
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.u8(self.of_place.len() as u8);
        self.of_place.iter().for_each(|&number| out.u8(number));
        out.u8(self.all.len() as u8);
        self.all.iter().for_each(|alphabet| alphabet.write(out));
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Alphabets, Corrupt> {
        let places = usize::from(input.u8()?);
        let of_place = input.bytes(places)?.to_vec();
        let count = usize::from(input.u8()?);
        let all = (0..count).map(|_| Alphabet::read(input)).collect::<Result<Vec<_>, _>>()?;
        if places > PLACES_MAX || of_place.iter().any(|&number| usize::from(number) >= count) {
            return Err(input.corrupt("alphabets of places that there are"));
        }
        Ok(Alphabets { all, of_place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphabets(keys: &[&[u8]], places: usize) -> Alphabets {
        let mut builder = AlphabetBuilder::default();
        keys.iter().for_each(|key| builder.add(key, 0));
        builder.finish(places)
    }

    fn written(alphabets: &Alphabets) -> Vec<u8> {
        let mut out = Writer::new();
        alphabets.write(&mut out);
        out.finish()
    }

    fn read(bytes: &[u8]) -> Result<Alphabets, Corrupt> {
        let mut input = Reader::new(bytes);
        let alphabets = Alphabets::read(&mut input)?;
        input.end().map(|()| alphabets)
    }

    #[test]
    fn what_keys_have_is_known_place_by_place() {
        let alphabets = alphabets(&[b"ab1", b"ab2", b"ad"], 2);
        assert!(
            alphabets.may_begin(b"ad") && alphabets.may_begin(b"ab") && alphabets.may_begin(b"")
        );
        assert!(!alphabets.may_begin(b"ac") && !alphabets.may_begin(b"b"));
        assert!(alphabets.may_begin(b"ab1 and so on"), "what comes later is not known");
        assert!(alphabets.may_end(2) && !alphabets.may_end(1) && alphabets.may_end(7));
        assert_eq!(alphabets.at(1).and_then(|it| it.next(b'c')), Some(b'd'));
        assert_eq!(alphabets.at(1).and_then(|it| it.next(b'e')), None);
        assert_eq!(alphabets.at(9), None);
    }

    #[test]
    fn every_byte_is_next_to_itself() {
        let mut all = Alphabet::default();
        (0..=u8::MAX).for_each(|byte| all.insert(byte));
        assert!((0..=u8::MAX).all(|byte| all.next(byte) == Some(byte)));
        let mut high = Alphabet::default();
        high.insert(u8::MAX);
        assert!((0..=u8::MAX).all(|byte| high.next(byte) == Some(u8::MAX)));
    }

    #[test]
    fn a_file_may_have_more_bytes_and_never_fewer() {
        let keys: Vec<Vec<u8>> = (0..200u8).step_by(7).map(|byte| vec![b'k', byte]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let known = alphabets(&keys, 2);
        let read = read(&written(&known)).expect("whole");
        assert_eq!(read.at(0), known.at(0));
        let (before, after) = (known.at(1).expect("known"), read.at(1).expect("known"));
        assert!((0..=u8::MAX).all(|byte| after.has(byte) || !before.has(byte)));
        assert!(!after.has(255), "pieces were joined, and no more");
        assert_eq!(written(&read), written(&known));
    }

    #[test]
    fn long_keys_are_known_at_their_first_places() {
        let long = [b'x'; 300];
        let alphabets = alphabets(&[&long], 300);
        assert!(alphabets.may_begin(&long) && !alphabets.may_end(63) && alphabets.may_end(64));
        assert_eq!(read(&written(&alphabets)), Ok(alphabets));
    }

    #[test]
    fn places_without_alphabets_are_refused() {
        assert!(read(&[1, 0, 0]).is_err());
        assert!(read(&[1, 1, 1, 0]).is_err());
        assert!(read(&[65]).is_err());
    }
}
