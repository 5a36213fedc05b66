//! Trommel for Python: the module `trommel._trommel`, beneath the package `trommel`.
//! ```text
//! python/trommel/   errors, types, the mapping, asyncio, logging: in Python
//!        |
//! store.rs, keyspace.rs, transaction.rs, ...   the classes
//! reader.rs, rows.rs, filter.rs                what reads
//! calls.rs, buffers.rs, options.rs, errors.rs  the border
//! ```
//! Invariants: no panic crosses the border. Bytes of Python are copied, or cannot change. What
//! threads share is locked or atomic, or stays as it is: all classes are frozen, and nothing relies
//! on the interpreter's lock. So an interpreter that has none need not get one for this module.

mod arrow;
mod arrow_stream;
mod backups;
mod batch;
mod buffers;
mod calls;
mod changes;
mod errors;
mod events;
mod filter;
mod follower;
mod keyspace;
mod options;
mod reader;
mod rows;
mod shared;
mod snapshot;
mod store;
mod transaction;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _trommel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if let Err(error) = trommel_guards::register() {
        return Err(errors::of(module.py(), &error));
    }
    module.add_class::<reader::Reader>()?;
    module.add_class::<keyspace::Keyspace>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<follower::FollowedKeyspace>()?;
    module.add_class::<follower::Follower>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<batch::WriteBatch>()?;
    module.add_class::<transaction::TransactionIn>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<transaction::TransactionRows>()?;
    module.add_class::<transaction::Savepoint>()?;
    module.add_class::<changes::Changes>()?;
    module.add_class::<backups::Generation>()?;
    module.add_class::<events::EventQueue>()?;
    module.add_class::<filter::RangeFilter>()?;
    module.add_class::<arrow::ArrowRows>()?;
    module.add_function(wrap_pyfunction!(store::open, module)?)?;
    module.add_function(wrap_pyfunction!(follower::follow, module)?)?;
    module.add_function(wrap_pyfunction!(backups::generations, module)?)?;
    module.add_function(wrap_pyfunction!(backups::verify_backup, module)?)?;
    module.add_function(wrap_pyfunction!(backups::restore, module)?)?;
    module.add_function(wrap_pyfunction!(backups::prune, module)?)?;
    module.add_function(wrap_pyfunction!(options::options, module)?)?;
    module.add_function(wrap_pyfunction!(filter::filter_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(shared::end, module)?)?;
    module.add_function(wrap_pyfunction!(shared::forked, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
