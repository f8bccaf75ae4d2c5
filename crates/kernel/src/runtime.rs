//! What a `no_std` library needs of its surroundings, from the C side (`kernel/src/runtime.c`).

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::panic::PanicInfo;

unsafe extern "C" {
    /// Memory for a queue under construction: waits for it rather than fail.
    fn fairlift_shim_alloc(bytes: usize) -> *mut c_void;
    /// Give memory back.
    fn fairlift_shim_free(memory: *mut c_void);
    /// The core is broken: stop the machine.
    fn fairlift_shim_panic(message: *const c_char) -> !;
}

struct KernelMemory;

/// The alignment that `kvmalloc` keeps for every size.
const ALIGNMENT: usize = 8;

// SAFETY: kvmalloc's memory is aligned to 8 at least, is not handed out twice, and stays until kvfree. The core asks for no
// larger alignment; if it ever did, the answer is null, which `alloc` reports as out of memory.
unsafe impl GlobalAlloc for KernelMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGNMENT {
            return core::ptr::null_mut();
        }
        // SAFETY: any size may be asked for.
        unsafe { fairlift_shim_alloc(layout.size()) }.cast()
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
