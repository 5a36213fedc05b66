//! Tests of the laws: draws have the shape of their law, whatever the seed.

use super::numbers::{KEY_BITS, SPACE};
use super::*;
use crate::keys::dist::FileFormat;
use crate::keys::key_list::KeyList;
use crate::keys::keyset::KeySet;

fn numbers(dist: &Dist, count: usize) -> Vec<u64> {
    let Some(Law::Numbers(law)) = Law::of(dist, count) else { panic!("{dist}: no law of numbers") };
    let mut rng = Rng::new(1);
    let mut drawn: Vec<u64> = (0..count).map(|_| law.draw(&mut rng)).collect();
    drawn.sort_unstable();
    drawn
}

#[test]
fn draws_have_their_shape() {
    let uniform = numbers(&Dist::Uniform, 10_001);
    assert!((uniform[5000] as f64 / SPACE - 0.5).abs() < 0.03);
    let normal = numbers(&Dist::Normal, 10_001);
    assert!((normal[5000] as f64 / SPACE - 0.5).abs() < 0.01);
    assert!((normal[8413] as f64 / SPACE - (0.5 + 1.0 / 12.0)).abs() < 0.01);
    let lognormal = numbers(&Dist::Lognormal, 10_001);
    let median = lognormal[5000] as f64 / SPACE;
    assert!((median.ln() + 12.0).abs() < 0.1, "{median}");
    assert!(lognormal[10_000] < 1 << KEY_BITS);
}

#[test]
fn gaps_of_clustered_keys_span_orders_of_magnitude() {
    let drawn = numbers(&Dist::Clustered, 200_000);
    let mut gaps: Vec<u64> = drawn.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let (low, high) = (gaps[gaps.len() / 10].max(1), gaps[gaps.len() * 9 / 10]);
    assert!(high / low > 10_000, "{low} to {high}");
}

fn first_draws(dist: Dist, count: usize) -> String {
    let law = Law::of(&dist, 1000).expect("a law");
    let (mut rng, mut key) = (Rng::new(1), Vec::new());
    let keys = (0..count).map(|_| {
        law.draw(&mut key, &mut rng);
        String::from_utf8_lossy(&key).into_owned()
    });
    keys.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_keys_of_a_seed_never_change() {
    let drawn = |dist| first_draws(dist, 3);
    assert_eq!(
        drawn(Dist::Emails),
        "com.vijiva@logijmu5 com.bucga@kase.benwepalram net.lakaze@mdobima"
    );
    let urls = "https://www.kalgabwi.com/hose/2019/03/he-pubif-zasi-vacrucas/ \
                https://www.bowovoma.jp/kezos/2006/02/bov-wo-bewulut-mo/ \
                https://www.zikon.com/gen/2017/03/wu-mapdu-sarfug-raliz-logohu-954259";
    assert_eq!(drawn(Dist::Urls), urls);
    assert_eq!(
        drawn(Dist::StandIn(RealSet::Flights)),
        "FJOXMA01172032 YKSNRS01091400 CCJCJW01071600"
    );
}

#[test]
fn the_first_composite_keys_and_identifiers_of_a_seed_never_change() {
    for (dist, keys) in [
        (Dist::Hosts, "com.kalgabwi.api/zi/depotku com.digurik.www/cowade/zawa-ziftovuf/156346"),
        (
            Dist::JsonComposite,
            "{\"tenant\":\"peros\",\"type\":\"order\",\"id\":1001510} \
             {\"tenant\":\"wizalkeka\",\"type\":\"shipment\",\"id\":5904789}",
        ),
        (
            Dist::Uuid4Text,
            "cfc5d07f-6f03-4bf4-99a3-7d5757aaf520 bf08119f-05cd-42f4-9729-9fcae7202345",
        ),
        (
            Dist::Uuid7Text,
            "01924413-03d7-72f4-9729-9fcae7202345 018dc15b-9d31-7eb9-97ef-aedd9f6cffb3",
        ),
        (Dist::StandIn(RealSet::Packages), "hi-data libnole-vazi9-doc"),
    ] {
        assert_eq!(first_draws(dist, 2), keys);
    }
    let digest = "sha256:cf/c5/d07f6f03c29bbf424132963fe08d19a37d5757aaf520bf08119f05cd56d6";
    assert!(first_draws(Dist::HexDigests, 1).starts_with(digest));
    let mut rows = KeyList::new();
    let law = GroupLaw::of(&Dist::UserSessions).expect("a law of groups");
    law.draw(&mut rows, &mut Rng::new(1));
    assert_eq!((rows.len(), rows.get(0)), (2, &b"user81161215time10058928"[..]));
    let law = GroupLaw::of(&Dist::UserTime).expect("a law of groups");
    law.draw(&mut rows, &mut Rng::new(1));
    assert_eq!((rows.len(), rows.get(2)), (16, &b"user81161215time10015090"[..]));
}

#[test]
fn ends_of_intervals_come_in_pairs_of_which_many_touch() {
    let keys = KeySet::new(&Dist::Intervals, FileFormat::Lines, Some(70_000), 1).expect("keys");
    let number = |key: &[u8]| u64::from_be_bytes(key.try_into().expect("eight bytes"));
    let ends: Vec<u64> = keys.stored().iter().map(number).collect();
    let ones = ends.windows(2).filter(|pair| pair[1] - pair[0] == 1).count() as f64;
    // One interval in two begins right behind another. Both keys of such a pair are stored in 49 of
    // 64 cases.
    assert!((0.15..0.25).contains(&(ones / 70_000.0)), "{ones}");
}

/// Returns the mean length of 20,000 keys, and the mean length of prefixes that neighbours share.
fn lengths(dist: Dist) -> (f64, f64) {
    let keys = KeySet::new(&dist, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let shape = keys.shape();
    (shape.bytes_mean, shape.shared_prefix_bytes_mean)
}

#[test]
fn strings_are_as_long_and_as_alike_as_is_said() {
    let (emails, shared) = lengths(Dist::Emails);
    assert!((20.0..24.0).contains(&emails) && (9.0..15.0).contains(&shared), "{emails}, {shared}");
    let (urls, shared) = lengths(Dist::Urls);
    assert!((45.0..75.0).contains(&urls) && (22.0..40.0).contains(&shared), "{urls}, {shared}");
    let (sensors, shared) = lengths(Dist::Sensors);
    assert!(sensors == 16.0 && (5.0..6.5).contains(&shared), "{sensors}, {shared}");
    let (words, shared) = lengths(Dist::StandIn(RealSet::Words));
    assert!((7.0..14.0).contains(&words) && shared > 3.0, "{words}, {shared}");
    for (dist, bytes, alike) in [
        (Dist::UserTime, 24.0..24.1, 14.0..20.0),
        (Dist::UserSessions, 24.0..24.1, 16.0..20.0),
        (Dist::Hosts, 30.0..50.0, 12.0..18.0),
        (Dist::JsonComposite, 45.0..60.0, 22.0..38.0),
        (Dist::HexDigests, 73.0..73.1, 9.0..12.0),
        (Dist::Uuid4, 16.0..16.1, 1.0..2.5),
        (Dist::Uuid4Text, 36.0..36.1, 2.5..4.5),
        (Dist::Uuid7, 16.0..16.1, 3.0..6.0),
        (Dist::Uuid7Text, 36.0..36.1, 6.0..10.0),
        (Dist::StandIn(RealSet::Packages), 11.0..19.0, 5.0..11.0),
    ] {
        let (mean, shared) = lengths(dist.clone());
        assert!(bytes.contains(&mean) && alike.contains(&shared), "{dist}: {mean}, {shared}");
    }
    let (flights, shared) = lengths(Dist::StandIn(RealSet::Flights));
    assert!(flights == 14.0 && (8.0..11.0).contains(&shared), "{flights}, {shared}");
}

#[test]
fn strings_of_words_are_text() {
    for dist in [RealSet::Words, RealSet::English].map(Dist::StandIn) {
        let keys = KeySet::new(&dist, FileFormat::Lines, Some(5000), 1).expect("keys");
        assert!(keys.stored().iter().all(|key| std::str::from_utf8(key).is_ok()));
    }
}

#[test]
fn an_email_is_a_reversed_host_and_a_name_and_few_hosts_have_most() {
    let keys = KeySet::new(&Dist::Emails, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let mut of_host = std::collections::HashMap::new();
    for key in keys.stored().iter() {
        let at = key.iter().position(|byte| *byte == b'@').expect("a host ends");
        assert!(key[..at].contains(&b'.') && at + 1 < key.len());
        *of_host.entry(key[..at].to_vec()).or_insert(0usize) += 1;
    }
    let mut counts: Vec<usize> = of_host.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // By Zipf's law, the first of 200,000 hosts has a share of 1 / 12.8.
    assert!((1300..1800).contains(&counts[0]) && counts.len() > 3000, "{}", counts[0]);
}

#[test]
fn sensors_have_an_event_every_tenth_of_a_millisecond() {
    let keys = KeySet::new(&Dist::Sensors, FileFormat::Lines, Some(20_000), 1).expect("keys");
    let word = |key: &[u8], at: usize| {
        u64::from_be_bytes(key[at..at + 8].try_into().expect("eight bytes"))
    };
    let times: Vec<u64> = keys.stored().iter().map(|key| word(key, 0)).collect();
    let last = times[times.len() - 1];
    assert!((1_990_000_000..2_000_000_000).contains(&last), "{last}");
    assert!(keys.stored().iter().all(|key| word(key, 8) < 2000));
    // In a Poisson process, a gap is longer than the mean with probability 1 / e.
    let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 100_000).count();
    assert!((long as f64 / 20_000.0 - (-1f64).exp()).abs() < 0.02, "{long}");
}
