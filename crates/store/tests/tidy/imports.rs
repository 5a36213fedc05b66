//! Which file of a crate uses which: what `LAYERS` and the bound on circles look at.
//! ```text
//! use crate::a::{b, c};   super::x   self::y   child::z
//!                         -> module paths -> the files that have them
//! ```
//! Invariant: tests are left out, files and inline modules alike.

use std::collections::{BTreeSet, HashMap};

use super::{Source, closing, is_word, words};

/// A file that uses another one: where, and both modules.
pub(crate) struct Import {
    pub(crate) at: usize,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The files of one crate by module path. The root's path is empty.
pub(crate) struct Modules<'s> {
    files: HashMap<String, &'s Source>,
}

impl<'s> Modules<'s> {
    /// Of the files below `folder`, such as `crates/store/src/`.
    pub(crate) fn below(folder: &str, sources: &'s [Source]) -> Self {
        let inside =
            |source: &'s Source| Some((module_of(source.path.strip_prefix(folder)?), source));
        let mut files: HashMap<String, &Source> = sources.iter().filter_map(inside).collect();
        let tests: Vec<String> =
            files.iter().flat_map(|(module, source)| test_modules(module, &source.code)).collect();
        files.retain(|module, _| !tests.iter().any(|test| is_within(module, test)));
        Modules { files }
    }

    /// What every file uses of the others, in no order.
    pub(crate) fn imports(&self) -> Vec<Import> {
        self.files.iter().flat_map(|(module, source)| self.imports_of(module, source)).collect()
    }

    fn imports_of(&self, module: &str, source: &Source) -> Vec<Import> {
        let code = without_tests(&source.code);
        let paths = paths(&code);
        let targets = paths.into_iter().filter_map(|(at, path)| {
            let to =
                self.file_of(&absolute(module, &path, |child| self.files.contains_key(child))?);
            (to != module).then(|| Import { at, from: module.to_owned(), to })
        });
        targets.collect()
    }

    /// The longest beginning of a path that is a file.
    fn file_of(&self, path: &[String]) -> String {
        let known = (0..=path.len()).rev().map(|len| path[..len].join("::"));
        known.into_iter().find(|path| self.files.contains_key(path)).unwrap_or_default()
    }

    /// The file of a module. Requires: it is one of these.
    pub(crate) fn source(&self, module: &str) -> &'s Source {
        self.files[module]
    }
}

/// `files/table/mod.rs` and `files/table.rs` are `files::table`.
fn module_of(inside: &str) -> String {
    let path = inside.trim_end_matches(".rs").replace('/', "::");
    let path = path.strip_suffix("::mod").unwrap_or(&path);
    if ["lib", "main"].contains(&path) { String::new() } else { path.to_owned() }
}

fn is_within(module: &str, outer: &str) -> bool {
    module.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Where the items are that are compiled for tests alone.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let attributes = ["#[cfg(test)]", "#[cfg(all(test"].into_iter();
    let places = attributes.flat_map(|attribute| code.match_indices(attribute));
    places.map(|(at, _)| (at, item_end(code, at))).collect()
}

/// The modules of their own files among them.
fn test_modules(module: &str, code: &str) -> Vec<String> {
    let name = |(at, end): (usize, usize)| {
        let (_, rest) = code[at..end].strip_suffix(';')?.rsplit_once("mod ")?;
        let outer = if module.is_empty() { String::new() } else { format!("{module}::") };
        Some(outer + rest.trim())
    };
    test_items(code).into_iter().filter_map(name).collect()
}

/// The code with items for tests blanked out. Places stay.
fn without_tests(code: &str) -> String {
    let mut rest = code.to_owned();
    for (at, end) in test_items(code) {
        let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
        rest.replace_range(at..end, &code[at..end].bytes().map(blank).collect::<String>());
    }
    rest
}

/// The end of the item that begins with an attribute at `at`.
fn item_end(code: &str, at: usize) -> usize {
    let body = code[at..].find(['{', ';']).map_or(code.len(), |offset| at + offset);
    match code.as_bytes().get(body) {
        Some(b'{') => closing(code, body, (b'{', b'}')).unwrap_or(code.len()),
        _ => code.len().min(body + 1),
    }
}

/// All paths that a file names: those of `use`, and those in code that say where they begin.
fn paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut body = code.to_owned();
    for at in words(code, "use") {
        let end = code[at..].find(';').map_or(code.len(), |offset| at + offset);
        let tree: String = code[at + 3..end].split_whitespace().collect::<Vec<_>>().join(" ");
        found.extend(leaves(&tree).into_iter().map(|path| (at, path)));
        body.replace_range(at..end, &" ".repeat(end - at));
    }
    for root in ["crate", "super", "self"] {
        let roots = words(&body, root).filter(|&at| body[at + root.len()..].starts_with("::"));
        let path = |at: usize| {
            let end = body[at..].find(|c: char| c != ':' && !c.is_ascii_alphanumeric() && c != '_');
            body[at..end.map_or(body.len(), |end| at + end)].trim_end_matches(':').to_owned()
        };
        let begins = |at: &usize| *at == 0 || !body[..*at].ends_with("::");
        found.extend(roots.filter(begins).map(|at| (at, path(at))));
    }
    found
}

/// The paths of a use tree: `a::{b, c::{d, e}}` has `a::b`, `a::c::d` and `a::c::e`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        return vec![path.to_owned()];
    };
    let end = closing(tree, open, (b'{', b'}')).unwrap_or(tree.len());
    let (mut found, mut depth, mut item) = (Vec::new(), 0, open + 1);
    for at in open + 1..end {
        match tree.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' | b'}' if depth == 0 => {
                let of_item = leaves(&tree[item..at]).into_iter().filter(|path| !path.is_empty());
                found.extend(of_item.map(|path| [&tree[..open], &path].concat()));
                item = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The path from the crate's root. None: it is another crate's.
fn absolute(module: &str, path: &str, is_file: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let own: Vec<String> =
        module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut names = path.split("::").map(|name| name.trim().to_owned()).peekable();
    let mut base = match names.peek()?.as_str() {
        "crate" => {
            names.next();
            return Some(names.collect());
        }
        "super" | "self" => own,
        first if first.bytes().all(is_word) => {
            let child = own.iter().cloned().chain([first.to_owned()]).collect::<Vec<_>>();
            return is_file(&child.join("::"))
                .then(|| child.into_iter().chain(names.skip(1)).collect());
        }
        _ => return None,
    };
    while let Some(step) = names.next_if(|name| ["super", "self"].contains(&name.as_str())) {
        if step == "super" {
            base.pop();
        }
    }
    Some(base.into_iter().chain(names).collect())
}

/// The largest set of files each of which uses every other, directly or by way of others.
pub(crate) fn largest_circle(imports: &[Import]) -> BTreeSet<&str> {
    let mut used: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    for import in imports {
        used.entry(&import.from).or_default().push(&import.to);
        users.entry(&import.to).or_default().push(&import.from);
    }
    let starts: BTreeSet<&str> = used.keys().copied().collect();
    let circles = starts.iter().map(|start| &reached(&used, start) & &reached(&users, start));
    circles.max_by_key(BTreeSet::len).unwrap_or_default()
}

fn reached<'i>(next: &HashMap<&'i str, Vec<&'i str>>, start: &'i str) -> BTreeSet<&'i str> {
    let (mut seen, mut open) = (BTreeSet::from([start]), vec![start]);
    while let Some(module) = open.pop() {
        let fresh = next.get(module).into_iter().flatten().filter(|&&to| seen.insert(to));
        open.extend(fresh);
    }
    seen
}
