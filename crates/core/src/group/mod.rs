//! Groups.

pub mod limit;

crate::collections::define_id! {
    /// A group's slot.
    GroupId
}

impl GroupId {
    /// The root.
    pub const ROOT: GroupId = GroupId::constant(0);
}
