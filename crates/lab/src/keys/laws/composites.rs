//! Text of several parts, where many keys share the first part.
//! ```text
//! hosts            com.boducal.www/tafe/2019/gone-wuhat     host reversed, then a path
//!                  the n-th of 100,000 domains has a share of 1 / n
//! json-composite   {"tenant":"boducal","type":"order","id":123456}
//!                  the n-th of 100,000 tenants has a share of n^-0.9
//! packages         libboducal-dev, python3-tafe: what stands in for names of packages
//! ```
//! The statistic that matters: the first part has few values, and constant text surrounds the
//! numbers.

use super::names::push_name;
use super::text::host;
use super::traits::trait_of;
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// Reversed host names with paths.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    domains: Zipf,
    sections: Zipf,
    words: Zipf,
}

const MACHINES: [&str; 6] = ["www", "www", "www", "blog", "api", "m"];

impl Hosts {
    pub(super) fn new() -> Self {
        Hosts {
            domains: Zipf::new(1.0, 100_000),
            sections: Zipf::new(1.0, 20),
            words: Zipf::new(0.7, 20_000),
        }
    }

    pub(super) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let ((_, end), name) = host(self.domains.draw(rng));
        key.extend_from_slice(format!("{end}.").as_bytes());
        push_name(key, name, 2, 2);
        key.extend_from_slice(format!(".{}/", MACHINES[rng.place(MACHINES.len())]).as_bytes());
        push_name(key, trait_of(name, self.sections.draw(rng)), 1, 2);
        if rng.below(2) == 0 {
            key.extend_from_slice(format!("/{}", 2005 + rng.below(20)).as_bytes());
        }
        for (place, _) in (0..1 + rng.below(4)).enumerate() {
            key.push(if place == 0 { b'/' } else { b'-' });
            push_name(key, trait_of(34, self.words.draw(rng)), 1, 2);
        }
        if rng.below(3) == 0 {
            key.extend_from_slice(format!("/{}", rng.below(1_000_000)).as_bytes());
        }
    }
}

/// Composite keys in JSON syntax.
#[derive(Clone, Debug)]
pub(crate) struct JsonKeys {
    tenants: Zipf,
    types: Zipf,
}

const TYPES: [&str; 6] = ["order", "invoice", "customer", "shipment", "payment", "address"];
const IDS: u64 = 10_000_000;

impl JsonKeys {
    pub(super) fn new() -> Self {
        JsonKeys { tenants: Zipf::new(0.9, 100_000), types: Zipf::new(1.0, TYPES.len() as u64) }
    }

    pub(super) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        key.extend_from_slice(b"{\"tenant\":\"");
        push_name(key, trait_of(61, self.tenants.draw(rng)), 2, 2);
        let kind = TYPES[self.types.draw(rng) as usize - 1];
        let id = 1 + rng.below(IDS);
        key.extend_from_slice(format!("\",\"type\":\"{kind}\",\"id\":{id}}}").as_bytes());
    }
}

/// Names of packages.
#[derive(Clone, Debug)]
pub(crate) struct Packages {
    begins: Zipf,
    ends: Zipf,
    stems: Zipf,
}

const BEGINS: [&str; 8] = ["", "lib", "python3-", "golang-", "ruby-", "node-", "r-", "php-"];
const ENDS: [&str; 8] = ["", "-dev", "-doc", "-common", "-data", "-perl", "-dbg", "-utils"];

impl Packages {
    pub(super) fn new() -> Self {
        let listed = |list: &[&str]| Zipf::new(1.0, list.len() as u64);
        Packages { begins: listed(&BEGINS), ends: listed(&ENDS), stems: Zipf::new(0.5, 200_000) }
    }

    pub(super) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let begin = BEGINS[self.begins.draw(rng) as usize - 1];
        key.extend_from_slice(begin.as_bytes());
        push_name(key, trait_of(71, self.stems.draw(rng)), 1, 2);
        if rng.below(3) > 0 {
            key.push(b'-');
            push_name(key, trait_of(72, self.stems.draw(rng)), 1, 2);
        }
        if rng.below(3) == 0 {
            key.extend_from_slice((1 + rng.below(9)).to_string().as_bytes());
        }
        let end = ENDS[self.ends.draw(rng) as usize - 1];
        key.extend_from_slice(end.as_bytes());
    }
}
