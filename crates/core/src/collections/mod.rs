//! Lists and ordered trees of requests (or queues) by index: every link lives in an array allocated once, so that
//! nothing allocates or needs `unsafe` on the request path.
//!
//! The links are kept apart from the heads: one [`ListLinks`] serves any number of [`List`]s as long as an element
//! is on at most one of them at a time; the same for [`TreeLinks`] and [`Tree`].

mod list;
mod sorted_fifo;
mod table;
mod tree;

pub use list::{List, ListLinks};
pub use sorted_fifo::{SortedFifo, SortedFifoLinks};
pub use table::{Stack, Table, strays};
pub use tree::{Tree, TreeLinks};

/// An index that says what it is an index of.
pub trait Id: Copy + Eq {
    /// The id of slot `index`.
    fn from_index(index: usize) -> Self;
    /// The slot.
    fn index(self) -> usize;
}

/// Declare an [`Id`] as a newtype around `u32`.
macro_rules! define_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u32);

        impl $name {
            /// The id of a slot known at compile time.
            #[allow(dead_code)] // not every id needs one
            pub const fn constant(index: u32) -> $name {
                $name(index)
            }
        }

        impl $crate::collections::Id for $name {
            #[inline]
            fn from_index(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize);
                $name(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use define_id;
