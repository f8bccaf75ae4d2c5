//! `random_generator=lfsr`: a Galois register with XNOR feedback visits every value below a power of two once.

use std::fmt;

/// Feedback taps of maximal-length registers by width, bits counted from 1; widths 0 to 2 do not exist.
/// Source: the tables of maximal LFSR taps (Xilinx XAPP 052 and its extensions), the set fio uses.
const TAPS: [&[u8]; 64] = [
    &[],
    &[],
    &[],
    &[3, 2],
    &[4, 3],
    &[5, 3],
    &[6, 5],
    &[7, 6],
    &[8, 6, 5, 4],
    &[9, 5],
    &[10, 7],
    &[11, 9],
    &[12, 6, 4, 1],
    &[13, 4, 3, 1],
    &[14, 5, 3, 1],
    &[15, 14],
    &[16, 15, 13, 4],
    &[17, 14],
    &[18, 11],
    &[19, 6, 2, 1],
    &[20, 17],
    &[21, 19],
    &[22, 21],
    &[23, 18],
    &[24, 23, 22, 17],
    &[25, 22],
    &[26, 6, 2, 1],
    &[27, 5, 2, 1],
    &[28, 25],
    &[29, 27],
    &[30, 6, 4, 1],
    &[31, 28],
    &[32, 31, 29, 1],
    &[33, 20],
    &[34, 27, 2, 1],
    &[35, 33],
    &[36, 25],
    &[37, 5, 4, 3, 2, 1],
    &[38, 6, 5, 1],
    &[39, 35],
    &[40, 38, 21, 19],
    &[41, 38],
    &[42, 41, 20, 19],
    &[43, 42, 38, 37],
    &[44, 43, 18, 17],
    &[45, 44, 42, 41],
    &[46, 45, 26, 25],
    &[47, 42],
    &[48, 47, 21, 20],
    &[49, 40],
    &[50, 49, 24, 23],
    &[51, 50, 36, 35],
    &[52, 49],
    &[53, 52, 38, 37],
    &[54, 53, 18, 17],
    &[55, 31],
    &[56, 55, 35, 34],
    &[57, 50],
    &[58, 39],
    &[59, 58, 38, 37],
    &[60, 59],
    &[61, 60, 46, 45],
    &[62, 61, 6, 5],
    &[63, 62],
];

/// Visits each of `0..blocks` once.
#[derive(Clone)]
pub(super) struct Lfsr {
    blocks: u64,
    feedback: u64,
    top: u64,
    value: u64,
    given: u64,
}

impl Lfsr {
    /// `None`: the seed is the one state a register cannot leave, or there are too many blocks. fio fails too.
    pub(super) fn new(blocks: u64, seed: u64) -> Option<Self> {
        let width = (3..64).find(|&width| 1u64 << width > blocks)?;
        let feedback = TAPS[width].iter().fold(0, |mask, tap| mask | 1u64 << (tap - 1));
        let mut lfsr = Self { blocks, feedback, top: 1 << (width - 1), value: 0, given: 0 };
        lfsr.restart(seed);
        (lfsr.value != lfsr.all_ones()).then_some(lfsr)
    }

    /// Starts over.
    pub(super) fn restart(&mut self, seed: u64) {
        self.value = seed & self.all_ones();
        self.given = 0;
    }

    fn all_ones(&self) -> u64 {
        self.top * 2 - 1
    }

    /// Next block; `None` after all of them.
    pub(super) fn next_block(&mut self) -> Option<u64> {
        if self.given >= self.blocks {
            return None;
        }
        self.given += 1;
        loop {
            let low_bit = self.value & 1;
            self.value = (self.value >> 1) | self.top;
            if low_bit == 0 {
                self.value ^= self.feedback;
            }
            if self.value < self.blocks {
                return Some(self.value);
            }
        }
    }
}

impl fmt::Debug for Lfsr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lfsr({} of {} blocks, at {})", self.given, self.blocks, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_once() {
        for blocks in [1u64, 2, 7, 8, 100, 255, 256, 4095, 5000] {
            let mut lfsr = Lfsr::new(blocks, 0xb189_9bed).unwrap();
            let mut seen: Vec<_> = std::iter::from_fn(|| lfsr.next_block()).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..blocks), "{blocks}");
        }
    }
}
