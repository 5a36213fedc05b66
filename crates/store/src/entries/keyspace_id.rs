//! The number of a key space.

/// Numbers key spaces in the order of creation. A number is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyspaceId(pub(crate) u32);

impl KeyspaceId {
    /// The key space that every store has.
    pub(crate) const DEFAULT: KeyspaceId = KeyspaceId(0);
}
