//! The room of commands of clients, from the bytes in the ring to the answer.
//!
//! A command that is answered at once is a function. One that takes several steps has a separate file, with the steps
//! in their order ([`step`]).

mod add_ipc_publication;
mod add_network_publication;
mod add_publication;
mod add_subscription;
mod channel;
mod counters;
mod leave;
mod progress;
mod receive_destinations;
mod reject_image;
mod remove;
mod ring;
mod send_destinations;
mod step;

use headrace_protocol::channel::{ChannelRole, Media};
use headrace_protocol::command::Command;

pub(crate) use leave::free_gone;
pub(crate) use progress::Progress;
pub(crate) use ring::{CommandRing, Read};

use super::context::Context;
use super::origin::Origin;
use super::publications::PublicationRequest;
use super::rooms::Rooms;
use super::subscriptions::SubscriptionKind;
use crate::config::TerminationValidator;
use crate::errors::CommandError;
use add_subscription::SubscriptionRequest;
use channel::parse_channel;
use counters::CounterText;
use step::Next;

/// Runs the command that a message holds, up to its answer or to what it must wait for.
pub(crate) fn on_message(type_id: i32, message: &[u8], rooms: &mut Rooms, progress: &mut Progress) {
    match Command::decode(type_id, message) {
        Ok(command) => {
            let client_id = command.client_id();
            let origin = Origin {
                client_id,
                correlation_id: command.correlation_id(),
                is_living_newcomer: rooms.clients.is_living_newcomer(client_id),
            };
            let step = run(origin, command, rooms, progress);
            progress.proceed(origin, step, &mut rooms.cx);
        }
        Err(error) => {
            let correlation_id = error.correlation_id.unwrap_or(0);
            rooms.cx.refuse(
                correlation_id,
                &CommandError::new(error.code(), error.to_string()),
            );
        }
    }
}

fn run(
    origin: Origin,
    command: Command<'_>,
    rooms: &mut Rooms,
    progress: &mut Progress,
) -> Result<Next, CommandError> {
    match command {
        Command::AddPublication {
            stream_id, channel, ..
        } => add_publication(origin, stream_id, &channel, false, rooms),
        Command::AddExclusivePublication {
            stream_id, channel, ..
        } => add_publication(origin, stream_id, &channel, true, rooms),
        Command::AddSubscription {
            stream_id, channel, ..
        } => add_subscription(origin, stream_id, &channel, rooms),
        Command::AddDestination {
            registration_id,
            channel,
            ..
        } => send_destinations::add(registration_id, &channel, rooms),
        Command::RemoveDestination {
            registration_id,
            channel,
            ..
        } => send_destinations::remove(registration_id, &channel, rooms),
        Command::RemoveDestinationById {
            registration_id,
            destination_registration_id,
            ..
        } if rooms.subscriptions.contains(registration_id) => {
            if progress.cancel_destination(&mut rooms.cx, destination_registration_id) {
                rooms.cx.events.operation_success(origin.correlation_id);
                return Ok(Next::Done);
            }
            receive_destinations::remove_by_id(origin, registration_id, destination_registration_id, rooms)
        }
        Command::AddReceiveDestination {
            registration_id,
            channel,
            ..
        } => receive_destinations::add(origin, registration_id, &channel, rooms),
        Command::RemoveReceiveDestination {
            registration_id,
            channel,
            ..
        } => receive_destinations::remove(origin, registration_id, &channel, rooms),
        command => run_at_once(origin, command, rooms, progress).map(|()| Next::Done),
    }
}

/// The commands that are answered in one step, or not at all.
fn run_at_once(
    origin: Origin,
    command: Command<'_>,
    rooms: &mut Rooms,
    progress: &mut Progress,
) -> Result<(), CommandError> {
    let id = origin.correlation_id;
    match command {
        Command::RemovePublication {
            registration_id,
            revoke,
            ..
        } => remove::publication(id, registration_id, revoke, rooms, progress)?,
        Command::RemoveSubscription { registration_id, .. } => {
            remove::subscription(id, registration_id, rooms, progress)?;
        }
        Command::RemoveDestinationById {
            destination_registration_id,
            ..
        } if progress.cancel_destination(&mut rooms.cx, destination_registration_id) => {
            rooms.cx.events.operation_success(id);
        }
        Command::RemoveDestinationById {
            registration_id,
            destination_registration_id,
            ..
        } => send_destinations::remove_by_id(id, registration_id, destination_registration_id, rooms)?,
        Command::AddCounter {
            type_id, key, label, ..
        } => counters::add(
            origin,
            &CounterText::new(type_id, key, &label),
            &mut rooms.cx,
            &mut rooms.clients,
        )?,
        Command::RemoveCounter { registration_id, .. } => {
            counters::remove(id, registration_id, &mut rooms.cx, &mut rooms.clients)?;
        }
        Command::AddStaticCounter {
            registration_id,
            type_id,
            key,
            label,
            ..
        } => {
            let text = CounterText::new(type_id, key, &label);
            counters::add_static(origin, registration_id, &text, &mut rooms.cx, &mut rooms.clients)?;
        }
        Command::RejectImage {
            image_correlation_id,
            reason,
            ..
        } => reject_image::reject(id, image_correlation_id, &reason, rooms)?,
        Command::NextAvailableSessionId { stream_id, .. } => {
            let session_id = rooms.publications.next_session_id(stream_id);
            rooms.cx.events.next_available_session_id(id, session_id);
        }
        Command::ClientKeepalive { client_id, .. } => rooms.clients.keep_alive(client_id, rooms.cx.now_ms),
        Command::ClientClose { client_id, .. } => leave::close(client_id, rooms, progress),
        Command::TerminateDriver { .. } => terminate(&rooms.cx),
        Command::AddPublication { .. }
        | Command::AddExclusivePublication { .. }
        | Command::AddSubscription { .. }
        | Command::AddDestination { .. }
        | Command::RemoveDestination { .. }
        | Command::AddReceiveDestination { .. }
        | Command::RemoveReceiveDestination { .. } => {}
    }
    Ok(())
}

fn add_publication(
    origin: Origin,
    stream_id: i32,
    channel: &str,
    is_exclusive: bool,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    let uri = parse_channel(&rooms.cx, channel, ChannelRole::Publication)?;
    let media = uri.media();
    let request = PublicationRequest::new(uri, channel, stream_id, is_exclusive, &rooms.cx.defaults)?;
    match media {
        Media::Ipc => add_ipc_publication::begin(origin, request, rooms),
        Media::Udp => Ok(add_network_publication::begin(request)),
    }
}

fn add_subscription(
    origin: Origin,
    stream_id: i32,
    channel: &str,
    rooms: &mut Rooms,
) -> Result<Next, CommandError> {
    let uri = parse_channel(&rooms.cx, channel, ChannelRole::Subscription)?;
    let request = SubscriptionRequest::new(&uri, channel, stream_id, &rooms.cx)?;
    match uri.media() {
        Media::Ipc => add_subscription::add_local(origin, request, SubscriptionKind::Ipc, rooms),
        Media::Udp => Ok(add_subscription::begin(uri, request)),
    }
}

fn terminate(cx: &Context) {
    match cx.config.termination_validator {
        TerminationValidator::Allow => cx.terminate(),
        TerminationValidator::Deny => cx.warn("a client's request to terminate the driver was denied"),
    }
}
