//! A stream of Arrow that Python gives, read with the nulls of whole rows.
//! ```text
//! __arrow_c_stream__ --> capsule --its content moves--> ArrayStreamReader --> arrays of structs
//! ```
//! `arrow-pyarrow` reads streams without unsafe code here. But it makes batches of them, which have
//! no nulls of whole rows: it drops these, and what lies in memory beneath them counts as values.
//!
//! Invariant: the stream is moved out of its capsule. So it is freed once, by its reader.

use std::ffi::CStr;

use arrow_array::ArrayReader;
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{wrong_type, wrong_value};

/// The name of a capsule says what is in it.
const NAME: &CStr = c"arrow_array_stream";

/// The stream of a table that has one. Each of its arrays is a batch of rows.
pub(crate) fn of_table(table: &Bound<'_, PyAny>) -> PyResult<ArrayStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let content = capsule.pointer_checked(Some(NAME))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by Arrow's interface, a capsule with this name has a stream, and one thread uses it.
    // A stream that was moved out before is a released one, which the reader refuses.
    #[expect(unsafe_code, reason = "no other crate reads the nulls of whole rows")]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(content.as_ptr()) };
    let reader = ArrayStreamReader::try_new(stream);
    let reader = reader.map_err(|error| wrong_value(error.to_string()))?;
    match reader.field().data_type() {
        DataType::Struct(_) => Ok(reader),
        other => Err(wrong_type(format!("a table with columns is needed, and this is of {other}"))),
    }
}
