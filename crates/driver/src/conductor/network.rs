//! Commands and timers that concern network publications.

use std::sync::Arc;

use headrace_buffers::counters::{Counter, NULL_COUNTER_ID, system_counter, type_ids};
use headrace_buffers::log::{LogBuffers, LogSpec, LogType};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{
    ChannelRole, ChannelUri, InitialPosition, PublicationParams, SessionIdParam, UdpChannel,
};
use headrace_protocol::event::{Event, PublicationError};
use headrace_protocol::flow::UnicastFlowControl;
use headrace_protocol::frame::ErrorFrame;

use super::Conductor;
use super::clients::{PublicationHandle, PublicationKind};
use super::counters::StreamKey;
use super::links::UntetheredTimeouts;
use super::network_publication::{NetworkPublication, NetworkPublicationSpec, NetworkState};
use super::pending::{Pending, Step};
use super::publications::{NO_TAG, log_start, publication_log_path, shown_path};
use super::subscriptions::SpiedChannel;
use crate::errors::{CommandError, ErrorGroup};
use crate::proxy::{EndpointId, SenderCommand};
use crate::resource_agent::{CreateLog, FindAddresses, ResourceTask};
use crate::shared::PublicationShared;
use crate::shared::publication::{PublicationCounters, PublicationIdentity};

/// Retransmits at once to a single receiver.
const UNICAST_MAX_RESEND: usize = 1;

/// A network publication whose addresses are being looked up.
pub(crate) struct NetworkRequest {
    stream_id: i32,
    is_exclusive: bool,
    uri: ChannelUri,
    channel: Arc<str>,
    params: PublicationParams,
}

/// A network publication whose log is being created.
pub(crate) struct NetworkPlan {
    request: NetworkRequest,
    udp: UdpChannel,
    session_id: i32,
    start: InitialPosition,
    log_file_name: String,
}

impl Conductor {
    pub(crate) fn add_network_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        uri: ChannelUri,
        channel: &str,
        is_exclusive: bool,
    ) -> Result<(), CommandError> {
        let params = PublicationParams::from_uri(&uri, &self.defaults)?;
        params.check_stream_id(stream_id)?;
        self.cx
            .tasks
            .send(ResourceTask::FindAddresses(Box::new(FindAddresses {
                correlation_id,
                uri: uri.clone(),
                role: ChannelRole::Publication,
            })));
        self.pending = Some(Pending {
            client_id,
            correlation_id,
            step: Step::PublicationAddresses(Box::new(NetworkRequest {
                stream_id,
                is_exclusive,
                uri,
                channel: channel.into(),
                params,
            })),
        });
        Ok(())
    }

    /// Shares a publication, or has a log created.
    pub(crate) fn on_publication_addresses(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        mut request: NetworkRequest,
        udp: UdpChannel,
    ) -> Result<(), CommandError> {
        self.adopt_network_tag(&mut request)?;
        self.check_entity_tag(&request.params, &request.channel)?;
        let open = self.find_send_channel(&udp)?;
        let existing = open.and_then(|id| self.send_channels.iter().find(|send| send.endpoint.id == id));
        // A channel known by its tag goes by the form of the one that is open.
        let (send_buffer_length, canonical_form) = match existing {
            Some(send) => {
                udp.check_socket_buffers(&send.endpoint.channel, &self.defaults)?;
                (
                    send.send_buffer_length,
                    send.endpoint.channel.canonical_form.clone(),
                )
            }
            None => (self.wanted_send_buffer_length(&udp), udp.canonical_form.clone()),
        };
        udp.check_mtu(request.params.mtu_length, send_buffer_length)?;
        if let Some(index) = self.shareable_network_publication(open, &request) {
            let existing = self.network_publications[index].existing();
            request.params.check_matches(&existing, &request.channel)?;
            return self.share_network_publication(client_id, correlation_id, index);
        }
        let session_id = self.network_session_id(&request, &canonical_form)?;
        let start = self.start_of(&request.params);
        let path = publication_log_path(&self.cx.config.directory, correlation_id);
        let log_file_name = shown_path(&path)?;
        let spec = self.network_log_spec(correlation_id, session_id, &request, &udp, start);
        self.cx.tasks.send(ResourceTask::CreateLog(Box::new(CreateLog {
            correlation_id,
            path,
            spec,
        })));
        self.pending = Some(Pending {
            client_id,
            correlation_id,
            step: Step::NetworkLog(Box::new(NetworkPlan {
                request,
                udp,
                session_id,
                start,
                log_file_name,
            })),
        });
        Ok(())
    }

    fn adopt_network_tag(&self, request: &mut NetworkRequest) -> Result<(), CommandError> {
        let Some(SessionIdParam::Tag(tag)) = request.params.session_id else {
            return Ok(());
        };
        let tagged = self
            .network_publications
            .iter()
            .find(|publication| publication.spec().tags.entity == Some(tag));
        let Some(tagged) = tagged else {
            return Err(CommandError::invalid_channel(format!(
                "session-id=tag:{tag} must reference a network publication, channel={}",
                request.channel
            )));
        };
        let existing = tagged.existing();
        Ok(request
            .params
            .adopt_tagged(&request.uri, &self.defaults, &existing)?)
    }

    fn shareable_network_publication(
        &self,
        open: Option<EndpointId>,
        request: &NetworkRequest,
    ) -> Option<usize> {
        let endpoint = open.filter(|_| !request.is_exclusive)?;
        self.network_publications
            .iter()
            .position(|publication| publication.is_shareable(endpoint, request.stream_id))
    }

    fn share_network_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        index: usize,
    ) -> Result<(), CommandError> {
        let publication_id = self.network_publications[index].registration_id();
        self.client(client_id)?.publications.push(PublicationHandle {
            registration_id: correlation_id,
            publication_id,
            kind: PublicationKind::Network,
        });
        self.note_publisher(client_id, &self.network_publications[index].spec().shared.log);
        let publication = &mut self.network_publications[index];
        publication.add_handle();
        self.cx
            .events
            .publication_ready(correlation_id, publication.describe());
        Ok(())
    }

    fn network_session_id(
        &mut self,
        request: &NetworkRequest,
        canonical_form: &str,
    ) -> Result<i32, CommandError> {
        let stream_id = request.stream_id;
        let publications = &self.network_publications;
        let in_use = |candidate| {
            publications.iter().any(|publication| {
                publication.holds_session_id(candidate, stream_id)
                    && publication.spec().channel.canonical_form == canonical_form
            })
        };
        match request.params.session_id {
            Some(SessionIdParam::Number(session_id)) if in_use(session_id) => {
                Err(CommandError::invalid_channel(format!(
                    "existing publication has clashing sessionId={session_id} for streamId={stream_id} channel={}",
                    request.channel
                )))
            }
            Some(SessionIdParam::Number(session_id)) => Ok(session_id),
            Some(SessionIdParam::Tag(_)) | None => Ok(self.session_ids.allocate(in_use)),
        }
    }

    fn network_log_spec(
        &self,
        correlation_id: i64,
        session_id: i32,
        request: &NetworkRequest,
        udp: &UdpChannel,
        start: InitialPosition,
    ) -> LogSpec {
        let params = &request.params;
        let config = &self.cx.config;
        let buffers = self.system_buffers;
        LogSpec {
            log_type: if request.is_exclusive {
                LogType::ExclusivePublication
            } else {
                LogType::ConcurrentPublication
            },
            term_length: params.term_length,
            page_size: config.file_page_size_bytes,
            sparse: params.is_sparse,
            mtu: params.mtu_length,
            session_id,
            stream_id: request.stream_id,
            initial_term_id: start.initial_term_id,
            start: log_start(params, start),
            correlation_id,
            publication_window_length: params.publication_window_length as i32,
            socket_send_buffer_length: udp
                .socket_sndbuf_length
                .unwrap_or(config.socket_send_buffer_length) as i32,
            os_default_send_buffer_length: buffers.default_send_length as i32,
            os_max_send_buffer_length: buffers.max_send_length as i32,
            socket_receive_buffer_length: udp
                .socket_rcvbuf_length
                .unwrap_or(config.socket_receive_buffer_length)
                as i32,
            os_default_receive_buffer_length: buffers.default_receive_length as i32,
            os_max_receive_buffer_length: buffers.max_receive_length as i32,
            max_resend: params.max_resend as i32,
            entity_tag: params.tags.entity.unwrap_or(NO_TAG),
            response_correlation_id: -1,
            linger_timeout_ns: params.linger_timeout_ns,
            untethered_window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: params.untethered_resting_timeout_ns,
            signal_eos: params.signals_end_of_stream,
            spies_simulate_connection: params.spies_simulate_connection,
            ..LogSpec::default()
        }
    }

    pub(crate) fn finish_network_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        plan: NetworkPlan,
        log: LogBuffers,
    ) -> Result<(), CommandError> {
        let unused = (log.clone(), plan.log_file_name.clone());
        let made = self.make_network_publication(client_id, correlation_id, plan, log);
        if made.is_err() {
            let (log, path) = unused;
            self.cx.free_log(log, path);
        }
        let index = made?;
        let publication = &self.network_publications[index];
        self.cx
            .events
            .publication_ready(correlation_id, publication.describe());
        self.link_spies(index);
        Ok(())
    }

    fn make_network_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        plan: NetworkPlan,
        log: LogBuffers,
    ) -> Result<usize, CommandError> {
        self.client(client_id)?;
        let endpoint = self.join_send_channel(correlation_id, &plan.udp)?;
        let counters = match self.publication_counters(client_id, correlation_id, &plan) {
            Ok(counters) => counters,
            Err(error) => {
                // Gives the channel up again if this was its first publication.
                self.release_send_channel(endpoint);
                return Err(error);
            }
        };
        let (channel_status_counter_id, channel) = self.describe_send_channel(endpoint);
        let params = &plan.request.params;
        let shared = Arc::new(PublicationShared::new(
            PublicationIdentity {
                registration_id: correlation_id,
                session_id: plan.session_id,
                stream_id: plan.request.stream_id,
                mtu_length: params.mtu_length,
                has_group_semantics: false,
                signals_end_of_stream: params.signals_end_of_stream,
                spies_simulate_connection: params.spies_simulate_connection,
            },
            log,
            counters.shared,
            self.cx.now_ns,
        ));
        self.sender.send(SenderCommand::AddPublication {
            endpoint,
            publication: Arc::clone(&shared),
            flow_control: Box::new(UnicastFlowControl::new(
                self.cx.config.unicast_flow_control_rrwm as i32,
            )),
            max_resend: UNICAST_MAX_RESEND,
        });
        let spec = NetworkPublicationSpec {
            shared,
            endpoint,
            channel_status_counter_id,
            channel,
            is_exclusive: plan.request.is_exclusive,
            tags: params.tags,
            start: plan.start,
            log_file_name: plan.log_file_name,
            window_length: params.publication_window_length as i64,
            linger_timeout_ns: params.linger_timeout_ns,
            untethered: UntetheredTimeouts {
                window_limit_ns: params.untethered_window_limit_timeout_ns,
                linger_ns: params.untethered_linger_timeout_ns,
                resting_ns: params.untethered_resting_timeout_ns,
            },
            publisher_limit: counters.publisher_limit,
            publisher_position: counters.publisher_position,
        };
        let mut publication = NetworkPublication::new(spec, self.cx.now_ns);
        publication.add_handle();
        self.network_publications.push(publication);
        self.client(client_id)?.publications.push(PublicationHandle {
            registration_id: correlation_id,
            publication_id: correlation_id,
            kind: PublicationKind::Network,
        });
        Ok(self.network_publications.len() - 1)
    }

    /// Opens the channel, or joins one that is open, which may have begun to close while the log was made.
    fn join_send_channel(
        &mut self,
        correlation_id: i64,
        udp: &UdpChannel,
    ) -> Result<EndpointId, CommandError> {
        let endpoint = match self.find_send_channel(udp)? {
            Some(endpoint) => endpoint,
            None => self.open_send_channel(correlation_id, udp.clone())?,
        };
        if let Some(send) = self.send_channel(endpoint) {
            send.publication_count += 1;
        }
        Ok(endpoint)
    }

    /// Status counter of an open channel, and what spies know it by.
    fn describe_send_channel(&mut self, endpoint: EndpointId) -> (i32, SpiedChannel) {
        let Some(send) = self.send_channel(endpoint) else {
            let unknown = SpiedChannel {
                channel_tag: None,
                canonical_form: String::new(),
            };
            return (NULL_COUNTER_ID, unknown);
        };
        let channel = SpiedChannel {
            channel_tag: send.endpoint.channel.channel_tag,
            canonical_form: send.endpoint.channel.canonical_form.clone(),
        };
        (send.endpoint.counters.status.id(), channel)
    }

    fn publication_counters(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        plan: &NetworkPlan,
    ) -> Result<NetworkCounters, CommandError> {
        let key = StreamKey {
            registration_id: correlation_id,
            owner_id: client_id,
            session_id: plan.session_id,
            stream_id: plan.request.stream_id,
            channel: &plan.request.channel,
        };
        let position = plan.start.position(plan.request.params.term_length);
        let position_name = if plan.request.is_exclusive {
            "pub-pos (exclusive)"
        } else {
            "pub-pos (concurrent)"
        };
        let [
            publisher_position,
            publisher_limit,
            sender_position,
            sender_limit,
            back_pressure_events,
            naks_received,
        ] = self.cx.counters.stream_set(
            key,
            [
                (type_ids::PUBLISHER_POSITION, position_name, position),
                (type_ids::PUBLISHER_LIMIT, "pub-lmt", position),
                (type_ids::SENDER_POSITION, "snd-pos", position),
                (type_ids::SENDER_LIMIT, "snd-lmt", position),
                (type_ids::SENDER_BACK_PRESSURE_EVENTS, "snd-bpe", 0),
                (type_ids::SENDER_NAKS_RECEIVED, "snd-naks-received", 0),
            ],
        )?;
        Ok(NetworkCounters {
            publisher_position,
            publisher_limit,
            shared: PublicationCounters {
                sender_position,
                sender_limit,
                back_pressure_events,
                naks_received,
            },
        })
    }

    pub(crate) fn release_network_publication(&mut self, publication_id: i64, revoke: bool) {
        let found = self
            .network_publications
            .iter_mut()
            .find(|publication| publication.registration_id() == publication_id);
        if let Some(publication) = found {
            if revoke {
                publication.revoke();
            }
            publication.remove_handle();
        }
    }

    pub(crate) fn tick_network_publications(&mut self) {
        for index in 0..self.network_publications.len() {
            let publication = &mut self.network_publications[index];
            let tick = publication.on_tick(self.cx.now_ns, self.cx.config.publication_unblock_timeout_ns);
            let (endpoint, registration_id) = (publication.spec().endpoint, publication.registration_id());
            self.cx
                .announce_untethered(&tick.untethered, publication.describe_stream());
            if tick.has_ended {
                self.cx.announce_end(registration_id, &publication.links);
            }
            if tick.unblocked {
                self.cx
                    .system
                    .get(system_counter::UNBLOCKED_PUBLICATIONS)
                    .increment_release();
            }
            if tick.revoked {
                self.cx
                    .system
                    .get(system_counter::PUBLICATIONS_REVOKED)
                    .increment_release();
            }
            if tick.finished {
                self.sender.send(SenderCommand::RemovePublication {
                    endpoint,
                    registration_id,
                });
                self.release_send_channel(endpoint);
            }
        }
    }

    pub(crate) fn on_publication_released(&mut self, registration_id: i64) {
        let released: Vec<_> = self
            .network_publications
            .extract_if(.., |publication| {
                publication.registration_id() == registration_id && publication.state() == NetworkState::Done
            })
            .collect();
        for publication in released {
            let (spec, links) = publication.into_parts();
            let shared = &spec.shared;
            self.cx.counters.free_all(links.iter().map(|link| &link.position));
            self.cx.counters.free_all([
                &spec.publisher_limit,
                &spec.publisher_position,
                &shared.sender_position,
                &shared.sender_limit,
                &shared.back_pressure_events,
                &shared.naks_received,
            ]);
            self.cx.free_log(shared.log.clone(), spec.log_file_name);
        }
    }

    /// A receiver refused a stream: its publishers are told, and the log keeps it.
    pub(crate) fn on_publication_error(
        &mut self,
        registration_id: i64,
        frame: &ErrorFrame,
        source: std::net::SocketAddr,
    ) {
        let text = format!(
            "WARN - error frame received: sessionId={} streamId={} receiverId={} code={} source={source}: {}",
            frame.session_id, frame.stream_id, frame.receiver_id, frame.error_code, frame.text
        );
        self.cx
            .errors
            .record_in(ErrorGroup::ErrorFrames, frame.error_code, &text, self.cx.now_ms);
        self.cx.events.send(&Event::PublicationError(PublicationError {
            registration_id,
            destination_registration_id: -1,
            session_id: frame.session_id,
            stream_id: frame.stream_id,
            receiver_id: frame.receiver_id,
            group_tag: frame.group_tag.unwrap_or(-1),
            source_address: Some(source),
            error_code: ErrorCode::from_value(frame.error_code),
            message: frame.text.as_str().into(),
        }));
    }
}

/// All counters of one network publication.
struct NetworkCounters {
    publisher_position: Counter,
    publisher_limit: Counter,
    shared: PublicationCounters,
}
