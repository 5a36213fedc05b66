//! Stores that another process has open: read along.

use crate::common::{Workplace, flip_bit};
use trommel::{Db, KeyspaceOptions, Options};

/// A store that this process has open, with a key space beside the default one.
fn held(place: &Workplace) -> Db {
    let db = Db::open(place.path("s"), Options::default()).expect("opens");
    let other = db.keyspace("other", KeyspaceOptions::default()).expect("makes it");
    db.put("drum", "turns").and_then(|()| db.flush()).expect("writes");
    other.put("sieve", "sifts").and_then(|()| other.flush()).expect("writes");
    db.put("grain", "falls").expect("puts");
    db.put("last", "perhaps").expect("puts");
    db
}

#[test]
fn commands_that_read_go_beside_a_writer() {
    let place = Workplace::new();
    let db = held(&place);
    let got = place.run("get --db s grain");
    assert!(got.err.contains("read as another process has written it, up to write"), "{}", got.err);
    assert_eq!(got.with_status(0), "falls\n");
    place.run("get --db s none").with_status(1);
    assert_eq!(place.run("get --db s --keyspace other sieve").with_status(0), "sifts\n");
    place.run("get --db s --keyspace none sieve").fails(3, &["there is no key space none"]);
    place.run("get --db s drum --out value").with_status(0);
    assert_eq!(std::fs::read(place.path("value")).expect("written"), b"turns");
    let scanned = place.run("scan --db s").with_status(0);
    assert!(scanned.starts_with("drum\tturns\ngrain\tfalls\n"), "{scanned}");
    let back = place.run("scan --db s --to e --reverse --keys-only").with_status(0);
    assert_eq!(back, "drum\n");
    let stats = place.run("stats --db s --json").json(0);
    assert!(stats["sequence"].as_u64() >= Some(3), "{stats}");
    assert_eq!(place.run("inspect --db s --json").json(0)["guard"]["kind"], "grf");
    let checked = place.run("verify --db s --json").json(0);
    assert_eq!((&checked["ok"], &checked["tables"]), (&true.into(), &2.into()));
    db.put("later", "than that").expect("the writer knows of none of it");
    db.close().expect("closes");
}

#[test] // It told that the store is in use, and no damage.
fn damage_is_told_beside_a_writer() {
    let place = Workplace::new();
    let db = held(&place);
    let table = place.largest_file("s", ".table");
    let end = table.metadata().expect("there").len() as usize;
    flip_bit(&table, end - 1);
    let name = table.file_name().expect("a name").to_string_lossy().into_owned();
    let ended = place.run("verify --db s --json");
    assert!(ended.err.contains(r#""kind":"damage""#), "{}", ended.err);
    let report = ended.json(3);
    assert_eq!(report["ok"], false);
    assert!(report["damage"][0].to_string().contains(&name), "{report}");
    drop(db);
}

#[test]
fn a_checkpoint_is_made_beside_a_writer() {
    let place = Workplace::new();
    let db = held(&place);
    place.run("checkpoint --db s copy").with_status(0);
    assert_eq!(place.run("get --db copy grain").with_status(0), "falls\n");
    place.run("verify --db copy").with_status(0);
    place.run("checkpoint --db s copy").fails(3, &["not empty"]);
    db.close().expect("closes");
}

#[test]
fn a_generation_is_stored_beside_a_writer() {
    let place = Workplace::new();
    let db = held(&place);
    db.put("long", vec![b'x'; 1 << 20]).and_then(|()| db.flush()).expect("writes");
    for (round, text) in [(1, "once"), (2, "twice")] {
        // What comes last may be refused yet, for who reads along.
        db.put("turn", text).and_then(|()| db.put("last", text)).expect("writes");
        let output = place.run("backup --db s kept --json").json(0);
        assert_eq!(output["generation"]["number"], round);
    }
    place.run("backup --db s kept --changes").fails(3, &["another process"]);
    db.put("turn", "thrice").expect("puts");
    db.close().expect("closes");
    assert_eq!(place.run("backups kept --verify --json").json(0)["damage"], serde_json::json!([]));
    for (round, text) in [(1, "once\n"), (2, "twice\n")] {
        place.run(&format!("restore kept r{round} --generation {round}")).with_status(0);
        assert_eq!(place.run(&format!("get --db r{round} turn")).with_status(0), text);
        place.run(&format!("get --db r{round} long --out long{round}")).with_status(0);
        let long = std::fs::read(place.path(&format!("long{round}"))).expect("written");
        assert!(long == vec![b'x'; 1 << 20]);
        let sieve = format!("get --db r{round} --keyspace other sieve");
        assert_eq!(place.run(&sieve).with_status(0), "sifts\n");
        place.run(&format!("put --db r{round} turn again")).with_status(0);
        place.run(&format!("verify --db r{round}")).with_status(0);
    }
}

#[test]
fn processes_that_read_along_answer_as_the_writer_did() {
    let place = Workplace::new();
    for seed in 5..9 {
        let command = format!("stress --kills 8 --followers 3 --seed {seed} --dir {seed} --json");
        let report = place.run(&command).json(0);
        let failure = &report["failure"];
        assert_eq!((&report["kills"], failure), (&8.into(), &serde_json::Value::Null), "{seed}");
        let followers = report["followers"].as_array().expect("a list");
        let count = |name: &str| followers.iter().map(move |it| it[name].as_u64()).min().flatten();
        assert_eq!(followers.len(), 3);
        assert!(count("answers") > Some(1000) && count("moments") > Some(20), "{report}");
        assert!(count("long") > Some(10), "{report}");
        assert!(report["acknowledged"].as_u64() > Some(100), "{report}");
    }
    place.run("stress --followers 3").fails(2, &["--kills"]);
}
