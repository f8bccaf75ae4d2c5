//! How much memory to ask the kernel for.

use core::alloc::Layout;

/// The alignment that `kvmalloc` keeps for every size.
const ALWAYS: usize = 8;
/// From this size on memory is made of whole pages.
const PAGE: usize = 4096;

/// The bytes to ask `kvmalloc` for so that a piece of memory has the layout; `None` for an alignment it cannot have.
///
/// A size that is a power of two is aligned to itself (Linux `Documentation/core-api/memory-allocation.rst`), a larger one
/// than a page to pages.
pub fn bytes_to_ask(layout: Layout) -> Option<usize> {
    let (size, align) = (layout.size(), layout.align());
    if align > PAGE {
        None
    } else if align > ALWAYS && size < PAGE {
        Some(size.max(align).next_power_of_two())
    } else {
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_more_than_eight_gets_a_power_of_two() {
        let ask = |size, align| bytes_to_ask(Layout::from_size_align(size, align).unwrap());
        assert_eq!((ask(240, 8), ask(240, 16), ask(16, 64)), (Some(240), Some(256), Some(64)));
        assert_eq!((ask(5000, 16), ask(240, 8192)), (Some(5000), None));
    }
}
