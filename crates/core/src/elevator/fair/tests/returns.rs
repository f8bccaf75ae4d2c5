//! What coming back costs a stream, from what its requests cost.

use super::super::returns::Returns;
use std::vec;
use std::vec::Vec;

use crate::MS;

/// 512 KiB and more.
const LARGE: usize = 10;

/// Runs of requests that cost so much each, milliseconds, and what is said to be saved then, milliseconds.
fn saved(rotational: bool, runs: &[&[u64]]) -> u64 {
    let mut returns = Returns::NEW;
    for run in runs {
        for (step, cost) in run.iter().enumerate() {
            returns.done(step as u8, LARGE, cost * MS);
        }
    }
    returns.saving_ns(rotational) / MS
}

#[test]
fn before_it_is_known_a_seek_is_saved_where_there_are_any() {
    assert_eq!(saved(true, &[]), 5);
    assert_eq!(saved(false, &[]), 0);
    // Nothing to compare with: none of them goes on.
    assert_eq!(saved(true, &[&[13, 5], &[13, 5]]), 5);
}

/// A large request takes most of its time alone too: the way there shows all the same.
#[test]
fn what_the_first_of_a_run_costs_more_is_saved() {
    assert_eq!(saved(true, &[[5, 5, 5, 5].as_slice(); 4]), 0);
    assert_eq!(saved(true, &[[13, 5, 5, 5].as_slice(); 4]), 8);
    assert_eq!(saved(false, &[[13, 5, 5, 5].as_slice(); 4]), 8);
}

/// The drive has the first one's data, and seeks for the second.
#[test]
fn read_ahead_hides_it_in_vain() {
    assert_eq!(saved(true, &[[1, 13, 5, 5, 5, 5].as_slice(); 8]), 4);
    assert_eq!(saved(true, &[[5, 13, 5, 5, 5, 5].as_slice(); 8]), 8);
}

/// Runs of single requests tell as much as long ones, once it is known what going on costs.
#[test]
fn short_runs_tell_as_well() {
    let mut runs: Vec<&[u64]> = vec![&[13, 5, 5, 5]];
    runs.extend([[13].as_slice(); 20]);
    assert_eq!(saved(true, &runs), 8);
}

/// On a device that limits a rate the first one costs what the others do, give or take.
#[test]
fn chance_counts_as_nothing() {
    assert_eq!(saved(true, &[&[27, 25, 26, 26], &[25, 26, 27, 26], &[30, 24, 26, 26]]), 0);
}
