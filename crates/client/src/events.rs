//! What each event from the driver means for this client.
//!
//! Every event reaches every client, so an id that is not known here belongs to another client and is ignored.

use std::path::Path;
use std::sync::{Arc, Weak};

use headrace_protocol::ErrorCode;
use headrace_protocol::command::Command;
use headrace_protocol::event::{self, Event, EventError, PublicationReady};

use crate::core::Core;
use crate::counter::{Counter, CounterShared, StaticCounter};
use crate::error::ClientError;
use crate::exclusive::ExclusivePublication;
use crate::handlers::PublicationError;
use crate::home::Home;
use crate::image::{Image, ImageParts};
use crate::publication::{HandleParts, Publication, PublicationHandle};
use crate::requests::{Kind, Outcome};
use crate::state::State;
use crate::subscription::Subscription;

/// Destination or group of a publication error that has none.
const NO_VALUE: i64 = -1;

impl Core {
    /// This client as its resources know it. They do not keep it alive.
    fn as_home(self: &Arc<Self>) -> Weak<dyn Home> {
        let home: Weak<Self> = Arc::downgrade(self);
        home
    }

    /// Applies one event. An error ends the client.
    pub(crate) fn on_event(self: &Arc<Self>, event: &Event<'_>) -> Result<(), ClientError> {
        let mut state = self.state();
        if state.ended.is_some() {
            return Ok(());
        }
        let left_stream = state.left_stream.take();
        match event {
            Event::Error {
                correlation_id,
                error_code,
                message,
            } => self.on_error(&mut state, *correlation_id, *error_code, message),
            Event::AvailableImage { .. } => self.on_available_image(&mut state, event),
            Event::UnavailableImage {
                image_correlation_id,
                subscription_registration_id,
                ..
            } => {
                let (image_id, subscription_id) = (*image_correlation_id, *subscription_registration_id);
                self.on_unavailable_image(&mut state, image_id, subscription_id, left_stream);
            }
            Event::PublicationReady(ready) => self.on_publication_ready(&mut state, ready, false),
            Event::ExclusivePublicationReady(ready) => self.on_publication_ready(&mut state, ready, true),
            Event::SubscriptionReady {
                correlation_id,
                channel_status_counter_id,
            } => self.on_subscription_ready(&mut state, *correlation_id, *channel_status_counter_id),
            Event::OperationSuccess { correlation_id } => on_success(&mut state, *correlation_id),
            Event::CounterReady {
                registration_id,
                counter_id,
            } => self.on_counter_ready(&mut state, *registration_id, *counter_id),
            Event::StaticCounter {
                correlation_id,
                counter_id,
            } => resolve(&mut state, *correlation_id, |kind| match kind {
                Kind::StaticCounter { registration_id } => {
                    let value = self.counter_value(*counter_id);
                    Some(
                        value
                            .map(|value| Outcome::StaticCounter(StaticCounter::new(*registration_id, value))),
                    )
                }
                _ => None,
            }),
            Event::UnavailableCounter {
                registration_id,
                counter_id,
            } => {
                // Its word may soon be another counter's.
                if let Some(own) = state.counters.remove(registration_id) {
                    own.mark_closed();
                }
                state.queue_unavailable_counter(*registration_id, *counter_id);
            }
            Event::NextAvailableSessionId {
                correlation_id,
                session_id,
            } => resolve(&mut state, *correlation_id, |kind| match kind {
                Kind::SessionId => Some(Ok(Outcome::SessionId(*session_id))),
                _ => None,
            }),
            Event::PublicationError(error) => self.on_publication_error(&mut state, error),
            Event::ClientTimeout { client_id } if *client_id == self.client_id => {
                let reason = format!("the driver gave this client up: client_id={client_id}");
                return Err(ClientError::ClientTimeout { reason });
            }
            Event::ClientTimeout { .. } => {}
        }
        Ok(())
    }

    /// Reports a damaged event. Types that are not known come from a newer driver and are skipped.
    pub(crate) fn on_undecodable_event(&self, error: &EventError) {
        if let EventError::Malformed { .. } = error {
            let reason = error.to_string();
            self.state().queue_error(ClientError::InvalidEvent { reason });
        }
    }

    fn on_error(&self, state: &mut State, correlation_id: i64, code: ErrorCode, message: &str) {
        let error = ClientError::Registration {
            code,
            correlation_id,
            message: message.to_owned(),
        };
        let Some(request) = state
            .requests
            .get_mut(&correlation_id)
            .filter(|request| request.is_awaiting())
        else {
            if code == ErrorCode::ChannelEndpointError {
                self.on_endpoint_error(state, error);
            }
            return;
        };
        request.result = Some(Err(error));
        if matches!(request.kind, Kind::Subscription(_)) {
            state.drop_subscription(correlation_id, self.now_ns());
        }
    }

    /// Older drivers report a socket that failed under the endpoint's status counter instead of a request.
    fn on_endpoint_error(&self, state: &mut State, error: ClientError) {
        let ClientError::Registration { correlation_id, .. } = error else {
            return;
        };
        let status_id = i32::try_from(correlation_id).ok();
        let publications = state
            .publications
            .values()
            .map(|handle| handle.channel_status_id());
        let subscriptions = state
            .subscriptions
            .values()
            .map(|shared| shared.channel_status_id());
        if publications.chain(subscriptions).any(|id| Some(id) == status_id) {
            state.queue_error(error);
        }
    }

    fn on_publication_ready(
        self: &Arc<Self>,
        state: &mut State,
        ready: &PublicationReady<'_>,
        exclusive: bool,
    ) {
        let registration_id = ready.correlation_id;
        let channel = match state
            .requests
            .get(&registration_id)
            .map(|request| (&request.kind, request.is_awaiting()))
        {
            Some((Kind::Publication { channel }, true)) if !exclusive => Arc::clone(channel),
            Some((Kind::ExclusivePublication { channel }, true)) if exclusive => Arc::clone(channel),
            _ => return,
        };
        let made = self.make_publication(state, ready, channel, exclusive);
        if made.is_err() {
            let command = Command::RemovePublication {
                client_id: self.client_id,
                correlation_id: self.next_correlation_id(),
                registration_id,
                revoke: false,
            };
            self.send_removal(state, "remove publication", &command);
        }
        if let Some(request) = state.requests.get_mut(&registration_id) {
            request.result = Some(made);
        }
    }

    fn make_publication(
        self: &Arc<Self>,
        state: &mut State,
        ready: &PublicationReady<'_>,
        channel: Arc<str>,
        exclusive: bool,
    ) -> Result<Outcome, ClientError> {
        let original_registration_id = ready.original_registration_id;
        if exclusive && original_registration_id != ready.correlation_id {
            let reason = format!(
                "an exclusive publication has its own log: correlation_id={} original_registration_id={}",
                ready.correlation_id, original_registration_id
            );
            return Err(ClientError::InvalidEvent { reason });
        }
        let limit = self.counter_value(ready.publisher_limit_counter_id)?;
        let log = self.acquire_log(state, original_registration_id, &ready.log_file_name)?;
        let handle = Arc::new(PublicationHandle::new(HandleParts {
            home: self.as_home(),
            registration_id: ready.correlation_id,
            original_registration_id,
            channel,
            stream_id: ready.stream_id,
            session_id: ready.session_id,
            channel_status_id: ready.channel_status_counter_id,
            limit,
            log,
            driver_doorbell: self.driver_doorbell.clone(),
        }));
        let outcome = if exclusive {
            ExclusivePublication::new(Arc::clone(&handle)).map(Outcome::ExclusivePublication)
        } else {
            Ok(Outcome::Publication(Publication::new(Arc::clone(&handle))))
        };
        match outcome {
            Ok(_) => {
                state.publications.insert(ready.correlation_id, handle);
            }
            Err(_) => state.mappings.release(original_registration_id, self.now_ns(), 0),
        }
        outcome.map_err(|error| ClientError::DriverFiles {
            reason: format!("cannot use log file={}: {error}", ready.log_file_name),
        })
    }

    fn acquire_log(
        &self,
        state: &mut State,
        id: i64,
        file_name: &str,
    ) -> Result<headrace_buffers::log::LogBuffers, ClientError> {
        let pre_touch = self.config.pre_touch_mapped_memory;
        state
            .mappings
            .acquire(id, Path::new(file_name), pre_touch)
            .map_err(|error| ClientError::DriverFiles {
                reason: format!("cannot use log file={file_name}: {error}"),
            })
    }

    fn on_subscription_ready(self: &Arc<Self>, state: &mut State, registration_id: i64, status_id: i32) {
        resolve(state, registration_id, |kind| match kind {
            Kind::Subscription(shared) => {
                shared.set_channel_status_id(status_id);
                let subscription = Subscription::new(self.as_home(), Arc::clone(shared));
                Some(Ok(Outcome::Subscription(subscription)))
            }
            _ => None,
        });
    }

    fn on_available_image(self: &Arc<Self>, state: &mut State, event: &Event<'_>) {
        let Event::AvailableImage {
            image_correlation_id,
            session_id,
            stream_id,
            subscription_registration_id,
            subscriber_position_counter_id,
            log_file_name,
            source_identity,
        } = event
        else {
            return;
        };
        let Some(subscription) = state.subscriptions.get(subscription_registration_id).cloned() else {
            return;
        };
        if subscription.has_image(*image_correlation_id) {
            return;
        }
        let made = self
            .counter_value(*subscriber_position_counter_id)
            .and_then(|position| {
                let log = self.acquire_log(state, *image_correlation_id, log_file_name)?;
                Ok(Arc::new(Image::new(ImageParts {
                    home: self.as_home(),
                    correlation_id: *image_correlation_id,
                    subscription_registration_id: *subscription_registration_id,
                    subscription_channel: Arc::clone(&subscription.channel),
                    session_id: *session_id,
                    stream_id: *stream_id,
                    source_identity: source_identity.to_string(),
                    position,
                    log,
                })))
            });
        match made {
            Ok(image) => {
                subscription.add_image(Arc::clone(&image));
                if let Some(handler) = subscription.handlers().available_image {
                    state.queue(Box::new(move |_| handler(&image)));
                }
            }
            Err(error) => state.queue_error(error),
        }
    }

    fn on_unavailable_image(
        &self,
        state: &mut State,
        correlation_id: i64,
        subscription_registration_id: i64,
        left_stream: Option<i64>,
    ) {
        let is_left = left_stream == Some(subscription_registration_id);
        if is_left {
            state.left_stream = left_stream;
        }
        let Some(subscription) = state.subscriptions.get(&subscription_registration_id).cloned() else {
            return;
        };
        if let Some(image) = subscription.remove_image(correlation_id) {
            if let Some(handler) = &state.handlers.lost_image
                && !is_left
                && !image.is_left()
                && !image.is_end_of_stream()
                && !image.is_publication_revoked()
            {
                let (handler, image) = (Arc::clone(handler), Arc::clone(&image));
                state.queue(Box::new(move |_| handler(&image)));
            }
            state.retire_image(
                &subscription,
                image,
                self.now_ns(),
                self.config.resource_linger_ns,
            );
        }
    }

    fn on_counter_ready(self: &Arc<Self>, state: &mut State, registration_id: i64, counter_id: i32) {
        let mut shared = None;
        resolve(state, registration_id, |kind| match kind {
            Kind::Counter => Some(self.counter_value(counter_id).map(|value| {
                let counter = CounterShared::new(registration_id, counter_id);
                shared = Some(Arc::clone(&counter));
                Outcome::Counter(Counter::new(self.as_home(), counter, value))
            })),
            _ => None,
        });
        if let Some(shared) = shared {
            state.counters.insert(registration_id, shared);
        }
        // Other clients' counters are news too.
        state.queue_available_counter(registration_id, counter_id);
    }

    fn on_publication_error(&self, state: &mut State, error: &event::PublicationError<'_>) {
        let Some(handler) = state.handlers.publication_error.clone() else {
            return;
        };
        let present = |value: i64| (value != NO_VALUE).then_some(value);
        let registrations: Vec<i64> = state
            .publications
            .values()
            .filter(|handle| handle.original_registration_id() == error.registration_id)
            .map(|handle| handle.registration_id())
            .collect();
        for registration_id in registrations {
            let error = PublicationError {
                registration_id,
                original_registration_id: error.registration_id,
                destination_registration_id: present(error.destination_registration_id),
                session_id: error.session_id,
                stream_id: error.stream_id,
                receiver_id: error.receiver_id,
                group_tag: present(error.group_tag),
                source: error.source_address,
                code: error.error_code,
                message: error.message.to_string(),
            };
            let handler = Arc::clone(&handler);
            state.queue(Box::new(move |_| handler(&error)));
        }
    }
}

/// What was asked for is done.
fn on_success(state: &mut State, correlation_id: i64) {
    let mut left_stream = None;
    resolve(state, correlation_id, |kind| match kind {
        Kind::Operation => Some(Ok(Outcome::Done)),
        Kind::DestinationRemoval { registration_id } => {
            left_stream = Some(*registration_id);
            Some(Ok(Outcome::Done))
        }
        _ => None,
    });
    state.leave(left_stream);
}

/// Gives a pending request the result that `answer` makes of it; nothing when the reply does not fit.
fn resolve(
    state: &mut State,
    correlation_id: i64,
    answer: impl FnOnce(&Kind) -> Option<Result<Outcome, ClientError>>,
) {
    if let Some(request) = state.requests.get_mut(&correlation_id)
        && request.is_awaiting()
    {
        request.result = answer(&request.kind);
    }
}
