//! Commands that are not answered yet: the one that waits for another agent, which holds back those after it,
//! and those that wait for a name to be looked up, which hold back nothing.

use std::path::PathBuf;

use headrace_buffers::log::LogBuffers;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::UdpChannel;

use super::step::{Adds, Next, Step};
use crate::conductor::context::Context;
use crate::conductor::origin::Origin;
use crate::conductor::rooms::Rooms;
use crate::endpoint::EndpointId;
use crate::errors::CommandError;
use crate::resource_tasks::{FindAddresses, ResourceTask};

/// The command that holds back those after it.
enum Waiting {
    Addresses(Box<Lookup>),
    Log {
        origin: Origin,
        path: PathBuf,
        step: Box<dyn Step<LogBuffers>>,
    },
    PathClosed {
        origin: Origin,
        endpoint: EndpointId,
        path: usize,
    },
}

/// A command that waits for addresses, or for its turn once it has them.
struct Lookup {
    origin: Origin,
    adds: Adds,
    step: Box<dyn Step<UdpChannel>>,
    found: Option<Result<UdpChannel, CommandError>>,
}

/// All commands in progress.
#[derive(Default)]
pub(crate) struct Progress {
    waiting: Option<Waiting>,
    lookups: Vec<Lookup>,
}

impl Progress {
    /// True while a command holds back those after it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The client whose command holds back those after it.
    pub(crate) fn waiting_client_id(&self) -> Option<i64> {
        self.waiting.as_ref().map(|waiting| match waiting {
            Waiting::Addresses(lookup) => lookup.origin.client_id,
            Waiting::Log { origin, .. } | Waiting::PathClosed { origin, .. } => origin.client_id,
        })
    }

    /// Takes the next step of a command, or answers it when the last one failed.
    pub(crate) fn proceed(&mut self, origin: Origin, step: Result<Next, CommandError>, cx: &mut Context) {
        let correlation_id = origin.correlation_id;
        match step {
            Ok(Next::Done) => {}
            Ok(Next::Addresses(wanted, step)) => {
                cx.tasks.send(ResourceTask::FindAddresses(Box::new(FindAddresses {
                    correlation_id,
                    uri: wanted.uri,
                    role: wanted.role,
                })));
                self.waiting = Some(Waiting::Addresses(Box::new(Lookup {
                    origin,
                    adds: wanted.adds,
                    step,
                    found: None,
                })));
            }
            Ok(Next::Log(task, step)) => {
                let path = task.path.clone();
                cx.tasks.send(ResourceTask::CreateLog(Box::new(task)));
                self.waiting = Some(Waiting::Log { origin, path, step });
            }
            Ok(Next::PathClosed { endpoint, path }) => {
                self.waiting = Some(Waiting::PathClosed {
                    origin,
                    endpoint,
                    path,
                });
            }
            Err(error) => cx.refuse(correlation_id, &error),
        }
    }

    /// The receiver closed a socket.
    pub(crate) fn on_path_closed(&mut self, cx: &mut Context, closed: EndpointId, closed_path: usize) {
        let is_meant = |waiting: &mut Waiting| matches!(waiting, Waiting::PathClosed { endpoint, path, .. } if (*endpoint, *path) == (closed, closed_path));
        if let Some(Waiting::PathClosed { origin, .. }) = self.waiting.take_if(is_meant) {
            cx.events.operation_success(origin.correlation_id);
        }
    }

    /// The log that a command waits for was made, or could not be.
    pub(crate) fn on_log(
        &mut self,
        rooms: &mut Rooms,
        correlation_id: i64,
        result: Result<LogBuffers, CommandError>,
    ) {
        let is_meant = |waiting: &mut Waiting| matches!(waiting, Waiting::Log { origin, .. } if origin.correlation_id == correlation_id);
        let Some(Waiting::Log { origin, path, step }) = self.waiting.take_if(is_meant) else {
            return;
        };
        let done = result.and_then(|log| {
            rooms.cx.note_publisher(origin.client_id, &log);
            let done = step.go_on(origin, log.clone(), rooms);
            if done.is_err() {
                rooms.cx.free_log(log, path);
            }
            done
        });
        self.proceed(origin, done, &mut rooms.cx);
    }

    /// The command in progress waits for a name server, and no longer holds back the others.
    pub(crate) fn on_lookup_begun(&mut self, correlation_id: i64) {
        let lookup = self.take_lookup(correlation_id);
        self.lookups.extend(lookup);
    }

    fn take_lookup(&mut self, correlation_id: i64) -> Option<Lookup> {
        let is_meant = |waiting: &mut Waiting| matches!(waiting, Waiting::Addresses(lookup) if lookup.origin.correlation_id == correlation_id);
        match self.waiting.take_if(is_meant) {
            Some(Waiting::Addresses(lookup)) => Some(*lookup),
            Some(Waiting::Log { .. } | Waiting::PathClosed { .. }) | None => None,
        }
    }

    /// The addresses that a command waits for are known, or cannot be. A command that was set aside goes on in its
    /// turn; one that was given up is forgotten.
    pub(crate) fn on_addresses(
        &mut self,
        rooms: &mut Rooms,
        correlation_id: i64,
        result: Result<UdpChannel, CommandError>,
    ) {
        if let Some(lookup) = self.take_lookup(correlation_id) {
            self.go_on(rooms, lookup, result);
            return;
        }
        let set_aside = self
            .lookups
            .iter_mut()
            .find(|lookup| lookup.origin.correlation_id == correlation_id);
        if let Some(lookup) = set_aside {
            lookup.found = Some(result);
        }
    }

    /// Goes on with a command whose name was answered, when no other command is in progress: two that make the
    /// same publication must see each other.
    pub(crate) fn resume(&mut self, rooms: &mut Rooms) -> usize {
        if self.is_waiting() || rooms.cx.is_congested() {
            return 0;
        }
        let next = self.lookups.iter().position(|lookup| lookup.found.is_some());
        let Some(mut lookup) = next.map(|index| self.lookups.remove(index)) else {
            return 0;
        };
        if let Some(found) = lookup.found.take() {
            self.go_on(rooms, lookup, found);
        }
        1
    }

    fn go_on(&mut self, rooms: &mut Rooms, lookup: Lookup, found: Result<UdpChannel, CommandError>) {
        let Lookup { origin, step, .. } = lookup;
        let done = found.and_then(|udp| step.go_on(origin, udp, rooms));
        self.proceed(origin, done, &mut rooms.cx);
    }

    /// Gives up the command that would add this, if it waits for a name; false when it does not.
    pub(crate) fn cancel(&mut self, correlation_id: i64, adds: Adds) -> bool {
        let count = self.lookups.len();
        self.lookups
            .retain(|lookup| lookup.origin.correlation_id != correlation_id || lookup.adds != adds);
        self.lookups.len() < count
    }

    /// Gives up a destination that is to be removed before its name is looked up, and tells the one that waits for it; false
    /// when it does not wait.
    pub(crate) fn cancel_destination(&mut self, cx: &mut Context, correlation_id: i64) -> bool {
        let is_given_up = self.cancel(correlation_id, Adds::Destination);
        if is_given_up {
            let text = format!(
                "destination was removed before its name was looked up, registrationId={correlation_id}"
            );
            cx.events.error(correlation_id, ErrorCode::GenericError, &text);
        }
        is_given_up
    }

    /// Gives up what a client that has gone waited for.
    pub(crate) fn cancel_all_of(&mut self, client_id: i64) {
        self.lookups.retain(|lookup| lookup.origin.client_id != client_id);
    }
}
