//! Tables of Arrow, through its C data interface: for pyarrow, polars, duckdb and others.
//! ```text
//! rows of a range --> batches of two binary columns --> __arrow_c_stream__
//! __arrow_c_stream__, __arrow_c_array__ --> two columns --> a bulk load
//! ```
//! Invariants: whoever reads a stream has rows of one moment, each once. No batch is read with the
//! interpreter's lock, which a reader may have.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use trommel::{KeyBounds, Scan};

use crate::arrow_stream;
use crate::calls::{self, LOOK_ROWS};
use crate::errors::{wrong_type, wrong_value};
use crate::reader::Reader;
use crate::shared::Keeper;

/// Bytes after which a batch ends. With one value more its offsets still have 31 bits.
const BATCH_BYTES: usize = 16 << 20;

/// Rows of a range, for whoever reads Arrow: each `__arrow_c_stream__` begins anew.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct ArrowRows {
    reader: Py<Reader>,
    bounds: KeyBounds,
    batch_rows: usize,
}

impl ArrowRows {
    pub(crate) fn new(reader: Py<Reader>, bounds: KeyBounds, batch_rows: usize) -> PyResult<Self> {
        match batch_rows {
            0 => Err(wrong_value("a batch has at least one row")),
            _ => Ok(ArrowRows { reader, bounds, batch_rows }),
        }
    }
}

#[pymethods]
impl ArrowRows {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Another schema is a wish that need not be met: the consumer casts what it gets.
        let _ = requested_schema;
        let reader = self.reader.get();
        let scan = reader.begin_scan(py, self.bounds.clone())?;
        let batches = Batches {
            scan,
            schema: schema(),
            batch_rows: self.batch_rows,
            is_done: false,
            _keeper: reader.keeper.clone(),
        };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn schema() -> SchemaRef {
    let column = |name| Field::new(name, DataType::Binary, false);
    Arc::new(Schema::new(vec![column("key"), column("value")]))
}

/// Batches of a scan.
struct Batches {
    scan: Scan,
    schema: SchemaRef,
    batch_rows: usize,
    is_done: bool,
    /// The store stays open while somebody reads.
    _keeper: Keeper,
}

impl Batches {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let (mut keys, mut values) = (BinaryBuilder::new(), BinaryBuilder::new());
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.batch_rows && bytes < BATCH_BYTES {
            let Some(row) = self.scan.next_lent() else {
                self.is_done = true;
                break;
            };
            let (key, value) = row.map_err(|error| external(&error.to_string()))?;
            keys.append_value(key);
            values.append_value(&*value);
            rows += 1;
            bytes += key.len() + value.len();
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(values.finish())];
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }
}

/// An error for Arrow, whose texts end with a zero. Names of key spaces may have one.
fn external(message: &str) -> ArrowError {
    ArrowError::ExternalError(message.replace('\0', "\\0").into())
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let batch = calls::from_anywhere(|| self.batch());
        let batch = batch.unwrap_or_else(|why| Err(external(why)));
        self.is_done |= batch.is_err();
        batch.transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A column of keys or values.
enum Column {
    Bytes(ArrayRef, for<'a> fn(&'a ArrayRef, usize) -> &'a [u8]),
    Numbers(Vec<[u8; 8]>),
}

impl Column {
    /// `what`: for errors.
    fn of(batch: &StructArray, name: &str, is_key: bool) -> PyResult<Column> {
        let found = batch.column_by_name(name);
        let array =
            found.ok_or_else(|| wrong_value(format!("the table has no column {name:?}")))?;
        if array.null_count() > 0 {
            return Err(wrong_value(format!("the column {name:?} has nulls: fill or drop them")));
        }
        let array = Arc::clone(array);
        Ok(match array.data_type() {
            DataType::Binary => Column::Bytes(array, |it, at| it.as_binary::<i32>().value(at)),
            DataType::LargeBinary => Column::Bytes(array, |it, at| it.as_binary::<i64>().value(at)),
            DataType::BinaryView => Column::Bytes(array, |it, at| it.as_binary_view().value(at)),
            DataType::FixedSizeBinary(_) => {
                Column::Bytes(array, |it, at| it.as_fixed_size_binary().value(at))
            }
            DataType::Utf8 => {
                Column::Bytes(array, |it, at| it.as_string::<i32>().value(at).as_bytes())
            }
            DataType::LargeUtf8 => {
                Column::Bytes(array, |it, at| it.as_string::<i64>().value(at).as_bytes())
            }
            DataType::Utf8View => {
                Column::Bytes(array, |it, at| it.as_string_view().value(at).as_bytes())
            }
            DataType::UInt64 if is_key => {
                let numbers = array.as_primitive::<arrow_array::types::UInt64Type>();
                Column::Numbers(numbers.values().iter().map(|it| it.to_be_bytes()).collect())
            }
            other => {
                let also = if is_key { ", or numbers (uint64)" } else { "" };
                return Err(wrong_type(format!(
                    "the column {name:?} is of {other}: binary or text is needed{also}"
                )));
            }
        })
    }

    fn get(&self, at: usize) -> &[u8] {
        match self {
            Column::Bytes(array, value) => value(array, at),
            Column::Numbers(numbers) => &numbers[at],
        }
    }
}

/// Rows of a table, batch by batch.
pub(crate) struct TableRows {
    batches: Box<dyn Iterator<Item = Result<ArrayRef, ArrowError>> + Send>,
    names: [String; 2],
    /// Key, value, how many rows, and the next one.
    current: Option<(Column, Column, usize, usize)>,
}

impl TableRows {
    /// Of anything that has `__arrow_c_stream__` or `__arrow_c_array__`.
    pub(crate) fn of(table: &Bound<'_, PyAny>, key: String, value: String) -> PyResult<TableRows> {
        let batches: Box<dyn Iterator<Item = _> + Send> = if table.hasattr("__arrow_c_stream__")? {
            Box::new(arrow_stream::of_table(table)?)
        } else if table.hasattr("__arrow_c_array__")? {
            let batch = StructArray::from(RecordBatch::from_pyarrow_bound(table)?);
            Box::new(std::iter::once(Ok(Arc::new(batch) as ArrayRef)))
        } else {
            return Err(wrong_type(
                "a table of Arrow is needed, which has __arrow_c_stream__ or __arrow_c_array__",
            ));
        };
        Ok(TableRows { batches, names: [key, value], current: None })
    }

    fn next_batch(&mut self) -> PyResult<bool> {
        Python::attach(calls::check_signals)?;
        let Some(batch) = calls::called_back(|| self.batches.next()) else { return Ok(false) };
        let batch = batch.map_err(|error| wrong_value(error.to_string()))?;
        let batch = batch.as_struct();
        if batch.null_count() > 0 {
            let nulls = batch.null_count();
            return Err(wrong_value(format!("{nulls} rows of the table are null: drop them")));
        }
        let [key, value] = &self.names;
        let columns = (Column::of(batch, key, true)?, Column::of(batch, value, false)?);
        self.current = Some((columns.0, columns.1, batch.len(), 0));
        Ok(true)
    }

    /// The next row; None: there is none left.
    pub(crate) fn next_row(&mut self) -> PyResult<Option<(Vec<u8>, Vec<u8>)>> {
        loop {
            if let Some((keys, values, rows, at)) = &mut self.current
                && *at < *rows
            {
                if *at > 0 && at.is_multiple_of(LOOK_ROWS) {
                    Python::attach(calls::check_signals)?;
                }
                let row = (keys.get(*at).to_vec(), values.get(*at).to_vec());
                *at += 1;
                return Ok(Some(row));
            }
            if !self.next_batch()? {
                return Ok(None);
            }
        }
    }
}
