//! none: no scheduler. A request goes to the device as soon as there is a tag of the device's for it.
//!
//! There are no scheduler tags: the host gives its queue as many tags as the device takes requests, so a request that has one can be
//! served at once. What is left is to hand over in order of arrival, which is [`noop`](super::noop).
//!
//! Source: Linux 6.12 `block/blk-mq.c` (`blk_mq_try_issue_directly`, `blk_mq_plug_issue_direct`), `block/blk-mq-sched.c`.

use super::noop::Noop;
use super::{AnyElevator, Descriptor, PerGroup};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "none",
    about: "no scheduler: straight to the device, in order of arrival",
    profiles: &[],
    tunables: |_| &[],
    build: |config, _| AnyElevator::Direct(PerGroup::blind(Noop::of_blk_mq(config, DESCRIPTOR.name))),
};
