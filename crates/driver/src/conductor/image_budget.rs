//! How many images, and how much memory of their logs, publishers elsewhere may cost.
//!
//! A SETUP is one datagram, which anyone who reaches the port can forge, and each makes the driver create a log of
//! up to 3 GiB. Images that are being made, that live and that linger all count.

use crate::config::DriverConfig;
use crate::errors::CommandError;

/// What is in use, and the limits.
#[derive(Debug)]
pub(crate) struct ImageBudget {
    count: usize,
    bytes: usize,
    count_max: usize,
    bytes_max: usize,
}

impl ImageBudget {
    pub(crate) fn new(config: &DriverConfig) -> Self {
        Self {
            count: 0,
            bytes: 0,
            count_max: config.image_limit,
            bytes_max: config.image_memory_limit,
        }
    }

    /// Takes what one image with a log of `log_length` bytes needs. The texts name neither session nor source, so
    /// that a flood makes one entry of the error log, which counts.
    pub(crate) fn reserve(&mut self, log_length: usize) -> Result<(), CommandError> {
        if self.count >= self.count_max {
            return Err(CommandError::generic(format!(
                "WARN - image not created: as many images as aeron.headrace.image.limit={} allows; raise it if \
                 their publishers are all wanted",
                self.count_max
            )));
        }
        if log_length > self.bytes_max - self.bytes {
            return Err(CommandError::generic(format!(
                "WARN - image not created: its log would take the memory of images beyond \
                 aeron.headrace.image.memory.limit={}; raise it, or shorten the terms of the publishers",
                self.bytes_max
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
