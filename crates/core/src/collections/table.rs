//! A table whose length is fixed at construction, and which cannot be indexed beyond its end.
//!
//! In a kernel a panic stops the machine, so a look beyond the end is not one there: it reads a row that is as a new one, and
//! what is written there is lost. It is counted ([`strays`]); a host that sees the count go up knows that the queue's own rules are
//! broken, and can serve what it has without the core. Rows name each other by index and a new row names no other, so a walk
//! that strays ends there. In the lab and in tests, where a mistake is to be seen at once, it is a panic.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut, Index, IndexMut};
use core::sync::atomic::{AtomicU32, Ordering};

static STRAYS: AtomicU32 = AtomicU32::new(0);

/// How often any table of the process was indexed beyond its end.
#[inline]
pub fn strays() -> u32 {
    STRAYS.load(Ordering::Relaxed)
}

/// Rows by index.
#[derive(Debug, Clone)]
pub struct Table<T> {
    rows: Vec<T>,
    /// What a look beyond the end reads, which is never written, and what a write beyond the end changes, which is never read.
    /// Kept elsewhere: a queue is made on a kernel's stack.
    beyond: Box<Beyond<T>>,
}

#[derive(Debug, Clone)]
struct Beyond<T> {
    new: T,
    lost: T,
    /// How many rows there are, for the message: a look that does not stray need not have it in a register.
    rows: usize,
}

impl<T: Clone> Table<T> {
    /// `rows` new rows. It never allocates again.
    #[inline(never)]
    pub fn new(row: T, rows: usize) -> Table<T> {
        let beyond = Box::new(Beyond { new: row.clone(), lost: row.clone(), rows });
        Table { rows: alloc::vec![row; rows], beyond }
    }
}

impl<T> Beyond<T> {
    #[cold]
    #[inline(never)]
    fn read(&self, at: usize) -> &T {
        self.count(at);
        &self.new
    }

    fn count(&self, at: usize) {
        if cfg!(any(feature = "lab", debug_assertions)) {
            panic!("row {at} of a table of {}", self.rows);
        }
        STRAYS.fetch_add(1, Ordering::Relaxed);
    }
}

impl<T: Clone> Beyond<T> {
    #[cold]
    #[inline(never)]
    fn write(&mut self, at: usize) -> &mut T {
        self.count(at);
        self.lost = self.new.clone();
        &mut self.lost
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        match self.rows.get(at) {
            Some(row) => row,
            None => self.beyond.read(at),
        }
    }
}

impl<T: Clone> IndexMut<usize> for Table<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        match self.rows.get_mut(at) {
            Some(row) => row,
            None => self.beyond.write(at),
        }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.rows
    }
}

impl<T> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

/// A stack with room for a fixed number of elements; one more than that is a stray.
#[derive(Debug, Clone)]
pub struct Stack<T> {
    rows: Table<T>,
    len: usize,
}

impl<T: Copy> Stack<T> {
    /// An empty stack for `room` elements. It never allocates again.
    pub fn new(row: T, room: usize) -> Stack<T> {
        Stack { rows: Table::new(row, room), len: 0 }
    }

    /// With these on it, the last one on top, and room for no more.
    pub fn full(row: T, elements: impl ExactSizeIterator<Item = T>) -> Stack<T> {
        let mut stack = Stack::new(row, elements.len());
        elements.for_each(|element| stack.push(element));
        stack
    }

    /// Take all off.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Put one on top.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.rows[self.len] = element;
        self.len = (self.len + 1).min(self.rows.len());
    }

    /// Take the top one off.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        self.rows.get(self.len).copied()
    }
}

/// What is on it, the bottom first.
impl<T> Deref for Stack<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.rows.get(..self.len).unwrap_or_default()
    }
}

impl<T> DerefMut for Stack<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.rows.get_mut(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_gives_back_what_was_put_on_last() {
        let mut stack = Stack::full(0, [1, 2, 3].into_iter());
        assert_eq!((stack.len(), stack.pop(), stack.pop()), (3, Some(3), Some(2)));
        stack.push(4);
        assert_eq!((stack.pop(), stack.pop(), stack.pop()), (Some(4), Some(1), None));
        assert!(stack.is_empty());
    }

    #[test]
    #[cfg(any(feature = "lab", debug_assertions))]
    #[should_panic(expected = "row 3 of a table of 3")]
    fn a_stray_is_a_panic_where_mistakes_are_to_be_seen() {
        let _ = Table::new(0, 3)[3];
    }

    /// `cargo test -p fairlift-core --release --no-default-features --lib table`, as the kernel module is built.
    #[test]
    #[cfg(not(any(feature = "lab", debug_assertions)))]
    fn a_stray_reads_a_new_row_and_writes_nowhere() {
        let mut table = Table::new(7, 3);
        let before = strays();
        table[3] = 1;
        assert_eq!((table[3], &table[..]), (7, &[7, 7, 7][..]));
        table[usize::MAX] += 1;
        assert_eq!(table[3], 7);
        assert_eq!(strays() - before, 4);

        let mut stack = Stack::new(0, 1);
        stack.push(1);
        stack.push(2);
        assert_eq!((stack.pop(), stack.pop()), (Some(1), None));
    }
}
