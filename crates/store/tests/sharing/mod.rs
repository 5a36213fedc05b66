//! Stores for tests of what they share.

use std::sync::Arc;

use trommel::options::ResourceOptions;
use trommel::storage::Memory;
use trommel::{Environment, Options, Resources, SyncPolicy};

pub(crate) fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

pub(crate) fn resources(options: ResourceOptions) -> Resources {
    Resources::new(options).expect("they make sense")
}

/// Small memtables and tables, which are merged soon.
pub(crate) fn small() -> Options {
    Options::new().write_buffer_bytes(64 << 10).size_ratio(2).sync(SyncPolicy::Never)
}

pub(crate) fn shared(resources: &Resources) -> Environment {
    Environment::new().resources(resources)
}

pub(crate) fn in_memory(resources: &Resources, disk: &Memory) -> Environment {
    shared(resources).storage(Arc::new(disk.clone()))
}
