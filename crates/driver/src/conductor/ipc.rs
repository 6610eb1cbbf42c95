//! Commands and timers that concern IPC publications and their subscriptions.

use std::sync::Arc;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_buffers::log::{LogBuffers, LogSpec, LogType};
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{
    ChannelUri, InitialPosition, PublicationParams, SessionIdParam, SubscriptionParams,
};

use super::Conductor;
use super::clients::{PublicationHandle, PublicationKind};
use super::context::Context;
use super::counters::StreamKey;
use super::ipc_publication::{IpcPublication, IpcPublicationSpec, IpcState};
use super::links::UntetheredTimeouts;
use super::pending::{Pending, Step};
use super::publications::{NO_TAG, log_start, publication_log_path, shown_path};
use super::subscriptions::{Subscription, SubscriptionKind};
use crate::errors::{CommandError, ErrorGroup};
use crate::resource_agent::{CreateLog, ResourceTask};

/// An IPC publication whose log is being created.
pub(crate) struct IpcPlan {
    stream_id: i32,
    session_id: i32,
    is_exclusive: bool,
    channel: Arc<str>,
    params: PublicationParams,
    start: InitialPosition,
    log_file_name: String,
}

impl Conductor {
    pub(crate) fn add_ipc_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        uri: &ChannelUri,
        channel: &str,
        is_exclusive: bool,
    ) -> Result<(), CommandError> {
        let mut params = PublicationParams::from_uri(uri, &self.defaults)?;
        params.check_stream_id(stream_id)?;
        self.adopt_ipc_tag(&mut params, uri)?;
        self.check_entity_tag(&params, channel)?;
        let shared = self
            .ipc_publications
            .iter()
            .position(|publication| !is_exclusive && publication.is_shareable(stream_id));
        if let Some(index) = shared {
            params.check_matches(&self.ipc_publications[index].existing(), channel)?;
            return self.share_ipc_publication(client_id, correlation_id, index);
        }
        let session_id = self.ipc_session_id(&params, stream_id)?;
        let start = self.start_of(&params);
        let path = publication_log_path(&self.cx.config.directory, correlation_id);
        let log_file_name = shown_path(&path)?;
        let spec = self.ipc_log_spec(
            correlation_id,
            stream_id,
            session_id,
            is_exclusive,
            &params,
            start,
        );
        self.cx.tasks.send(ResourceTask::CreateLog(Box::new(CreateLog {
            correlation_id,
            path,
            spec,
        })));
        self.pending = Some(Pending {
            client_id,
            correlation_id,
            step: Step::IpcLog(Box::new(IpcPlan {
                stream_id,
                session_id,
                is_exclusive,
                channel: channel.into(),
                params,
                start,
                log_file_name,
            })),
        });
        Ok(())
    }

    fn ipc_log_spec(
        &self,
        correlation_id: i64,
        stream_id: i32,
        session_id: i32,
        is_exclusive: bool,
        params: &PublicationParams,
        start: InitialPosition,
    ) -> LogSpec {
        LogSpec {
            log_type: if is_exclusive {
                LogType::ExclusivePublication
            } else {
                LogType::ConcurrentPublication
            },
            term_length: params.term_length,
            page_size: self.cx.config.file_page_size_bytes,
            sparse: params.is_sparse,
            mtu: params.mtu_length,
            session_id,
            stream_id,
            initial_term_id: start.initial_term_id,
            start: log_start(params, start),
            correlation_id,
            publication_window_length: params.publication_window_length as i32,
            max_resend: params.max_resend as i32,
            entity_tag: params.tags.entity.unwrap_or(NO_TAG),
            response_correlation_id: -1,
            linger_timeout_ns: params.linger_timeout_ns,
            untethered_window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: params.untethered_resting_timeout_ns,
            signal_eos: params.signals_end_of_stream,
            ..LogSpec::default()
        }
    }

    fn share_ipc_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        index: usize,
    ) -> Result<(), CommandError> {
        let publication_id = self.ipc_publications[index].registration_id();
        self.client(client_id)?.publications.push(PublicationHandle {
            registration_id: correlation_id,
            publication_id,
            kind: PublicationKind::Ipc,
        });
        self.note_publisher(client_id, &self.ipc_publications[index].spec().log);
        let publication = &mut self.ipc_publications[index];
        publication.add_handle();
        self.cx
            .events
            .publication_ready(correlation_id, publication.describe_publication());
        Ok(())
    }

    /// Replaces `session-id=tag:<n>` by what the publication with that entity tag has.
    fn adopt_ipc_tag(&self, params: &mut PublicationParams, uri: &ChannelUri) -> Result<(), CommandError> {
        let Some(SessionIdParam::Tag(tag)) = params.session_id else {
            return Ok(());
        };
        let tagged = self
            .ipc_publications
            .iter()
            .find(|publication| publication.spec().tags.entity == Some(tag));
        let Some(tagged) = tagged else {
            return Err(CommandError::invalid_channel(format!(
                "session-id=tag:{tag} must reference an IPC publication, channel={uri}"
            )));
        };
        Ok(params.adopt_tagged(uri, &self.defaults, &tagged.existing())?)
    }

    fn ipc_session_id(&mut self, params: &PublicationParams, stream_id: i32) -> Result<i32, CommandError> {
        let publications = &self.ipc_publications;
        let in_use = |candidate| {
            publications
                .iter()
                .any(|publication: &IpcPublication| publication.holds_session_id(candidate, stream_id))
        };
        match params.session_id {
            Some(SessionIdParam::Number(session_id)) if in_use(session_id) => {
                Err(CommandError::invalid_channel(format!(
                    "existing publication has clashing sessionId={session_id} for streamId={stream_id}"
                )))
            }
            Some(SessionIdParam::Number(session_id)) => Ok(session_id),
            Some(SessionIdParam::Tag(_)) | None => Ok(self.session_ids.allocate(in_use)),
        }
    }

    pub(crate) fn finish_ipc_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        plan: IpcPlan,
        log: LogBuffers,
    ) -> Result<(), CommandError> {
        let unused = (log.clone(), plan.log_file_name.clone());
        let made = self.make_ipc_publication(client_id, correlation_id, plan, log);
        if made.is_err() {
            let (log, path) = unused;
            self.cx.free_log(log, path);
        }
        let index = made?;
        let publication = &self.ipc_publications[index];
        self.cx
            .events
            .publication_ready(correlation_id, publication.describe_publication());
        self.link_ipc_publication(index);
        Ok(())
    }

    fn make_ipc_publication(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        plan: IpcPlan,
        log: LogBuffers,
    ) -> Result<usize, CommandError> {
        self.client(client_id)?;
        let start_position = plan.start.position(plan.params.term_length);
        let key = StreamKey {
            registration_id: correlation_id,
            owner_id: client_id,
            session_id: plan.session_id,
            stream_id: plan.stream_id,
            channel: &plan.channel,
        };
        let position_name = if plan.is_exclusive {
            "pub-pos (exclusive)"
        } else {
            "pub-pos (concurrent)"
        };
        let [publisher_position, publisher_limit] = self.cx.counters.stream_set(
            key,
            [
                (type_ids::PUBLISHER_POSITION, position_name, start_position),
                (type_ids::PUBLISHER_LIMIT, "pub-lmt", start_position),
            ],
        )?;
        let params = &plan.params;
        let spec = IpcPublicationSpec {
            registration_id: correlation_id,
            session_id: plan.session_id,
            stream_id: plan.stream_id,
            is_exclusive: plan.is_exclusive,
            tags: params.tags,
            start: plan.start,
            log,
            log_file_name: plan.log_file_name,
            start_position,
            window_length: params.publication_window_length as i64,
            untethered: UntetheredTimeouts {
                window_limit_ns: params.untethered_window_limit_timeout_ns,
                linger_ns: params.untethered_linger_timeout_ns,
                resting_ns: params.untethered_resting_timeout_ns,
            },
            publisher_limit,
            publisher_position,
        };
        let mut publication = IpcPublication::new(spec, self.cx.now_ns);
        publication.add_handle();
        self.ipc_publications.push(publication);
        self.client(client_id)?.publications.push(PublicationHandle {
            registration_id: correlation_id,
            publication_id: correlation_id,
            kind: PublicationKind::Ipc,
        });
        Ok(self.ipc_publications.len() - 1)
    }

    pub(crate) fn release_ipc_publication(&mut self, publication_id: i64, revoke: bool) {
        let found = self
            .ipc_publications
            .iter_mut()
            .find(|publication| publication.registration_id() == publication_id);
        if let Some(publication) = found {
            if revoke {
                publication.revoke();
            }
            publication.remove_handle();
        }
    }

    pub(crate) fn add_ipc_subscription(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        stream_id: i32,
        uri: &ChannelUri,
        channel: &str,
    ) -> Result<(), CommandError> {
        let params = SubscriptionParams::from_uri(uri, &self.defaults)?;
        self.client(client_id)?;
        let subscription = Subscription {
            registration_id: correlation_id,
            client_id,
            stream_id,
            session_id: params.session_id,
            channel: channel.into(),
            is_tethered: params.is_tethered,
            may_rejoin: params.is_rejoin,
            kind: SubscriptionKind::Ipc,
        };
        self.cx.events.subscription_ready(correlation_id, -1);
        for publication in &mut self.ipc_publications {
            link(&mut self.cx, publication, &subscription);
        }
        self.subscriptions.push(subscription);
        Ok(())
    }

    fn link_ipc_publication(&mut self, index: usize) {
        let publication = &mut self.ipc_publications[index];
        for subscription in &self.subscriptions {
            link(&mut self.cx, publication, subscription);
        }
    }

    pub(crate) fn unlink_ipc_subscription(&mut self, registration_id: i64) {
        for publication in &mut self.ipc_publications {
            if let Some(link) = publication.unlink(registration_id) {
                self.cx.counters.free(link.position.id());
            }
        }
    }

    /// False when the image is not an IPC publication's.
    pub(crate) fn reject_ipc_image(&mut self, image_correlation_id: i64, reason: &str) -> bool {
        let found = self.ipc_publications.iter_mut().find(|publication| {
            publication.registration_id() == image_correlation_id && publication.state() == IpcState::Active
        });
        let Some(publication) = found else {
            return false;
        };
        let spec = publication.spec();
        let (session_id, stream_id) = (spec.session_id, spec.stream_id);
        self.cx.errors.record_in(
            ErrorGroup::Rejections,
            ErrorCode::ImageRejected.value(),
            &format!(
                "WARN - onPublicationError: image rejected by a subscriber of this driver: sessionId={session_id} \
                 streamId={stream_id}: {reason}"
            ),
            self.cx.now_ms,
        );
        self.cx
            .events
            .local_rejection(image_correlation_id, session_id, stream_id, reason);
        let until_ns = self
            .cx
            .now_ns
            .saturating_add(self.cx.config.image_liveness_timeout_ns);
        self.cx.announce_end(image_correlation_id, &publication.links);
        let links = publication.reject(until_ns);
        self.cx.counters.free_all(links.iter().map(|link| &link.position));
        true
    }

    pub(crate) fn tick_ipc_publications(&mut self) {
        for index in 0..self.ipc_publications.len() {
            self.tick_ipc_publication(index);
        }
        let done = self
            .ipc_publications
            .extract_if(.., |publication| publication.state() == IpcState::Done);
        for publication in done {
            let (spec, links) = publication.into_parts();
            self.cx.counters.free_all(links.iter().map(|link| &link.position));
            self.cx
                .counters
                .free_all([&spec.publisher_limit, &spec.publisher_position]);
            self.cx.free_log(spec.log, spec.log_file_name);
        }
    }

    fn tick_ipc_publication(&mut self, index: usize) {
        let publication = &mut self.ipc_publications[index];
        let registration_id = publication.registration_id();
        let tick = publication.on_tick(self.cx.now_ns, self.cx.config.publication_unblock_timeout_ns);
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
        if tick.relink {
            self.link_ipc_publication(index);
        }
    }
}

/// Links a subscription to a publication if it wants the stream, is not linked yet, and may be.
fn link(cx: &mut Context, publication: &mut IpcPublication, subscription: &Subscription) {
    let spec = publication.spec();
    let session_id = spec.session_id;
    if subscription.kind != SubscriptionKind::Ipc
        || !subscription.matches_stream(spec.stream_id, session_id)
        || publication.links.contains(subscription.registration_id)
        || !publication.accepts_links()
    {
        return;
    }
    let join_position = publication.join_position();
    let Some(position) = cx.join(subscription, publication.describe_stream(), join_position) else {
        return;
    };
    let link = publication.links.add(subscription.link(position), cx.now_ns);
    publication.on_linked();
    cx.events.available_image(publication.describe_stream(), &link);
}
