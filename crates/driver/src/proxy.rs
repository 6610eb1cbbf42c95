//! The messages between agents. Their queues are in [`crate::mailbox`].

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::Doorbell;
use headrace_protocol::ErrorCode;
use headrace_protocol::flow::FlowControl;
use headrace_protocol::frame::{ErrorFrame, Setup};

pub(crate) use crate::endpoint::EndpointId;
use crate::endpoint::{
    DestinationChange, ReceiveEndpointSpec, ReceivePathSpec, SendEndpointSpec, ShownDestination,
};
pub(crate) use crate::mailbox::{Inbox, Outbox, Requests};
use crate::shared::{ImageShared, PublicationShared};

/// From the conductor to the sender.
pub(crate) enum SenderCommand {
    /// A channel's socket is open: poll it and send through it.
    AddEndpoint(Box<SendEndpointSpec>),
    /// The last publication of the channel is gone: close the socket, then answer `SendEndpointReleased`.
    RemoveEndpoint(EndpointId),
    /// Start sending a stream.
    AddPublication {
        /// Channel to send through.
        endpoint: EndpointId,
        /// What the halves share.
        publication: Arc<PublicationShared>,
        /// The strategy of this stream.
        flow_control: Box<dyn FlowControl>,
        /// Concurrent retransmit actions; 1 for unicast.
        max_resend: usize,
    },
    /// Stop sending a stream, then answer `PublicationReleased`.
    RemovePublication {
        /// Channel it was sent through.
        endpoint: EndpointId,
        /// Which publication.
        registration_id: i64,
    },
    /// Send to other destinations from now on.
    ChangeDestinations {
        /// Channel of the publication.
        endpoint: EndpointId,
        /// What is other.
        change: DestinationChange,
    },
    /// The endpoint's name now resolves to another address.
    Reconnect {
        /// Which channel.
        endpoint: EndpointId,
        /// Where to send from now on.
        remote: SocketAddr,
    },
}

/// One session of a stream at a receive channel.
pub(crate) struct SessionName {
    /// Which channel.
    pub endpoint: EndpointId,
    /// Which stream.
    pub stream_id: i32,
    /// Which session.
    pub session_id: i32,
}

/// From the conductor to the receiver.
pub(crate) enum ReceiverCommand {
    /// A channel's socket is open: poll it.
    AddEndpoint(Box<ReceiveEndpointSpec>),
    /// The channel has no users left: close its sockets, then answer `ReceiveEndpointReleased`.
    RemoveEndpoint(EndpointId),
    /// A client added a destination, and its socket is open: poll it.
    AddPath {
        /// Which channel.
        endpoint: EndpointId,
        /// Its number, which no other path of the channel has.
        path: usize,
        /// The socket.
        spec: Box<ReceivePathSpec>,
    },
    /// A client removed a destination: close its socket, then answer `ReceivePathReleased`.
    RemovePath {
        /// Which channel.
        endpoint: EndpointId,
        /// Which of its paths.
        path: usize,
    },
    /// The name of the control address now resolves to this address.
    MoveControl {
        /// Which channel.
        endpoint: EndpointId,
        /// Which of its paths.
        path: usize,
        /// Where the sender listens from now on.
        address: SocketAddr,
    },
    /// Accept a stream: every session of it, or one.
    AddSubscription {
        /// Which channel.
        endpoint: EndpointId,
        /// Which stream.
        stream_id: i32,
        /// One session, or all.
        session_id: Option<i32>,
    },
    /// Undo one `AddSubscription` whose last subscription has gone.
    RemoveSubscription {
        /// Which channel.
        endpoint: EndpointId,
        /// Which stream.
        stream_id: i32,
        /// One session, or all.
        session_id: Option<i32>,
    },
    /// Something about streams of responses.
    Responses {
        /// Which channel.
        endpoint: EndpointId,
        /// What.
        command: ResponsesCommand,
    },
    /// The conductor made the image that `CreateImage` asked for.
    AddImage {
        /// Which channel.
        endpoint: EndpointId,
        /// What the halves share.
        image: Arc<ImageShared>,
    },
    /// Forget the image, then answer `ImageReleased`.
    RemoveImage {
        /// Which channel.
        endpoint: EndpointId,
        /// Which image.
        correlation_id: i64,
    },
    /// The image that `CreateImage` asked for could not be made: the session may be asked for again.
    ForgetArrival(SessionName),
    /// A session whose image is over may be joined again. Goes after the `RemoveImage` of the image it cools down from.
    EndCoolDown(SessionName),
    /// A subscriber refuses the image: send its publisher error frames from now on.
    RejectImage {
        /// Which channel.
        endpoint: EndpointId,
        /// Which image.
        correlation_id: i64,
        /// Why, for the publisher.
        reason: String,
    },
}

/// What a receive channel does about streams of responses.
pub(crate) enum ResponsesCommand {
    /// The session of one is known: ask for its SETUP at the control address.
    Ask {
        /// Which stream.
        stream_id: i32,
        /// Which session.
        session_id: i32,
    },
    /// A publication responds to the requests of an image: tell the requester which session it has, until it reads it.
    Announce {
        /// Which image.
        correlation_id: i64,
        /// The publication. The image does not keep it.
        responses: Weak<PublicationShared>,
    },
}

/// From the sender and the receiver to the conductor: the end of what one of its commands began. Never lost.
pub(crate) enum ConductorReply {
    /// The sender no longer touches the publication.
    PublicationReleased {
        /// Which publication.
        registration_id: i64,
    },
    /// The sender closed the channel's socket.
    SendEndpointReleased(EndpointId),
    /// The receiver no longer touches the image.
    ImageReleased {
        /// Which image.
        correlation_id: i64,
    },
    /// The receiver closed the channel's sockets.
    ReceiveEndpointReleased(EndpointId),
    /// The receiver closed the socket of a destination.
    ReceivePathReleased {
        /// Which channel.
        endpoint: EndpointId,
        /// Which of its paths.
        path: usize,
    },
    /// The channel sends to the far side's new address.
    Reconnected(EndpointId),
    /// The far side's new address could not be used; the channel is in error.
    ReconnectFailed {
        /// Which send channel.
        endpoint: EndpointId,
        /// What the system said.
        reason: String,
    },
}

/// From the sender and the receiver to the conductor: something new, lost when the conductor is busy, and repeated
/// by its cause.
pub(crate) enum ConductorRequest {
    /// A SETUP for a session that has a subscription. Its publisher repeats it.
    CreateImage {
        /// Channel it came in on.
        endpoint: EndpointId,
        /// Which of its paths.
        path: usize,
        /// What the publisher said.
        setup: Setup,
        /// Who said it.
        source: SocketAddr,
    },
    /// A receiver of requests said on which session the responses come. It repeats it until they are read.
    ResponsesAnnounced {
        /// Which subscription reads them.
        subscription_id: i64,
        /// Their session.
        session_id: i32,
    },
    /// A receiver refused a stream. It says so again at every status message time-out.
    PublicationError {
        /// Which publication.
        registration_id: i64,
        /// What the receiver said.
        frame: ErrorFrame,
        /// Who said it.
        source: SocketAddr,
        /// The destination that was added for that receiver.
        destination: Option<i64>,
    },
    /// Nothing was heard from the far side for a while: look its name up again. The sender's timer asks again.
    ReResolve {
        /// Which channel.
        endpoint: EndpointId,
        /// The name of destinations, or of the control address of a path, `host:port`; none for what the channel names.
        destination: Option<String>,
    },
    /// These are the destinations of a channel now, or the first of them. Told again until it is taken.
    Destinations {
        /// Which channel.
        endpoint: EndpointId,
        /// Where it sends to.
        destinations: Vec<ShownDestination>,
    },
    /// Something for the error log. What lasts is reported again.
    Report {
        /// Code the entry is filed under.
        code: i32,
        /// What happened.
        text: String,
    },
}

/// The way of the sender or the receiver to the conductor.
pub(crate) struct ConductorProxy {
    replies: Outbox<ConductorReply>,
    requests: Requests<ConductorRequest>,
}

impl ConductorProxy {
    /// Sends to the conductor's two queues, counting in `failed_offers` each time one was full.
    pub(crate) fn new(
        replies: Inbox<ConductorReply>,
        requests: Inbox<ConductorRequest>,
        failed_offers: Counter,
    ) -> Self {
        Self {
            replies: Outbox::new(replies, failed_offers.clone()),
            requests: Requests::new(requests, failed_offers),
        }
    }

    /// The same, waking the conductor.
    #[must_use]
    pub(crate) fn with_doorbell(self, doorbell: &Doorbell) -> Self {
        Self {
            replies: self.replies.with_doorbell(doorbell.clone()),
            requests: self.requests.with_doorbell(doorbell.clone()),
        }
    }

    /// True while replies wait for room.
    pub(crate) fn has_backlog(&self) -> bool {
        self.replies.is_congested()
    }

    /// How many replies wait for room.
    pub(crate) fn backlog_length(&self) -> usize {
        self.replies.backlog_length()
    }

    /// Offers again the replies that did not fit; returns how many went.
    pub(crate) fn flush(&mut self) -> usize {
        self.replies.flush()
    }

    /// Wakes the conductor for something that it finds without a message.
    pub(crate) fn wake(&self) {
        self.replies.ring();
    }

    /// Answers a command.
    pub(crate) fn reply(&mut self, reply: ConductorReply) {
        self.replies.send(reply);
    }

    /// Asks for something; false when the conductor is busy: act as if what caused the request had not come.
    #[must_use]
    pub(crate) fn request(&self, request: ConductorRequest) -> bool {
        self.requests.offer(request)
    }

    /// Something for the error log. Dropped while the conductor is busy.
    pub(crate) fn report(&self, text: String) {
        self.requests.offer(ConductorRequest::Report {
            code: ErrorCode::GenericError.value(),
            text,
        });
    }
}
