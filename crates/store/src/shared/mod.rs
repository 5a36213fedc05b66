//! What a store gets from outside, and what several stores can share.
//! ```text
//! environment   storage, clock, listener, resources
//! resources     cache, write memory, threads, merge rate: of one store or of many
//! ```

pub(crate) mod environment;
pub(crate) mod merge_lanes;
pub(crate) mod rate_limiter;
pub(crate) mod resources;
pub(crate) mod worker_pool;
pub(crate) mod write_memory;
