//! What a range of a back end holds: data, holes, zeroes.

/// A part of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its length.
    pub bytes: u64,
    /// No space is allocated for it.
    pub hole: bool,
    /// It reads as zeroes.
    pub zero: bool,
}

/// The same with equal neighbours as one, the first `most` of them.
pub fn joined(extents: impl IntoIterator<Item = Extent>, most: usize) -> Vec<Extent> {
    let mut out: Vec<Extent> = Vec::new();
    for extent in extents {
        let is_full = out.len() == most;
        match out.last_mut() {
            Some(last) if (last.hole, last.zero) == (extent.hole, extent.zero) => last.bytes += extent.bytes,
            _ if is_full => break,
            _ => out.push(extent),
        }
    }
    out
}
