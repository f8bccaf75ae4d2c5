//! Cells of the user's Arrow columns, written as cells of a CSV row.

use std::io::{self, Write as _};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;

/// Writes the cell of a row; nothing where there is none.
pub type Column<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// How the cells of a column are written.
pub fn column<'a>(name: &str, array: &'a ArrayRef) -> io::Result<Column<'a>> {
    Ok(match array.data_type() {
        DataType::Int8 => numbers(array.as_primitive::<Int8Type>()),
        DataType::Int16 => numbers(array.as_primitive::<Int16Type>()),
        DataType::Int32 => numbers(array.as_primitive::<Int32Type>()),
        DataType::Int64 => numbers(array.as_primitive::<Int64Type>()),
        DataType::UInt8 => numbers(array.as_primitive::<UInt8Type>()),
        DataType::UInt16 => numbers(array.as_primitive::<UInt16Type>()),
        DataType::UInt32 => numbers(array.as_primitive::<UInt32Type>()),
        DataType::UInt64 => numbers(array.as_primitive::<UInt64Type>()),
        DataType::Float32 => numbers(array.as_primitive::<Float32Type>()),
        DataType::Float64 => numbers(array.as_primitive::<Float64Type>()),
        DataType::Utf8 => {
            let cells = array.as_string::<i32>();
            words(array, move |row| cells.value(row))
        }
        DataType::LargeUtf8 => {
            let cells = array.as_string::<i64>();
            words(array, move |row| cells.value(row))
        }
        DataType::Utf8View => {
            let cells = array.as_string_view();
            words(array, move |row| cells.value(row))
        }
        DataType::Dictionary(..) => {
            let cells = array.as_any_dictionary();
            let keys = cells.normalized_keys();
            let value = column(name, cells.values())?;
            Box::new(move |row, out| {
                if !array.is_null(row) {
                    value(keys[row], out);
                }
            })
        }
        // A column that holds nothing has no type of its own.
        DataType::Null => Box::new(|_, _| ()),
        other => {
            let message = format!("column '{name}' is of type {other} (allowed: whole numbers, numbers, text)");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    })
}

fn numbers<T: ArrowPrimitiveType<Native: std::fmt::Display>>(cells: &PrimitiveArray<T>) -> Column<'_> {
    Box::new(move |row, out| {
        if cells.is_valid(row) {
            // Writing into memory does not fail.
            let _ = write!(out, "{}", cells.value(row));
        }
    })
}

/// Text in quotes; what would end a line is escaped, as the format has it.
fn words<'a>(array: &'a ArrayRef, value: impl Fn(usize) -> &'a str + 'a) -> Column<'a> {
    Box::new(move |row, out| {
        if array.is_null(row) || value(row).is_empty() {
            return;
        }
        out.push(b'"');
        for byte in value(row).bytes() {
            match byte {
                b'"' => out.extend_from_slice(b"\"\""),
                b'\n' | b'\r' => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                byte => out.push(byte),
            }
        }
        out.push(b'"');
    })
}
