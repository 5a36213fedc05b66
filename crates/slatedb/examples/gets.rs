//! Prints what reads of a database with many SSTs cost, with filters of this crate and with others:
//!
//!     cargo run --release --example gets [--keys 1000000] [--ssts 20] [--queries 1000] [--json]
//!
//! `--filter NAME` leaves out filters whose names begin otherwise.
//!
//! The object store is in memory and counts reads (GET); indexes and filters are kept, blocks of
//! data never. Microseconds are of a store that answers at once, of one that takes 1 ms a read, and
//! of one that takes 10 ms. Keys are 16 random bytes, or text as `user01234567time01234567` of
//! 100,000 users.

#[path = "../tests/counting/mod.rs"]
mod counting;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use counting::{CountingStore, all_but_data};
use slatedb::config::{FlushOptions, FlushType, ReadOptions, ScanOptions};
use slatedb::{
    BloomFilterPolicy, Db, FilterPolicy, PrefixExtractor, PrefixTarget, Settings, WriteBatch,
};
use trommel_filters::FilterOptions;
use trommel_guards::kinds;
use trommel_slatedb::TrommelFilterPolicy;

const USERS: u64 = 100_000;
/// Of each value, the number of digits.
const DIGITS: u64 = 100_000_000;
const BATCH: u64 = 1000;
/// Queries that are timed where each read waits.
const SLOW_QUERIES: u64 = 50;

type Policies = Vec<Arc<dyn FilterPolicy>>;

struct Arguments {
    keys: u64,
    ssts: u64,
    queries: u64,
    /// What the names of filters begin with.
    filter: String,
    json: bool,
}

impl Arguments {
    fn read() -> Result<Arguments, String> {
        let mut read = Arguments {
            keys: 1_000_000,
            ssts: 20,
            queries: 1000,
            filter: String::new(),
            json: false,
        };
        let mut given = std::env::args().skip(1);
        while let Some(name) = given.next() {
            let place = match name.as_str() {
                "--keys" => &mut read.keys,
                "--ssts" => &mut read.ssts,
                "--queries" => &mut read.queries,
                "--filter" => {
                    read.filter = given.next().ok_or("--filter needs a name")?;
                    continue;
                }
                "--json" => {
                    read.json = true;
                    continue;
                }
                _ => {
                    return Err(format!(
                        "{name}: --keys, --ssts, --queries, --filter and --json are known"
                    ));
                }
            };
            let value =
                given.next().and_then(|value| value.parse().ok()).filter(|value| *value > 0);
            *place = value.ok_or(format!("{name} needs a number above 0"))?;
        }
        if read.keys < read.ssts {
            return Err("--keys: each SST needs one".into());
        }
        Ok(read)
    }
}

/// The finalizer of SplitMix64: numbers that look random, each once.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

enum Question {
    Get(Vec<u8>),
    Range(Range<Vec<u8>>),
    Prefix(Vec<u8>),
}

/// A kind of questions: its name, and the question of each number.
type Questions = (&'static str, Box<dyn Fn(u64) -> Question>);

/// A kind of keys, and what is asked of them.
trait Keys {
    fn name(&self) -> &'static str;
    fn key(&self, number: u64) -> Vec<u8>;
    /// A key of which there is none.
    fn absent(&self, number: u64) -> Vec<u8>;
    fn scans(&self) -> Vec<Questions>;
}

struct Random;

impl Random {
    fn wide(number: u64, bits: u32) -> Question {
        let key = Random.absent(number);
        let head = u64::from_be_bytes(key[..8].try_into().expect("8 bytes"));
        let mut end = key.clone();
        end[..8].copy_from_slice(&head.saturating_add(1 << bits).to_be_bytes());
        Question::Range(key..end)
    }
}

impl Keys for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn key(&self, number: u64) -> Vec<u8> {
        let head = mix(2 * number);
        [head.to_be_bytes(), mix(head).to_be_bytes()].concat()
    }

    fn absent(&self, number: u64) -> Vec<u8> {
        self.key(1 << 40 | number)
    }

    fn scans(&self) -> Vec<Questions> {
        // Of a million keys one lies in a thousandth of the former, and in most of the latter.
        vec![
            ("empty range", Box::new(|number| Random::wide(number, 34))),
            ("wide range", Box::new(|number| Random::wide(number, 44))),
        ]
    }
}

struct Text {
    keys: u64,
}

impl Text {
    fn user(number: u64) -> u64 {
        mix(number % USERS) % DIGITS
    }

    fn of(user: u64, time: u64) -> Vec<u8> {
        format!("user{user:08}time{time:08}").into_bytes()
    }

    fn prefix(user: u64) -> Question {
        Question::Prefix(format!("user{user:08}").into_bytes())
    }
}

impl Keys for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn key(&self, number: u64) -> Vec<u8> {
        let hash = mix(2 * number + 1);
        Text::of(Text::user(hash), (hash >> 20) % DIGITS)
    }

    fn absent(&self, number: u64) -> Vec<u8> {
        Text::of(Text::user(mix(number)), mix(number + (1 << 40)) % DIGITS)
    }

    fn scans(&self) -> Vec<Questions> {
        let keys = self.keys;
        let user_of = move |number| Text::user(mix(2 * (number * 977 % keys) + 1));
        let time_of = |number| mix(number + (1 << 41)) % (DIGITS - 1000);
        vec![
            ("absent prefix", Box::new(|number| Text::prefix(mix(number + (1 << 42)) % DIGITS))),
            (
                "empty stretch of a user",
                Box::new(move |number| {
                    let (user, time) = (user_of(number), time_of(number));
                    Question::Range(Text::of(user, time)..Text::of(user, time + 1000))
                }),
            ),
            ("all of a user", Box::new(move |number| Text::prefix(user_of(number)))),
        ]
    }
}

/// For SlateDB's own prefix Bloom: `user` and eight digits.
struct OfUsers;

impl PrefixExtractor for OfUsers {
    fn name(&self) -> &str {
        "12 bytes"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= 12).then_some(12)
    }
}

fn policies() -> Vec<(String, Policies)> {
    let of = |kind, bits| TrommelFilterPolicy::new(FilterOptions::new(kind, bits));
    let one = |policy: TrommelFilterPolicy| -> Policies { vec![Arc::new(policy)] };
    let bloom = || Arc::new(BloomFilterPolicy::new(10)) as Arc<dyn FilterPolicy>;
    let of_prefixes = BloomFilterPolicy::new(10).with_prefix_extractor(Arc::new(OfUsers));
    let mut all: Vec<(String, Policies)> = vec![
        ("none".into(), vec![]),
        ("its Bloom 10".into(), vec![bloom()]),
        ("its prefix Bloom 10".into(), vec![Arc::new(of_prefixes)]),
    ];
    for bits in [10.0, 14.0, 18.0, 22.0] {
        all.push((format!("cell {bits}"), one(TrommelFilterPolicy::cell(bits))));
        all.push((format!("gap {bits}"), one(TrommelFilterPolicy::gap(bits))));
        all.push((format!("coded {bits}"), one(TrommelFilterPolicy::coded(bits))));
    }
    let levels = "12+21".parse().expect("levels");
    all.push(("prefixes 14".into(), one(TrommelFilterPolicy::prefixes(14.0, levels))));
    all.push(("surf-real 14".into(), one(of(kinds::SURF_REAL, 14.0))));
    all.push(("rencoder 14".into(), one(of(kinds::RENCODER, 14.0))));
    all.push(("its Bloom 10, cell 10".into(), {
        vec![bloom(), Arc::new(TrommelFilterPolicy::cell(10.0))]
    }));
    all
}

/// Nothing but the SSTs that are asked for: no compaction, no flush by itself.
fn settings() -> Settings {
    let never = Duration::from_secs(24 * 3600);
    Settings {
        compactor_options: None,
        garbage_collector_options: None,
        l0_sst_size_bytes: 1 << 30,
        l0_max_ssts: 1000,
        l0_max_ssts_per_key: 1000,
        max_unflushed_bytes: 2 << 30,
        manifest_poll_interval: never,
        flush_interval: Some(never),
        min_filter_keys: 1,
        ..Settings::default()
    }
}

struct Measured<'a> {
    db: Db,
    store: Arc<CountingStore>,
    keys: &'a dyn Keys,
    arguments: &'a Arguments,
}

/// What a query costs.
struct Cost {
    gets: f64,
    rows: f64,
    /// Microseconds: where a read takes no time, 1 ms, 10 ms.
    us: [f64; 3],
}

impl Measured<'_> {
    async fn fill(&self) -> Result<(), slatedb::Error> {
        let each = self.arguments.keys / self.arguments.ssts;
        for sst in 0..self.arguments.ssts {
            for first in (0..each).step_by(BATCH as usize) {
                let mut batch = WriteBatch::new();
                for number in first..(first + BATCH).min(each) {
                    batch.put(self.keys.key(sst * each + number), [7; 100]);
                }
                self.db.write(batch).await?;
            }
            let options = FlushOptions { flush_type: FlushType::MemTable };
            self.db.flush_with_options(options).await?;
        }
        Ok(())
    }

    /// Rows that a query finds.
    async fn ask(&self, question: Question) -> Result<u64, slatedb::Error> {
        let options = ScanOptions { cache_blocks: false, ..ScanOptions::default() };
        let mut scan = match question {
            Question::Get(key) => {
                let options = ReadOptions { cache_blocks: false, ..ReadOptions::default() };
                let found = self.db.get_with_options(key, &options).await?;
                return Ok(u64::from(found.is_some()));
            }
            Question::Range(range) => self.db.scan_with_options(range, &options).await?,
            Question::Prefix(prefix) => {
                self.db.scan_prefix_with_options(prefix, .., &options).await?
            }
        };
        let mut rows = 0;
        while scan.next().await?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    async fn cost(&self, question: impl Fn(u64) -> Question) -> Result<Cost, slatedb::Error> {
        // Indexes and filters are read once.
        for number in 0..100 {
            self.ask(question(number)).await?;
        }
        let (mut us, mut gets, mut rows) = ([0.0; 3], 0.0, 0.0);
        for (place, delay) in [0, 1, 10].into_iter().enumerate() {
            self.store.set_delay(Duration::from_millis(delay));
            let queries = if delay == 0 { self.arguments.queries } else { SLOW_QUERIES };
            self.store.take_gets();
            let (begun, mut found) = (Instant::now(), 0);
            for number in 0..queries {
                found += self.ask(question(1000 + number)).await?;
            }
            us[place] = begun.elapsed().as_secs_f64() * 1e6 / queries as f64;
            if delay == 0 {
                gets = self.store.take_gets() as f64 / queries as f64;
                rows = found as f64 / queries as f64;
            }
        }
        self.store.set_delay(Duration::ZERO);
        Ok(Cost { gets, rows, us })
    }
}

fn print(arguments: &Arguments, keys: &str, filter: &str, asked: &str, cost: &Cost) {
    let Cost { gets, rows, us: [none, one, ten] } = cost;
    if arguments.json {
        println!(
            "{{\"keys\":\"{keys}\",\"filter\":\"{filter}\",\"asked\":\"{asked}\",\"gets\":{gets:.4},\
             \"rows\":{rows:.3},\"us\":{none:.1},\"us_1ms\":{one:.1},\"us_10ms\":{ten:.1}}}"
        );
    } else {
        println!(
            "{filter:<22} {asked:<24} {gets:>8.3} {rows:>7.2} {none:>8.0} {one:>8.0} {ten:>9.0}"
        );
    }
}

async fn run(arguments: &Arguments) -> Result<(), slatedb::Error> {
    let text = Text { keys: arguments.keys };
    for keys in [&Random as &dyn Keys, &text] {
        if !arguments.json {
            println!("\n{} keys, {}, in {} SSTs", arguments.keys, keys.name(), arguments.ssts);
            println!(
                "{:<22} {:<24} {:>8} {:>7} {:>8} {:>8} {:>9}",
                "filter", "asked", "GET", "rows", "us", "+1 ms", "+10 ms"
            );
        }
        for (name, policies) in
            policies().into_iter().filter(|(name, _)| name.starts_with(&arguments.filter))
        {
            let store = Arc::new(CountingStore::default());
            let db = Db::builder("/db", store.clone()).with_settings(settings());
            let db = db.with_filter_policies(policies).with_db_cache(all_but_data(), 1);
            let measured = Measured { db: db.build().await?, store, keys, arguments };
            measured.fill().await?;
            let print =
                |asked: &str, cost: &Cost| print(arguments, keys.name(), &name, asked, cost);
            for (asked, question) in keys.scans() {
                print(asked, &measured.cost(question).await?);
            }
            let absent = |number| Question::Get(keys.absent(number));
            print("miss", &measured.cost(absent).await?);
            let there = |number| Question::Get(keys.key(number * 7919 % arguments.keys));
            print("hit", &measured.cost(there).await?);
            measured.db.close().await?;
        }
    }
    Ok(())
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let told = match Arguments::read() {
        Ok(arguments) => run(&arguments).await.map_err(|error| error.to_string()),
        Err(wrong) => Err(wrong),
    };
    if let Err(wrong) = told {
        eprintln!("gets: {wrong}");
        std::process::exit(2);
    }
}
