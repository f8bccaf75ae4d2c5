//! Queues of different groups.

use super::*;
use crate::group::{GroupId, GroupParams};

const GROUPS: usize = 2;

fn rig(profile: &str) -> Rig {
    let (requests, contexts) = (64, 8);
    let elevator = build_for_groups(profile, requests, contexts, GROUPS, MS);
    let q = ElevatorQueue::new(requests, contexts, true, elevator).with_groups(GROUPS);
    Rig { q, now: 1000 * MS }
}

/// A context in a group of its own.
fn in_new_group(rig: &mut Rig) -> ContextId {
    let group = rig.q.groups_mut().create(GroupId::ROOT, GroupParams::default()).expect("there is room");
    rig.q.contexts_mut().create_in(group, IoPrio::DEFAULT)
}

/// With `group_isolation` off those that are not worth an idle wait take turns in the root, whatever their group; they read
/// side by side, but what they send is not one queue's, sorted by sector.
#[test]
fn queues_of_different_groups_do_not_become_one() {
    for (own_groups, merged) in [(true, false), (false, true)] {
        let mut rig = rig("2.6.34");
        rig.set("group_isolation", "0");
        // As that kernel: slices are cfq's own.
        rig.q.groups_mut().set("fairness", "0").unwrap();
        let a = in_new_group(&mut rig);
        let b = if own_groups {
            in_new_group(&mut rig)
        } else {
            let group = rig.q.contexts()[a].group;
            rig.q.contexts_mut().create_in(group, IoPrio::DEFAULT)
        };
        rig.make_slow(a);
        rig.make_slow(b);
        let ra = rig.read(a, 1000);
        let rb = rig.read(b, 1008);
        rig.serves(ra, 1);
        rig.serves(rb, 1);
        let behind = rig.read(b, 2 * FAR);
        let before = rig.read(a, FAR);
        let (first, _) = rig.serve_next(1);
        let (second, _) = rig.serve_next(1);
        let expected = if merged { [before, behind] } else { [behind, before] };
        assert_eq!([first, second], expected, "a group for each: {own_groups}");
    }
}
