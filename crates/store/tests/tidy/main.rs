//! The rules of the house, as tests over the source tree.
//! ```text
//! crates/**/*.rs ──> Source { path, text, code } ──> rule
//!     ──> "path:line: what is wrong", or nothing
//!                              code: as text, but comments and strings are blanks
//! ```
//! Invariant: every rule is also shown a bad sample, so that none can pass by seeing nothing.

mod documents;
mod imports;
mod layers;
mod packages;

use std::fs;
use std::path::{Path, PathBuf};

const FUNCTION_LINES_MAX: usize = 70;

const COMMENT_COLUMNS_MAX: usize = 100;

/// Whose code a crate may use. (Only the tests of the store use further guards: see below.)
const ARROWS: [(&str, &[&str]); 12] = [
    ("filters", &[]),
    ("store", &["trommel-filters", "trommel-guards"]),
    ("guards", &["trommel-filters", "trommel"]),
    ("lab", &["trommel-filters", "trommel", "trommel-guards"]),
    ("cli", &["trommel-filters", "trommel", "trommel-guards", "trommel-lab"]),
    ("fuzzing", &["trommel-filters", "trommel", "trommel-guards", "trommel-lab"]),
    ("peers", &["trommel-lab"]),
    ("c", &["trommel-filters", "trommel", "trommel-guards"]),
    ("python", &["trommel-filters", "trommel", "trommel-guards"]),
    ("jni", &["trommel-filters", "trommel", "trommel-guards"]),
    ("slatedb", &["trommel-filters", "trommel-guards"]),
    ("rocksdb", &["trommel-filters"]),
];

/// The rooms for `unsafe`. (A path ends it, or begins a folder or file name.)
const UNSAFE_ROOMS: [&str; 12] = [
    "crates/c/src/",
    "crates/jni/src/",
    "crates/filters/src/bits/simd.rs",
    "crates/peers/src/lmdb.rs",
    "crates/python/src/arrow_stream.rs",
    "crates/store/src/entries/memtable",
    "crates/store/src/entries/skiplist",
    "crates/store/src/storage/disk_mapped",
    "crates/store/src/storage/disk_spare",
    "crates/store/src/storage/io_uring",
    "crates/store/src/storage/fork_word",
    "crates/store/tests/fork",
];

/// The files of the store that may name `std::fs`.
const DISK_ROOMS: [&str; 3] = [
    "crates/store/src/storage/mod",
    "crates/store/src/storage/disk",
    "crates/store/src/files/record/source/tests",
];

/// The cargo features, and where they are: filters are of use to programs without a system, which
/// have no `std`; not everyone has a C compiler, which `zstd` needs.
const FEATURES: [(&str, &str); 3] = [
    ("crates/filters/src/", "feature = \"std\""),
    ("crates/store/src/", "feature = \"zstd\""),
    ("crates/store/tests/", "feature = \"zstd\""),
];

/// Where filters are.
const FILTER_CRATES: [&str; 2] = ["crates/filters/src/", "crates/guards/src/"];

/// Folders, and modules of folders, of these that any filter above them may use.
const LEAVES: [&str; 6] =
    ["bits", "base", "fingerprint", "text", "range::base", "locators::run_locator"];

/// A source file. Lines count from 1.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Source { path: path.to_owned(), text: text.to_owned(), code: code_of(text) }
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    /// What is wrong at a place of `code`.
    fn wrong_at(&self, at: usize, what: &str) -> String {
        let line = self.code[..at].matches('\n').count() + 1;
        format!("{}:{line}: {what}", self.path)
    }
}

type Rule = fn(&Source) -> Vec<String>;

/// Blanks out comments and the contents of strings and characters. Lengths and line ends stay.
fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = opaque_end(bytes, at);
        for byte in &mut code[at..end.unwrap_or(at)] {
            *byte = if *byte == b'\n' { b'\n' } else { b' ' };
        }
        at = end.unwrap_or(at + 1);
    }
    String::from_utf8(code).expect("opaque parts begin and end with ASCII")
}

/// The end of the comment, string or character that begins at `at`; None: code is there.
fn opaque_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let after_word = at > 0 && is_word(bytes[at - 1]);
    match rest {
        [b'/', b'/', ..] => {
            Some(at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()))
        }
        [b'/', b'*', ..] => Some(at + find(rest, b"*/").map_or(rest.len(), |end| end + 2)),
        [b'r', b'"' | b'#', ..] if !after_word || bytes[at - 1] == b'b' => {
            raw_string_end(bytes, at)
        }
        [b'"', ..] => Some(quoted_end(bytes, at, b'"')),
        [b'\'', b'\\', ..] => Some(quoted_end(bytes, at, b'\'')),
        [b'\'', ..] => character_end(bytes, at),
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Requires: an `r` at `at`. None: a name such as `r#type`.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let body = at + 1 + hashes + 1;
    if bytes.get(body - 1) != Some(&b'"') {
        return None;
    }
    let closing = [&b"\""[..], &vec![b'#'; hashes]].concat();
    let end = find(&bytes[body..], &closing).map(|end| body + end + closing.len());
    Some(end.unwrap_or(bytes.len()))
}

/// The end of what the quote at `at` opens, with escapes.
fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != quote {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

/// `'x'` is a character, `'x` a lifetime.
fn character_end(bytes: &[u8], at: usize) -> Option<usize> {
    let text = std::str::from_utf8(&bytes[at + 1..]).ok()?;
    let end = at + 1 + text.chars().next()?.len_utf8();
    (bytes.get(end) == Some(&b'\'')).then_some(end + 1)
}

/// Where `word` stands alone in `code`.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let alone = |at: usize| {
        let before = code[..at].bytes().next_back();
        let after = code[at + word.len()..].bytes().next();
        ![before, after].into_iter().flatten().any(is_word)
    };
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| alone(at))
}

/// The end of the bracket that opens at or after `at`; None: it does not close.
fn closing(code: &str, at: usize, (open, close): (u8, u8)) -> Option<usize> {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth -= 1;
            if depth == 0 {
                return Some(offset + 1);
            }
        }
    }
    None
}

/// The first names in what `use root::…` or a path `root::…` names, with their places.
fn names_under<'a>(code: &'a str, root: &'a str) -> Vec<(usize, &'a str)> {
    let mut names = Vec::new();
    for at in words(code, root) {
        let Some(rest) = code[at + root.len()..].strip_prefix("::") else { continue };
        let start = code.len() - rest.len();
        if rest.starts_with('{') {
            let end = closing(code, start, (b'{', b'}')).unwrap_or(code.len());
            names.extend(group_heads(code, start + 1, end).into_iter().map(|name| (at, name)));
        } else {
            names.push((at, leading_word(rest)));
        }
    }
    names
}

fn leading_word(text: &str) -> &str {
    &text[..text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len())]
}

/// The first name of each item of a `{a::b, c::{d, e}}`.
fn group_heads(code: &str, start: usize, end: usize) -> Vec<&str> {
    let (mut heads, mut depth, mut item) = (Vec::new(), 0, start);
    for at in start..end {
        match code.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' | b'}' if depth == 0 => {
                heads.push(leading_word(code[item..at].trim_start()));
                item = at + 1;
            }
            _ => {}
        }
    }
    heads
}

fn std_uses(source: &Source, modules: &[&str], what: &str) -> Vec<String> {
    let named = names_under(&source.code, "std").into_iter();
    let forbidden = named.filter(|(_, name)| modules.contains(name));
    forbidden.map(|(at, name)| source.wrong_at(at, &format!("std::{name}: {what}"))).collect()
}

fn filters_see_bytes_alone(source: &Source) -> Vec<String> {
    if !source.is_in(&FILTER_CRATES) {
        return vec![];
    }
    std_uses(source, &["fs", "thread", "time"], "filters know no files, no threads, no clock")
}

fn one_door_to_the_disk(source: &Source) -> Vec<String> {
    if !source.is_in(&["crates/store/src/"]) || source.is_in(&DISK_ROOMS) {
        return vec![];
    }
    std_uses(source, &["fs"], "the store reads and writes through Storage")
}

fn lab_never_prints(source: &Source) -> Vec<String> {
    if !source.is_in(&["crates/lab/src/"]) {
        return vec![];
    }
    let prints = ["println", "eprintln", "print", "eprint", "dbg"].into_iter();
    let calls = prints.flat_map(|name| words(&source.code, name).map(move |at| at + name.len()));
    let calls = calls.filter(|&end| source.code[end..].starts_with('!'));
    calls.map(|at| source.wrong_at(at, "lab measures, cli prints")).collect()
}

fn functions_are_short(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    for at in words(&source.code, "fn") {
        let name = leading_word(source.code[at + 2..].trim_start());
        let Some(end) = function_end(&source.code, at).filter(|_| !name.is_empty()) else {
            continue;
        };
        let lines = source.code[at..end].matches('\n').count() + 1;
        if lines > FUNCTION_LINES_MAX {
            let what =
                format!("{name} has {lines} lines; a function has at most {FUNCTION_LINES_MAX}");
            wrong.push(source.wrong_at(at, &what));
        }
    }
    wrong
}

/// The end of the body of the function whose `fn` is at `at`. None: it has no body.
fn function_end(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return closing(code, offset, (b'{', b'}')),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn unsafe_has_few_rooms(source: &Source) -> Vec<String> {
    if source.is_in(&UNSAFE_ROOMS) {
        return vec![];
    }
    let places = words(&source.code, "unsafe");
    places.map(|at| source.wrong_at(at, "unsafe outside its rooms")).collect()
}

fn exceptions_have_reasons(source: &Source) -> Vec<String> {
    let opened = ["#[allow(", "#[expect(", "#![allow(", "#![expect("].into_iter();
    let places = opened.flat_map(|start| source.code.match_indices(start).map(|(at, _)| at));
    let unexplained = places.filter(|&at| {
        let end = closing(&source.code, at, (b'[', b']')).unwrap_or(source.code.len());
        words(&source.code[at..end], "reason").next().is_none()
    });
    unexplained.map(|at| source.wrong_at(at, "a lint exception without a reason")).collect()
}

fn no_code_is_commented_out(source: &Source) -> Vec<String> {
    let looks_like_code = |line: &str| {
        let comment = line.trim_start().strip_prefix("//");
        let prose = comment.filter(|text| !text.starts_with(['/', '!']));
        prose.is_some_and(|text| text.trim_end().ends_with([';', '{', '}']))
    };
    let lines = source.text.lines().enumerate().filter(|(_, line)| looks_like_code(line));
    let say = |(at, _)| format!("{}:{}: code that is commented out", source.path, at + 1);
    lines.map(say).collect()
}

fn comments_wrap(source: &Source) -> Vec<String> {
    let is_wide = |line: &str| {
        line.chars().count() > COMMENT_COLUMNS_MAX && line.trim_start().starts_with("//")
    };
    let wide = source.text.lines().enumerate().filter(|(_, line)| is_wide(line));
    let say = |(at, _)| {
        format!("{}:{}: a comment of over {COMMENT_COLUMNS_MAX} columns", source.path, at + 1)
    };
    wide.map(say).collect()
}

fn modules_lie_in_folders(source: &Source) -> Vec<String> {
    if !source.path.contains("/src/") {
        return vec![];
    }
    let places = source.code.match_indices("#[path").map(|(at, _)| at);
    places.map(|at| source.wrong_at(at, "a module lies where its path says")).collect()
}

fn filters_are_chosen_at_run_time(source: &Source) -> Vec<String> {
    let may = |at: usize| {
        let is_listed = |(place, name): (&str, &str)| {
            source.is_in(&[place]) && source.text[at..].starts_with(name)
        };
        FEATURES.into_iter().any(is_listed)
    };
    let is_asked = |at: &usize| source.code[at + "feature".len()..].starts_with(" = ");
    let places = words(&source.code, "feature").filter(|at| is_asked(at) && !may(*at));
    places.map(|at| source.wrong_at(at, "there are no cargo features")).collect()
}

fn files_say_what_they_are(source: &Source) -> Vec<String> {
    let is_stub = source.text.lines().count() < 5;
    let explained = source.text.starts_with("//!") || is_stub || !source.path.contains("/src/");
    if explained { vec![] } else { vec![source.wrong_at(0, "a file opens with what it is (//!)")] }
}

/// The module of a filter: `surf` of `range`, but all of `grf`.
fn filter_module(path: &str) -> &str {
    let folder = leading_word(path);
    if !["point", "range", "locators"].contains(&folder) || path.len() < folder.len() + 2 {
        return folder;
    }
    &path[..folder.len() + 2 + leading_word(&path[folder.len() + 2..]).len()]
}

/// What `use crate::…` and paths `crate::…` name, as far as two names: `bits::simd`, `shape`.
fn filter_uses(code: &str) -> Vec<(usize, String)> {
    let mut uses = Vec::new();
    for (at, name) in names_under(code, "crate") {
        let after = name.as_ptr() as usize - code.as_ptr() as usize + name.len();
        let seconds = match code[after..].strip_prefix("::") {
            Some(rest) if rest.starts_with('{') => {
                let end = closing(code, after, (b'{', b'}')).unwrap_or(code.len());
                group_heads(code, after + "::{".len(), end)
            }
            Some(rest) => vec![leading_word(rest)],
            None => vec![],
        };
        uses.extend(seconds.iter().map(|second| (at, format!("{name}::{second}"))));
        if seconds.is_empty() {
            uses.push((at, name.to_owned()));
        }
    }
    uses
}

fn filters_know_no_other_filter(source: &Source) -> Vec<String> {
    let inside = FILTER_CRATES.iter().find_map(|sources| source.path.strip_prefix(sources));
    let Some(inside) = inside else { return vec![] };
    let path = inside.trim_end_matches(".rs").replace('/', "::");
    let module = filter_module(&path);
    if ["lib", "kinds", "register", "advice"].contains(&module) {
        return vec![];
    }
    let allowed = |name: &str| {
        let other = filter_module(name);
        other == module || LEAVES.contains(&other)
    };
    let named = filter_uses(&source.code).into_iter();
    // Tests may build what they test out of filters that stand above it.
    let tests = source.code.find("mod tests {").unwrap_or(source.code.len());
    let strange = named.filter(|(at, name)| *at < tests && !allowed(name));
    let what = |name| format!("{module} uses crate::{name}, which is no leaf below it");
    strange.map(|(at, name)| source.wrong_at(at, &what(name))).collect()
}

/// Each rule, and a bad sample of it: path, text, and the line that must be named.
fn rules() -> Vec<(&'static str, Rule, &'static str, String, usize)> {
    let filter = "crates/filters/src/range/surf/mod.rs";
    let long_function = format!("\nfn f<T>() {{{}}}", "x();\n".repeat(FUNCTION_LINES_MAX));
    let commented = "a();\n// let x = y();\n".to_owned();
    let unexplained = "#[expect(\n dead_code\n)]\nfn f() {}".to_owned();
    let own = str::to_owned;
    vec![
        ("bytes alone", filters_see_bytes_alone, filter, own("\nuse std::{io, time::Instant};"), 2),
        ("bytes, by path", filters_see_bytes_alone, filter, own("fn f() { std::fs::read(x) }"), 1),
        (
            "one door",
            one_door_to_the_disk,
            "crates/store/src/files/wal.rs",
            own("use std::fs::File;"),
            1,
        ),
        ("lab is silent", lab_never_prints, "crates/lab/src/a.rs", own("\n\nprintln!(\"x\");"), 3),
        ("short functions", functions_are_short, filter, long_function, 2),
        ("unsafe", unsafe_has_few_rooms, "crates/store/src/db.rs", own("\nunsafe { f() }"), 2),
        ("reasons", exceptions_have_reasons, filter, unexplained, 1),
        ("no dead comments", no_code_is_commented_out, filter, commented, 2),
        ("narrow comments", comments_wrap, filter, format!("a();\n/// {}", "wide ".repeat(20)), 2),
        (
            "no #[path]",
            modules_lie_in_folders,
            "crates/store/src/a.rs",
            own("#[path = \"a.rs\"]\nmod b;"),
            1,
        ),
        ("no features", filters_are_chosen_at_run_time, filter, own("#[cfg(feature = \"a\")]"), 1),
        (
            "no std but in filters",
            filters_are_chosen_at_run_time,
            "crates/guards/src/a.rs",
            own("#[cfg(not(feature = \"std\"))]"),
            1,
        ),
        ("files explained", files_say_what_they_are, filter, "\nfn f() {}".repeat(9), 1),
        (
            "filters apart",
            filters_know_no_other_filter,
            filter,
            own("use crate::point::bloom::X;"),
            1,
        ),
        (
            "apart, in a group",
            filters_know_no_other_filter,
            filter,
            own("use crate::{bits::{A, B}, grf};"),
            1,
        ),
        (
            "a neighbour, in a group",
            filters_know_no_other_filter,
            filter,
            own("\nuse crate::range::{arf::A, base::B, surf::C};"),
            2,
        ),
        (
            "apart, in the other crate",
            filters_know_no_other_filter,
            "crates/guards/src/range/rosetta.rs",
            own("use crate::range::arf::A;"),
            1,
        ),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).expect("a folder of the source tree");
    for entry in entries.map(|entry| entry.expect("an entry of the source tree")) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "target" {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source text");
            let inside = path.strip_prefix(root()).expect("below the root").to_string_lossy();
            found.push(Source::new(&inside.replace('\\', "/"), &text));
        }
    }
}

#[test]
fn the_house_is_tidy() {
    let mut sources = Vec::new();
    collect(&root().join("crates"), &mut sources);
    assert!(sources.len() > 20, "only {} files found", sources.len());
    let mut wrong: Vec<String> =
        rules().iter().flat_map(|(_, rule, ..)| sources.iter().flat_map(rule)).collect();
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} untidy places:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_sees_its_bad_sample() {
    for (name, rule, path, text, line) in rules() {
        let wrong = rule(&Source::new(path, &text));
        let place = format!("{path}:{line}: ");
        let named = wrong.len() == 1 && wrong[0].starts_with(&place);
        assert!(named, "{name}: {wrong:?}, expected one at {place}");
    }
}

#[test]
fn comments_and_strings_are_no_code() {
    let text = r##"a /* b */ "c\"d" 'e' '\'' &'f g r#"h " i"# // j
k"##;
    let code = code_of(text);
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "&'f", "g", "k"]);
    assert_eq!(code.len(), text.len());
    let harmless = "//! unsafe std::fs\n// A sentence that ends well.\nlet x = \"unsafe\";";
    let source = Source::new("crates/filters/src/point/bloom.rs", harmless);
    assert!(rules().iter().all(|(_, rule, ..)| rule(&source).is_empty()));
}

/// The names of this workspace's crates that a manifest lists as dependencies, of whatever kind.
fn own_dependencies(manifest: &str) -> Vec<&str> {
    let (mut names, mut in_dependencies) = (Vec::new(), false);
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.trim_end_matches(']').ends_with("dependencies");
        } else if in_dependencies {
            let name = &line[..line.find(['.', '=', ' ']).unwrap_or(line.len())];
            names.extend(name.starts_with("trommel").then_some(name));
        }
    }
    names
}

#[test]
fn arrows_between_crates_are_the_ones_drawn() {
    for (folder, allowed) in ARROWS {
        let path = format!("crates/{folder}/Cargo.toml");
        let manifest = fs::read_to_string(root().join(&path)).expect("a manifest");
        for name in own_dependencies(&manifest) {
            assert!(allowed.contains(&name), "{path}: an arrow to {name} that no one drew");
        }
    }
    let sample = "[package]\nname = \"trommel\"\n[dev-dependencies]\ntrommel-lab = { path = \"x\" }\nserde = \"1\"";
    assert_eq!(own_dependencies(sample), ["trommel-lab"]);
}

/// The names of a manifest's features.
fn features(manifest: &str) -> Vec<&str> {
    let (_, behind) = manifest.split_once("\n[features]\n").unwrap_or_default();
    let own = behind.split("\n[").next().unwrap_or_default();
    own.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect()
}

#[test]
fn only_known_crates_have_features() {
    for (folder, _) in ARROWS {
        let path = format!("crates/{folder}/Cargo.toml");
        let manifest = fs::read_to_string(root().join(&path)).expect("a manifest");
        let expected: &[&str] = match folder {
            "filters" => &["default", "std"],
            "store" => &["zstd"],
            "lab" | "cli" => &["default", "zstd"],
            _ => &[],
        };
        assert_eq!(features(&manifest), expected, "{path}");
    }
    assert_eq!(features("a = 1\n[features]\n# why\nx = []\n\n[b]\nc = 2"), ["x"]);
}

#[test]
fn the_store_is_built_without_further_guards() {
    let manifest = fs::read_to_string(root().join("crates/store/Cargo.toml")).expect("a manifest");
    let (product, tests) = manifest.split_once("[dev-dependencies]").expect("tests need some");
    assert!(tests.contains("trommel-guards"), "tests ask every guard");
    assert!(!product.contains("trommel-guards"), "users of the store compile what they choose");
}
