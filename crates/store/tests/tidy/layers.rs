//! Folders are layers: each uses those below it alone, and files do not use each other in circles.
//! ```text
//! events < storage < entries < plan < files < shared < guard < tree < read | write < tools
//! < open < db < follow < backup < research
//! ```
//! Invariant: both rules are also shown a house that breaks them.

use super::imports::{Import, Modules, largest_circle};
use super::{Source, collect, root};

/// So many files may use each other in a circle.
const CIRCLE_MAX: usize = 4;

/// A crate: where it is, and what lies at its root, lowest first: folders and files.
struct House {
    sources: &'static str,
    layers: &'static [&'static str],
    /// Neither of these uses the other.
    apart: Option<(&'static str, &'static str)>,
}

const LAYERS: [House; 5] = [
    House {
        sources: "crates/store/src/",
        layers: &[
            "cost", "sync", "error", "events", "storage", "entries", "plan", "files", "shared",
            "guard", "tree", "read", "write", "tools", "open", "db", "follow", "backup",
            "research",
        ],
        apart: Some(("read", "write")),
    },
    House {
        sources: "crates/filters/src/",
        layers: &["bits", "base", "fingerprint", "text", "point", "range", "grf", "locators"],
        apart: None,
    },
    House {
        sources: "crates/guards/src/",
        layers: &["point", "range", "elastic", "locators", "kinds", "register", "advice"],
        apart: None,
    },
    House {
        sources: "crates/lab/src/",
        layers: &[
            "error",
            "median",
            "progress",
            "report",
            "tree_plan",
            "keys",
            "transfer",
            "replay",
            "questions",
            "bound",
            "bench",
            "stress",
            "kill",
            "follow",
            "threads",
            "commits",
            "compare",
            "experiment",
            "ycsb",
            "transactions",
            "peer_task",
        ],
        apart: None,
    },
    House {
        sources: "crates/cli/src/",
        layers: &[
            "process",
            "output",
            "args",
            "watch",
            "commands",
            "command_line",
            "hint",
            "usage",
            "help",
        ],
        apart: None,
    },
];

impl House {
    /// The place of a module's layer. None: it is the root, which gives all out, or not listed.
    fn layer(&self, module: &str) -> Option<usize> {
        let name = module.split("::").next()?;
        self.layers.iter().position(|layer| *layer == name)
    }

    fn is_backward(&self, import: &Import) -> bool {
        let Some(from) = self.layer(&import.from) else { return !import.from.is_empty() };
        let Some(to) = self.layer(&import.to) else { return true };
        let are_apart = self.apart.is_some_and(|(one, other)| {
            let ends = [self.layers[from], self.layers[to]];
            ends == [one, other] || ends == [other, one]
        });
        to > from || are_apart
    }

    fn wrong(&self, sources: &[Source]) -> Vec<String> {
        let modules = Modules::below(self.sources, sources);
        let imports = modules.imports();
        let backward = imports.iter().filter(|import| self.is_backward(import)).map(|import| {
            let what = format!("{} uses {}, which lies above it", import.from, import.to);
            modules.source(&import.from).wrong_at(import.at, &what)
        });
        let mut wrong: Vec<String> = backward.collect();
        let circle = largest_circle(&imports);
        if circle.len() > CIRCLE_MAX {
            let what = format!("{} files use each other: {circle:?}", circle.len());
            wrong.push(format!("{}: {what}; at most {CIRCLE_MAX}", self.sources));
        }
        wrong.sort();
        wrong
    }
}

#[test]
fn folders_use_those_below_them_alone() {
    let mut sources = Vec::new();
    collect(&root().join("crates"), &mut sources);
    let wrong: Vec<String> = LAYERS.iter().flat_map(|house| house.wrong(&sources)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is wrong in a store of these files: their modules and texts.
fn wrong_in(files: &[(&str, &str)]) -> Vec<String> {
    let source = |(module, text): &(&str, &str)| {
        Source::new(&format!("{}{module}.rs", LAYERS[0].sources), text)
    };
    LAYERS[0].wrong(&files.iter().map(source).collect::<Vec<_>>())
}

#[test]
fn a_house_that_breaks_the_rules_is_seen() {
    let root = ("lib", "mod files;\npub use files::wal::Wal;");
    let backward = ("files/wal", "\nuse crate::tree::{stats, version::Version};");
    let tree = [("tree/version", "//! Lower: use crate::db::Db;"), ("tree/stats", "")];
    let wrong = wrong_in(&[root, backward, tree[0], tree[1]]);
    let expected = |name| {
        format!("crates/store/src/files/wal.rs:2: files::wal uses {name}, which lies above it")
    };
    assert_eq!(wrong, [expected("tree::stats"), expected("tree::version")]);
    let by_path = ("files/wal", "fn f() { crate::tree::stats::count() }");
    assert_eq!(wrong_in(&[root, by_path, tree[1]]).len(), 1);
    let apart = wrong_in(&[("read/get", ""), ("write/flush", "use crate::read::get::Get;")]);
    assert_eq!(apart.len(), 1, "{apart:?}");
    let unknown = wrong_in(&[("misc", "use crate::error::Error;"), ("error", "")]);
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}

#[test]
fn a_large_circle_is_seen() {
    let next = ["super::b::B", "super::c::C", "super::d::D", "crate::read::e", "{super::a, f}"];
    let texts = next.map(|path| format!("use {path};"));
    let names = ["read/a", "read/b", "read/c", "read/d", "read/e"];
    let ring: Vec<(&str, &str)> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
    let wrong = wrong_in(&ring);
    assert!(wrong.len() == 1 && wrong[0].contains("5 files use each other"), "{wrong:?}");
    let opened = [&ring[..4], &[("read/e", "#[cfg(test)]\nmod tests { use super::super::a; }")]];
    assert_eq!(wrong_in(&opened.concat()), [""; 0]);
}
