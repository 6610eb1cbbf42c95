//! The clients the driver knows, what each of them holds, and whether it is still there.

use headrace_buffers::counters::Counter;

/// Which table a publication handle points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PublicationKind {
    Ipc,
    Network,
}

/// One client's hold on a publication, possibly shared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublicationHandle {
    /// Correlation id of this client's own add.
    pub(crate) registration_id: i64,
    /// Registration id of the publication: the first add's.
    pub(crate) publication_id: i64,
    pub(crate) kind: PublicationKind,
}

/// A counter a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedCounter {
    pub(crate) registration_id: i64,
    pub(crate) counter_id: i32,
}

/// A client that has added something.
#[derive(Debug)]
pub(crate) struct ClientRecord {
    pub(crate) id: i64,
    pub(crate) heartbeat: Counter,
    pub(crate) is_closed: bool,
    process: Process,
    pub(crate) publications: Vec<PublicationHandle>,
    pub(crate) counters: Vec<OwnedCounter>,
}

/// What is known of a client's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// It does not show whether it lives.
    Unknown,
    Alive,
    /// Its commands end before this position of the ring.
    Ended {
        written: i64,
    },
}

impl ClientRecord {
    /// True once the process has ended and its commands were read.
    pub(crate) fn has_ended(&self, read: i64) -> bool {
        matches!(self.process, Process::Ended { written } if written <= read)
    }

    fn is_gone(&self, now_ms: i64, liveness_timeout_ms: i64, read: i64) -> bool {
        let timeout_ms = liveness_timeout_ms.max(1);
        let heartbeat_ms = self.heartbeat.get_acquire();
        if heartbeat_ms > now_ms.saturating_add(timeout_ms) {
            // The clock was set back. A client that lives writes another time; that of a dead one counts from now.
            self.heartbeat.set_release(now_ms);
        }
        self.is_closed || self.has_ended(read) || now_ms > heartbeat_ms.saturating_add(timeout_ms)
    }
}

/// All clients.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    records: Vec<ClientRecord>,
}

impl Clients {
    pub(crate) fn find(&mut self, client_id: i64) -> Option<&mut ClientRecord> {
        self.records.iter_mut().find(|client| client.id == client_id)
    }

    /// Adds a client; `is_alive` when its process shows that it lives.
    pub(crate) fn add(&mut self, id: i64, heartbeat: Counter, is_alive: bool) {
        self.records.push(ClientRecord {
            id,
            heartbeat,
            is_closed: false,
            process: if is_alive {
                Process::Alive
            } else {
                Process::Unknown
            },
            publications: Vec::new(),
            counters: Vec::new(),
        });
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = i64> {
        self.records.iter().map(|client| client.id)
    }

    /// Takes out a publication handle of any client.
    pub(crate) fn remove_publication(&mut self, registration_id: i64) -> Option<PublicationHandle> {
        self.records.iter_mut().find_map(|client| {
            let handles = &mut client.publications;
            let index = handles
                .iter()
                .position(|handle| handle.registration_id == registration_id)?;
            Some(handles.remove(index))
        })
    }

    /// Takes out a counter of any client.
    pub(crate) fn remove_counter(&mut self, registration_id: i64) -> Option<OwnedCounter> {
        self.records.iter_mut().find_map(|client| {
            let counters = &mut client.counters;
            let index = counters
                .iter()
                .position(|counter| counter.registration_id == registration_id)?;
            Some(counters.remove(index))
        })
    }

    /// Notes which of at most `count` clients from `first` have ended; returns where to go on. They wrote nothing
    /// from position `written` of the ring.
    pub(crate) fn note_ended(
        &mut self,
        first: usize,
        count: usize,
        written: i64,
        is_alive: impl Fn(i64) -> bool,
    ) -> usize {
        let first = if first < self.records.len() { first } else { 0 };
        for client in self.records.iter_mut().skip(first).take(count) {
            if client.process == Process::Alive && !is_alive(client.id) {
                client.process = Process::Ended { written };
            }
        }
        first + count
    }

    /// True if a client has ended and its commands were read, up to `read`.
    pub(crate) fn has_ended(&self, read: i64) -> bool {
        self.records
            .iter()
            .any(|client| client.is_closed || client.has_ended(read))
    }

    /// Takes out the clients that closed, whose process ended, or that were not heard from.
    pub(crate) fn take_gone(
        &mut self,
        now_ms: i64,
        liveness_timeout_ms: i64,
        read: i64,
    ) -> Vec<ClientRecord> {
        self.records
            .extract_if(.., |client| client.is_gone(now_ms, liveness_timeout_ms, read))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;

    use super::*;

    #[test]
    fn a_client_is_gone_once_its_heartbeat_is_older_than_the_timeout_or_it_closed() {
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let mut clients = Clients::default();
        for id in [7, 8] {
            let counter_id = counters.allocate(11, &[], "", 0).unwrap();
            clients.add(id, counters.counter(counter_id), false);
            clients.find(id).unwrap().heartbeat.set_release(1_000);
        }
        assert!(clients.take_gone(1_100, 100, 0).is_empty());
        clients.find(8).unwrap().heartbeat.set_release(1_001);
        let gone: Vec<_> = clients
            .take_gone(1_101, 100, 0)
            .iter()
            .map(|client| client.id)
            .collect();
        assert_eq!(gone, [7]);
        clients.find(8).unwrap().is_closed = true;
        assert_eq!(clients.take_gone(1_001, 100, 0).len(), 1);
        assert!(clients.find(8).is_none());
    }

    #[test]
    fn a_client_that_dies_before_the_clock_is_set_back_is_gone_after_the_timeout() {
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let mut clients = Clients::default();
        let counter_id = counters.allocate(11, &[], "", 0).unwrap();
        clients.add(7, counters.counter(counter_id), false);
        clients.find(7).unwrap().heartbeat.set_release(1_000_000);
        assert!(clients.take_gone(1_000, 100, 0).is_empty());
        assert!(clients.take_gone(1_100, 100, 0).is_empty());
        assert_eq!(clients.take_gone(1_101, 100, 0).len(), 1);
    }

    #[test]
    fn handles_and_counters_are_found_by_their_own_registration_id() {
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let counter_id = counters.allocate(11, &[], "", 0).unwrap();
        let mut clients = Clients::default();
        clients.add(7, counters.counter(counter_id), false);
        let handle = PublicationHandle {
            registration_id: 5,
            publication_id: 3,
            kind: PublicationKind::Ipc,
        };
        clients.find(7).unwrap().publications.push(handle);
        assert_eq!(clients.remove_publication(3), None);
        assert_eq!(clients.remove_publication(5), Some(handle));
        assert_eq!(clients.remove_publication(5), None);
        assert_eq!(clients.remove_counter(5), None);
    }
}
