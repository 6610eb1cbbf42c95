//! The ring that clients write commands to.

use headrace_buffers::BufferError;
use headrace_buffers::ring::{ManyToOneRing, ReadAction};

use crate::conductor::context::Context;
use crate::errors::CommandError;

/// Reads commands one at a time, and frees the ring when a client died while writing one.
pub(crate) struct CommandRing {
    ring: ManyToOneRing,
    is_broken: bool,
    message: Vec<u8>,
    last_position: i64,
    position_since_ns: i64,
}

/// What one read brought.
pub(crate) enum Read {
    Nothing,
    /// A command of this type; its bytes are [`CommandRing::message`].
    Command(i32),
    /// The ring holds nonsense, which is recorded.
    Fault,
}

impl CommandRing {
    pub(crate) fn new(ring: ManyToOneRing, now_ns: i64) -> Self {
        Self {
            last_position: ring.consumer_position(),
            position_since_ns: now_ns,
            ring,
            is_broken: false,
            message: Vec::with_capacity(4096),
        }
    }

    /// Takes one command.
    pub(crate) fn read(&mut self, cx: &Context) -> Read {
        if self.is_broken {
            return Read::Nothing;
        }
        let Self { ring, message, .. } = self;
        let mut type_id = 0;
        let read = ring.read(1, |id, bytes| {
            type_id = id;
            message.clear();
            message.extend_from_slice(bytes);
            ReadAction::Continue
        });
        match read {
            Ok(0) => Read::Nothing,
            Ok(_) => Read::Command(type_id),
            Err(error) => {
                self.is_broken = matches!(error, BufferError::CorruptPositions { .. });
                cx.record(&CommandError::generic(error.to_string()));
                Read::Fault
            }
        }
    }

    /// The bytes of the command that was read last.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Up to where clients have written.
    pub(crate) fn written(&self) -> i64 {
        self.ring.producer_position()
    }

    /// Up to where commands were read.
    pub(crate) fn consumed(&self) -> i64 {
        self.ring.consumer_position()
    }

    /// An id that no other part of the system has.
    pub(crate) fn next_id(&self) -> i64 {
        self.ring.next_correlation_id()
    }

    /// Shows clients that the driver lives; -1 that it has stopped.
    pub(crate) fn put_heartbeat_ms(&self, now_ms: i64) {
        self.ring.put_consumer_heartbeat_ms(now_ms);
    }

    /// Frees the commands after one whose client died while writing it; true when there was one. While the conductor reads
    /// no commands, because one `is_held_back`, the time does not count.
    pub(crate) fn check_blocked(&mut self, now_ns: i64, timeout_ns: i64, is_held_back: bool) -> bool {
        let position = self.consumed();
        if !is_held_back && position == self.last_position && self.written() > position {
            return now_ns - self.position_since_ns > timeout_ns && self.ring.unblock();
        }
        self.position_since_ns = now_ns;
        self.last_position = position;
        false
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::ring::TRAILER_LENGTH;
    use headrace_buffers::{AtomicBuffer, Memory};

    use super::*;

    const TIMEOUT_NS: i64 = 10;

    #[test]
    fn the_time_in_which_no_command_is_read_is_not_the_time_of_a_dead_client() {
        let memory = AtomicBuffer::allocate(4096 + TRAILER_LENGTH);
        let mut ring = CommandRing::new(ManyToOneRing::new(memory.clone()).unwrap(), 0);
        // A client is at its first command: it has claimed the room and not yet committed.
        memory.put_i64(4096 + 128, 32);
        memory.put_i32_release(0, -32);
        for now_ns in 1..100 {
            assert!(!ring.check_blocked(now_ns, TIMEOUT_NS, true));
        }
        for now_ns in 100..110 {
            assert!(!ring.check_blocked(now_ns, TIMEOUT_NS, false), "{now_ns}");
        }
        assert!(ring.check_blocked(110, TIMEOUT_NS, false));
    }
}
