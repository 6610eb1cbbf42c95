//! Bounded queues between agents, never blocking.
//!
//! Agents may share a thread, so no agent waits for a full queue. Messages that must arrive go through an [`Outbox`],
//! which keeps those that did not fit, in order, and offers them again on the next duty cycle. Messages whose cause
//! repeats go through [`Requests`], which refuses them when it is full.
//!
//! Two agents that send to each other must not both stop taking while their own queue is full: then each waits for the
//! other forever. So only the conductor ever stops taking, and only what begins new work:
//!
//! ```text
//!                 commands: always taken
//!            .----------------------------> sender, receiver, resource agent
//!  client -> conductor                                |
//!            ^ ^-------- replies: always taken -------|
//!            '---------- requests: refused when full -'
//! ```
//!
//! The conductor takes client commands and requests only while no outbox of its own holds a backlog. It waits for
//! agents that wait for no other agent, so there is no cycle. `model.rs` walks all states of small queues
//! under this rule. Design page 13 says why the backlogs are bounded.

#[cfg(test)]
mod model;

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::Doorbell;

/// Messages that fit in one queue of a driver on a machine.
pub const QUEUE_CAPACITY: usize = 1024;

/// The receiving end of a queue.
#[derive(Debug)]
pub(crate) struct Inbox<T>(Arc<ArrayQueue<T>>);

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Inbox<T> {
    /// Takes the oldest message, if one is there.
    ///
    /// Agents look at empty queues in nearly every turn, and to find one empty costs the queue's own `pop` a full
    /// memory fence. So two loads look first; a message that comes between them is found in the next turn.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        if self.0.is_empty() { None } else { self.0.pop() }
    }

    /// Appends a message; returns it if the queue is full.
    pub(crate) fn push(&self, message: T) -> Result<(), T> {
        self.0.push(message)
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// An empty queue of [`QUEUE_CAPACITY`].
pub(crate) fn inbox<T>() -> Inbox<T> {
    inbox_of(QUEUE_CAPACITY)
}

/// An empty queue for `capacity` messages.
pub(crate) fn inbox_of<T>(capacity: usize) -> Inbox<T> {
    Inbox(Arc::new(ArrayQueue::new(capacity)))
}

/// The sending end of a queue whose messages must all arrive, owned by one agent.
pub(crate) struct Outbox<T> {
    queue: Inbox<T>,
    backlog: VecDeque<T>,
    failed_offers: Counter,
    doorbell: Doorbell,
}

impl<T> Outbox<T> {
    /// Sends to `queue`, counting in `failed_offers` each time it was full.
    pub(crate) fn new(queue: Inbox<T>, failed_offers: Counter) -> Self {
        Self {
            queue,
            backlog: VecDeque::new(),
            failed_offers,
            doorbell: Doorbell::none(),
        }
    }

    /// The same, waking the agent that takes.
    #[must_use]
    pub(crate) fn with_doorbell(self, doorbell: Doorbell) -> Self {
        Self { doorbell, ..self }
    }

    /// Sends a message, after those that are still waiting for room.
    pub(crate) fn send(&mut self, message: T) {
        self.backlog.push_back(message);
        self.flush();
    }

    /// Offers again what did not fit; returns how many messages went.
    pub(crate) fn flush(&mut self) -> usize {
        let mut sent_count = 0;
        while let Some(message) = self.backlog.pop_front() {
            if let Err(message) = self.queue.push(message) {
                self.failed_offers.get_and_add(1);
                self.backlog.push_front(message);
                break;
            }
            sent_count += 1;
        }
        if sent_count > 0 {
            self.doorbell.ring();
        }
        sent_count
    }

    /// Wakes the agent that takes, without a message.
    pub(crate) fn ring(&self) {
        self.doorbell.ring();
    }

    /// True while messages wait for room: begin nothing new that would add to them.
    pub(crate) fn is_congested(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// How many messages wait for room.
    pub(crate) fn backlog_length(&self) -> usize {
        self.backlog.len()
    }
}

/// The sending end of a queue whose messages may be refused, since their cause repeats them.
pub(crate) struct Requests<T> {
    queue: Inbox<T>,
    failed_offers: Counter,
    doorbell: Doorbell,
}

impl<T> Requests<T> {
    /// Sends to `queue`, counting in `failed_offers` each time it was full.
    pub(crate) fn new(queue: Inbox<T>, failed_offers: Counter) -> Self {
        Self {
            queue,
            failed_offers,
            doorbell: Doorbell::none(),
        }
    }

    /// The same, waking the agent that takes.
    #[must_use]
    pub(crate) fn with_doorbell(self, doorbell: Doorbell) -> Self {
        Self { doorbell, ..self }
    }

    /// Sends a request; false when the queue is full and the request is dropped.
    pub(crate) fn offer(&self, request: T) -> bool {
        let sent = self.queue.push(request).is_ok();
        if sent {
            self.doorbell.ring();
        } else {
            self.failed_offers.get_and_add(1);
        }
        sent
    }
}
