//! Compressed traces, by their first bytes.

use std::io::{self, BufReader, Cursor, Read};

use crate::read::Input;

/// Reads up to `count` bytes; fewer only at the end.
pub(crate) fn peek(input: &mut dyn Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count);
    input.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The stream as it was before `start` was taken from it.
pub(crate) fn put_back(start: Vec<u8>, rest: Input) -> Input {
    Box::new(Cursor::new(start).chain(rest))
}

/// Names of compressed files end so.
pub(crate) const SUFFIXES: [&str; 4] = [".gz", ".xz", ".zst", ".bz2"];

/// `input` without its compression, if it has one. Several members or frames in a row are one stream.
pub(crate) fn decompress(mut input: Input) -> io::Result<Input> {
    let start = peek(&mut input, 6)?;
    let whole = |start: Vec<u8>, input: Input| BufReader::with_capacity(64 << 10, put_back(start, input));
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(whole(start, input))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(whole(start, input)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            Box::new(zstd::stream::read::Decoder::with_buffer(whole(start, input))?)
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Box::new(bzip2::bufread::MultiBzDecoder::new(whole(start, input)))
        }
        _ => put_back(start, input),
    })
}
