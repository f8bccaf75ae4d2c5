//! Tables for Python by Arrow's PyCapsule interface: pandas, polars, pyarrow and DuckDB take them without a copy, and none is needed.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use fairlift_cli::api::{Cells, Column};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table that Arrow's users read.
#[pyclass(frozen, module = "fairlift")]
pub struct Table(RecordBatch);

impl Table {
    /// Of these columns.
    pub fn of(columns: Vec<Column>) -> PyResult<Table> {
        let field = |column: &Column| Field::new(&column.name, type_of(&column.cells), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|column| array(column.cells)).collect();
        RecordBatch::try_new(Arc::new(schema), arrays).map(Table).map_err(|e| failed(&e))
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
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new(py, stream, Some(c"arrow_array_stream".to_owned()))
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.num_rows(), self.0.num_columns())
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
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
