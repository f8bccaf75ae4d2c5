//! What the scheduler promises to each tenant about all others, whatever they do.
//!
//! Every test is one promise and is named after it. An attacker of weight 1 does its worst beside a victim of weight 1000, under
//! every elevator, every `charge`, a serial device and one that takes 32 requests, at default settings; a test that fails prints
//! all cells of this matrix that break the promise, with figures. `promise.rs` has the bounds and their reasons, `rig.rs` and
//! `device.rs` the modelled machine, `programs.rs` what tenants run.

mod barriers;
mod device;
mod goals;
mod groups;
mod honest;
mod limits;
mod merging;
mod operator;
mod priorities;
mod programs;
mod promise;
mod returned;
mod rig;
mod same_sector;
mod sizes;
mod slots;
mod slow_request;
mod thinking;
