//! Bounded queues between agents, never blocking.
//!
//! Agents may share a thread, so a full queue cannot be waited for. An [`Outbox`] keeps what did not fit in
//! order and offers it again on the next duty cycle; its owner stops taking on new work while there is a
//! backlog, which bounds it.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use headrace_buffers::counters::Counter;

/// Commands that fit in one queue.
pub const QUEUE_CAPACITY: usize = 1024;

/// The receiving end of a queue.
pub type Inbox<T> = Arc<ArrayQueue<T>>;

/// An empty queue of [`QUEUE_CAPACITY`].
pub fn inbox<T>() -> Inbox<T> {
    Arc::new(ArrayQueue::new(QUEUE_CAPACITY))
}

/// The sending end of a queue, owned by one agent.
pub struct Outbox<T> {
    queue: Inbox<T>,
    backlog: VecDeque<T>,
    failed_offers: Counter,
}

impl<T> Outbox<T> {
    /// Sends to `queue`, counting in `failed_offers` each time it was full.
    pub fn new(queue: Inbox<T>, failed_offers: Counter) -> Self {
        Self {
            queue,
            backlog: VecDeque::new(),
            failed_offers,
        }
    }

    /// Sends a command, after those that are still waiting for room.
    pub fn send(&mut self, command: T) {
        self.backlog.push_back(command);
        self.flush();
    }

    /// Offers again what did not fit; returns how many commands went.
    pub fn flush(&mut self) -> usize {
        let mut sent_count = 0;
        while let Some(command) = self.backlog.pop_front() {
            if let Err(command) = self.queue.push(command) {
                self.failed_offers.get_and_add(1);
                self.backlog.push_front(command);
                break;
            }
            sent_count += 1;
        }
        sent_count
    }

    /// True while commands wait for room: take on no more work.
    pub fn is_congested(&self) -> bool {
        !self.backlog.is_empty()
    }
}
