//! The patterns of the laws of cost: things of which a store may have many.
//! ```text
//! pattern    a name, the small number, and how it is written
//! ```
//! Invariant: all patterns write to the area m, so there are keys before and behind it.

use trommel_guards::kinds;

use super::{VALUE, World, key};
use crate::{GuardKind, Keyspace, KeyspaceOptions, Options};

/// Writes this many of something to a store.
pub(super) type Build = fn(&mut World, u64);

pub(super) struct Pattern {
    pub(super) name: &'static str,
    /// The small number. The other world has ten times as many.
    pub(super) small: u64,
    pub(super) options: fn(Options) -> Options,
    pub(super) build: Build,
}

const fn pattern(name: &'static str, small: u64, build: Build) -> Pattern {
    Pattern { name, small, options: |options| options, build }
}

pub(super) const TOMBSTONES: &str = "rows of tombstones";
pub(super) const RUNS: &str = "runs";
pub(super) const HELD_CUT: &str = "a log is cut, snapshots held";
const HELD_VERSIONS: &str = "versions of a key in a table, snapshots held";
pub(super) const HELD: &str = "held snapshots";

/// Patterns in which there are many other key spaces besides the default one.
pub(super) const OF_KEYSPACES: [&str; 3] =
    ["key spaces", "key spaces with an entry in memory each", "key spaces with a table each"];

fn keyspaces(world: &World, n: u64) -> impl Iterator<Item = Keyspace> {
    let named = |i| world.db().keyspace(format!("number {i}"), KeyspaceOptions::new());
    (0..n).map(move |i| named(i).expect("makes it"))
}

pub(super) const PATTERNS: [Pattern; 25] = [
    pattern("a log is cut", 1000, |world, n| {
        (0..n).for_each(|i| {
            world.put(b'm', i);
            world.delete_range(0, i.saturating_sub(10) + 1);
        });
    }),
    pattern("ranges within ranges", 1000, |world, n| {
        (0..n).for_each(|i| {
            world.put(b'm', 2 * n);
            world.delete_range(i, 4 * n - i);
        });
    }),
    pattern("ranges around ranges", 1000, |world, n| {
        (0..n).for_each(|i| {
            world.put(b'm', 2 * n - i);
            world.delete_range(2 * n - i, 2 * n + i + 1);
        });
    }),
    pattern("staggered ranges", 1000, |world, n| (0..n).for_each(|i| world.stagger(i, 1))),
    pattern("staggered ranges, downward", 1000, |world, n| {
        (0..n).rev().for_each(|i| world.stagger(i, 1));
    }),
    pattern("staggered ranges of many keys", 100, |world, n| {
        (0..n).for_each(|i| world.stagger(i, 100));
    }),
    pattern("staggered ranges, each of them twice", 1000, |world, n| {
        (0..2).for_each(|_| (0..n).for_each(|i| world.stagger(i, 1)));
    }),
    pattern("staggered ranges, keys put behind every hundredth of them", 1000, |world, n| {
        (0..n).for_each(|i| world.stagger(i, 1));
        (0..n).step_by(n as usize / 10).for_each(|i| world.put(b'm', 1000 * i + 1));
    }),
    pattern("staggered ranges in a sealed memtable", 1000, |world, n| {
        (0..n).for_each(|i| world.stagger(i, 1));
        world.db().seal().expect("seals");
        (0..5).for_each(|i| world.put(b'm', 200 * n * i));
    }),
    pattern(
        "a range over staggered ranges in a sealed memtable, and a key in it",
        1000,
        |world, n| {
            (0..n).for_each(|i| world.stagger(i, 1));
            (0..n).for_each(|i| world.put(b'm', 1000 * i + 1));
            world.db().seal().expect("seals");
            world.delete_range(0, 1000 * n + 5000);
            world.put(b'm', 500 * n);
        },
    ),
    pattern("staggered ranges over runs", 1000, |world, n| {
        (0..n).for_each(|i| world.put(b'm', 1000 * i + 7));
        world.db().flush().expect("flushes");
        (0..n).for_each(|i| world.stagger(i, 1));
    }),
    Pattern {
        name: "staggered ranges over a view of all runs",
        small: 1000,
        options: |options| options.guard(GuardKind::Locator(kinds::REMIX_SORTED)),
        build: |world, n| {
            (0..2 * n).for_each(|i| {
                world.put(b'm', 500 * i + 7);
                if i == n {
                    world.db().flush().expect("flushes");
                }
            });
            world.db().flush().expect("flushes");
            (0..n).for_each(|i| world.stagger(i, 1));
        },
    },
    pattern("a range again and again", 1000, |world, n| {
        (0..n).for_each(|i| {
            world.put(b'm', i % 7);
            world.delete_range(0, 100 + i % 3);
        });
    }),
    pattern("a range of many keys, and one key in it", 1000, |world, n| {
        (0..n).for_each(|i| world.put(b'm', i));
        world.delete_range(0, n);
        world.put(b'm', n / 2);
    }),
    pattern(HELD_CUT, 1000, |world, n| {
        (0..n).for_each(|i| {
            world.put(b'm', i);
            world.delete_range(0, i.saturating_sub(10) + 1);
            if i % 50 == 0 {
                world.hold();
            }
        });
    }),
    pattern("versions of a key", 1000, |world, n| {
        (0..n).for_each(|_| world.put(b'm', 5));
    }),
    pattern(HELD_VERSIONS, 200, |world, n| {
        (0..n).for_each(|_| {
            world.put(b'm', 5);
            world.hold();
        });
        world.db().flush().expect("flushes");
    }),
    pattern("versions of a key in three runs, snapshots held", 600, |world, n| {
        for _ in 0..3 {
            (0..n / 3).for_each(|_| {
                world.put(b'm', 5);
                world.hold();
            });
            world.db().flush().expect("flushes");
        }
        assert_eq!(world.db().stats().expect("open").run_count(), 3);
    }),
    pattern(TOMBSTONES, 1000, |world, n| {
        (0..n).for_each(|i| world.put(b'm', i));
        (0..n).for_each(|i| world.db().delete(key(b'm', i)).expect("deletes"));
    }),
    pattern(HELD, 500, |world, n| {
        (0..n).for_each(|i| {
            world.put(b'm', i);
            world.hold();
        });
    }),
    pattern(RUNS, 4, |world, n| {
        (0..n).for_each(|i| {
            (0..20).for_each(|at| world.put(b'm', n * at + i));
            world.db().flush().expect("flushes");
        });
    }),
    Pattern {
        name: "partitions",
        // With both sizes, the last key lies about equally far into its block.
        small: 1150,
        options: |options| options.partition_bytes(32 << 10),
        build: |world, n| {
            (0..n).for_each(|i| world.put(b'm', i));
            world.db().compact().expect("compacts");
        },
    },
    pattern(OF_KEYSPACES[0], 100, |world, n| keyspaces(world, n).for_each(drop)),
    pattern(OF_KEYSPACES[1], 100, |world, n| {
        keyspaces(world, n).for_each(|one| one.put(key(b'm', 0), VALUE).expect("puts"));
    }),
    pattern(OF_KEYSPACES[2], 100, |world, n| {
        keyspaces(world, n).for_each(|one| {
            one.put(key(b'm', 0), VALUE).expect("puts");
            one.flush().expect("flushes");
        });
    }),
];
