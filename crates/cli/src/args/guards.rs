//! Names of guards, as typed on the command line.
//! ```text
//! --guard grf              one
//! --guard none,all-ranges  several, by commas and by words that stand for more than one
//! ```
//! Invariant: the error of an unknown name lists all known names.

use trommel::GuardKind;
use trommel_guards::all_guards;
use trommel_lab::Contender;

/// The guards that one word stands for.
#[derive(Clone, Debug)]
pub(crate) struct GuardNames(Vec<GuardKind>);

impl GuardNames {
    pub(crate) fn kinds(&self) -> &[GuardKind] {
        &self.0
    }
}

/// Returns this store with each of these guards, then the peers.
pub(crate) fn contenders(guards: &[GuardNames], peers: &[Contender]) -> Vec<Contender> {
    let own =
        |guard: &GuardKind| Contender { engine: "trommel".into(), filter: guard.name().into() };
    let guards = guards.iter().flat_map(GuardNames::kinds);
    guards.map(own).chain(peers.iter().cloned()).collect()
}

/// Words for several guards.
const GUARD_WORDS: &str = "all (but none), all-ranges (that know ranges)";

/// Parses the name of a guard, or a word for several.
pub(crate) fn guards(name: &str) -> Result<GuardNames, String> {
    let all = all_guards().into_iter().filter(|guard| *guard != GuardKind::Open);
    match name {
        "all" => Ok(GuardNames(all.collect())),
        "all-ranges" => Ok(GuardNames(all.filter(|guard| guard.knows_ranges()).collect())),
        name => match guard(name) {
            Ok(guard) => Ok(GuardNames(vec![guard])),
            Err(problem) => Err(format!("{problem}, {GUARD_WORDS}")),
        },
    }
}

fn guard_names() -> String {
    let names: Vec<&str> = all_guards().into_iter().map(GuardKind::name).collect();
    names.join(", ")
}

/// The help text of `--guard`.
pub(crate) fn guard_help() -> String {
    let names = guard_names();
    format!(
        "The filter that says which runs may hold a key: {names}. [default: grf; none for get, put, delete, \
         scan and count, since a single question does not repay reading the filter]"
    )
}

/// The help text of `--guard` in commands that compare guards.
pub(crate) fn guards_help() -> String {
    let names = guard_names();
    format!("The guards to compare, with commas between them: {names}, {GUARD_WORDS}")
}

/// Parses the name of a guard.
pub(crate) fn guard(name: &str) -> Result<GuardKind, String> {
    name.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_several_guards() {
        let named = |word| guards(word).expect("known").0;
        assert_eq!(named("none"), [GuardKind::Open]);
        assert_eq!(named("all"), all_guards()[1..]);
        let ranges = named("all-ranges");
        assert!(ranges.contains(&GuardKind::Grf) && !ranges.contains(&all_guards()[1]));
        let problem = guards("blom").expect_err("unknown");
        assert!(problem.contains("none, ") && problem.contains("all-ranges"), "{problem}");
    }
}
