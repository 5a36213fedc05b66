//! Filters whose bytes are not those that were written hide no row.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use slatedb::bytes::BytesMut;
use slatedb::object_store::{GetOptions, PutOptions};
use slatedb::{Filter, FilterBuilder, RowEntry, ValueDeletable};
use trommel_filters::FilterOptions;
use trommel_guards::kinds;

use super::*;

type Damage = Box<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// Gives filters bytes that were damaged.
struct Damaging {
    inner: TrommelFilterPolicy,
    damage: Arc<Damage>,
    /// How many it gave.
    given: Arc<AtomicU64>,
}

impl FilterPolicy for Damaging {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        self.inner.builder()
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        let mut damaged = data.to_vec();
        (self.damage)(&mut damaged);
        assert_ne!(damaged, data);
        self.given.fetch_add(1, Ordering::Relaxed);
        self.inner.decode(&damaged)
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.inner.estimate_size(num_keys)
    }

    fn supports_range_queries(&self) -> bool {
        self.inner.supports_range_queries()
    }

    fn supports_prefix_queries(&self) -> bool {
        self.inner.supports_prefix_queries()
    }
}

/// Every kind of filter that a policy can have.
fn of_every_kind() -> Vec<TrommelFilterPolicy> {
    let of = |kind| TrommelFilterPolicy::new(FilterOptions::new(kind, 14.0));
    let with_levels = TrommelFilterPolicy::prefixes(14.0, "2+4".parse().expect("levels"));
    kinds::TABLE_FILTERS.into_iter().map(of).chain([with_levels]).collect()
}

/// A whole filter of this policy, of keys that are not in the database.
fn of_other_keys(policy: &TrommelFilterPolicy) -> Vec<u8> {
    let mut keys: Vec<[u8; 8]> = (0..500).map(|number| spread(1 << 40 | number)).collect();
    keys.sort_unstable();
    let mut builder = policy.builder();
    for key in keys {
        let (key, value) = (Bytes::copy_from_slice(&key), ValueDeletable::Tombstone);
        builder.add_entry(&RowEntry { key, value, seq: 1, create_ts: None, expire_ts: None });
    }
    let mut bytes = BytesMut::new();
    builder.build().encode(&mut bytes);
    bytes.to_vec()
}

/// `others`: whole filters of other kinds.
fn damages(others: Vec<Vec<u8>>) -> Vec<(String, Damage)> {
    let mut all: Vec<(String, Damage)> = vec![
        ("half of it".into(), Box::new(|bytes| bytes.truncate(bytes.len() / 2))),
        ("all but a byte".into(), Box::new(|bytes| bytes.truncate(bytes.len() - 1))),
        ("turned by a byte".into(), Box::new(|bytes| bytes.rotate_left(1))),
        ("nothing".into(), Box::new(Vec::clear)),
        ("a byte more".into(), Box::new(|bytes| bytes.push(0))),
        ("zeros".into(), Box::new(|bytes| bytes.fill(0))),
        ("ones".into(), Box::new(|bytes| bytes.fill(0xff))),
        ("foreign".into(), Box::new(|bytes| *bytes = b"bytes of somebody else".to_vec())),
    ];
    for at in [0, 1, 100, 200, 300, 400, 500, 600, 700, 800, 900, 990, 999, 1000] {
        let flip: Damage = Box::new(move |bytes| {
            let place = (bytes.len() * at / 1000).min(bytes.len() - 1);
            bytes[place] ^= 1 << (at % 8);
        });
        all.push((format!("a bit flipped at {at} thousandths"), flip));
    }
    let another = |other: Vec<u8>| -> (String, Damage) {
        ("another kind's".into(), Box::new(move |bytes| bytes.clone_from(&other)))
    };
    all.extend(others.into_iter().map(another));
    all
}

async fn assert_rows(store: Arc<CountingStore>, policies: Policies, map: &Map, what: &str) {
    let db = builder(store, policies).build().await.expect("opens");
    for (key, value) in map.iter().step_by(41) {
        let got = db.get(key).await.expect("gets");
        assert_eq!(got.as_deref(), Some(value.as_slice()), "{what}");
        let scan = db.scan(key..=key).await.expect("scans");
        assert_eq!(rows(scan).await.get(key), Some(value), "{what}");
        let scan = db.scan_prefix(&key[..4], ..).await.expect("scans");
        assert_eq!(rows(scan).await.get(key), Some(value), "{what}");
    }
    assert_eq!(&all_rows(&db).await, map, "{what}");
    db.close().await.expect("closes");
}

/// A database of 1500 keys in three SSTs, closed.
async fn filled(store: Arc<CountingStore>, policies: Policies) -> Map {
    let db = builder(store, policies).build().await.expect("opens");
    let mut map = Map::new();
    for number in 0..1500u64 {
        let (key, value) = (spread(number), number.to_le_bytes());
        db.put(key, value).await.expect("puts");
        map.insert(key.to_vec(), value.to_vec());
        if number % 500 == 499 {
            flush(&db).await;
        }
    }
    db.close().await.expect("closes");
    map
}

#[test]
fn damaged_bytes_hide_no_row_whatever_the_kind() {
    run(async {
        for policy in of_every_kind() {
            let store = Arc::new(CountingStore::default());
            let as_written: Policies = vec![Arc::new(policy.clone())];
            let map = filled(store.clone(), as_written.clone()).await;
            assert_rows(store.clone(), as_written, &map, policy.name()).await;
            let others = of_every_kind().into_iter().filter(|it| it.name() != policy.name());
            let others: Vec<Vec<u8>> = others.map(|other| of_other_keys(&other)).collect();
            for (what, damage) in damages(others) {
                let given = Arc::new(AtomicU64::new(0));
                let (inner, damage) = (policy.clone(), Arc::new(damage));
                let damaging = Damaging { inner, damage, given: given.clone() };
                let what = format!("{}: {what}", policy.name());
                assert_rows(store.clone(), vec![Arc::new(damaging)], &map, &what).await;
                assert!(given.load(Ordering::Relaxed) >= 3, "{what}: nobody read it");
            }
        }
    });
}

/// Flips a bit of each filter in the store.
async fn flip_in(store: &CountingStore, policy: &str) -> usize {
    let all: Vec<_> = store.list(None).collect().await;
    let mut flipped = 0;
    for at in all.into_iter().map(|meta| meta.expect("lists").location) {
        let object = store.get_opts(&at, GetOptions::default()).await.expect("is there");
        let mut bytes = object.bytes().await.expect("reads").to_vec();
        let found = bytes.windows(policy.len()).position(|it| it == policy.as_bytes());
        let Some(name_at) = found else { continue };
        bytes[name_at + policy.len() + 100] ^= 1;
        store.put_opts(&at, bytes.into(), PutOptions::default()).await.expect("writes");
        flipped += 1;
    }
    flipped
}

/// SlateDB has a checksum of its own of what it stores.
#[test]
fn damage_in_the_store_is_an_error_and_never_a_row_less() {
    run(async {
        let store = Arc::new(CountingStore::default());
        let map = filled(store.clone(), policies("cell")).await;
        assert_eq!(flip_in(&store, policies("cell")[0].name()).await, 3);
        let db = builder(store, policies("cell")).build().await.expect("opens");
        let mut errors = 0;
        for (key, value) in &map {
            match db.get(key).await {
                Ok(got) => assert_eq!(got.as_deref(), Some(value.as_slice())),
                Err(_) => errors += 1,
            }
        }
        assert_eq!(errors, map.len());
    });
}
