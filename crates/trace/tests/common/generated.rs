//! A binary trace of any length, made while it is read.

use std::io::{self, Read};

use fairlift_trace::write::{BlktraceWriter, EventWriter, Version};
use fairlift_trace::{Action, Device, DeviceNumber, Event, Names, Op, Texts};

/// Binary records of one CPU, made when asked for: queue, get request, insert, issue, complete of each I/O.
pub struct Generated {
    left: u64,
    io: u64,
    stage: usize,
    piece: Vec<u8>,
    at: usize,
}

impl Generated {
    const STAGES: [Action; 5] =
        [Action::Queue, Action::GetRequest, Action::Insert, Action::Issue, Action::Complete];

    fn refill(&mut self) -> io::Result<()> {
        self.piece.clear();
        self.at = 0;
        let names = Names::default();
        let mut writer = BlktraceWriter::single(&mut self.piece, Version::V7);
        for _ in 0..self.left.min(4096) {
            let event = Event {
                time_ns: self.io * 10_000 + self.stage as u64 * 1_000,
                action: Self::STAGES[self.stage],
                device: Device::Number(DeviceNumber(8 << 20)),
                sector: self.io.wrapping_mul(2_654_435_761) % (1 << 30) / 8 * 8,
                bytes: 4096,
                op: if self.io.is_multiple_of(3) { Op::Write } else { Op::Read },
                pid: Some(1000 + (self.io % 8) as u32),
                cpu: Some(0),
                sequence: (self.io * 5 + self.stage as u64 + 1) as u32,
                ..Event::default()
            };
            writer.write(&event, Texts { names: &names, payload: b"" })?;
            self.stage = (self.stage + 1) % Self::STAGES.len();
            self.io += u64::from(self.stage == 0);
            self.left -= 1;
        }
        writer.finish().map(|_| ())
    }
}

impl Read for Generated {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && self.left > 0 {
            self.refill()?;
        }
        let count = out.len().min(self.piece.len() - self.at);
        out[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// So many records.
pub fn generated(records: u64) -> Generated {
    Generated { left: records, io: 0, stage: 0, piece: Vec::new(), at: 0 }
}
