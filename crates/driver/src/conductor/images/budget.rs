//! Limits the number of images for remote publishers, and the memory of their logs.
//!
//! A SETUP is one datagram, which anyone who reaches the port can forge, and each makes the driver create a log of
//! up to 3 GiB. Images that are being made, that live and that linger all count.

use crate::config::{ImageLimits, property};
use crate::errors::CommandError;

/// What is in use, and the limits.
#[derive(Debug)]
pub(crate) struct ImageBudget {
    count: usize,
    bytes: usize,
    limits: ImageLimits,
}

impl ImageBudget {
    pub(crate) fn new(limits: ImageLimits) -> Self {
        Self {
            count: 0,
            bytes: 0,
            limits,
        }
    }

    /// Takes what one image with a log of `log_length` bytes needs. The texts name neither session nor source, so
    /// that a flood makes one entry of the error log, which counts.
    pub(crate) fn reserve(&mut self, log_length: usize) -> Result<(), CommandError> {
        if self.count >= self.limits.count {
            return Err(CommandError::generic(format!(
                "WARN - image not created: as many images as {}={} allows; raise it if their publishers are all \
                 wanted",
                property::image_limit,
                self.limits.count
            )));
        }
        if log_length > self.limits.bytes - self.bytes {
            return Err(CommandError::generic(format!(
                "WARN - image not created: its log would take the memory of images beyond \
                 {}={}; raise it, or shorten the terms of the publishers",
                property::image_memory_limit,
                self.limits.bytes
            )));
        }
        self.count += 1;
        self.bytes += log_length;
        Ok(())
    }

    /// Gives back what [`Self::reserve`] took.
    pub(crate) fn release(&mut self, log_length: usize) {
        self.count -= 1;
        self.bytes -= log_length;
    }
}
