//! Which thread is inside a handler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::thread_token;
use crate::error::ClientError;

/// Token of the thread that is inside a handler of the client.
pub(crate) struct HandlerThread(AtomicU64);

impl HandlerThread {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(thread_token::NO_THREAD))
    }

    pub(crate) fn is_this(&self) -> bool {
        self.0.load(Ordering::Relaxed) == thread_token::current()
    }

    /// Refuses a call made from inside a handler of this client.
    pub(crate) fn refuse_reentry(&self, operation: &'static str) -> Result<(), ClientError> {
        if self.is_this() {
            return Err(ClientError::Reentrant { operation });
        }
        Ok(())
    }

    /// Calls a handler on this thread, and `report` with the text of its panic. `report` may be what panics: it gets one
    /// chance and no second.
    pub(crate) fn call(&self, handler: impl FnOnce(), report: impl FnOnce(String)) {
        self.0.store(thread_token::current(), Ordering::Relaxed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(handler)) {
            let reason = panic_text(panic.as_ref());
            let _ = catch_unwind(AssertUnwindSafe(|| report(reason)));
        }
        self.0.store(thread_token::NO_THREAD, Ordering::Relaxed);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}
