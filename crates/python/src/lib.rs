//! The native half of the Python package `fairlift`; `fairlift/__init__.py` is the other, and says what everything means.
//!
//! Work is done without the interpreter's lock. What is wrong with the input becomes `fairlift.Error`, with file and line.

mod arrow;
mod cells;
mod trace;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::Table;
use fairlift_cli::api::{self, Failure};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::create_exception;

create_exception!(fairlift, Error, PyException, "Wrong input: what the command would complain of.");

/// As an exception: the message, where, and the whole complaint.
fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let error = Error::new_err(failure.plain());
    let value = error.value(py);
    let (file, line) = failure.file_and_line();
    // An exception takes attributes; were one refused, its text would still say everything.
    let _ = value.setattr("message", failure.message());
    let _ = value.setattr("place", failure.place());
    let _ = value.setattr("file", file);
    let _ = value.setattr("line", line);
    error
}

/// What `run`, `compare` and `replay` found.
#[pyclass(frozen, module = "fairlift")]
struct Compared(Arc<api::Compared>);

#[pymethods]
impl Compared {
    #[getter]
    fn table(&self) -> &str {
        &self.0.table
    }

    #[getter]
    fn json(&self) -> &str {
        &self.0.json
    }

    #[getter]
    fn csv(&self) -> &str {
        &self.0.csv
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    fn page(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.page()).map_err(|e| raised(py, &e))
    }

    fn rows(&self) -> PyResult<Table> {
        Table::of(api::columns_of_csv(&self.0.csv))
    }
}

/// Do what the command of these words does.
#[pyfunction]
fn compared(py: Python<'_>, words: Vec<String>) -> PyResult<Compared> {
    let result = py.detach(|| api::Compared::of(&words));
    result.map(|compared| Compared(Arc::new(compared))).map_err(|e| raised(py, &e))
}

/// The same for `replay`, whose trace is a table.
#[pyfunction]
fn replayed(py: Python<'_>, words: Vec<String>, table: &Bound<'_, PyAny>) -> PyResult<Compared> {
    let rows = trace::Rows::new(arrow::stream_of(table)?);
    let result = py.detach(|| api::Compared::of_rows(&words, rows));
    result.map(|compared| Compared(Arc::new(compared))).map_err(|e| raised(py, &e))
}

/// The events of a trace; the words are those of `fairlift inspect`.
#[pyfunction]
fn read_trace(py: Python<'_>, words: Vec<String>) -> PyResult<Table> {
    let batches = py.detach(|| trace::batches(api::trace_rows(&words)?));
    Table::of_batches(batches.map_err(|e| raised(py, &e))?)
}

/// A device's whole name and its parameters.
#[pyfunction]
fn device(py: Python<'_>, name: &str, changes: Vec<(String, String)>) -> PyResult<(String, String)> {
    api::device(name, &changes).map_err(|e| raised(py, &e))
}

/// A sweep with its results.
#[pyclass(module = "fairlift")]
struct Sweep(api::Sweep);

#[pymethods]
impl Sweep {
    #[new]
    fn new(py: Python<'_>, file: String, folder: PathBuf) -> PyResult<Sweep> {
        py.detach(|| api::Sweep::open(&file, &folder)).map(Sweep).map_err(|e| raised(py, &e))
    }

    #[pyo3(signature = (threads=None))]
    fn run(&mut self, py: Python<'_>, threads: Option<usize>) -> PyResult<()> {
        py.detach(|| self.0.run(threads)).map_err(|e| raised(py, &e))
    }

    fn pending(&self) -> Vec<u64> {
        self.0.pending()
    }

    fn record(&mut self, py: Python<'_>, made: &str) -> PyResult<()> {
        self.0.record(made).map_err(|e| raised(py, &e))
    }

    fn advance(&mut self) -> bool {
        self.0.advance()
    }

    fn write(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.write()).map_err(|e| raised(py, &e))
    }

    fn summary(&self) -> String {
        self.0.summary()
    }

    fn page(&self) -> String {
        self.0.page()
    }

    fn rows(&self, py: Python<'_>) -> PyResult<Table> {
        Table::of(py.detach(|| self.0.columns()).map_err(|e| raised(py, &e))?)
    }

    fn done(&self) -> usize {
        self.0.done()
    }

    fn files(&self) -> Vec<(String, String)> {
        self.0.files()
    }

    /// By circumstance: what it is, what is set, the command, the figures.
    #[expect(clippy::type_complexity, reason = "the Python half makes objects of it")]
    fn best(&self) -> Vec<(Vec<(String, String)>, Vec<(String, String)>, String, Vec<(String, f64)>)> {
        let parts = |best: api::Best| (best.circumstance, best.settings, best.command, best.figures);
        self.0.best().into_iter().map(parts).collect()
    }
}

/// Makes runs of a sweep, wherever it is.
#[pyclass(frozen, module = "fairlift")]
struct Worker(api::Worker);

#[pymethods]
impl Worker {
    #[new]
    fn new(py: Python<'_>, file: String) -> PyResult<Worker> {
        py.detach(|| api::Worker::open(&file)).map(Worker).map_err(|e| raised(py, &e))
    }

    fn run(&self, py: Python<'_>, numbers: Vec<u64>) -> String {
        py.detach(|| self.0.run(&numbers))
    }
}

#[pymodule]
fn _fairlift(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Table>()?;
    module.add_class::<Compared>()?;
    module.add_class::<Sweep>()?;
    module.add_class::<Worker>()?;
    module.add_function(wrap_pyfunction!(compared, module)?)?;
    module.add_function(wrap_pyfunction!(replayed, module)?)?;
    module.add_function(wrap_pyfunction!(read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(device, module)?)
}
