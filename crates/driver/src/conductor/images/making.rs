//! Images on their way: from a SETUP, over the creation of the log, to an image.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_buffers::log::descriptor::log_file_length;
use headrace_buffers::log::{LogBuffers, LogSpec, LogType};
use headrace_protocol::channel::{CongestionControlKind, SubscriptionParams};
use headrace_protocol::congestion::CongestionControl;
use headrace_protocol::frame::{Setup, setup};
use headrace_protocol::round_trips::RoundTrips;

use super::budget::ImageBudget;
use super::image::{CubicCounters, Image, ImageSpec};
use crate::conductor::channels::ReceiveChannels;
use crate::conductor::context::Context;
use crate::conductor::counters::StreamKey;
use crate::conductor::log_files;
use crate::conductor::strategies::{congestion_control, congestion_control_kind, loss_detector};
use crate::conductor::subscriptions::links::UntetheredTimeouts;
use crate::conductor::subscriptions::{Subscription, Subscriptions};
use crate::endpoint::EndpointId;
use crate::errors::CommandError;
use crate::proxy::{ReceiverCommand, SessionName};
use crate::resource_tasks::{CreateLog, ResourceTask};
use crate::shared::ImageShared;
use crate::shared::image::{ImageCounters, ImageIdentity};

/// A SETUP of a stream without an image.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) endpoint: EndpointId,
    /// Which path of the channel it came on.
    pub(crate) path: usize,
    pub(crate) setup: Setup,
    pub(crate) source: SocketAddr,
    /// It came to a multicast group.
    pub(crate) is_multicast: bool,
}

impl Arrival {
    /// Stream id and session.
    pub(crate) fn stream(&self) -> (i32, i32) {
        (self.setup.stream_id, self.setup.session_id)
    }

    fn first_matching<'a>(
        &self,
        subscriptions: &'a Subscriptions,
    ) -> Option<(&'a Subscription, &'a SubscriptionParams)> {
        subscriptions.first_matching(self.endpoint, self.setup.stream_id, self.setup.session_id)
    }

    /// Several receivers take the stream, as the channel forces it, or as the group or the sender says.
    fn is_group(&self, params: &SubscriptionParams) -> bool {
        params.group.is_group(self.has_group())
    }

    /// Several receivers take the stream, whatever this one is to make of it.
    fn has_group(&self) -> bool {
        self.is_multicast || self.setup.flags & setup::FLAG_GROUP != 0
    }

    /// How much of the sender the socket can hold, if it is on this host. None in groups that want equal windows.
    fn local_room(&self, channels: &ReceiveChannels) -> Option<usize> {
        if self.has_group() && self.setup.flags & setup::FLAG_OWN_WINDOWS == 0 {
            return None;
        }
        channels.local_room(self.endpoint, self.source.ip())
    }

    /// Lets the receiver ask again.
    fn forget(&self, cx: &mut Context) {
        let (stream_id, session_id) = self.stream();
        cx.receiver.send(ReceiverCommand::ForgetArrival(SessionName {
            endpoint: self.endpoint,
            stream_id,
            session_id,
        }));
    }
}

/// An image whose log is being created.
struct PendingImage {
    correlation_id: i64,
    arrival: Arrival,
    local_room: Option<usize>,
    log_file_name: String,
}

/// The images on their way.
pub(crate) struct Making {
    pending: Vec<PendingImage>,
    budget: ImageBudget,
}

impl Making {
    pub(crate) fn new(budget: ImageBudget) -> Self {
        Self {
            pending: Vec::new(),
            budget,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Has a log created for the image of a stream, if it has a subscription.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Context,
        subscriptions: &Subscriptions,
        channels: &mut ReceiveChannels,
        arrival: Arrival,
        next_id: impl FnOnce() -> i64,
    ) {
        if let Err(error) = self.try_begin(cx, subscriptions, channels, arrival, next_id) {
            cx.record_image_error(&error);
            arrival.forget(cx);
        }
    }

    fn try_begin(
        &mut self,
        cx: &mut Context,
        subscriptions: &Subscriptions,
        channels: &mut ReceiveChannels,
        arrival: Arrival,
        next_id: impl FnOnce() -> i64,
    ) -> Result<(), CommandError> {
        let (setup, source) = (&arrival.setup, arrival.source);
        setup
            .check()
            .map_err(|error| CommandError::generic(format!("image not created, source={source}: {error}")))?;
        let Some((subscription, params)) = arrival.first_matching(subscriptions) else {
            arrival.forget(cx);
            return Ok(());
        };
        let local_room = arrival.local_room(channels);
        let congestion = congestion_control(&cx.config, params, setup, local_room, cx.now_ns);
        let window_length = congestion.window_length_max();
        if setup.mtu > window_length {
            return Err(CommandError::generic(format!(
                "image not created: mtuLength={mtu} > initialWindowLength={window_length} source={source}: give the \
                 subscription rcv-wnd={mtu} or more, or the publication a smaller mtu, channel={} streamId={}",
                subscription.channel,
                subscription.stream_id,
                mtu = setup.mtu,
            )));
        }
        let correlation_id = next_id();
        let log_file_name = log_files::image_log(&cx.config.directory, correlation_id)?;
        let spec = log_spec(cx, correlation_id, &arrival, params, window_length);
        if !channels.contains(arrival.endpoint) {
            return Ok(());
        }
        self.budget
            .reserve(log_file_length(spec.term_length, spec.page_size))?;
        channels.attach_image(arrival.endpoint);
        cx.tasks.send(ResourceTask::CreateLog(Box::new(CreateLog {
            correlation_id,
            path: log_file_name.clone().into(),
            spec,
        })));
        self.pending.push(PendingImage {
            correlation_id,
            arrival,
            local_room,
            log_file_name,
        });
        Ok(())
    }

    /// True while the log of this stream's image is created.
    pub(crate) fn is_under_way(&self, arrival: &Arrival) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|PendingImage { arrival: other, .. }| {
            (other.endpoint, other.stream()) == (arrival.endpoint, arrival.stream())
        })
    }

    /// True when a log was asked for by an image.
    pub(crate) fn awaits(&self, correlation_id: i64) -> bool {
        self.pending
            .iter()
            .any(|pending| pending.correlation_id == correlation_id)
    }

    /// Makes the image of a log. None when that failed, or the stream no longer has a subscription.
    pub(crate) fn finish(
        &mut self,
        cx: &mut Context,
        subscriptions: &Subscriptions,
        channels: &mut ReceiveChannels,
        correlation_id: i64,
        result: Result<LogBuffers, CommandError>,
    ) -> Option<Image> {
        let index = self
            .pending
            .iter()
            .position(|pending| pending.correlation_id == correlation_id)?;
        let pending = self.pending.swap_remove(index);
        let made = match result {
            Ok(log) => {
                let made = make(cx, subscriptions, &pending, log.clone());
                if !matches!(made, Ok(Some(_))) {
                    cx.free_log(log, pending.log_file_name);
                }
                made
            }
            Err(error) => Err(error),
        };
        match made {
            Ok(Some(image)) => return Some(image),
            Ok(None) => {}
            Err(error) => cx.record_image_error(&error),
        }
        self.release(cx, pending.arrival.setup.term_length as usize);
        pending.arrival.forget(cx);
        channels.detach_image(cx, pending.arrival.endpoint);
        None
    }

    /// The log of an image is given up.
    pub(crate) fn release(&mut self, cx: &Context, term_length: usize) {
        self.budget
            .release(log_file_length(term_length, cx.config.file_page_size_bytes));
    }
}

/// None when the stream no longer has a subscription.
fn make(
    cx: &mut Context,
    subscriptions: &Subscriptions,
    pending: &PendingImage,
    log: LogBuffers,
) -> Result<Option<Image>, CommandError> {
    let Some((first, params)) = pending.arrival.first_matching(subscriptions) else {
        return Ok(None);
    };
    let setup = &pending.arrival.setup;
    let congestion = congestion_control(&cx.config, params, setup, pending.local_room, cx.now_ns);
    let counters = image_counters(cx, pending, first, &log)?;
    let cubic = match congestion_control_kind(&cx.config, params) {
        CongestionControlKind::Static => None,
        CongestionControlKind::Cubic => {
            match cubic_counters(cx, pending, first, congestion.initial_window_length()) {
                Ok(cubic) => Some(cubic),
                Err(error) => {
                    cx.counters.free_all(&counters);
                    return Err(error);
                }
            }
        }
    };
    let is_group = pending.arrival.is_group(params);
    let mut loss_detector = loss_detector(&cx.config, params, is_group);
    let wants_round_trips = loss_detector.delays().wants_round_trips();
    let shared = Arc::new(shared_half(
        cx,
        pending,
        params,
        (congestion.as_ref(), wants_round_trips.then(RoundTrips::watched)),
        counters,
        log,
    ));
    let spec = ImageSpec {
        shared,
        endpoint: pending.arrival.endpoint,
        channel: Arc::clone(&first.channel),
        log_file_name: pending.log_file_name.clone(),
        source_identity: pending.arrival.source.to_string(),
        untethered: UntetheredTimeouts::from(params),
        loss_detector,
        congestion,
        is_group,
        asks_for_responses: setup.flags & setup::FLAG_RESPONSE != 0,
        cubic,
    };
    Ok(Some(Image::new(spec, cx.now_ns)))
}

fn key<'a>(pending: &PendingImage, first: &'a Subscription) -> StreamKey<'a> {
    StreamKey {
        registration_id: pending.correlation_id,
        owner_id: first.client_id,
        session_id: pending.arrival.setup.session_id,
        stream_id: pending.arrival.setup.stream_id,
        channel: &first.channel,
    }
}

fn join_position(pending: &PendingImage, log: &LogBuffers) -> i64 {
    let setup = &pending.arrival.setup;
    log.geometry()
        .position(setup.active_term_id, setup.term_offset as usize)
}

/// The counters that every image has.
fn image_counters(
    cx: &mut Context,
    pending: &PendingImage,
    first: &Subscription,
    log: &LogBuffers,
) -> Result<[Counter; 3], CommandError> {
    let join_position = join_position(pending, log);
    cx.counters.stream_set(
        key(pending, first),
        [
            (type_ids::RECEIVER_HIGH_WATER_MARK, "rcv-hwm", join_position),
            (type_ids::RECEIVER_POSITION, "rcv-pos", join_position),
            (type_ids::RECEIVER_NAKS_SENT, "rcv-naks-sent", 0),
        ],
    )
}

/// The counters of congestion control that measures and changes its window.
fn cubic_counters(
    cx: &mut Context,
    pending: &PendingImage,
    first: &Subscription,
    window_length: i32,
) -> Result<CubicCounters, CommandError> {
    let [round_trip, window] = cx.counters.stream_set(
        key(pending, first).of_driver(),
        [
            (type_ids::PER_IMAGE, "rcv-cc-cubic-rtt", 0),
            (type_ids::PER_IMAGE, "rcv-cc-cubic-wnd", window_length.into()),
        ],
    )?;
    Ok(CubicCounters { round_trip, window })
}

/// What the conductor and the receiver share of a new image.
fn shared_half(
    cx: &Context,
    pending: &PendingImage,
    params: &SubscriptionParams,
    (congestion, watched): (&dyn CongestionControl, Option<RoundTrips>),
    counters: [Counter; 3],
    log: LogBuffers,
) -> ImageShared {
    let setup = &pending.arrival.setup;
    let identity = ImageIdentity {
        correlation_id: pending.correlation_id,
        session_id: setup.session_id,
        stream_id: setup.stream_id,
        source: pending.arrival.source,
        source_path: pending.arrival.path,
        is_reliable: params.is_reliable,
        mtu_length: setup.mtu,
        join_position: join_position(pending, &log),
        initial_window_length: congestion.initial_window_length(),
        window_length_max: congestion.window_length_max(),
        round_trips: congestion.round_trips().or(watched),
    };
    let [high_water_mark, rebuild_position, naks_sent] = counters;
    let counters = ImageCounters {
        high_water_mark,
        rebuild_position,
        naks_sent,
    };
    ImageShared::new(identity, log, counters, &cx.recorder)
}

fn log_spec(
    cx: &Context,
    correlation_id: i64,
    arrival: &Arrival,
    params: &SubscriptionParams,
    window_length: i32,
) -> LogSpec {
    let (config, buffers, setup) = (&cx.config, cx.system_buffers, &arrival.setup);
    LogSpec {
        log_type: LogType::Image,
        term_length: setup.term_length as usize,
        page_size: config.file_page_size_bytes,
        sparse: params.is_sparse,
        mtu: setup.mtu as usize,
        session_id: setup.session_id,
        stream_id: setup.stream_id,
        initial_term_id: setup.initial_term_id,
        correlation_id,
        receiver_window_length: window_length,
        socket_send_buffer_length: config.socket_send_buffer_length as i32,
        os_default_send_buffer_length: buffers.default_send_length as i32,
        os_max_send_buffer_length: buffers.max_send_length as i32,
        socket_receive_buffer_length: config.socket_receive_buffer_length as i32,
        os_default_receive_buffer_length: buffers.default_receive_length as i32,
        os_max_receive_buffer_length: buffers.max_receive_length as i32,
        untethered_window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
        untethered_linger_timeout_ns: params.untethered_linger_timeout_ns,
        untethered_resting_timeout_ns: params.untethered_resting_timeout_ns,
        group: arrival.is_group(params),
        rejoin: params.is_rejoin,
        reliable: params.is_reliable,
        tether: params.is_tethered,
        ..LogSpec::default()
    }
}
