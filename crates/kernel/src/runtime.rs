//! What a `no_std` library needs of its surroundings, from the C side (`kernel/src/runtime.c`).

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::panic::PanicInfo;

unsafe extern "C" {
    /// Memory for a queue under construction, from the piece that was taken for it; `align` is a power of two.
    fn fairlift_shim_alloc(bytes: usize, align: usize) -> *mut c_void;
    /// Give memory back, or leave it to the piece it is from.
    fn fairlift_shim_free(memory: *mut c_void);
    /// The core is broken: stop the machine.
    fn fairlift_shim_panic(message: *const c_char) -> !;
    /// A queue goes on without its elevator: say so, once.
    fn fairlift_shim_gave_up();
}

/// A queue goes on without its elevator.
pub fn tell_gave_up() {
    // SAFETY: it prints; any context is right.
    unsafe { fairlift_shim_gave_up() }
}

struct KernelMemory;

// SAFETY: the C side hands out each byte of the piece once, at a multiple of `align`, and keeps the piece until the queue is
// freed. Where it cannot the answer is null, which `alloc` reports as out of memory.
unsafe impl GlobalAlloc for KernelMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe { fairlift_shim_alloc(layout.size(), layout.align()) }.cast()
    }

    unsafe fn dealloc(&self, memory: *mut u8, _layout: Layout) {
        // SAFETY: by the trait's contract it came from `alloc` and is not used again.
        unsafe { fairlift_shim_free(memory.cast()) };
    }
}

#[global_allocator]
static MEMORY: KernelMemory = KernelMemory;

/// The message of a panic, cut to a fixed length.
struct Message {
    bytes: [u8; 200],
    length: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // The last byte stays 0.
        for byte in text.bytes() {
            if self.length + 1 < self.bytes.len() {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut message = Message { bytes: [0; 200], length: 0 };
    let _ = write!(message, "{info}");
    // SAFETY: the message ends with a NUL; the function does not return.
    unsafe { fairlift_shim_panic(message.bytes.as_ptr().cast()) }
}
