//! Who may ask for a stream of responses, and which session brings the responses to a stream of requests.

use std::net::SocketAddr;

use headrace_protocol::frame::FrameError;

use crate::shared::publication::Exchange;

/// How often a receiver may say on which session the responses come.
const SETUP_INTERVAL_NS: i64 = 100_000_000;

/// What a sender keeps of its stream's part in an [`Exchange`].
pub(super) struct Responses {
    exchange: Exchange,
    /// Where a stream of responses goes: to the receiver alone that asked for it last.
    pub(super) requester: Option<SocketAddr>,
    /// When a receiver last said on which session the responses come, and on which.
    last_setup: Option<(i64, i32)>,
}

impl Responses {
    pub(super) fn new(exchange: Exchange) -> Self {
        Self {
            exchange,
            requester: None,
            last_setup: None,
        }
    }

    /// A receiver asks for the stream. False for one of responses that goes to another receiver, or to none.
    pub(super) fn may_go_to(&self, source: SocketAddr, has_receiver: bool) -> bool {
        match self.exchange {
            Exchange::Prototype => false,
            Exchange::Responses { .. } => self.requester == Some(source) || !has_receiver,
            Exchange::None | Exchange::Requests { .. } => true,
        }
    }

    /// Whether status messages may come from there.
    pub(super) fn goes_to(&self, source: SocketAddr) -> bool {
        self.may_go_to(source, true)
    }

    /// A receiver says on which session the responses come. Returns the subscription that reads them, none for what it
    /// has just said. Fails where no responses are asked for, and for one session after another.
    pub(super) fn on_setup(
        &mut self,
        response_session_id: i32,
        now_ns: i64,
    ) -> Result<Option<i64>, FrameError> {
        let unexpected = FrameError::Field {
            field: "response_session_id",
            value: response_session_id.into(),
        };
        let Exchange::Requests { responses_id } = self.exchange else {
            return Err(unexpected);
        };
        match self.last_setup {
            Some((last_ns, session_id)) if now_ns.saturating_sub(last_ns) < SETUP_INTERVAL_NS => {
                // Where there are several paths, each brings it.
                let is_repeated = session_id == response_session_id;
                if is_repeated { Ok(None) } else { Err(unexpected) }
            }
            _ => {
                self.last_setup = Some((now_ns, response_session_id));
                Ok(Some(responses_id))
            }
        }
    }
}
