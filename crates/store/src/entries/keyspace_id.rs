//! The number of a key space.

/// Key spaces are numbered as they are made; a number is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyspaceId(pub(crate) u32);

impl KeyspaceId {
    /// The one that every store has.
    pub(crate) const DEFAULT: KeyspaceId = KeyspaceId(0);
}
