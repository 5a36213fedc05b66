//! Documents: their links lead somewhere, they stay short, and the table of folders is complete.
//! ```text
//! *.md ──> text without code ──> [words](path#heading) ──> is there such a file, such a heading?
//! ```
//! Invariant: every rule is also shown a bad sample.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{leading_word, root};

/// Bytes that documents may have. (A path ends it, or is a folder: then all of it together.)
const BYTES_MAX: [(&str, u64); 9] = [
    ("README.md", 7 << 10),
    ("CONTRIBUTING.md", 6 << 10),
    ("docs/adopt.md", 4 << 10),
    ("docs/kafka-streams.md", 8 << 10),
    ("docs/scale.md", 6 << 10),
    ("docs/architecture.md", 7500),
    ("docs/cli.md", 29 << 10),
    ("docs/results.md", 32 << 10),
    ("docs/figures", 400_000),
];

/// Documents that commands write: they are looked up in, not read from end to end.
const GENERATED: [&str; 2] = ["docs/cli.md", "docs/results.md"];

/// For who comes from another system, brings its stores into one, or plans for many machines: they
/// have bounds of their own.
const GUIDES: [&str; 3] = ["docs/adopt.md", "docs/kafka-streams.md", "docs/scale.md"];

/// README, CONTRIBUTING and all other Markdown below docs that people write, together.
const ALL_BYTES_MAX: u64 = 150 << 10;

/// Crates whose folders are listed in docs/architecture.md, each behind a heading with its path.
const LISTED: [&str; 5] = [
    "crates/filters/src",
    "crates/guards/src",
    "crates/store/src",
    "crates/lab/src",
    "crates/cli/src",
];

struct Document {
    path: String,
    text: String,
}

impl Document {
    fn folder(&self) -> &Path {
        Path::new(&self.path).parent().unwrap_or(Path::new(""))
    }
}

/// All documents below a folder of the repository, but what builds and downloads have left there.
fn documents(folder: &str, found: &mut Vec<Document>) {
    let entries = fs::read_dir(root().join(folder)).expect("a folder of the repository");
    for entry in entries.map(|entry| entry.expect("an entry of the repository")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let is_foreign = name.starts_with('.') || ["target", "fetched", "corpus"].contains(&&*name);
        if entry.path().is_dir() && !is_foreign {
            documents(&path, found);
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(entry.path()).expect("text");
            found.push(Document { path, text });
        }
    }
}

/// The text without blocks of code and what stands in backticks.
fn prose(text: &str) -> String {
    let blocks = text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    blocks.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

/// What a text links to.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let ends = text.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.to_string()).collect()
}

/// The anchors of a text's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let blocks = text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    let headings = blocks.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The links of a document that lead nowhere.
fn broken(document: &Document) -> Vec<String> {
    let links = links(&document.text).into_iter().filter(|link| !link.contains("://"));
    let is_broken = |link: &String| {
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = root().join(document.folder()).join(path);
        if path.is_empty() {
            return !anchors(&document.text).contains(heading);
        }
        let is_there = target.exists();
        let text = || fs::read_to_string(&target).unwrap_or_default();
        !is_there || !heading.is_empty() && !anchors(&text()).contains(heading)
    };
    let say = |link| format!("{}: {link} leads nowhere", document.path);
    links.filter(is_broken).map(say).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut found = Vec::new();
    documents("", &mut found);
    assert!(found.len() > 20, "only {} documents found", found.len());
    let wrong: Vec<String> = found.iter().flat_map(broken).collect();
    assert!(wrong.is_empty(), "{} broken links:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_broken_link_is_seen() {
    let text = "# A `name`, or two\n[a](testing.md) [b](no.md) `[c](code.md)` [d](#a-name-or-two) [e](#f)\n\
                [g](testing.md#schedules) [h](testing.md#no)\n```\n[i](fence.md)\n```\n![j](figures/no.svg)";
    let sample = Document { path: "docs/sample.md".into(), text: text.into() };
    let expected = ["no.md", "#f", "testing.md#no", "figures/no.svg"];
    let expected = expected.map(|link| format!("docs/sample.md: {link} leads nowhere"));
    assert_eq!(broken(&sample), expected);
}

fn bytes(path: &Path) -> u64 {
    match path.is_dir() {
        true => {
            let entries =
                fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry"));
            entries.map(|entry| bytes(&entry.path())).sum()
        }
        false => fs::metadata(path).expect("a file").len(),
    }
}

#[test]
fn documents_are_short() {
    for (path, most) in BYTES_MAX {
        let has = bytes(&root().join(path));
        assert!(has <= most, "{path} has {has} bytes; at most {most}");
    }
    let mut found = Vec::new();
    documents("docs", &mut found);
    let is_counted = |path: &str| !GENERATED.contains(&path) && !GUIDES.contains(&path);
    let written = found.iter().filter(|one| is_counted(&one.path));
    let docs: u64 = written.map(|document| document.text.len() as u64).sum();
    let all = docs + bytes(&root().join("README.md")) + bytes(&root().join("CONTRIBUTING.md"));
    assert!(all <= ALL_BYTES_MAX, "all documents have {all} bytes; at most {ALL_BYTES_MAX}");
}

#[test]
fn documents_say_for_whom_they_are() {
    let mut found = Vec::new();
    documents("docs", &mut found);
    for document in found {
        let head: Vec<&str> = document.text.lines().take(4).collect();
        assert!(head.iter().any(|line| line.starts_with("For ")), "{}: for whom?", document.path);
    }
}

/// The folders that architecture.md lists behind the heading of a crate, with the file to read.
fn listed_of(text: &str, sources: &str) -> Vec<(String, String)> {
    let heading = format!("### `{sources}`\n");
    let behind = text.split_once(&heading).map_or("", |(_, rest)| rest);
    let own = behind.split("\n#").next().unwrap_or(behind);
    let rows = own.lines().filter(|line| line.starts_with("| `"));
    let cell = |row: &str, place: usize| {
        row.split('|').nth(place).unwrap_or("").trim().trim_matches('`').to_string()
    };
    rows.map(|row| (leading_word(&cell(row, 1)).to_string(), cell(row, 3))).collect()
}

#[test]
fn every_folder_has_its_line() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).expect("the document");
    for sources in LISTED {
        let listed = listed_of(&text, sources);
        for (folder, file) in &listed {
            let path = format!("{sources}/{folder}/{file}");
            assert!(
                root().join(&path).exists(),
                "architecture.md names {path}, which is not there"
            );
        }
        let entries = fs::read_dir(root().join(sources)).expect("sources");
        for entry in entries.map(|entry| entry.expect("an entry")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let has_line = listed.iter().any(|(folder, _)| *folder == name);
            let is_said = text.contains(&format!("`{name}/`"));
            assert!(!entry.path().is_dir() || has_line || is_said, "{sources}/{name} has no line");
        }
    }
    let sample = "### `crates/x/src`\n\n| `a/` | what | `b.rs` |\n\n### other\n| `c/` | | |";
    assert_eq!(listed_of(sample, "crates/x/src"), [("a".into(), "b.rs".into())]);
}
