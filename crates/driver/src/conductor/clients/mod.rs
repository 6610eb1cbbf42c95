//! The room of clients: the known clients, their resources, and whether they are alive.

mod client;
mod processes;

use headrace_buffers::counters::type_ids;

pub(crate) use client::{Client, ClientState, Look, OwnedCounter, PublicationHandle};
pub(crate) use processes::ProcessWatch;

use super::context::Context;
use super::origin::Origin;
use crate::errors::CommandError;
use crate::event_recorder::EventRecorder;
use processes::WatchRound;

/// All clients.
pub(crate) struct Clients {
    clients: Vec<Client>,
    processes: ProcessWatch,
    round: WatchRound,
}

impl Clients {
    /// No clients; `processes` tells whether those live that come.
    pub(crate) fn new(processes: ProcessWatch) -> Self {
        Self {
            clients: Vec::new(),
            processes,
            round: WatchRound::default(),
        }
    }

    pub(crate) fn find(&mut self, client_id: i64) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.id == client_id)
    }

    /// Makes the client known with its first success: the heartbeat counter comes before the command's reply.
    pub(crate) fn known(&mut self, cx: &mut Context, origin: Origin) -> Result<&mut Client, CommandError> {
        let known = self
            .clients
            .iter()
            .position(|client| client.id == origin.client_id);
        let index = match known {
            Some(index) => index,
            None => {
                let client = self.meet(cx, origin)?;
                self.clients.push(client);
                self.clients.len() - 1
            }
        };
        Ok(&mut self.clients[index])
    }

    /// True when the client is not known yet, and its process shows that it lives.
    pub(crate) fn is_living_newcomer(&mut self, client_id: i64) -> bool {
        self.find(client_id).is_none() && self.processes.is_alive(client_id)
    }

    fn meet(&self, cx: &mut Context, origin: Origin) -> Result<Client, CommandError> {
        let client_id = origin.client_id;
        let is_alive = self.processes.is_alive(client_id);
        if origin.is_living_newcomer && !is_alive {
            return Err(CommandError::generic(format!(
                "the process of the client ended while its first command was in progress, clientId={client_id}"
            )));
        }
        let heartbeat = cx.counters.allocate(
            type_ids::CLIENT_HEARTBEAT,
            &client_id.to_le_bytes(),
            &format!("client-heartbeat: id={client_id}"),
            client_id,
            client_id,
        )?;
        heartbeat.set_release(cx.now_ms);
        cx.events.counter_ready(client_id, heartbeat.id());
        Ok(Client::new(
            &cx.recorder,
            client_id,
            heartbeat,
            is_alive,
            cx.now_ns,
        ))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = i64> {
        self.clients.iter().map(|client| client.id)
    }

    /// A client says that it lives.
    pub(crate) fn keep_alive(&mut self, client_id: i64, now_ms: i64) {
        if let Some(client) = self.find(client_id) {
            client.heartbeat.set_release(now_ms);
        }
    }

    /// A client says that it is done.
    pub(crate) fn close(&mut self, recorder: &EventRecorder, client_id: i64) {
        if let Some(client) = self.find(client_id) {
            client.enter(recorder, ClientState::Closed, "it closed");
            client.heartbeat.set_release(0);
        }
    }

    /// Takes out a publication handle of any client.
    pub(crate) fn remove_publication(&mut self, registration_id: i64) -> Option<PublicationHandle> {
        self.clients.iter_mut().find_map(|client| {
            let handles = &mut client.publications;
            let index = handles
                .iter()
                .position(|handle| handle.registration_id == registration_id)?;
            Some(handles.remove(index))
        })
    }

    /// Takes out a counter of any client.
    pub(crate) fn remove_counter(&mut self, registration_id: i64) -> Option<OwnedCounter> {
        self.clients.iter_mut().find_map(|client| {
            let counters = &mut client.counters;
            let index = counters
                .iter()
                .position(|counter| counter.registration_id == registration_id)?;
            Some(counters.remove(index))
        })
    }

    /// Looks, when it is time to, for clients whose process has ended. They wrote nothing from position `written` of
    /// the ring. True when a client is over whose commands were read, up to `read`.
    pub(crate) fn check_processes(&mut self, cx: &Context, written: i64, read: i64) -> bool {
        let Some(turn) = self.round.next(cx.now_ns, self.clients.len()) else {
            return false;
        };
        for client in &mut self.clients[turn] {
            if client.state() == ClientState::Watched && !self.processes.is_alive(client.id) {
                client.end(&cx.recorder, written);
            }
        }
        self.clients.iter().any(|client| client.is_over(read))
    }

    /// Takes out the clients that closed, whose process ended, or that were not heard from; not `busy`, for which a command is
    /// in progress: what that makes would make the client known again.
    pub(crate) fn take_gone(&mut self, look: Look, busy: Option<i64>) -> Vec<Client> {
        self.clients
            .extract_if(.., |client| client.is_gone(look) && Some(client.id) != busy)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;
    use headrace_buffers::error_log::DistinctErrorLog;
    use headrace_buffers::event_log::Event;
    use headrace_sys::clock::ManualClock;

    use super::*;
    use crate::errors::ErrorRecorder;
    use crate::event_recorder::EventListener;

    /// Clients with these ids that are known by their heartbeats, at 1 s.
    fn heard(ids: &[i64]) -> Clients {
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let mut clients = Clients::new(ProcessWatch(None));
        for id in ids {
            let counter_id = counters.allocate(11, &[], "", 0).unwrap();
            let heartbeat = counters.counter(counter_id);
            heartbeat.set_release(1_000);
            let client = Client::new(&EventRecorder::default(), *id, heartbeat, false, 1_000 * MS);
            clients.clients.push(client);
        }
        clients
    }

    const MS: i64 = 1_000_000;

    /// Ids of clients that are gone at a time by the monotonic clock, where the wall clock is ahead of it.
    fn gone(clients: &mut Clients, now_ms: i64, ahead_ms: i64) -> Vec<i64> {
        let look = Look {
            now_ns: now_ms * MS,
            now_ms: now_ms + ahead_ms,
            timeout_ns: 100 * MS,
            read: 0,
        };
        clients
            .take_gone(look, None)
            .iter()
            .map(|client| client.id)
            .collect()
    }

    #[test]
    fn a_client_is_gone_once_its_heartbeat_is_older_than_the_timeout_or_it_closed() {
        let mut clients = heard(&[7, 8]);
        assert!(gone(&mut clients, 1_100, 0).is_empty());
        clients.find(8).unwrap().heartbeat.set_release(1_001);
        assert_eq!(gone(&mut clients, 1_101, 0), [7]);
        clients.close(&EventRecorder::default(), 8);
        assert_eq!(gone(&mut clients, 1_101, 0), [8]);
        assert!(clients.find(8).is_none());
    }

    #[test]
    fn a_clock_that_is_set_neither_ends_a_client_nor_keeps_a_dead_one() {
        for ahead_ms in [-900, 1_000_000] {
            let mut clients = heard(&[7, 8]);
            assert!(gone(&mut clients, 1_050, ahead_ms).is_empty());
            clients.find(8).unwrap().heartbeat.set_release(1_060 + ahead_ms);
            assert!(gone(&mut clients, 1_100, ahead_ms).is_empty());
            assert_eq!(gone(&mut clients, 1_101, ahead_ms), [7]);
            assert_eq!(gone(&mut clients, 1_161, ahead_ms), [8]);
        }
    }

    #[test]
    fn handles_and_counters_are_found_by_their_own_registration_id() {
        let mut clients = heard(&[7]);
        let handle = PublicationHandle {
            registration_id: 5,
            publication_id: 3,
        };
        clients.find(7).unwrap().publications.push(handle);
        assert_eq!(clients.remove_publication(3), None);
        assert_eq!(clients.remove_publication(5), Some(handle));
        assert_eq!(clients.remove_publication(5), None);
        assert_eq!(clients.remove_counter(5), None);
    }

    /// Keeps what is no normal course of things.
    #[derive(Default)]
    struct Faults(Mutex<Vec<(i64, [String; 2])>>);

    impl EventListener for Faults {
        fn on_event(&self, event: &Event<&str>) {
            if event.is_fault {
                let (id, texts) = (event.id, [event.reason, event.detail]);
                self.0.lock().unwrap().push((id, texts.map(str::to_owned)));
            }
        }
    }

    #[test]
    fn a_process_that_ends_is_a_fault_unless_its_last_command_closed_the_client() {
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let id = counters.allocate(0, &[], "", 0).unwrap();
        let errors = ErrorRecorder::new(
            DistinctErrorLog::new(AtomicBuffer::allocate(1024)),
            counters.counter(id),
        );
        let faults = Arc::new(Faults::default());
        let clock = Arc::new(ManualClock::new(0, 0));
        let recorder = EventRecorder::new(None, Some(faults.clone()), clock, errors);
        let mut clients = heard(&[7, 8]);
        for client in &mut clients.clients {
            client.enter(&recorder, ClientState::Watched, "alive");
            client.end(&recorder, 64);
        }
        clients.close(&recorder, 8);
        for client in &mut clients.clients {
            client.leave(&recorder, "ticker pid=7");
        }
        let expected = ["its process ended", "ticker pid=7"].map(str::to_owned);
        assert_eq!(*faults.0.lock().unwrap(), [(7, expected)]);
    }
}
