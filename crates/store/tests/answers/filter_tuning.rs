//! A store under other tuning: tables keep the filters that they have, new ones get what the
//! options say, answers are the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::filters::FilterKind;
use trommel::options::{FilterTuning, SurfOptions, SurfSuffix};
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::{
    ArfOptions, ElasticOptions, PrefixLevels, PrefixRule, RencoderPlan, RosettaPlan, RosettaSplit,
    kinds,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Kinds that can be told something.
const KINDS: [&'static dyn FilterKind; 10] = [
    kinds::SURF_BASE,
    kinds::SURF_HASH,
    kinds::SURF_REAL,
    kinds::SURF_MIXED,
    kinds::ROSETTA,
    kinds::RENCODER,
    kinds::PREFIX_BLOOM,
    kinds::PREFIX_RIBBON,
    kinds::ARF,
    kinds::ELASTIC,
];

fn tunings() -> [FilterTuning; 4] {
    let tuning = |suffix, size_ratio, prefix: PrefixRule, (range_bits, split), probes: u8| {
        FilterTuning::new()
            .with(SurfOptions { suffix, size_ratio })
            .with(prefix)
            .with(RosettaPlan { range_bits, split })
            .with(RencoderPlan { probes })
            .with(ArfOptions { questions: 100 * u32::from(probes) - 100 })
    };
    let bits = |hash, real| SurfSuffix::Bits { hash, real };
    let (fixed, separator) = (PrefixRule::Fixed, PrefixRule::Separator);
    let units = |units| ElasticOptions { units, sample_gets: 1, ..ElasticOptions::default() };
    let levels = |text: &str| text.parse::<PrefixLevels>().expect("levels");
    [
        FilterTuning::default(),
        tuning(bits(0, 0), 0, fixed(1), (0, RosettaSplit::Single), 1)
            .with(units(1))
            .with(levels("1+2+3+4+5+6+7+8")),
        tuning(bits(4, 9), u32::MAX, separator(b'/'), (12, RosettaSplit::Variable), 8)
            .with(units(3))
            .with(levels("sep:/+sep:0+all")),
        tuning(bits(32, 32), 1, fixed(255), (31, RosettaSplit::FirstCut), 4)
            .with(units(32))
            .with(levels("7+255")),
    ]
}

fn open(disk: &Memory, kind: &'static dyn FilterKind, place: usize) -> Db {
    let options = Options::new()
        .guard(GuardKind::Table(kind))
        .bits_per_key(20.0)
        .filter(tunings()[place].clone())
        .size_ratio(10)
        .block_bytes(512)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

fn key(number: u64) -> Vec<u8> {
    let spread = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:02x}/{:09x}", spread >> 60, spread >> 24 & 0xfff_ffff).into_bytes()
}

fn write(db: &Db, round: u64, map: &mut Map) {
    for number in 0..400 {
        let (key, value) = (key(number * 7 + round), vec![round as u8; 20]);
        db.put(&key, &value).expect("puts");
        map.insert(key, value);
    }
    db.flush().expect("flushes");
}

fn check(db: &Db, map: &Map, case: &str) {
    for number in 0..3500 {
        let key = key(number);
        let found = db.get(&key).expect("reads").map(|value| value.to_vec());
        assert_eq!(found.as_ref(), map.get(&key), "{case}");
        let range = [key.clone(), [&key[..4], b"fff"].concat()];
        let (low, high) = (range.iter().min().expect("two"), range.iter().max().expect("two"));
        let first = map.range::<Vec<u8>, _>(low..=high).next().map(|(key, _)| key.clone());
        let last = map.range::<Vec<u8>, _>(low..=high).next_back().map(|(key, _)| key.clone());
        let of = |entry: Option<trommel::Result<trommel::KeyValue>>| {
            entry.map(|entry| entry.expect("reads").0)
        };
        assert_eq!(of(db.range(&low[..]..=&high[..]).next()), first, "{case}");
        assert_eq!(of(db.range(&low[..]..=&high[..]).next_back()), last, "{case}");
    }
    let (stats, report) = (db.stats().expect("open"), db.verify().expect("verifies"));
    assert!(report.damage.is_empty(), "{case}: {:?}", report.damage);
    assert!(stats.guard.damaged.is_empty(), "{case}: {:?}", stats.guard.damaged);
    assert!(stats.point.true_negatives > 0, "{case}: filters are not asked");
}

#[test]
fn tables_of_other_tuning_are_opened_and_answer() {
    for kind in KINDS {
        let (disk, mut map) = (Memory::new(), Map::new());
        let mut seen = Vec::new();
        for place in 0..tunings().len() {
            let db = open(&disk, kind, place);
            let case = format!("{}, tuning {place}", kind.name());
            assert_eq!(db.stats().expect("open").run_count(), place, "{case}");
            if place > 0 {
                check(&db, &map, &case);
            }
            write(&db, place as u64, &mut map);
            check(&db, &map, &case);
            seen.push(db.stats().expect("open").guard.tuning.expect("it is told something"));
            db.close().expect("closes");
        }
        seen.sort();
        seen.dedup();
        assert!(seen.len() >= 3, "{}: {seen:?}", kind.name());
        let db = open(&disk, kind, 0);
        db.compact().expect("compacts");
        check(&db, &map, "all as one run");
    }
}

/// The bits of a suffix are what was asked for, whatever the bits per key.
#[test]
fn tuning_reaches_the_filters() {
    let bits = |kind, tune: fn(Options) -> Options| {
        let options = Options::new().guard(GuardKind::Table(kind));
        let options = tune(options).background(Background::Stepped);
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
        (0..4).for_each(|round| write(&db, round, &mut Map::new()));
        db.compact().expect("compacts");
        db.stats().expect("open").guard.bits_per_key
    };
    let none = bits(kinds::SURF_REAL, |options| {
        options.tune(|surf: &mut SurfOptions| surf.suffix = SurfSuffix::Bits { hash: 0, real: 0 })
    });
    let thirty = bits(kinds::SURF_REAL, |options| {
        options.tune(|surf: &mut SurfOptions| surf.suffix = SurfSuffix::Bits { hash: 0, real: 30 })
    });
    let options = Options::new()
        .tune(|surf: &mut SurfOptions| surf.suffix = SurfSuffix::Bits { hash: 0, real: 65 });
    let refused = options.check().expect_err("too many bits").to_string();
    assert!(refused.contains("filter.surf.suffix"), "{refused}");
    assert!((29.5..30.5).contains(&(thirty - none)), "{none} and {thirty} bits per key");
    let dense = bits(kinds::SURF_BASE, |options| {
        options.tune(|surf: &mut SurfOptions| surf.size_ratio = 0)
    });
    let sparse = bits(kinds::SURF_BASE, |options| {
        options.tune(|surf: &mut SurfOptions| surf.size_ratio = u32::MAX)
    });
    assert!(dense > sparse * 1.5, "{dense} and {sparse} bits per key");
}

/// How often a scan of an empty range reads a run in vain, of these questions.
fn needless(db: &Db, asked: &[(u64, u64)]) -> u64 {
    let before = db.stats().expect("open").closed_seek.false_positives;
    for (low, high) in asked {
        let mut scan = db.range(low.to_be_bytes()..=high.to_be_bytes());
        assert!(scan.next().is_none(), "nothing is there");
    }
    db.stats().expect("open").closed_seek.false_positives - before
}

/// Empty ranges of about a hundredth of a gap beside keys, of the lower tenth of all keys.
fn empty_ranges(keys: &[u64], seed: u64) -> Vec<(u64, u64)> {
    let pairs = keys[..keys.len() / 10].windows(2);
    let range = |pair: &[u64]| {
        let gap = pair[1] - pair[0];
        let low = pair[0] + 1 + (gap - 1) / 100 * (seed % 90);
        (low, (low + gap / 100).min(pair[1] - 1))
    };
    pairs.filter(|pair| pair[1] - pair[0] > 1000).map(range).collect()
}

#[test]
fn arf_learns_from_scans_that_find_nothing() {
    let rates = |questions: u32| {
        let options = Options::new()
            .guard(GuardKind::Table(kinds::ARF))
            .bits_per_key(8.0)
            .filter(FilterTuning::new().with(ArfOptions { questions }))
            .background(Background::Stepped);
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
        let mut keys: Vec<u64> =
            (1..8000).map(|n: u64| n.wrapping_mul(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        keys.sort_unstable();
        keys.iter().for_each(|key| db.put(key.to_be_bytes(), b"value").expect("puts"));
        db.flush().expect("flushes");
        let (asked, like_them) = (empty_ranges(&keys, 7), empty_ranges(&keys, 50));
        let untrained = needless(&db, &asked);
        db.put(keys[0].to_be_bytes(), b"newer").expect("puts");
        db.compact().expect("merges");
        [untrained, needless(&db, &asked), needless(&db, &like_them)]
            .map(|count| (count, asked.len()))
    };
    let [(before, asked), (after, _), (alike, _)] = rates(10_000);
    assert!(asked > 700 && before * 8 > asked as u64, "{before} of {asked}");
    assert!(after * 20 < before, "{before} became {after} of {asked}");
    assert!(alike * 2 < before, "{before} became {alike} of {asked} like them");
    assert_eq!(rates(10_000), rates(10_000), "the same each time");
    let [(before, _), (after, _), _] = rates(0);
    assert!(after * 2 > before, "without questions it learns nothing: {before}, {after}");
}
