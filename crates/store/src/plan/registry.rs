//! The kinds of guards that this process knows by name.
//! ```text
//! built in    none, blocked-bloom, bloom, ribbon, surf-*, grf*
//! registered  by others: trommel_guards::register(), or a filter of one's own
//! ```
//! Names are looked up where no options are at hand: on the command line, and in files. A guard
//! that is in a store's options is known from the opening on; it need not be registered.
//!
//! Invariant: no two kinds share a name or a tag, and a registered kind is never removed.

use std::any::Any;
use std::sync::{PoisonError, RwLock};

use trommel_filters::{FilterKind, FilterOptions, RunLocatorKind, kinds};

use crate::error::{Error, Result};
use crate::plan::guard_kind::GuardKind;

/// The registered kinds. Models of threads leave this lock out, since nothing waits for it.
static REGISTERED: RwLock<Registered> =
    RwLock::new(Registered { filters: Vec::new(), locators: Vec::new() });

struct Registered {
    filters: Vec<&'static dyn FilterKind>,
    locators: Vec<&'static dyn RunLocatorKind>,
}

/// Files store the length of a name in one byte.
const NAME_BYTES_MAX: usize = u8::MAX as usize;

/// Valid filter tags. Tag 0 means a filter stored with its name; the largest would not fit into a
/// section's tag.
pub(crate) const FILTER_TAGS: std::ops::RangeInclusive<u16> = 1..=0xfeff;

/// Registers a kind of filter for single tables, by its name, and by its tag if it has one.
/// Registering a kind again does nothing.
///
/// Two values count as one kind if they have the same type and build the same bytes from the same
/// keys.
///
/// # Errors
/// `Option`: another kind has the name or the tag, or these cannot be stored.
pub fn register_filter(kind: &'static dyn FilterKind) -> Result<()> {
    let name = kind.name();
    check_name(name)?;
    if kind.tag().is_some_and(|tag| !FILTER_TAGS.contains(&tag)) {
        return Err(refused(name, "a tag is from 1 to 0xfeff"));
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let known = kinds::BUILT_IN.into_iter().chain(registered.filters.iter().copied());
    for other in known {
        let same_tag = kind.tag().is_some() && kind.tag() == other.tag();
        if other.name() == name && is_same(kind, other) {
            return Ok(());
        }
        if other.name() == name || same_tag {
            return Err(refused(name, &format!("the filter '{}' is another one", other.name())));
        }
    }
    if is_taken(name, &registered.locators) {
        return Err(refused(name, "another guard has this name"));
    }
    registered.filters.push(kind);
    Ok(())
}

/// Registers a kind of filter that knows which run each key is in, by its name. Registering a kind
/// again does nothing.
///
/// # Errors
/// `Option`: another kind has the name, or the name cannot be stored.
pub fn register_run_locator(kind: &'static dyn RunLocatorKind) -> Result<()> {
    let name = kind.name();
    check_name(name)?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(other) = registered.locators.iter().find(|other| other.name() == name) {
        let same = type_of(kind) == type_of(*other);
        let problem = "another filter that knows in which run each key is has this name";
        return if same { Ok(()) } else { Err(refused(name, problem)) };
    }
    let filters = kinds::BUILT_IN.iter().chain(&registered.filters);
    if is_taken(name, &[]) || filters.into_iter().any(|filter| filter.name() == name) {
        return Err(refused(name, "another guard has this name"));
    }
    registered.locators.push(kind);
    Ok(())
}

/// Registers the guard's kind.
pub(crate) fn register(guard: GuardKind) -> Result<()> {
    match guard {
        GuardKind::Table(kind) => register_filter(kind),
        GuardKind::Locator(kind) => register_run_locator(kind),
        _ => Ok(()),
    }
}

/// Returns all known kinds of filters for single tables.
pub(crate) fn filters() -> Vec<&'static dyn FilterKind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    kinds::BUILT_IN.into_iter().chain(registered.filters.iter().copied()).collect()
}

/// Returns all known kinds of filters that know which run each key is in.
pub(crate) fn locators() -> Vec<&'static dyn RunLocatorKind> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).locators.clone()
}

fn is_taken(name: &str, locators: &[&'static dyn RunLocatorKind]) -> bool {
    GuardKind::CLOSED.iter().any(|guard| guard.name() == name)
        || locators.iter().any(|locator| locator.name() == name)
}

fn check_name(name: &str) -> Result<()> {
    match name.len() {
        1..=NAME_BYTES_MAX => Ok(()),
        _ => Err(refused(name, "a name has 1 to 255 bytes")),
    }
}

/// Whether two values stand for one kind. A constant may have many addresses, and all filters that
/// are plain data have one type. So the bytes that they build are compared.
fn is_same(one: &'static dyn FilterKind, other: &'static dyn FilterKind) -> bool {
    let traits = |kind: &dyn FilterKind| (kind.tag(), kind.knows_ranges());
    let types = [one, other].map(|kind| (kind as &dyn Any).type_id());
    let alike = types[0] == types[1] && traits(one) == traits(other);
    alike && (std::ptr::addr_eq(one, other) || built(one) == built(other))
}

/// Builds a filter of a few keys.
fn built(kind: &'static dyn FilterKind) -> Option<Vec<u8>> {
    let mut builder = FilterOptions::new(kind, 10.0).builder();
    for key in 0..32u32 {
        builder.add(&(key * 0x0301_0203).to_be_bytes()).ok()?;
    }
    Some(builder.finish())
}

fn type_of(kind: &'static dyn RunLocatorKind) -> std::any::TypeId {
    (kind as &dyn Any).type_id()
}

fn refused(name: &str, problem: &str) -> Error {
    let problem = format!("'{name}' cannot be registered: {problem}");
    Error::Option { option: "guard".into(), problem }
}

#[cfg(test)]
mod tests {
    use trommel_filters::{Bloom, BloomBuilder, TableKind};

    use super::*;

    const fn bloom(name: &'static str) -> TableKind {
        let builder: fn(&trommel_filters::FilterOptions) -> _ =
            |options| Box::new(BloomBuilder::new(options.bits_per_key)) as _;
        TableKind::new(name, builder, |bytes| Ok(Box::new(Bloom::read(bytes)?)))
    }

    #[test]
    fn a_kind_is_registered_once_and_by_its_own_name() {
        const SIEVE: &dyn FilterKind = &bloom("sieve-of-this-test");
        assert!("sieve-of-this-test".parse::<GuardKind>().is_err());
        register_filter(SIEVE).expect("a new name");
        register_filter(SIEVE).expect("once more");
        let guard = "sieve-of-this-test".parse::<GuardKind>().expect("it is known");
        assert_eq!(guard, GuardKind::Table(SIEVE));
        assert!(GuardKind::all().contains(&guard));
    }

    // Once, a store of one kind was verified, and repaired, with the other kind.
    #[test]
    fn another_filter_of_the_same_name_is_refused() {
        static TWIN: TableKind = bloom("twin-of-this-test");
        static OTHER: TableKind = TableKind::new(
            "twin-of-this-test",
            |options| Box::new(BloomBuilder::new(options.bits_per_key / 2.0)),
            |bytes| Ok(Box::new(Bloom::read(bytes)?)),
        );
        register_filter(&TWIN).expect("a new name");
        register_filter(&TWIN).expect("once more");
        let error = register_filter(&OTHER).expect_err("it builds other bytes").to_string();
        assert!(error.contains("twin-of-this-test"), "{error}");
    }

    #[test]
    fn names_and_tags_of_others_are_refused() {
        const CASES: [&dyn FilterKind; 7] = [
            &bloom("tag-of-named-filters").with_tag(0),
            &bloom("tag-beyond-all-sections").with_tag(0xff01),
            &bloom("bloom"),
            &bloom("grf"),
            &bloom("none"),
            &bloom(""),
            &bloom("ribbon-of-this-test").with_tag(3),
        ];
        for kind in CASES {
            let error = register_filter(kind).expect_err("it is taken").to_string();
            assert!(error.contains("guard"), "{error}");
            assert!(!filters().into_iter().any(|known| std::ptr::eq(known, kind)));
        }
        kinds::BUILT_IN.into_iter().try_for_each(register_filter).expect("they are built in");
    }
}
