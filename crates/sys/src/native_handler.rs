//! Calling a handler that was compiled elsewhere, known by its address.
//!
//! The C declaration a handler must have:
//!
//! ```c
//! struct headrace_header {
//!     int64_t position;        /* stream position after the message */
//!     int64_t reserved_value;
//!     int32_t session_id;
//!     int32_t stream_id;
//!     int32_t term_id;
//!     int32_t term_offset;     /* of the message's first frame */
//!     int32_t length;          /* of the payload */
//!     uint32_t flags;          /* of the frame; 0xC0 for a whole message */
//! };
//! void handler(void *context, const uint8_t *payload, size_t length,
//!              const struct headrace_header *header);
//! ```

use std::ffi::c_void;

/// What a native handler is told about a message. The layout is part of the public interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeHeader {
    /// Stream position after the message.
    pub position: i64,
    /// The publisher's own 64 bits.
    pub reserved_value: i64,
    /// Which publisher instance.
    pub session_id: i32,
    /// Which flow on the channel.
    pub stream_id: i32,
    /// Term of the first frame.
    pub term_id: i32,
    /// Offset of the first frame in its term.
    pub term_offset: i32,
    /// Length of the payload.
    pub length: i32,
    /// Flags of the frame, 0xC0 for a whole message.
    pub flags: u32,
}

const _: () = assert!(size_of::<NativeHeader>() == 40);

type Function = unsafe extern "C" fn(*mut c_void, *const u8, usize, *const NativeHeader);

/// A compiled handler and the context pointer it is called with.
#[derive(Clone, Copy, Debug)]
pub struct NativeHandler {
    function: Function,
    context: usize,
}

impl NativeHandler {
    /// Wraps the function at `address`; `None` for address 0.
    ///
    /// # Safety
    /// `address` must be that of a live function with the declaration above, callable from any thread, that
    /// neither unwinds nor keeps its pointers, and `context` must be whatever that function expects.
    pub unsafe fn new(address: usize, context: usize) -> Option<Self> {
        if address == 0 {
            return None;
        }
        // SAFETY: not null, and the caller promises a function of this type.
        let function = unsafe { std::mem::transmute::<usize, Function>(address) };
        Some(Self { function, context })
    }

    /// Calls the handler.
    #[inline]
    pub fn call(&self, payload: &[u8], header: &NativeHeader) {
        // SAFETY: `new` was promised a function of this type and a context that suits it; the pointers are
        // those of live borrows.
        unsafe {
            (self.function)(
                self.context as *mut c_void,
                payload.as_ptr(),
                payload.len(),
                header,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn add_length(
        context: *mut c_void,
        payload: *const u8,
        length: usize,
        header: *const NativeHeader,
    ) {
        // SAFETY: the test passes a live u64 as the context and live payload and header.
        unsafe {
            *context.cast::<u64>() += length as u64 + u64::from(*payload) + (*header).position as u64;
        }
    }

    #[test]
    fn the_function_gets_context_payload_and_header() {
        let mut sum = 0u64;
        // SAFETY: add_length has the declaration asked for, and sum outlives the handler.
        let handler = unsafe { NativeHandler::new(add_length as *const () as usize, &raw mut sum as usize) };
        let header = NativeHeader {
            position: 100,
            ..NativeHeader::default()
        };
        handler.unwrap().call(&[7, 0, 0], &header);
        assert_eq!(sum, 110);
    }

    #[test]
    fn address_zero_is_refused() {
        // SAFETY: nothing is called.
        assert!(unsafe { NativeHandler::new(0, 0) }.is_none());
    }
}
