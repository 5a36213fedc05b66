//! `trommel help-markdown`: generates `docs/cli.md`.
//! ```text
//! clap::Command --> a section for each command: what it does, usage, example, its own options
//!              \--> a section for each struct of options that several commands share (`StoreArgs`)
//!              \--> a section for the options of one name that many commands have (`--seed`)
//! ```
//! Invariants: the text has every command and option that `--help` shows, once. The text of an
//! option is the first sentence of its help, or the beginning of that sentence.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use clap::{Arg, Command};

use crate::process::failure::{Outcome, Status};

const HEAD: &str = "# The command `trommel`\n\n\
    For users of the command. Made by a command; do not edit it:\n\n\
    ```sh\ncargo run --release -- help-markdown > docs/cli.md\n```\n\n\
    `trommel help COMMAND` says more of each option, and has more examples.\n";

/// A longer sentence is cut at the end of a clause, if at least `WORDS_MIN` words come before it.
const WORDS_MAX: usize = 9;
const WORDS_MIN: usize = 4;
/// A longer clause is cut at its first comma.
const LONG_WORDS_MAX: usize = 9;
/// A longer default is left to `trommel help`.
const DEFAULT_WORDS_MAX: usize = 4;
/// The fewest commands that share a group of options with its own section.
const SHARED_MIN: usize = 2;
/// The fewest commands that have a common option.
const COMMON_MIN: usize = 3;
const COMMON: &str = "Common options";

/// Prints the text.
pub(crate) fn run(mut program: Command, out: &mut dyn Write) -> Outcome {
    program.build();
    out.write_all(text(&program).as_bytes())?;
    Ok(Status::Fine)
}

fn text(program: &Command) -> String {
    let commands = leaves(program);
    let shared = shared_groups(&commands);
    let mut text = HEAD.to_string();
    if let Some(about) = program.get_long_about() {
        text.push_str(&about.to_string().split("\n\n").skip(1).map(paragraph).collect::<String>());
    }
    let globals = program.get_arguments().filter(|one| one.is_global_set());
    text.push_str(&globals.map(option).collect::<String>());
    let common = common_options(&commands, &shared);
    for command in &commands {
        text.push_str(&section(command, &shared, &common));
    }
    if !common.is_empty() {
        text.push_str(&format!("\n## {COMMON}\n\n"));
    }
    let lines = common.iter().map(|(name, words)| format!("- `{name}`: {words}.\n"));
    text.push_str(&lines.collect::<String>());
    for (name, group) in &shared {
        text.push_str(&format!("\n## {}\n\n", title(name)));
        group.options.iter().for_each(|one| text.push_str(&option(one)));
        text.push_str(&links(&group.inner.iter().collect::<Vec<_>>()));
    }
    text
}

fn paragraph(text: &str) -> String {
    format!("\n{text}\n\n")
}

/// Returns all commands that can run and are not hidden, in the order of `--help`.
fn leaves(command: &Command) -> Vec<&Command> {
    let shown = |one: &&Command| !one.is_hide_set() && one.get_name() != "help";
    let below: Vec<&Command> = command.get_subcommands().filter(shown).collect();
    match below.is_empty() {
        true => vec![command],
        false => below.into_iter().flat_map(leaves).collect(),
    }
}

/// Options that several commands share. Each group is a struct that derives `Args`.
struct Shared<'a> {
    /// The options, without those of other groups.
    options: Vec<&'a Arg>,
    /// The commands that have the group, by index.
    users: Vec<usize>,
    /// The groups within this group.
    inner: Vec<String>,
}

type Groups<'a> = BTreeMap<String, Shared<'a>>;

fn shared_groups<'a>(commands: &[&'a Command]) -> Groups<'a> {
    let mut groups = Groups::new();
    for (place, command) in commands.iter().enumerate() {
        for name in group_names(command) {
            let new = || Shared { options: members(command, &name), users: vec![], inner: vec![] };
            groups.entry(name.clone()).or_insert_with(new).users.push(place);
        }
    }
    groups.retain(|_, group| group.users.len() >= SHARED_MIN);
    fill_outer(&mut groups, commands);
    groups.retain(|_, group| group.options.len() > 1);
    groups
}

/// Fills in groups that flatten other groups, to which clap assigns no members. Their options are
/// those that all of their commands have and no other group has. Their inner groups are the groups
/// that all of their commands have.
fn fill_outer<'a>(groups: &mut Groups<'a>, commands: &[&'a Command]) {
    let is_outer = |group: &&Shared<'_>| group.options.is_empty();
    let mut outer: Vec<String> =
        groups.iter().filter(|(_, group)| is_outer(group)).map(|(name, _)| name.clone()).collect();
    outer.sort_by_key(|name| std::cmp::Reverse(groups[name].users.len()));
    for name in outer {
        let users = groups[&name].users.clone();
        let has_all = |group: &Shared<'_>| users.iter().all(|user| group.users.contains(user));
        let around = |other: &String| *other != name && has_all(&groups[other]);
        let mut inner: Vec<String> = groups.keys().filter(|other| around(other)).cloned().collect();
        let deeper: Vec<String> = inner.iter().flat_map(|one| groups[one].inner.clone()).collect();
        let first = commands[users[0]];
        let is_own = |option: &&Arg| {
            let elsewhere = groups.values().flat_map(|group| &group.options);
            let everywhere = users.iter().all(|user| {
                commands[*user].get_arguments().any(|other| other.get_id() == option.get_id())
            });
            everywhere
                && is_listed(option)
                && !elsewhere.into_iter().any(|other| same(other, option))
        };
        let options = first.get_arguments().filter(is_own).collect();
        inner.retain(|one| !deeper.contains(one));
        if let Some(group) = groups.get_mut(&name) {
            (group.options, group.inner) = (options, inner);
        }
    }
}

/// Whether two commands have the same option with the same help.
fn same(one: &Arg, other: &Arg) -> bool {
    one.get_id() == other.get_id()
        && one.get_help().map(ToString::to_string) == other.get_help().map(ToString::to_string)
}

/// Whether an option is listed: `--help` shows it, and it is not an option of all commands.
fn is_listed(option: &Arg) -> bool {
    !option.is_hide_set() && !option.is_global_set() && option.get_id() != "help"
}

fn group_names(command: &Command) -> Vec<String> {
    let names = command.get_groups().map(|group| group.get_id().to_string());
    names.filter(|name| name.ends_with("Args")).collect()
}

fn members<'a>(command: &'a Command, group: &str) -> Vec<&'a Arg> {
    let group = command.get_groups().find(|one| one.get_id() == group);
    let named = group.into_iter().flat_map(|group| group.get_args());
    let found = named.filter_map(|id| command.get_arguments().find(|one| one.get_id() == id));
    found.filter(|one| is_listed(one)).collect()
}

/// Options outside groups that many commands have: name and value, and the sentence.
type Common = BTreeSet<(String, String)>;

fn common_options(commands: &[&Command], groups: &Groups<'_>) -> Common {
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for option in commands.iter().flat_map(|command| own_options(command, groups)) {
        *found.entry(words_of(option)).or_default() += 1;
    }
    found.retain(|(name, _), count| *count >= COMMON_MIN && name.starts_with("--"));
    found.into_keys().collect()
}

/// Returns what identifies an option across commands, except for its default.
fn words_of(option: &Arg) -> (String, String) {
    (typed(option), sentence(&help_of(option)).to_string())
}

/// Returns the groups of a command that have a section.
fn used_groups(command: &Command, groups: &Groups<'_>) -> Vec<String> {
    group_names(command).into_iter().filter(|name| groups.contains_key(name)).collect()
}

/// Returns the options of a command that are in none of its groups.
fn own_options<'a>(command: &'a Command, groups: &Groups<'_>) -> Vec<&'a Arg> {
    let used = used_groups(command, groups);
    let is_own = |one: &&Arg| {
        let mut shared = used.iter().flat_map(|name| &groups[name].options);
        is_listed(one) && !shared.any(|other| same(other, one))
    };
    command.get_arguments().filter(is_own).collect()
}

fn section(command: &Command, groups: &Groups<'_>, common: &Common) -> String {
    let mut owned = command.clone();
    let usage = owned.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim().replace(" [OPTIONS]", "");
    let name = usage
        .trim_start_matches("trommel ")
        .split([' ', '[', '<'])
        .filter(|word| command.get_name() == *word || ["bench", "lab"].contains(word));
    let name = name.take(2).collect::<Vec<_>>().join(" ");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = in_short(&about);
    // A usage without arguments is redundant beside the example.
    let example = example(command).unwrap_or_default();
    let usage = if example.starts_with(&usage) { String::new() } else { usage + "\n" };
    let is_common = |one: &&Arg| common.contains(&words_of(one));
    let (others, own): (Vec<&Arg>, Vec<&Arg>) =
        own_options(command, groups).into_iter().partition(is_common);
    let mut list: String = own.into_iter().map(option).collect();
    let short = |one: &&Arg| format!("`{}`{}", typed(one), default(one, &help_of(one)));
    if !others.is_empty() {
        let names = others.iter().map(short).collect::<Vec<_>>().join(", ");
        list.push_str(&format!("- {names}: [common](#common-options)\n"));
    }
    let used = used_groups(command, groups);
    let inner: Vec<&String> = used.iter().flat_map(|name| brought(groups, name)).collect();
    let outer = used.iter().filter(|name| !inner.contains(name));
    list.push_str(&links(&outer.collect::<Vec<_>>()));
    format!("\n## {name}\n\n{about}\n\n```sh\n{usage}{example}\n```\n\n{list}")
        .trim_end()
        .to_string()
        + "\n"
}

/// Returns the first sentence, and the one about the exit status.
fn in_short(about: &str) -> String {
    let ends = ends_of_sentences(about).map(|end| end + 1).chain([about.len()]);
    let mut begin = 0;
    let sentences = ends.map(|end| about[std::mem::replace(&mut begin, end)..end].trim());
    let kept = sentences.enumerate().filter(|(place, one)| *place == 0 || one.starts_with("Exit"));
    let kept: Vec<&str> = kept.map(|(_, one)| sentence(one)).collect();
    kept.join(". ") + "."
}

/// Returns all groups within a group, recursively.
fn brought<'a>(groups: &'a Groups<'_>, name: &str) -> Vec<&'a String> {
    let inner = groups.get(name).into_iter().flat_map(|group| &group.inner);
    inner.flat_map(|one| std::iter::once(one).chain(brought(groups, one))).collect()
}

/// Returns the line of links to the sections of groups.
fn links(groups: &[&String]) -> String {
    let link = |group: &&String| {
        let anchor = title(group).to_lowercase().replace('/', "").replace(' ', "-");
        format!("[{}](#{anchor})", title(group).trim_end_matches(" options").to_lowercase())
    };
    match groups {
        [] => String::new(),
        _ => format!("- {} options\n", groups.iter().map(link).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns the first line of the help's examples that is a command.
fn example(command: &Command) -> Option<String> {
    let help = command.get_after_help()?.to_string();
    help.lines().map(str::trim).find(|line| line.starts_with("trommel ")).map(str::to_string)
}

/// Returns the title of a group: `StoreArgs` becomes "Store options".
fn title(group: &str) -> String {
    match group.trim_end_matches("Args") {
        "Io" => "I/O options".into(),
        name => format!("{name} options"),
    }
}

fn option(option: &Arg) -> String {
    let (name, words) = words_of(option);
    format!("- `{name}`: {words}{}.\n", default(option, &help_of(option)))
}

fn help_of(option: &Arg) -> String {
    option.get_help().map(ToString::to_string).unwrap_or_default()
}

/// Returns the option as it is typed, with the names of its values.
fn typed(option: &Arg) -> String {
    let values: Vec<String> = match option.get_action().takes_values() {
        true => option.get_value_names().into_iter().flatten().map(ToString::to_string).collect(),
        false => Vec::new(),
    };
    match option.get_long() {
        Some(long) if values.is_empty() => format!("--{long}"),
        Some(long) => format!("--{long} {}", values.join(" ")),
        None => values.join(" "),
    }
}

/// Returns the default in brackets, as it is typed; flags have none.
fn default(option: &Arg, help: &str) -> String {
    let values = option.get_default_values();
    let typed: Vec<&str> = values.iter().filter_map(|value| value.to_str()).collect();
    let shown = help.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
    let shown = shown.map(|(shown, _)| shown.split([';', ',']).next().unwrap_or(shown));
    let shown = shown.filter(|shown| shown.split_whitespace().count() <= DEFAULT_WORDS_MAX);
    match (option.get_action().takes_values(), typed.as_slice(), shown) {
        (true, [one], _) => format!(" ({one})"),
        (_, [], Some(shown)) => format!(" ({shown})"),
        _ => String::new(),
    }
}

/// Returns the first sentence without its full stop; a long one is cut at the end of a clause.
fn sentence(help: &str) -> &str {
    let whole = help.split(" [default").next().unwrap_or(help);
    let first = ends_of_sentences(whole).next().map_or(whole, |end| &whole[..end]);
    let words = |end: usize| first[..end].split_whitespace().count();
    let cut = |marks: &[&str]| {
        let ends = marks.iter().flat_map(|mark| first.match_indices(mark)).map(|(end, _)| end);
        ends.filter(|end| words(*end) >= WORDS_MIN).min().unwrap_or(first.len())
    };
    let part = cut(&["; ", ": ", " (", ", like ", ", with "]);
    match first.len() {
        whole if words(whole) <= WORDS_MAX => first.trim_end_matches('.'),
        _ if words(part) <= LONG_WORDS_MAX => &first[..part],
        _ => &first[..part.min(cut(&[", "]))],
    }
}

/// Returns the places where a full stop is followed by a capital letter. In "..., 2, ... without"
/// there is none.
fn ends_of_sentences(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices(". ").map(|(at, _)| at).filter(|at| {
        let after = text[at + 2..].chars().next();
        after.is_some_and(|letter| letter.is_uppercase() || letter == '(')
    })
}

#[cfg(test)]
mod tests;
