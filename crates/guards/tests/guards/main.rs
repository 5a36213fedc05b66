//! Guards of every kind over runs of keys: laws that all keep, and what each promises.

mod chucky;
mod laws;
mod monkey;
mod prefetches;
mod remix;
mod table_fingerprints;
mod table_text;
