//! Memory: as much as was written, in chunks of 64 KiB. What was trimmed or zeroed takes none.

use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::{BackEnd, Extent, Job, Limits, joined};
use crate::io::{Action, Fault};

/// What is allocated at a time, bytes.
const CHUNK: u64 = 64 << 10;
/// Locks, so that threads seldom meet at one.
const SHARDS: usize = 64;
/// Most extents of an answer.
const EXTENTS_MAX: usize = 4096;

type Shard = RwLock<FxHashMap<u64, Box<[u8]>>>;

/// A sparse store; what was never written reads as zeroes.
#[derive(Debug)]
pub struct Store {
    shards: Box<[Shard]>,
}

impl Default for Store {
    fn default() -> Store {
        Store { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }
}

/// The parts of `offset..offset + bytes` by chunk: the chunk, the place in it, the length.
fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + bytes;
    let first = (offset < end).then_some(offset);
    std::iter::successors(first, move |at| Some((at / CHUNK + 1) * CHUNK).filter(|next| *next < end))
        .map(move |at| (at / CHUNK, (at % CHUNK) as usize, (end.min((at / CHUNK + 1) * CHUNK) - at) as usize))
}

impl Store {
    fn shard(&self, chunk: u64) -> &Shard {
        &self.shards[chunk as usize % SHARDS]
    }

    /// Fill `data` with what is at `offset`.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        let mut rest = data;
        for (chunk, at, len) in parts(offset, rest.len() as u64) {
            let (part, behind) = rest.split_at_mut(len);
            match self.shard(chunk).read().unwrap_or_else(PoisonError::into_inner).get(&chunk) {
                Some(bytes) => part.copy_from_slice(&bytes[at..at + len]),
                None => part.fill(0),
            }
            rest = behind;
        }
    }

    /// Put `data` at `offset`.
    pub fn write(&self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (chunk, at, len) in parts(offset, data.len() as u64) {
            let (part, behind) = rest.split_at(len);
            let mut shard = self.shard(chunk).write().unwrap_or_else(PoisonError::into_inner);
            let bytes = shard.entry(chunk).or_insert_with(|| vec![0; CHUNK as usize].into());
            bytes[at..at + len].copy_from_slice(part);
            rest = behind;
        }
    }

    /// Make a range read as zeroes; whole chunks are given back.
    pub fn clear(&self, offset: u64, bytes: u64) {
        for (chunk, at, len) in parts(offset, bytes) {
            let mut shard = self.shard(chunk).write().unwrap_or_else(PoisonError::into_inner);
            if len as u64 == CHUNK {
                shard.remove(&chunk);
            } else if let Some(bytes) = shard.get_mut(&chunk) {
                bytes[at..at + len].fill(0);
            }
        }
    }

    /// Data and holes of a range, by chunk.
    pub fn extents(&self, offset: u64, bytes: u64) -> Vec<Extent> {
        let extent = |(chunk, _, len): (u64, usize, usize)| {
            let there = self.shard(chunk).read().unwrap_or_else(PoisonError::into_inner).contains_key(&chunk);
            Extent { bytes: len as u64, hole: !there, zero: !there }
        };
        joined(parts(offset, bytes).map(extent), EXTENTS_MAX)
    }

    /// Do what `job` says.
    pub fn serve(&self, job: &mut Job) {
        match job.action {
            Action::Read => job.ios.iter_mut().for_each(|(_, io)| self.read(io.offset, &mut io.data)),
            Action::Write => job.ios.iter().for_each(|(_, io)| self.write(io.offset, &io.data)),
            Action::Trim | Action::Zero { .. } => self.clear(job.offset, job.bytes),
            Action::Flush => {}
        }
    }
}

/// What memory of so many bytes can do.
pub(super) fn limits(bytes: u64) -> Limits {
    Limits {
        sectors: bytes.div_ceil(512),
        queue_depth: 128,
        rotational: false,
        write_cache: false,
        fua: true,
        max_sectors: 2560,
        max_segments: 128,
        budget: false,
    }
}

/// The back end.
#[derive(Debug)]
pub struct Ram {
    store: Store,
    bytes: u64,
}

impl Ram {
    /// Of so many bytes, all zero.
    pub fn new(bytes: u64) -> Ram {
        Ram { store: Store::default(), bytes }
    }
}

impl BackEnd for Ram {
    fn limits(&self) -> Limits {
        limits(self.bytes)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        jobs.iter_mut().for_each(|job| self.store.serve(job));
        done.append(jobs);
    }

    fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, Fault> {
        Ok(self.store.extents(offset, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_at_chunks() {
        let all: Vec<_> = parts(CHUNK - 1, CHUNK + 2).collect();
        assert_eq!(all, [(0, CHUNK as usize - 1, 1), (1, 0, CHUNK as usize), (2, 0, 1)]);
        assert_eq!(parts(5, 0).count(), 0);
    }

    #[test]
    fn what_was_cleared_is_a_hole_again_and_reads_as_zeroes() {
        let store = Store::default();
        store.write(CHUNK - 2, &[7; 4]);
        let mut back = [1; 6];
        store.read(CHUNK - 3, &mut back);
        assert_eq!(back, [0, 7, 7, 7, 7, 0]);
        store.clear(0, CHUNK);
        store.clear(CHUNK + 1, 9);
        store.read(CHUNK - 3, &mut back);
        assert_eq!(back, [0, 0, 0, 7, 0, 0]);
        let hole = Extent { bytes: CHUNK, hole: true, zero: true };
        let data = Extent { hole: false, zero: false, ..hole };
        assert_eq!(store.extents(0, 3 * CHUNK), [hole, data, hole]);
    }
}
