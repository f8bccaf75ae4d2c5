//! Traces as Arrow: the columns of the CSV format (docs/traces.md), out of any trace and into a replay.

use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringBuilder, UInt16Builder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::ArrowArrayStreamReader;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{Field, Schema};
use fairlift_cli::api::{Failure, TraceRows, fields};

use crate::cells::{self, Column};

/// A column that grows.
enum Growing {
    Whole16(UInt16Builder),
    Whole32(UInt32Builder),
    Whole64(UInt64Builder),
    Signed(Int32Builder),
    Text(StringBuilder),
}

impl Growing {
    /// Of the column of this name. What may stand there is the trace format's to say; all of it fits.
    fn of(name: &str) -> Growing {
        match name {
            "time_ns" | "sector" | "bytes" | "cgroup" | "response_ns" => Growing::Whole64(UInt64Builder::new()),
            "pid" | "cpu" | "sequence" => Growing::Whole32(UInt32Builder::new()),
            "skew_bytes" | "ioprio" => Growing::Whole16(UInt16Builder::new()),
            "error" => Growing::Signed(Int32Builder::new()),
            _ => Growing::Text(StringBuilder::new()),
        }
    }

    /// An empty cell is none.
    fn push(&mut self, cell: &str) {
        match self {
            Growing::Whole16(cells) => cells.append_option(cell.parse().ok()),
            Growing::Whole32(cells) => cells.append_option(cell.parse().ok()),
            Growing::Whole64(cells) => cells.append_option(cell.parse().ok()),
            Growing::Signed(cells) => cells.append_option(cell.parse().ok()),
            Growing::Text(cells) => cells.append_option(Some(cell).filter(|cell| !cell.is_empty())),
        }
    }

    fn finish(mut self) -> ArrayRef {
        match &mut self {
            Growing::Whole16(cells) => Arc::new(cells.finish()),
            Growing::Whole32(cells) => Arc::new(cells.finish()),
            Growing::Whole64(cells) => Arc::new(cells.finish()),
            Growing::Signed(cells) => Arc::new(cells.finish()),
            Growing::Text(cells) => Arc::new(cells.finish()),
        }
    }
}

/// All batches of a trace.
pub fn batches(mut rows: TraceRows) -> Result<Vec<RecordBatch>, Failure> {
    let mut batches = Vec::new();
    while let Some(text) = rows.batch()? {
        batches.push(batch(&text).map_err(|e| Failure::internal(e.to_string()))?);
    }
    Ok(batches)
}

fn batch(text: &str) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut lines = text.lines();
    let names = lines.next().map(fields).unwrap_or_default();
    let mut columns: Vec<Growing> = names.iter().map(|name| Growing::of(name)).collect();
    for line in lines {
        columns.iter_mut().zip(fields(line)).for_each(|(column, cell)| column.push(&cell));
    }
    let arrays: Vec<ArrayRef> = columns.into_iter().map(Growing::finish).collect();
    let field = |(name, array): (&String, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Schema::new(names.iter().zip(&arrays).map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), arrays)
}

/// The user's table as text of the CSV format, a batch at a time.
pub struct Rows {
    batches: ArrowArrayStreamReader,
    text: Vec<u8>,
    read: usize,
}

impl Rows {
    /// Of this table.
    pub fn new(batches: ArrowArrayStreamReader) -> Rows {
        let schema = batches.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Rows { text: (names.join(",") + "\n").into_bytes(), batches, read: 0 }
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.read == self.text.len() {
            let Some(batch) = self.batches.next() else { return Ok(()) };
            let batch = batch.map_err(|e| io::Error::other(e.to_string()))?;
            self.text.clear();
            self.read = 0;
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns());
            let columns: Vec<Column<'_>> =
                columns.map(|(field, array)| cells::column(field.name(), array)).collect::<io::Result<_>>()?;
            for row in 0..batch.num_rows() {
                for (place, column) in columns.iter().enumerate() {
                    if place > 0 {
                        self.text.push(b',');
                    }
                    column(row, &mut self.text);
                }
                self.text.push(b'\n');
            }
        }
        Ok(())
    }
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let count = buffer.len().min(self.text.len() - self.read);
        buffer[..count].copy_from_slice(&self.text[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
