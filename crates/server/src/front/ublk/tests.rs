//! What can be told without a kernel that has ublk; `scripts/serve-ublk` tests the rest in one.

use super::*;
use crate::back::ram::Ram;
use crate::device::{Device, DeviceOptions};
use crate::exports::ExportOptions;
use crate::io::{Action, Fault};
use crate::uring::ublk::Descriptor;
use request::{Wish, parse, place};

fn export(bytes: u64, options: ExportOptions) -> Export {
    let elevator = crate::config::elevator("none").unwrap();
    let device = Device::new("it", Box::new(Ram::new(bytes)), &DeviceOptions { elevator }).unwrap();
    Export::new(&device, options).unwrap()
}

fn asks(op_flags: u32, sectors: u32, start_sector: u64) -> Result<Wish, Fault> {
    parse(Descriptor { op_flags, sectors, start_sector })
}

#[test]
fn each_operation_of_the_kernel_becomes_an_action() {
    let wish = |action, fua| Ok(Wish { action, fua, offset: 5 * 512, bytes: 8 * 512 });
    assert_eq!(asks(0, 8, 5), wish(Action::Read, false));
    assert_eq!(asks(1, 8, 5), wish(Action::Write, false));
    assert_eq!(asks(1 | 1 << 13, 8, 5), wish(Action::Write, true));
    assert_eq!(asks(3, 8, 5), wish(Action::Trim, false));
    assert_eq!(asks(5, 8, 5), wish(Action::Zero { punch: true, fast: false }, false));
    assert_eq!(asks(5 | 1 << 15, 8, 5), wish(Action::Zero { punch: false, fast: false }, false));
    let flush = Wish { action: Action::Flush, fua: false, offset: 0, bytes: 0 };
    assert_eq!(asks(2, 0, u64::MAX), Ok(flush));
}

#[test]
fn what_the_disk_did_not_offer_is_refused() {
    assert_eq!(asks(4, 8, 5), Err(Fault::NotSupported), "WRITE_SAME");
    assert_eq!(asks(13, 8, 5), Err(Fault::NotSupported), "ZONE_APPEND");
    assert_eq!(asks(0, 1 << 23, 0), Err(Fault::Invalid));
    assert_eq!(asks(0, 8, u64::MAX / 2), Err(Fault::Invalid));
    let export = export(1 << 20, ExportOptions::default());
    assert_eq!(export.check(Action::Read, 1 << 20, 512), Err(Fault::Invalid));
    assert_eq!(export.check(Action::Read, u64::MAX - 511, 512), Err(Fault::Invalid));
}

#[test]
fn the_places_of_data_do_not_overlap() {
    let tags = crate::uring::ublk::DEPTH_MAX;
    assert!(place(0, 1) - place(0, 0) >= u64::from(REQUEST_BYTES_MAX));
    assert!(place(1, 0) >= place(0, tags - 1) + u64::from(REQUEST_BYTES_MAX));
}

#[test]
fn the_kernel_learns_what_the_export_is() {
    let options = ExportOptions { read_only: true, ..ExportOptions::default() };
    let parameters = parameters(&export(3 << 20, options));
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| parameters[at + byte]));
    assert_eq!(word(8), attribute::READ_ONLY | attribute::VOLATILE_CACHE | attribute::FUA);
    assert_eq!((parameters[12], parameters[13]), (9, 12));
    assert_eq!(word(24), 3 << 11, "sectors");
}

#[test]
fn what_the_kernel_grants_is_read_from_where_it_was_asked() {
    assert_eq!(granted(&info(7, 2, 128, false)), (7, flag::IOCTL_ENCODE | flag::USER_COPY));
}
