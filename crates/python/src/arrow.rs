//! Tables for Python by Arrow's PyCapsule interface: pandas, polars, pyarrow and DuckDB take them without a copy, and none is needed.

use std::sync::Arc;

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use fairlift_cli::api::{Cells, Column};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// What Arrow's interface calls a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A table that Arrow's users read.
#[pyclass(frozen, module = "fairlift")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Of batches of one schema; at least one.
    pub fn of_batches(batches: Vec<RecordBatch>) -> PyResult<Table> {
        let first = batches.first().ok_or_else(|| PyRuntimeError::new_err("a table without a batch"))?;
        Ok(Table { schema: first.schema(), batches })
    }

    /// Of these columns.
    pub fn of(columns: Vec<Column>) -> PyResult<Table> {
        let field = |column: &Column| Field::new(&column.name, type_of(&column.cells), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|column| array(column.cells)).collect();
        let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(|e| failed(&e))?;
        Table::of_batches(vec![batch])
    }
}

#[pymethods]
impl Table {
    /// The table as an Arrow stream. Types are as they are, whatever schema is asked for, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let batches = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new(py, stream, Some(STREAM.to_owned()))
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.batches.iter().map(RecordBatch::num_rows).sum(), self.schema.fields().len())
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

/// The batches of anything that has `__arrow_c_stream__`.
#[expect(unsafe_code, reason = "Arrow's C interface is a pointer")]
pub fn stream_of(table: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds an initialised ArrowArrayStream, says the PyCapsule interface, and `capsule` keeps it alive
    // here. `from_raw` moves it out and leaves a released one behind, so the capsule's destructor frees nothing twice.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    ArrowArrayStreamReader::try_new(stream).map_err(|e| PyTypeError::new_err(e.to_string()))
}

fn type_of(cells: &Cells) -> DataType {
    match cells {
        Cells::Whole(_) => DataType::Int64,
        Cells::Number(_) => DataType::Float64,
        Cells::Text(_) => DataType::Utf8,
    }
}

fn array(cells: Cells) -> ArrayRef {
    match cells {
        Cells::Whole(cells) => Arc::new(Int64Array::from(cells)),
        Cells::Number(cells) => Arc::new(Float64Array::from(cells)),
        Cells::Text(cells) => Arc::new(StringArray::from(cells)),
    }
}

fn failed(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
