//! The header is what cbindgen makes of the sources now. `TROMMEL_WRITE_HEADER=1` writes it.

use std::fs;
use std::path::Path;

const PATH: &str = "include/trommel.h";

fn made() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().expect("the sources are read").write(&mut text);
    let text = String::from_utf8(text).expect("text");
    let lines = text.lines().map(str::trim_end);
    lines.fold(String::new(), |text, line| text + line + "\n").replace("\n\n\n", "\n\n")
}

#[test]
fn the_header_is_as_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PATH);
    let made = made();
    if std::env::var_os("TROMMEL_WRITE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let there = fs::read_to_string(&path).expect("the header");
    let first = made.lines().zip(there.lines()).position(|(made, there)| made != there);
    assert!(
        made == there,
        "crates/c/{PATH} is not what the sources say, from line {:?} on: scripts/test-c.sh header",
        first.map(|line| line + 1)
    );
}

/// The names of all exported functions, from the sources.
fn exported() -> Vec<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = Vec::new();
    for file in fs::read_dir(sources).expect("sources") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        for part in text.split("extern \"C\" fn ").skip(1) {
            names.push(part[..part.find('(').expect("arguments")].to_owned());
        }
    }
    assert!(names.len() > 100, "only {} functions were found", names.len());
    names
}

#[test]
fn every_exported_function_is_declared() {
    let header = made();
    for name in exported() {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
}

/// What can follow "Threads: ". The comment at the header's beginning explains it.
const THREADS: [&str; 3] =
    ["any", "one at a time", "one; no other call may use the handle during or after this one"];

/// The comment that ends above a line, in one line.
fn comment_above(lines: &[&str]) -> String {
    let is_comment = |line: &&&str| line.starts_with("//");
    let comment: Vec<&str> = lines.iter().rev().take_while(is_comment).copied().collect();
    comment.iter().rev().map(|line| line.trim_start_matches('/')).collect()
}

fn says_its_threads(comment: &str) -> bool {
    let threads = comment.split_once(" Threads: ").map(|(_, threads)| threads);
    // A longer word is another one: "anyone".
    let is = |threads: &str, known| {
        let after = threads.strip_prefix(known);
        after.is_some_and(|after| after.starts_with(['.', ',', ';', ' ']))
    };
    threads.is_some_and(|threads| THREADS.iter().any(|known| is(threads, *known)))
}

#[test]
fn every_function_and_every_handle_says_which_threads_may_use_it() {
    let header = made();
    let lines: Vec<&str> = header.lines().collect();
    let check = |at: usize| {
        let place = lines[at];
        assert!(
            says_its_threads(&comment_above(&lines[..at])),
            "its comment in crates/c/src needs \"Threads: \" and one of {THREADS:?}: {place}"
        );
    };
    for name in exported() {
        let begin = format!("{name}(");
        let is_it = |line: &&str| !line.starts_with("//") && line.contains(&begin);
        check(lines.iter().position(is_it).expect("a declaration"));
    }
    let is_handle = |line: &str| line.starts_with("typedef struct ") && line.ends_with(';');
    let handles: Vec<usize> = (0..lines.len()).filter(|at| is_handle(lines[*at])).collect();
    assert!(handles.len() > 10, "only {} handles were found", handles.len());
    handles.into_iter().for_each(check);
}
