//! Making images for publishers elsewhere, and letting go of them.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::counters::type_ids;
use headrace_buffers::log::descriptor::log_file_length;
use headrace_buffers::log::{LogBuffers, LogSpec, LogType};
use headrace_protocol::channel::SubscriptionParams;
use headrace_protocol::congestion::{CongestionControl, StaticWindow};
use headrace_protocol::frame::{Setup, setup};
use headrace_protocol::loss::{DelayGenerator, LossDetector, LossSettings};

use super::Conductor;
use super::context::Context;
use super::counters::StreamKey;
use super::image::{Image, ImageSpec};
use super::links::UntetheredTimeouts;
use super::publications::{image_log_path, shown_path};
use super::subscriptions::Subscription;
use crate::errors::CommandError;
use crate::proxy::{EndpointId, ReceiverCommand};
use crate::resource_agent::{CreateLog, ResourceTask};
use crate::shared::image::{ImageCounters, ImageIdentity};
use crate::shared::{ImageShared, ImageState};

/// An image whose log is being created.
pub(crate) struct PendingImage {
    correlation_id: i64,
    endpoint: EndpointId,
    setup: Setup,
    source: SocketAddr,
    log_file_name: String,
}

impl Conductor {
    /// The receiver saw the SETUP of a stream that has a subscription.
    pub(crate) fn on_create_image(&mut self, endpoint: EndpointId, setup: Setup, source: SocketAddr) {
        if let Err(error) = self.begin_image(endpoint, setup, source) {
            self.cx.record_image_error(&error);
            self.clear_session(endpoint, &setup);
        }
    }

    fn clear_session(&mut self, endpoint: EndpointId, setup: &Setup) {
        self.receiver.send(ReceiverCommand::ClearSession {
            endpoint,
            stream_id: setup.stream_id,
            session_id: setup.session_id,
        });
    }

    fn begin_image(
        &mut self,
        endpoint: EndpointId,
        setup: Setup,
        source: SocketAddr,
    ) -> Result<(), CommandError> {
        setup
            .check()
            .map_err(|error| CommandError::generic(format!("image not created, source={source}: {error}")))?;
        let Some(params) = self
            .first_matching(endpoint, &setup)
            .map(|(_, params)| params.clone())
        else {
            self.clear_session(endpoint, &setup);
            return Ok(());
        };
        let window_length =
            StaticWindow::new(params.receiver_window_length, setup.term_length).initial_window_length();
        if setup.mtu > window_length {
            return Err(CommandError::generic(format!(
                "image not created: mtuLength={} > initialWindowLength={window_length} source={source}",
                setup.mtu
            )));
        }
        let correlation_id = self.ring.next_correlation_id();
        let path = image_log_path(&self.cx.config.directory, correlation_id);
        let log_file_name = shown_path(&path)?;
        let spec = self.image_log_spec(correlation_id, &setup, &params, window_length);
        if self.receive_channel(endpoint).is_none() {
            return Ok(());
        }
        let log_length = log_file_length(spec.term_length, spec.page_size);
        self.image_budget.reserve(log_length)?;
        if let Some(receive) = self.receive_channel(endpoint) {
            receive.image_count += 1;
        }
        self.cx.tasks.send(ResourceTask::CreateLog(Box::new(CreateLog {
            correlation_id,
            path,
            spec,
        })));
        self.pending_images.push(PendingImage {
            correlation_id,
            endpoint,
            setup,
            source,
            log_file_name,
        });
        Ok(())
    }

    /// The oldest subscription that wants the stream; the image takes over its parameters.
    fn first_matching(
        &self,
        endpoint: EndpointId,
        setup: &Setup,
    ) -> Option<(&Subscription, &SubscriptionParams)> {
        self.subscriptions
            .iter()
            .filter(|subscription| subscription.matches_stream(setup.stream_id, setup.session_id))
            .filter_map(|subscription| {
                let (own, params) = subscription.network()?;
                (own == endpoint).then_some((subscription, params))
            })
            .min_by_key(|(subscription, _)| subscription.registration_id)
    }

    fn image_log_spec(
        &self,
        correlation_id: i64,
        setup: &Setup,
        params: &SubscriptionParams,
        window_length: i32,
    ) -> LogSpec {
        let config = &self.cx.config;
        let buffers = self.system_buffers;
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
            group: is_group(params, setup),
            rejoin: params.is_rejoin,
            reliable: params.is_reliable,
            tether: params.is_tethered,
            ..LogSpec::default()
        }
    }

    /// True when the log was asked for by an image.
    pub(crate) fn on_image_log(
        &mut self,
        correlation_id: i64,
        result: &Result<LogBuffers, CommandError>,
    ) -> bool {
        let found = self
            .pending_images
            .iter()
            .position(|pending| pending.correlation_id == correlation_id);
        let Some(index) = found else {
            return false;
        };
        let pending = self.pending_images.swap_remove(index);
        let (endpoint, setup) = (pending.endpoint, pending.setup);
        let made = match result {
            Ok(log) => {
                let path = pending.log_file_name.clone();
                let made = self.finish_image(pending, log.clone());
                if !matches!(made, Ok(true)) {
                    self.cx.free_log(log.clone(), path);
                }
                made
            }
            Err(error) => Err(error.clone()),
        };
        if let Err(error) = &made {
            self.cx.record_image_error(error);
        }
        if !matches!(made, Ok(true)) {
            let page_size = self.cx.config.file_page_size_bytes;
            self.image_budget
                .release(log_file_length(setup.term_length as usize, page_size));
            self.clear_session(endpoint, &setup);
            self.detach_image(endpoint);
        }
        true
    }

    /// False when the stream no longer has a subscription.
    fn finish_image(&mut self, pending: PendingImage, log: LogBuffers) -> Result<bool, CommandError> {
        let PendingImage {
            correlation_id,
            endpoint,
            setup,
            source,
            log_file_name,
        } = pending;
        let Some((first, params)) = self.first_matching(endpoint, &setup) else {
            return Ok(false);
        };
        let (client_id, channel, params) = (first.client_id, Arc::clone(&first.channel), params.clone());
        let join_position = log
            .geometry()
            .position(setup.active_term_id, setup.term_offset as usize);
        let congestion = StaticWindow::new(params.receiver_window_length, setup.term_length);
        let [high_water_mark, rebuild_position, naks_sent] = self.cx.counters.stream_set(
            StreamKey {
                registration_id: correlation_id,
                owner_id: client_id,
                session_id: setup.session_id,
                stream_id: setup.stream_id,
                channel: &channel,
            },
            [
                (type_ids::RECEIVER_HIGH_WATER_MARK, "rcv-hwm", join_position),
                (type_ids::RECEIVER_POSITION, "rcv-pos", join_position),
                (type_ids::RECEIVER_NAKS_SENT, "rcv-naks-sent", 0),
            ],
        )?;
        let counters = ImageCounters {
            high_water_mark,
            rebuild_position,
            naks_sent,
        };
        let identity = ImageIdentity {
            correlation_id,
            session_id: setup.session_id,
            stream_id: setup.stream_id,
            source,
            is_reliable: params.is_reliable,
            join_position,
            initial_window_length: congestion.initial_window_length(),
        };
        let shared = Arc::new(ImageShared::new(identity, log, counters));
        let spec = ImageSpec {
            shared: Arc::clone(&shared),
            endpoint,
            channel,
            log_file_name,
            source_identity: source.to_string(),
            untethered: untethered_timeouts(&params),
            loss_detector: LossDetector::new(self.delays(&params, &setup)),
            congestion: Box::new(congestion),
        };
        let mut image = Image::new(spec, self.cx.now_ns);
        for subscription in &self.subscriptions {
            if wants(subscription, &image) {
                link(&mut self.cx, &mut image, subscription, join_position);
            }
        }
        self.receiver.send(ReceiverCommand::AddImage {
            endpoint,
            image: shared,
        });
        self.images.push(image);
        Ok(true)
    }

    fn delays(&self, params: &SubscriptionParams, setup: &Setup) -> DelayGenerator {
        let config = &self.cx.config;
        let settings = LossSettings {
            nak_unicast_delay_ns: config.nak_unicast_delay_ns,
            nak_unicast_retry_delay_ratio: config.nak_unicast_retry_delay_ratio,
            nak_multicast_max_backoff_ns: config.nak_multicast_max_backoff_ns,
            nak_multicast_group_size: config.nak_multicast_group_size as i32,
        };
        let is_group = is_group(params, setup);
        DelayGenerator::for_image(params.is_reliable, is_group, params.nak_delay_ns, &settings)
    }

    /// Links a new subscription to the images there are.
    pub(crate) fn link_images(&mut self, subscription: &Subscription) {
        for image in &mut self.images {
            if wants(subscription, image) && image.accepts_links() {
                let join_position = image.join_position();
                link(&mut self.cx, image, subscription, join_position);
            }
        }
    }

    pub(crate) fn unlink_images(&mut self, registration_id: i64) {
        for image in &mut self.images {
            if let Some(link) = image.links.remove(registration_id) {
                self.cx.counters.free(link.position.id());
            }
        }
    }

    /// False when there is no such image.
    pub(crate) fn reject_network_image(&mut self, image_correlation_id: i64, reason: &str) -> bool {
        let found = self
            .images
            .iter()
            .find(|image| image.correlation_id() == image_correlation_id);
        let Some(image) = found else {
            return false;
        };
        self.receiver.send(ReceiverCommand::RejectImage {
            endpoint: image.spec().endpoint,
            correlation_id: image_correlation_id,
            reason: reason.to_owned(),
        });
        true
    }

    pub(crate) fn tick_images(&mut self) {
        for index in 0..self.images.len() {
            let config = &self.cx.config;
            let (status_ns, liveness_ns) = (
                config.receiver_status_message_timeout_ns,
                config.image_liveness_timeout_ns,
            );
            let image = &mut self.images[index];
            let tick = image.on_tick(self.cx.now_ns, status_ns, liveness_ns);
            self.cx
                .announce_untethered(&tick.untethered, image.describe_stream());
            if tick.has_ended {
                self.end_image(index);
            }
        }
        self.free_images();
    }

    fn end_image(&mut self, index: usize) {
        let image = &self.images[index];
        let correlation_id = image.correlation_id();
        let endpoint = image.spec().endpoint;
        self.cx.announce_end(correlation_id, &image.links);
        self.receiver.send(ReceiverCommand::RemoveImage {
            endpoint,
            correlation_id,
        });
        if image.links.iter().last().is_none_or(|link| link.may_rejoin) {
            let shared = &image.spec().shared;
            self.receiver.send(ReceiverCommand::ClearSession {
                endpoint,
                stream_id: shared.stream_id,
                session_id: shared.session_id,
            });
        }
        self.detach_image(endpoint);
    }

    pub(crate) fn on_image_released(&mut self, correlation_id: i64) {
        if let Some(image) = self
            .images
            .iter_mut()
            .find(|image| image.correlation_id() == correlation_id)
        {
            image.on_released();
        }
        self.free_images();
    }

    fn free_images(&mut self) {
        for image in self.images.extract_if(.., |image| image.is_finished()) {
            let (spec, links) = image.into_parts();
            let shared = &spec.shared;
            self.cx.counters.free_all(links.iter().map(|link| &link.position));
            self.cx.counters.free_all([
                &shared.high_water_mark,
                &shared.rebuild_position,
                &shared.naks_sent,
            ]);
            let page_size = self.cx.config.file_page_size_bytes;
            self.image_budget
                .release(log_file_length(shared.log.term_length(), page_size));
            self.cx.free_log(shared.log.clone(), spec.log_file_name);
        }
    }
}

fn untethered_timeouts(params: &SubscriptionParams) -> UntetheredTimeouts {
    UntetheredTimeouts {
        window_limit_ns: params.untethered_window_limit_timeout_ns,
        linger_ns: params.untethered_linger_timeout_ns,
        resting_ns: params.untethered_resting_timeout_ns,
    }
}

/// Group behaviour, as the channel forces it or the sender says.
fn is_group(params: &SubscriptionParams, setup: &Setup) -> bool {
    params.group.is_group(setup.flags & setup::FLAG_GROUP != 0)
}

fn wants(subscription: &Subscription, image: &Image) -> bool {
    let shared = &image.spec().shared;
    subscription
        .network()
        .is_some_and(|(endpoint, _)| endpoint == image.spec().endpoint)
        && subscription.matches_stream(shared.stream_id, shared.session_id)
        && shared.state() < ImageState::Linger
        && !image.links.contains(subscription.registration_id)
}

fn link(cx: &mut Context, image: &mut Image, subscription: &Subscription, join_position: i64) {
    let Some(position) = cx.join(subscription, image.describe_stream(), join_position) else {
        return;
    };
    let link = image.links.add(subscription.link(position), cx.now_ns);
    cx.events.available_image(image.describe_stream(), &link);
}
