//! `changes`: what was written, from a number on.

use crate::common::Workplace;

#[test]
fn changes_are_printed_in_their_order_as_long_as_logs_have_them() {
    let place = Workplace::new();
    place.run("put --db s --kept-log-bytes 1000000 apple red").with_status(0);
    // Options that are kept hold for whoever does not name them.
    place.run("put --db s --keyspace hues plum blue").with_status(0);
    place.run("compact --db s --all").with_status(0);
    place.run("delete --db s apple").with_status(0);
    place.run("delete-range --db s a b").with_status(0);
    let output = place.run("changes --db s --since 0").with_status(0);
    assert_eq!(
        output,
        "1\tdefault\tput\tapple\tred\n2\thues\tput\tplum\tblue\n3\tdefault\tdelete\tapple\n\
         4\tdefault\tdelete-range\ta\tb\n"
    );
    let output = place.run("changes --db s --since 1 --limit 1 --json").json(0);
    assert_eq!((&output["sequence"], &output["count"]), (&2.into(), &1.into()));
    let change = &output["batches"][0][0];
    assert_eq!((&change["keyspace"], &change["value"]), (&"hues".into(), &"blue".into()));
    place.run("compact --db s --all --keyspace hues").with_status(0);
    place.run("compact --db s --all").with_status(0);
    assert!(place.run("stats --db s").with_status(0).contains("logs kept for changes"));
    place.run("changes --db s --since 5").fails(3, &["the next write of this store is 5"]);
    place.run("changes --db s --since 0 --keyspace hues").fails(2, &["leave out --keyspace"]);
    place.run("compact --db s --all --kept-log-bytes 0").with_status(0);
    place.run("changes --db s --since 0").fails(3, &["read a snapshot"]);
}
