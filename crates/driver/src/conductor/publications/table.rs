//! All publications of one kind, and the operations that all kinds share.

use headrace_buffers::counters::system_counter;
use headrace_protocol::channel::SessionIdParam;

use super::publication::{Publication, Tick};
use super::request::PublicationRequest;
use super::session_ids::SessionIds;
use super::stream::Stream;
use crate::conductor::context::Context;
use crate::conductor::subscriptions::readers::{announce_end, announce_untethered, attach};
use crate::conductor::subscriptions::{Subscription, Subscriptions};
use crate::errors::CommandError;

/// Publications of one kind, in the order they were made.
pub(crate) struct Table<P> {
    publications: Vec<P>,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self {
            publications: Vec::new(),
        }
    }
}

impl<P: Publication> Table<P> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        self.publications.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.publications.iter_mut()
    }

    /// The streams of all.
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.iter().map(Publication::stream)
    }

    pub(crate) fn contains(&self, registration_id: i64) -> bool {
        self.streams()
            .any(|stream| stream.spec.registration_id == registration_id)
    }

    pub(crate) fn find(&mut self, registration_id: i64) -> Option<&mut P> {
        self.publications
            .iter_mut()
            .find(|publication| publication.stream().spec.registration_id == registration_id)
    }

    /// A publication that a concurrent add joins, if it is one that `is_meant`. Those that respond to different
    /// requests, or whose responses go to different subscriptions, are never one.
    pub(crate) fn shareable(
        &mut self,
        request: &PublicationRequest,
        is_meant: impl Fn(&P) -> bool,
    ) -> Option<&mut Stream> {
        if request.is_exclusive {
            return None;
        }
        self.publications
            .iter_mut()
            .find(|publication| {
                let stream = publication.stream();
                stream.is_shareable()
                    && stream.spec.stream_id == request.stream_id
                    && stream.spec.response_correlation == request.params.response_correlation
                    && is_meant(publication)
            })
            .map(Publication::stream_mut)
    }

    /// True when a publication has the entity tag.
    pub(crate) fn has_tag(&self, tag: i64) -> bool {
        self.tagged(tag).is_some()
    }

    fn tagged(&self, tag: i64) -> Option<&Stream> {
        self.streams().find(|stream| stream.spec.tags.entity == Some(tag))
    }

    /// Replaces `session-id=tag:<n>` by what the publication with that entity tag has.
    pub(crate) fn adopt_tag(
        &self,
        cx: &Context,
        request: &mut PublicationRequest,
    ) -> Result<(), CommandError> {
        let Some(SessionIdParam::Tag(tag)) = request.params.session_id else {
            return Ok(());
        };
        let Some(tagged) = self.tagged(tag) else {
            return Err(CommandError::invalid_channel(format!(
                "session-id=tag:{tag} must reference {} publication, channel={}",
                P::KIND,
                request.channel
            )));
        };
        let existing = tagged.existing();
        Ok(request
            .params
            .adopt_tagged(&request.uri, &cx.defaults, &existing)?)
    }

    /// True while a publication of the stream has the session id.
    pub(crate) fn is_session_id_used(&self, session_id: i32, stream_id: i32) -> bool {
        self.holders(session_id, stream_id).next().is_some()
    }

    fn holders(&self, session_id: i32, stream_id: i32) -> impl Iterator<Item = &P> {
        self.iter().filter(move |publication| {
            let spec = &publication.stream().spec;
            publication.holds_session_id() && spec.session_id == session_id && spec.stream_id == stream_id
        })
    }

    /// The session id that a new publication asks for, or the next free one. It may clash with none of the same
    /// stream that `is_rival`; `place` is where that is, for the error text.
    pub(crate) fn session_id(
        &self,
        ids: &mut SessionIds,
        request: &PublicationRequest,
        place: &str,
        is_rival: impl Fn(&P) -> bool,
    ) -> Result<i32, CommandError> {
        let stream_id = request.stream_id;
        let in_use = |candidate| self.holders(candidate, stream_id).any(&is_rival);
        match request.params.session_id {
            Some(SessionIdParam::Number(session_id)) if in_use(session_id) => {
                Err(CommandError::invalid_channel(format!(
                    "existing publication has clashing sessionId={session_id} for streamId={stream_id}{place}"
                )))
            }
            Some(SessionIdParam::Number(session_id)) => Ok(session_id),
            Some(SessionIdParam::Tag(_)) | None => Ok(ids.allocate(in_use)),
        }
    }

    /// Adds a publication that a client holds, tells the client, and links the readers that wait for it.
    pub(crate) fn add(&mut self, cx: &mut Context, mut publication: P, subscriptions: &Subscriptions) {
        let stream = publication.stream_mut();
        stream.add_handle();
        let registration_id = stream.spec.registration_id;
        cx.events
            .publication_ready(registration_id, stream.spec.describe_publication());
        link_all(cx, &mut publication, subscriptions);
        self.publications.push(publication);
    }

    /// Links a new subscription to the publications it wants.
    pub(crate) fn link(&mut self, cx: &mut Context, subscription: &Subscription) {
        for publication in &mut self.publications {
            link(cx, publication, subscription);
        }
    }

    /// True if one is there that a subscription reads or would read.
    pub(crate) fn has_for(&self, subscription: &Subscription) -> bool {
        let mut publications = self.publications.iter();
        publications.any(|publication| publication.accepts_links() && publication.is_wanted_by(subscription))
    }

    /// Lets go of what a subscription reads.
    pub(crate) fn unlink(&mut self, cx: &mut Context, subscription_id: i64) {
        for publication in &mut self.publications {
            if let Some(link) = publication.unlink(subscription_id) {
                cx.counters.free(link.position.id());
            }
        }
    }

    /// Lets go of what none of a subscription's destinations wants any more, and tells its reader.
    pub(crate) fn unlink_unwanted(
        &mut self,
        cx: &mut Context,
        subscription_id: i64,
        subscriptions: &Subscriptions,
    ) {
        for publication in &mut self.publications {
            let mut own = subscriptions
                .iter()
                .filter(|subscription| subscription.registration_id == subscription_id);
            if own.any(|subscription| publication.is_wanted_by(subscription)) {
                continue;
            }
            if let Some(link) = publication.unlink(subscription_id) {
                if link.is_available() {
                    let image = publication.stream().spec.registration_id;
                    cx.events.unavailable_image(image, &link);
                }
                cx.counters.free(link.position.id());
            }
        }
    }

    /// Drops a client's hold on a publication; a revoked one ends for all. False when it is not in this table.
    pub(crate) fn release(&mut self, cx: &mut Context, registration_id: i64, revoke: bool) -> bool {
        let Some(publication) = self.find(registration_id) else {
            return false;
        };
        if revoke {
            publication.stream_mut().revoke();
        }
        if publication.stream_mut().remove_handle() {
            publication.begin_draining();
        }
        end_log(cx, publication);
        true
    }

    /// Moves every limit; returns the work done.
    #[inline]
    pub(crate) fn update_limits(&mut self) -> usize {
        self.publications.iter_mut().map(P::update_limit).sum()
    }

    /// The timer's step of all; returns those that it finished, by their place in the table.
    pub(crate) fn tick(&mut self, cx: &mut Context, subscriptions: &Subscriptions) -> Vec<usize> {
        let mut finished = Vec::new();
        for (index, publication) in self.publications.iter_mut().enumerate() {
            let tick = publication.on_tick(cx.now_ns, cx.config.publication_unblock_timeout_ns);
            apply(cx, publication, &tick);
            publication.note_troubles(cx);
            if tick.relink {
                link_all(cx, publication, subscriptions);
            }
            if tick.finished {
                finished.push(index);
            }
        }
        finished
    }

    pub(crate) fn get(&self, index: usize) -> &P {
        &self.publications[index]
    }

    /// Takes out the publications that `are` to go.
    pub(crate) fn take(&mut self, are: impl Fn(&P) -> bool) -> Vec<P> {
        self.publications
            .extract_if(.., |publication| are(publication))
            .collect()
    }
}

/// Does what a tick of a stream asks for, other than linking.
fn apply<P: Publication>(cx: &mut Context, publication: &P, tick: &Tick) {
    let stream = publication.stream();
    announce_untethered(cx, &tick.untethered, stream.spec.describe_image());
    if tick.has_ended {
        announce_end(cx, stream.spec.registration_id, stream.links.iter());
        end_log(cx, publication);
    }
    if tick.unblocked {
        cx.count(system_counter::UNBLOCKED_PUBLICATIONS);
    }
    if tick.revoked {
        cx.count(system_counter::PUBLICATIONS_REVOKED);
    }
}

/// Has the space given back that the log will not take, if no client holds the publication.
fn end_log<P: Publication>(cx: &mut Context, publication: &P) {
    let stream = publication.stream();
    if !stream.has_handles() {
        let unread = stream
            .producer_position()
            .saturating_sub(publication.join_position());
        cx.end_log(&stream.spec.log_file_name, unread.max(0) as u64);
    }
}

/// Links all subscriptions that want a publication.
pub(super) fn link_all<P: Publication>(cx: &mut Context, publication: &mut P, subscriptions: &Subscriptions) {
    for subscription in subscriptions.iter() {
        link(cx, publication, subscription);
    }
}

/// Links a subscription to a publication if it wants the stream, is not linked yet, and may be.
fn link<P: Publication>(cx: &mut Context, publication: &mut P, subscription: &Subscription) {
    let is_linked = publication.stream().links.contains(subscription.registration_id);
    if is_linked || !publication.is_wanted_by(subscription) || !publication.accepts_links() {
        return;
    }
    let join_position = publication.join_position();
    let Stream { spec, links, .. } = publication.stream_mut();
    if attach(cx, links, subscription, spec.describe_image(), join_position) {
        publication.on_linked();
    }
}
