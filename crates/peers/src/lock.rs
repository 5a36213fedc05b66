//! The versions of the engines, from the lock file.

/// Returns the version of a package. Requires: the lock file names it.
pub(crate) fn version_of(package: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let named = lock.split("[[package]]\nname = \"").find_map(|rest| {
        let (name, rest) = rest.split_once('"')?;
        (name == package).then(|| rest.strip_prefix("\nversion = \"")).flatten()
    });
    named.and_then(|rest| rest.split('"').next()).expect("the lock file names it")
}
