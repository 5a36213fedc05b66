//! Checks that a peer answers like a map, by a random history of writes, reads, flushes and merges.

use std::collections::BTreeMap;

use trommel_filters::bits::key_bits::after_all_with;

use crate::compare::peer::Peer;
use crate::error::Result;
use crate::keys::rng::{Rng, scramble};

/// Keys are clustered at a few places, so that ranges meet some keys, none, or those of two
/// clusters. This is the width of a cluster.
const NEAR: u64 = 600;
const PLACES: [u64; 4] = [0, 0xff80, 0x0123_4567_89ab_ff00, u64::MAX - NEAR];

struct PeerHistory<'a> {
    peer: &'a dyn Peer,
    map: BTreeMap<Vec<u8>, Vec<u8>>,
    rng: Rng,
}

/// Runs a history of `steps` steps. Returns its first wrong answer in words; None: there is none.
/// Requires: the store is empty.
pub fn check_peer(peer: &dyn Peer, seed: u64, steps: usize) -> Result<Option<String>> {
    let mut history = PeerHistory { peer, map: BTreeMap::new(), rng: Rng::new(scramble(seed)) };
    for step in 0..steps {
        if let Some(wrong) = history.step()? {
            return Ok(Some(format!("step {step} of seed {seed}: {wrong}")));
        }
    }
    history.compare_scan(&[], None, usize::MAX)
}

impl PeerHistory<'_> {
    fn step(&mut self) -> Result<Option<String>> {
        let key = self.key();
        match self.rng.below(100) {
            0..40 => {
                let value = vec![key[key.len() - 1]; self.rng.below(100) as usize];
                self.peer.put(&key, &value)?;
                self.map.insert(key, value);
            }
            40..50 => {
                self.peer.delete(&key)?;
                self.map.remove(&key);
            }
            50..70 => return self.compare_get(&key),
            70..97 => {
                let (from, before) = match self.rng.below(5) {
                    0 => (key, None),
                    1 => self.all_with_a_prefix(key),
                    _ => {
                        let before = self.bound_behind(&key);
                        (key, Some(before))
                    }
                };
                let limit = [1, 2, 51, usize::MAX][self.rng.place(4)];
                return self.compare_scan(&from, before.as_deref(), limit);
            }
            97 => self.peer.flush()?,
            98 => self.peer.settle()?,
            _ if self.rng.below(10) == 0 => self.peer.compact()?,
            _ => {}
        }
        Ok(None)
    }

    fn key(&mut self) -> Vec<u8> {
        let place = PLACES[self.rng.place(PLACES.len())];
        let mut key = (place + self.rng.below(NEAR)).to_be_bytes().to_vec();
        // Some keys are longer or shorter than eight bytes.
        match self.rng.below(20) {
            0 => key.push(self.rng.below(3) as u8),
            1 => key.truncate(1 + self.rng.place(7)),
            _ => {}
        }
        key
    }

    /// Returns the range of all keys that share a random prefix of `key`.
    fn all_with_a_prefix(&mut self, mut key: Vec<u8>) -> (Vec<u8>, Option<Vec<u8>>) {
        key.truncate(1 + self.rng.place(key.len()));
        let end = after_all_with(key.clone());
        (key, end)
    }

    /// Returns a bound shortly behind a key, or a random one, even before it.
    fn bound_behind(&mut self, key: &[u8]) -> Vec<u8> {
        if self.rng.below(4) == 0 || key.len() != 8 {
            return self.key();
        }
        let number = u64::from_be_bytes(key.try_into().expect("eight bytes"));
        number.saturating_add(self.rng.below(100)).to_be_bytes().to_vec()
    }

    fn compare_get(&self, key: &[u8]) -> Result<Option<String>> {
        let mut found = None;
        let is_there = self.peer.get(key, &mut |value| found = Some(value.to_vec()))?;
        let expected = self.map.get(key);
        let right = found.as_ref() == expected && is_there == expected.is_some();
        Ok((!right).then(|| format!("get {key:02x?}: {found:02x?}, not {expected:02x?}")))
    }

    fn compare_scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Option<String>> {
        let mut found = Vec::new();
        let mut see = |key: &[u8], value: &[u8]| found.push((key.to_vec(), value.to_vec()));
        let count = self.peer.scan(from, before, limit, &mut see)?;
        let expected = self.map.range(from.to_vec()..);
        let expected = expected.take_while(|(key, _)| before.is_none_or(|end| &key[..] < end));
        let expected: Vec<_> =
            expected.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect();
        let right = found == expected && count == expected.len();
        Ok((!right).then(|| {
            let (found, expected) = (found.len(), expected.len());
            format!(
                "scan {from:02x?} to {before:02x?}, at most {limit}: {count} told, {found} shown, not {expected}, or others"
            )
        }))
    }
}
