//! Groups of arguments that several commands share.

pub(crate) mod comparison;
pub(crate) mod filter;
pub(crate) mod guards;
pub(crate) mod key;
pub(crate) mod policy;
pub(crate) mod range;
pub(crate) mod record;
pub(crate) mod sort;
pub(crate) mod store;
pub(crate) mod store_options;
pub(crate) mod stream_form;
pub(crate) mod values;
pub(crate) mod watch;
pub(crate) mod workload;
