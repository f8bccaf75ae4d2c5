//! The results as Parquet: the same columns as the CSV, with their types.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::rows::{Cells, Column};

/// A Parquet file: a row group for each batch of rows.
pub struct Groups<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> Groups<W> {
    /// Begin the file of these columns; their cells do not matter.
    pub fn new(columns: &[Column], to: W) -> Result<Groups<W>, ParquetError> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("sweep").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("fairlift ", env!("CARGO_PKG_VERSION")).to_owned());
        SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties.build())).map(Groups)
    }

    /// Write a batch of rows.
    pub fn write(&mut self, columns: &[Column]) -> Result<(), ParquetError> {
        let mut group = self.0.next_row_group()?;
        for column in columns {
            if let Some(mut writer) = group.next_column()? {
                write_column(&mut writer, &column.cells)?;
                writer.close()?;
            }
        }
        group.close().map(drop)
    }

    /// Write the end of the file.
    pub fn close(self) -> Result<(), ParquetError> {
        self.0.close().map(drop)
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, repetition) = match column.cells {
        Cells::Whole(_) => (Physical::INT64, Repetition::REQUIRED),
        Cells::Number(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
        Cells::Text(_) => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
    };
    let is_text = matches!(column.cells, Cells::Text(_));
    let logical = is_text.then_some(LogicalType::String);
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
    field.with_logical_type(logical).build().map(Arc::new)
}

fn write_column(writer: &mut SerializedColumnWriter<'_>, cells: &Cells) -> Result<(), ParquetError> {
    match cells {
        Cells::Whole(cells) => writer.typed::<Int64Type>().write_batch(cells, None, None)?,
        Cells::Number(cells) => {
            let values: Vec<f64> = cells.iter().flatten().copied().collect();
            writer.typed::<DoubleType>().write_batch(&values, Some(&levels(cells)), None)?
        }
        Cells::Text(cells) => {
            let values: Vec<ByteArray> = cells.iter().flatten().map(|text| text.as_str().into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels(cells)), None)?
        }
    };
    Ok(())
}

/// Which cells there are.
fn levels<T>(cells: &[Option<T>]) -> Vec<i16> {
    cells.iter().map(|cell| i16::from(cell.is_some())).collect()
}
