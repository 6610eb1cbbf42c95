//! Adding a network publication: find the addresses of its channel, then share one, or have a log created and make one.

use std::sync::Arc;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_buffers::log::{LogBuffers, LogSpec};
use headrace_protocol::channel::{ChannelRole, TimestampOffset, UdpChannel};

use super::add_publication::{hold, share};
use super::step::{AddressesWanted, Adds, Next, Step};
use crate::conductor::channels::{SendChannels, SendRequest, wanted_send_buffer_length};
use crate::conductor::context::Context;
use crate::conductor::counters::{SENDER_RETRANSMITS, StreamKey};
use crate::conductor::origin::Origin;
use crate::conductor::publications::{
    NetworkPublication, NetworkSpec, PublicationPlan, PublicationRequest, StreamCounters,
};
use crate::conductor::responses::{announce_responses, check_exchange};
use crate::conductor::rooms::Rooms;
use crate::conductor::strategies::{Sending, flow_control};
use crate::conductor::subscriptions::SpiedChannel;
use crate::endpoint::EndpointId;
use crate::errors::CommandError;
use crate::proxy::SenderCommand;
use crate::shared::PublicationShared;
use crate::shared::publication::{Exchange, PublicationCounters, PublicationIdentity};

/// The first step: the channel has names.
pub(crate) fn begin(request: PublicationRequest) -> Next {
    let wanted = AddressesWanted {
        uri: request.uri.clone(),
        role: ChannelRole::Publication,
        adds: Adds::Publication,
    };
    Next::Addresses(wanted, Box::new(Share(request)))
}

/// The addresses are known: share a publication, or have a log created.
struct Share(PublicationRequest);

impl Step<UdpChannel> for Share {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        udp: UdpChannel,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let Self(mut request) = *self;
        let exchange = Exchange::of(&request.params);
        check_exchange(exchange, rooms).map_err(|error| error.in_channel(&request.channel))?;
        let publications = &mut rooms.publications;
        publications.network.adopt_tag(&rooms.cx, &mut request)?;
        publications.check_entity_tag(&request.params, &request.channel)?;
        let place = Place::of(
            &rooms.cx,
            &rooms.channels.send,
            &udp,
            request.params.send_timestamp,
        )?;
        let sending = flow_control(
            &rooms.cx.config,
            &request.params,
            place.has_group_semantics,
            &request.channel,
        )?;
        udp.check_mtu(request.params.mtu_length, place.send_buffer_length)?;
        let shareable = publications
            .network
            .shareable(&request, |publication| place.open == Some(publication.endpoint()));
        if let Some(stream) = shareable {
            share(&mut rooms.cx, &mut rooms.clients, origin, &request, stream)?;
            place
                .open
                .into_iter()
                .for_each(|endpoint| take_tag_of(&udp, endpoint, rooms));
            return Ok(Next::Done);
        }
        let suffix = format!(" channel={}", request.channel);
        let session_id = publications.network.session_id(
            &mut publications.session_ids,
            &request,
            &suffix,
            |publication| publication.canonical_form() == place.canonical_form,
        )?;
        let start = request.start(&mut rooms.cx.random);
        let directory = &rooms.cx.config.directory;
        let plan = PublicationPlan::new(request, origin.correlation_id, session_id, start, directory)?;
        let task = plan.create_log(log_spec(&rooms.cx, &plan, &udp));
        Ok(Next::Log(task, Box::new(Make { plan, udp, sending })))
    }
}

/// The channel as far as it is open. One known by its tag goes by the form of the one that is open.
struct Place {
    open: Option<EndpointId>,
    send_buffer_length: usize,
    canonical_form: String,
    has_group_semantics: bool,
}

impl Place {
    fn of(
        cx: &Context,
        channels: &SendChannels,
        udp: &UdpChannel,
        timestamp: Option<TimestampOffset>,
    ) -> Result<Self, CommandError> {
        let Some(send) = channels.find(udp)? else {
            return Ok(Self {
                open: None,
                send_buffer_length: wanted_send_buffer_length(cx, udp),
                canonical_form: udp.canonical_form.clone(),
                has_group_semantics: udp.kind.has_group_semantics(),
            });
        };
        send.check_timestamp(timestamp, udp)?;
        udp.check_socket_buffers(&send.endpoint.channel, &cx.defaults)?;
        Ok(Self {
            open: Some(send.endpoint.id),
            send_buffer_length: send.send_buffer_length,
            canonical_form: send.endpoint.channel.canonical_form.clone(),
            has_group_semantics: send.endpoint.channel.kind.has_group_semantics(),
        })
    }
}

fn log_spec(cx: &Context, plan: &PublicationPlan, udp: &UdpChannel) -> LogSpec {
    let (config, buffers) = (&cx.config, cx.system_buffers);
    let send_length = udp
        .socket_sndbuf_length
        .unwrap_or(config.socket_send_buffer_length);
    let receive_length = udp
        .socket_rcvbuf_length
        .unwrap_or(config.socket_receive_buffer_length);
    LogSpec {
        socket_send_buffer_length: send_length as i32,
        os_default_send_buffer_length: buffers.default_send_length as i32,
        os_max_send_buffer_length: buffers.max_send_length as i32,
        socket_receive_buffer_length: receive_length as i32,
        os_default_receive_buffer_length: buffers.default_receive_length as i32,
        os_max_receive_buffer_length: buffers.max_receive_length as i32,
        ..plan.log_spec(config)
    }
}

/// The log is there: open the channel, or join it, and make the publication.
struct Make {
    plan: PublicationPlan,
    udp: UdpChannel,
    sending: Sending,
}

impl Step<LogBuffers> for Make {
    fn go_on(
        self: Box<Self>,
        origin: Origin,
        log: LogBuffers,
        rooms: &mut Rooms,
    ) -> Result<Next, CommandError> {
        let Self { plan, udp, sending } = *self;
        rooms.clients.known(&mut rooms.cx, origin)?;
        // The channel may have begun to close while the log was made.
        let wanted = SendRequest {
            registration_id: origin.correlation_id,
            channel: &udp,
            timestamp: plan.request.params.send_timestamp,
        };
        let send = rooms.channels.join_send(&mut rooms.cx, wanted)?;
        let (endpoint, status_id) = (send.endpoint.id, send.endpoint.status.id());
        let channel = SpiedChannel {
            tags: send.endpoint.tags().to_vec(),
            canonical_form: send.endpoint.channel.canonical_form.clone(),
        };
        let has_group_semantics = send.endpoint.channel.kind.has_group_semantics();
        let counters = match counters(&mut rooms.cx, origin, &plan, &sending) {
            Ok(counters) => counters,
            Err(error) => {
                // Gives the channel up again if this was its first publication.
                rooms.channels.send.release(&mut rooms.cx, endpoint);
                return Err(error);
            }
        };
        hold(&mut rooms.cx, &mut rooms.clients, origin, origin.correlation_id)?;
        let shared = shared_half(
            &rooms.cx,
            origin,
            &plan,
            has_group_semantics,
            log.clone(),
            counters.sender,
        );
        rooms.cx.sender.send(SenderCommand::AddPublication {
            endpoint,
            publication: Arc::clone(&shared),
            flow_control: sending.flow_control,
            max_resend: sending.max_resend,
        });
        announce_responses(&mut rooms.cx, &rooms.images, &rooms.publications, &shared);
        let spec = NetworkSpec {
            shared,
            endpoint,
            channel,
            linger_timeout_ns: plan.request.params.linger_timeout_ns,
        };
        let stream = plan.into_stream(log, counters.publisher, status_id);
        let publication = NetworkPublication::new(stream, spec, &rooms.cx.recorder, rooms.cx.now_ns);
        rooms
            .publications
            .network
            .add(&mut rooms.cx, publication, &rooms.subscriptions);
        take_tag_of(&udp, endpoint, rooms);
        Ok(Next::Done)
    }
}

/// A publication joined a transport, which goes by the tag of its channel too from now on.
fn take_tag_of(udp: &UdpChannel, endpoint: EndpointId, rooms: &mut Rooms) {
    if let Some(tag) = rooms.channels.send.take_tag_of(endpoint, udp) {
        let network = &mut rooms.publications.network;
        network.add_tag(&mut rooms.cx, endpoint, tag, &rooms.subscriptions);
    }
}

/// All counters of one network publication.
struct Counters {
    publisher: StreamCounters,
    sender: PublicationCounters,
}

fn counters(
    cx: &mut Context,
    origin: Origin,
    plan: &PublicationPlan,
    sending: &Sending,
) -> Result<Counters, CommandError> {
    let [publisher_position, publisher_limit] = plan.counter_rows();
    let start_position = plan.start_position();
    let key = plan.key(origin.client_id);
    let made = cx.counters.stream_set(
        key,
        [
            publisher_position,
            publisher_limit,
            (type_ids::SENDER_POSITION, "snd-pos", start_position),
            (type_ids::SENDER_LIMIT, "snd-lmt", start_position),
            (type_ids::SENDER_BACK_PRESSURE_EVENTS, "snd-bpe", 0),
            (type_ids::SENDER_NAKS_RECEIVED, "snd-naks-received", 0),
            (SENDER_RETRANSMITS, "snd-retransmits", 0),
        ],
    )?;
    let flow_control_receivers = match flow_control_receivers(cx, key, sending) {
        Ok(receivers) => receivers,
        Err(error) => {
            cx.counters.free_all(&made);
            return Err(error);
        }
    };
    let [
        publisher_position,
        publisher_limit,
        sender_position,
        sender_limit,
        back_pressure_events,
        naks_received,
        retransmits_sent,
    ] = made;
    let sender = PublicationCounters {
        sender_position,
        sender_limit,
        back_pressure_events,
        naks_received,
        retransmits_sent,
        flow_control_receivers,
    };
    let further = [
        &sender.sender_position,
        &sender.sender_limit,
        &sender.back_pressure_events,
        &sender.naks_received,
        &sender.retransmits_sent,
    ];
    Ok(Counters {
        publisher: StreamCounters {
            publisher_position,
            publisher_limit,
            further: further
                .into_iter()
                .chain(&sender.flow_control_receivers)
                .cloned()
                .collect(),
        },
        sender,
    })
}

/// The driver's own counter of a strategy that counts receivers.
fn flow_control_receivers(
    cx: &mut Context,
    key: StreamKey<'_>,
    sending: &Sending,
) -> Result<Option<Counter>, CommandError> {
    let Some(count) = sending.flow_control.receiver_count() else {
        return Ok(None);
    };
    let (type_id, key) = (type_ids::FLOW_CONTROL_RECEIVERS, key.of_driver());
    cx.counters
        .stream(type_id, "fc-receivers", key, count as i64)
        .map(Some)
}

/// What the conductor and the sender share of a new publication.
fn shared_half(
    cx: &Context,
    origin: Origin,
    plan: &PublicationPlan,
    has_group_semantics: bool,
    log: LogBuffers,
    counters: PublicationCounters,
) -> Arc<PublicationShared> {
    let request = &plan.request;
    let identity = PublicationIdentity {
        registration_id: origin.correlation_id,
        session_id: plan.session_id(),
        stream_id: request.stream_id,
        mtu_length: request.params.mtu_length,
        has_group_semantics,
        may_have_a_twin: request.params.initial_position.is_some(),
        exchange: Exchange::of(&request.params),
        signals_end_of_stream: request.params.signals_end_of_stream,
        spies_simulate_connection: request.params.spies_simulate_connection,
    };
    Arc::new(PublicationShared::new(identity, log, counters, &cx.recorder))
}
