//! Packages: what users download has its licences and its own page, and what it brings along may be
//! given away with it.
//! ```text
//! Cargo.lock --> cargo metadata --locked --> licence of each crate --> LICENCES
//! cargo package --list --> README, licences, sources; no tests
//! ```
//! Invariant: as in deny.toml, which `scripts/check-packages.sh deny` asks with advisories, too.

use std::fs;
use std::process::Command;

use super::root;

/// Each permits to give the work away in a binary, with no more than its text beside it.
const LICENCES: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSL-1.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The crates that are published, and the folder of each.
const PUBLISHED: [(&str, &str); 5] = [
    ("trommel-filters", "crates/filters"),
    ("trommel", "crates/store"),
    ("trommel-guards", "crates/guards"),
    ("trommel-tracing", "crates/tracing"),
    ("trommel-objects", "crates/objects"),
];

/// Whether an expression such as `(MIT OR GPL-3.0) AND Zlib` leaves a choice of those above. (In a
/// list with `/`, as older crates have it, any will do.)
fn is_allowed(expression: &str) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let (allowed, rest) = any_of(&words);
    allowed && rest.is_empty()
}

fn any_of<'a, 'w>(words: &'a [&'w str]) -> (bool, &'a [&'w str]) {
    let (mut allowed, mut rest) = all_of(words);
    while let ["OR", behind @ ..] = rest {
        let (other, behind) = all_of(behind);
        (allowed, rest) = (allowed | other, behind);
    }
    (allowed, rest)
}

fn all_of<'a, 'w>(words: &'a [&'w str]) -> (bool, &'a [&'w str]) {
    let (mut allowed, mut rest) = one_of(words);
    while let ["AND", behind @ ..] = rest {
        let (other, behind) = one_of(behind);
        (allowed, rest) = (allowed & other, behind);
    }
    (allowed, rest)
}

fn one_of<'a, 'w>(words: &'a [&'w str]) -> (bool, &'a [&'w str]) {
    match words {
        ["(", inner @ ..] => match any_of(inner) {
            (allowed, [")", behind @ ..]) => (allowed, behind),
            (_, behind) => (false, behind),
        },
        [name, "WITH", exception, behind @ ..] => {
            (LICENCES.contains(&&*format!("{name} WITH {exception}")), behind)
        }
        [name, behind @ ..] => (LICENCES.contains(name), behind),
        [] => (false, words),
    }
}

/// Of every crate that the workspace's lock names: name and licence. None: the sources of some are
/// not here, as without a network.
fn crates() -> Option<Vec<(String, String)>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().expect("cargo runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let packages = text.split("{\"name\":\"").skip(1).filter_map(|package| {
        let (name, rest) = package.split_once("\",\"version\":\"")?;
        let (_, licence) = rest.split_once("\",\"license\":")?;
        let licence = licence
            .strip_prefix('"')
            .map_or("none", |text| text.split('"').next().unwrap_or_default());
        Some((name.to_owned(), licence.to_owned()))
    });
    output.status.success().then(|| packages.collect())
}

#[test]
fn licences_permit_to_give_it_away() {
    let Some(crates) = crates() else {
        println!("not looked at: cargo has not all of the lock's crates here");
        return;
    };
    assert!(crates.len() > 100, "only {} crates found", crates.len());
    let wrong: Vec<_> = crates.iter().filter(|(_, licence)| !is_allowed(licence)).collect();
    assert!(wrong.is_empty(), "not allowed: {wrong:?}");
}

#[test]
fn a_licence_that_is_not_allowed_is_seen() {
    for good in ["MIT", "Apache-2.0/MIT", "(MIT OR GPL-3.0) AND Zlib", "GPL-3.0 OR BSL-1.0"] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in ["none", "", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "Apache-2.0 WITH X", "MIT Zlib"] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn deny_toml_allows_the_same() {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let (_, list) = text.split_once("\nallow = [\n").expect("a list of licences");
    let (list, _) = list.split_once("\n]").expect("its end");
    let listed: Vec<&str> =
        list.lines().map(|line| line.trim().trim_end_matches(',').trim_matches('"')).collect();
    assert_eq!(listed, LICENCES);
}

#[test]
fn packages_have_licences_and_a_page_but_no_tests() {
    for (name, folder) in PUBLISHED {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["package", "--list", "--allow-dirty", "--offline", "-p", name]);
        let output = cargo.current_dir(root()).output().expect("cargo runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {complaint}");
        let list = String::from_utf8(output.stdout).expect("text").replace('\\', "/");
        let files: Vec<&str> = list.lines().collect();
        for wanted in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            assert!(files.contains(&wanted), "{name} lacks {wanted}");
        }
        let foreign = |file: &&&str| {
            let is_made = file.starts_with("Cargo.") || file.starts_with(".cargo");
            let is_page =
                ["README.md", "FORMAT.md"].contains(*file) || file.starts_with("LICENSE-");
            !is_made && !is_page && (!file.starts_with("src/") || file.contains("tests"))
        };
        let foreign: Vec<_> = files.iter().filter(foreign).collect();
        assert!(foreign.is_empty(), "{name} has {foreign:?}");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = |path: String| fs::read_to_string(root().join(path)).expect("a licence");
            assert_eq!(text(format!("{folder}/{licence}")), text(licence.to_owned()), "{folder}");
        }
    }
}
