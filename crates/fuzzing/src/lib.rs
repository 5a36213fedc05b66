//! What a fuzzer does with bytes that Trommel decodes: the bodies of the targets in `fuzz/`, which
//! an ordinary test runs too.
//! ```text
//! bytes -> put into the frame of a file, checksums put right -> decode
//!     -> ask everything that a reader may
//! ```
//! Invariant: a body returns for every input. It never panics, never goes on for long, and what
//! decodes obeys the laws: the same answers from every side, the answers of a plain twin where
//! there is one, the same bytes when it is encoded again.

mod ask;
mod backup;
mod block;
mod filters;
mod frame;
mod grown;
mod image;
mod log;
mod manifest;
mod merged;
mod mutate;
mod packed;
mod seeds;
mod store;
mod table;
mod text;
mod twin;
mod values;

pub use mutate::Mutator;
pub use seeds::seeds;

/// A body, and its name in `fuzz/`.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, and of its folder in the corpus.
    pub name: &'static str,
    /// What is done with the bytes.
    pub body: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 12] = [
    Target { name: "block", body: block::body },
    Target { name: "table", body: table::body },
    Target { name: "log", body: log::body },
    Target { name: "manifest", body: manifest::body },
    Target { name: "image", body: image::body },
    Target { name: "filter", body: filters::body },
    Target { name: "grown", body: grown::body },
    Target { name: "store", body: store::body },
    Target { name: "text", body: text::body },
    Target { name: "packed", body: packed::body },
    Target { name: "values", body: values::body },
    Target { name: "backup", body: backup::body },
];

/// Runs the body of a target. Requires: there is a target of this name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target is called {name}")).body)(bytes);
}

/// The guard that a byte stands for. Files of the corpus are older than most guards: 2 is `grf`, as
/// it was then.
pub(crate) fn guard_of(byte: u8) -> trommel::GuardKind {
    const GRF: usize = 2;
    let mut guards = trommel_guards::all_guards();
    let grf = guards.iter().position(|guard| *guard == trommel::GuardKind::Grf);
    guards.swap(GRF, grf.expect("one of all"));
    guards[usize::from(byte) % guards.len()]
}
