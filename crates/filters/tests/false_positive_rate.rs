//! How often a filter says "maybe" where nothing is, at a size that is measured too. Seeds are
//! fixed; bounds are generous: `examples/grf_probe.rs` prints the figures of larger sets.

use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, Part, PartBuilder, Query, Shape,
};

const KEYS: usize = 200_000;
const FLUSHES: usize = 99;
const QUERIES: usize = 20_000;

/// A generator: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn uniform(random: &mut Random) -> u64 {
    random.next() >> 14
}

/// Forty clusters whose widths differ by a factor of a million.
fn clustered(random: &mut Random) -> u64 {
    let cluster = random.next() % 40;
    let centre = Random(cluster).next() >> 14;
    let width = f64::from(1u32 << (11 + cluster / 2));
    centre + (width * 4000.0 * random.unit().powi(3)) as u64
}

/// So many clusters that each has a few keys only: a block spans some, and all keys crowd near
/// others.
fn crowded(random: &mut Random) -> u64 {
    let cluster = random.next() % 4000;
    let centre = Random(cluster).next() >> 14;
    centre + (f64::from(1u32 << (11 + cluster % 20)) * random.unit().powi(3)) as u64
}

/// First and last numbers of ranges whose widths are powers of two: neighbours are close to each
/// other, or far.
fn ends_of_ranges(random: &mut Random) -> u64 {
    let mut range = Random(random.next() % 100_000);
    let bits = 4 + range.next() % 12;
    let first = range.next() >> 32 >> bits << bits;
    if random.next().is_multiple_of(2) { first } else { first + (1 << bits) - 1 }
}

/// Nine of ten keys in the base, the others in equal flushes.
fn part_of(keys: &[u64], options: &GrfOptions) -> Part {
    let mut builder = PartBuilder::new(options);
    let (base, flushed): (Vec<_>, Vec<_>) =
        keys.iter().enumerate().partition(|(place, _)| place % 10 != 3);
    base.iter().for_each(|(_, key)| builder.push(&key.to_be_bytes()));
    let mut part = builder.finish(FlushNumber(7));
    for flush in 0..FLUSHES {
        let mut inserter = part.inserter(
            FlushNumber(7 + flush as u64),
            &Shape::of_round(part.base_end(), FlushNumber(7 + flush as u64), 10),
        );
        flushed
            .iter()
            .skip(flush)
            .step_by(FLUSHES)
            .for_each(|(_, key)| inserter.push(&key.to_be_bytes()));
        part = inserter.finish();
    }
    part
}

/// The share of empty ranges of a width (0: points), drawn as the keys are, for which the part says
/// "maybe".
fn rate(part: &Part, keys: &[u64], draw: fn(&mut Random) -> u64, width: u64) -> f64 {
    let mut random = Random(99);
    let (mut asked, mut positives) = (0, 0);
    while asked < QUERIES {
        let key = draw(&mut random);
        let next = keys.partition_point(|&other| other < key);
        if keys.get(next).is_some_and(|&other| other <= key + width) {
            continue;
        }
        let (low, high) = (key.to_be_bytes(), (key + width).to_be_bytes());
        let range = KeyRange::new(&low, Some(&high)).expect("not upside down");
        let query = if width == 0 { Query::Point(&low) } else { Query::Range(range) };
        let mut codes = Codes::new();
        part.candidates(&query, &mut codes);
        asked += 1;
        positives += usize::from(!codes.is_empty());
    }
    f64::from(positives as u32) / asked as f64
}

fn assert_rates(draw: fn(&mut Random) -> u64, bits_per_key: f64, most: f64) {
    let mut random = Random(1);
    let mut keys: Vec<u64> = (0..KEYS).map(|_| draw(&mut random)).collect();
    keys.sort_unstable();
    keys.dedup();
    let part = part_of(&keys, &GrfOptions { bits_per_key, ..GrfOptions::default() });
    let size = part.size();
    let bits = 8.0 * (size.base_bytes + size.overlay_bytes) as f64 / keys.len() as f64;
    assert!(bits <= bits_per_key * 1.01, "{bits} bits per key, {size:?}");
    assert!(bits >= bits_per_key * 0.9, "{bits} bits per key were left unused, {size:?}");
    for width in [0, 64, 4096] {
        let rate = rate(&part, &keys, draw, width);
        assert!(rate <= most, "{rate} of empty queries of width {width}, {bits} bits per key");
        assert!(rate > 0.0, "too good: do the queries reach the filter?");
    }
}

#[test]
fn uniform_keys() {
    assert_rates(uniform, 12.0, 0.04);
    assert_rates(uniform, 14.0, 0.012);
}

#[test]
fn clustered_keys() {
    assert_rates(clustered, 12.0, 0.055);
    assert_rates(clustered, 14.0, 0.03);
}

#[test]
fn keys_that_crowd_within_a_block() {
    assert_rates(crowded, 12.0, 0.09);
    assert_rates(crowded, 14.0, 0.03);
}

/// No kind alone is better, but for chance.
#[test]
fn auto_is_as_good_as_the_best_kind() {
    let draws: [fn(&mut Random) -> u64; 4] = [uniform, clustered, crowded, ends_of_ranges];
    for draw in draws {
        let mut random = Random(3);
        let mut keys: Vec<u64> = (0..KEYS).map(|_| draw(&mut random)).collect();
        keys.sort_unstable();
        keys.dedup();
        for bits_per_key in [8.0, 10.0, 12.0] {
            let rates = Fingerprints::ALL.map(|fingerprints| {
                let options = GrfOptions { bits_per_key, fingerprints, ..GrfOptions::default() };
                (rate(&part_of(&keys, &options), &keys, draw, 0), fingerprints)
            });
            let (auto, best) = (rates[0].0, rates[1..].iter().map(|it| it.0).fold(1.0, f64::min));
            let noise = 3.0 * (best / QUERIES as f64).sqrt();
            assert!(auto <= 1.1 * best + noise, "{bits_per_key} bits: {rates:?}");
        }
    }
}

#[test]
fn point_bits_tell_points_close_to_keys_apart() {
    let mut random = Random(5);
    let mut keys: Vec<u64> = (0..KEYS).map(|_| random.next() >> 8 << 8).collect();
    keys.sort_unstable();
    keys.dedup();
    // Next to a key nothing that keeps order can say no.
    let near = |part: &Part| {
        let mut codes = Codes::new();
        let maybe = keys.iter().step_by(10).filter(|&&key| {
            codes.clear();
            part.candidates(&Query::Point(&(key + 1).to_be_bytes()), &mut codes);
            !codes.is_empty()
        });
        maybe.count() as f64 / (keys.len() / 10) as f64
    };
    let part = |point_bits| part_of(&keys, &GrfOptions { point_bits, ..GrfOptions::default() });
    let (without, with) = (part(0), part(5));
    assert!(near(&without) > 0.95, "{}", near(&without));
    // One in 32 of the base's; every tenth is in the overlay, whose fractions are longer but have
    // no hash.
    assert!(near(&with) < 0.9 / 32.0 + 0.11, "{}", near(&with));
    let bits = |part: &Part| (part.size().base_bytes + part.size().overlay_bytes) as f64;
    assert!(bits(&with) < bits(&without) * 1.01, "hash bits are not extra");
}

/// Names of files: folders in folders, each with names that begin alike.
fn paths() -> Vec<Vec<u8>> {
    let mut random = Random(9);
    let word = |random: &mut Random, letters: u64| -> String {
        (0..letters).map(|_| char::from(b'a' + (random.next() % 26) as u8)).collect()
    };
    let mut names = Vec::new();
    for _ in 0..60 {
        let place = format!("/usr/share/{}/{}", word(&mut random, 12), word(&mut random, 20));
        for _ in 0..20 {
            let folder = format!("{place}/{}", word(&mut random, 16));
            let (stem, files) = (word(&mut random, 9), 5 + random.next() % 100);
            names.extend((0..files).map(|_| {
                let letters = 2 + random.next() % 12;
                format!("{folder}/{stem}_{}.html", word(&mut random, letters)).into_bytes()
            }));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// The share of every eighth key for which a part of the others says "maybe".
fn rate_of_absent(keys: &[Vec<u8>], bits_per_key: f64) -> f64 {
    let (asked, kept): (Vec<_>, Vec<_>) =
        keys.iter().enumerate().partition(|(place, _)| place % 8 == 3);
    let mut builder = PartBuilder::new(&GrfOptions { bits_per_key, ..GrfOptions::default() });
    kept.iter().for_each(|(_, key)| builder.push(key));
    let part = builder.finish(FlushNumber(1));
    let mut codes = Codes::new();
    let mut may_hold = |key: &[u8]| {
        codes.clear();
        part.candidates(&Query::Point(key), &mut codes);
        !codes.is_empty()
    };
    assert!(kept.iter().all(|(_, key)| may_hold(key)));
    let bits = 8.0 * part.size().base_bytes as f64 / kept.len() as f64;
    assert!(bits <= bits_per_key, "{bits} bits per key");
    asked.iter().filter(|(_, key)| may_hold(key)).count() as f64 / asked.len() as f64
}

/// Their groups are small and many, so that what a group of few keys may take beyond its share
/// counts.
#[test]
fn names_of_files_are_told_apart_as_points() {
    let rate = rate_of_absent(&paths(), 12.0);
    assert!(rate <= 0.18, "{rate} of names that are not there");
}

/// Addresses of mail: few domains and names, which few letters of all that there are begin.
fn addresses() -> Vec<Vec<u8>> {
    let mut random = Random(21);
    let syllables = ["an", "ber", "li", "mo", "na", "ro", "sa", "ti", "vi", "stein", "wick", "ez"];
    let name = |random: &mut Random, most: u64| -> String {
        (0..=random.next() % most).map(|_| syllables[(random.next() % 12) as usize]).collect()
    };
    let domains = ["example.com", "example.net", "example.org", "mail.example"];
    let mut addresses: Vec<Vec<u8>> = (0..120_000)
        .map(|_| {
            let domain = domains[(random.next() % 4) as usize];
            let (first, last) = (name(&mut random, 2), name(&mut random, 4));
            format!("{domain}@{first}.{last}{}", random.next() % 30).into_bytes()
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Text fills its gaps unevenly: what order promises there is measured on the keys.
#[test]
fn addresses_of_mail_are_told_apart_as_points() {
    for (bits_per_key, most) in [(12.0, 0.06), (14.0, 0.06), (16.0, 0.16)] {
        let rate = rate_of_absent(&addresses(), bits_per_key);
        assert!(
            rate <= most,
            "{rate} of addresses that are not there, {bits_per_key} bits per key"
        );
    }
}

/// Such families cannot do with the bits that they are given. Even keys behind them paid all of it,
/// and erred in 43 of 100 cases.
#[test]
fn even_keys_behind_small_families_keep_most_of_their_bits() {
    let mut random = Random(31);
    let mut families: Vec<Vec<u8>> = Vec::new();
    for _ in 0..750 {
        let stem = [random.next(), random.next()].map(|word| (word >> 1).to_be_bytes()).concat();
        families.extend((0..80).map(|_| [&stem[..], &random.next().to_be_bytes()].concat()));
    }
    families.sort_unstable();
    let mut even: Vec<u64> = (0..70_000).map(|_| random.next() | 1 << 63).collect();
    even.sort_unstable();
    let options = GrfOptions { bits_per_key: 8.0, ..GrfOptions::default() };
    let mut builder = PartBuilder::new(&options);
    families.iter().for_each(|key| builder.push(key));
    even.iter().for_each(|key| builder.push(&key.to_be_bytes()));
    let part = builder.finish(FlushNumber(1));
    let mut codes = Codes::new();
    let maybe = (0..QUERIES).filter(|_| {
        codes.clear();
        let key = (random.next() | 1 << 63).to_be_bytes();
        part.candidates(&Query::Point(&key), &mut codes);
        !codes.is_empty()
    });
    let rate = maybe.count() as f64 / QUERIES as f64;
    assert!(rate < 0.3, "{rate}");
}
