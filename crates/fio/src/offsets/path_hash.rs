//! The hash that seeds zipf and pareto streams from a file's path: Bob Jenkins' lookup3 mixing, applied fio's way.
//!
//! fio reads only every fourth byte of each leading block of twelve; that is part of the stream and is kept.

const START: u32 = 0x61c8_8647;
/// Bytes mixed at once.
const BLOCK: usize = 12;

pub(super) fn path_hash(path: &[u8]) -> u32 {
    let mut state = [START.wrapping_add(path.len() as u32); 3];
    let mut rest = path;
    while rest.len() > BLOCK {
        for (word, &byte) in state.iter_mut().zip(rest.iter().step_by(4)) {
            *word = word.wrapping_add(u32::from(byte));
        }
        mix(&mut state);
        rest = &rest[BLOCK..];
    }
    for (i, &byte) in rest.iter().enumerate() {
        state[i / 4] = state[i / 4].wrapping_add(u32::from(byte) << (8 * (i % 4)));
    }
    if !rest.is_empty() {
        finish(&mut state);
    }
    state[2]
}

/// Each word in turn: minus and xor its neighbour, which then gains the third.
fn mix(v: &mut [u32; 3]) {
    for (x, y, z, turn) in
        [(0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4)]
    {
        v[x] = v[x].wrapping_sub(v[y]) ^ v[y].rotate_left(turn);
        v[y] = v[y].wrapping_add(v[z]);
    }
}

fn finish(v: &mut [u32; 3]) {
    for (x, y, turn) in [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)] {
        v[x] = (v[x] ^ v[y]).wrapping_sub(v[y].rotate_left(turn));
    }
}
