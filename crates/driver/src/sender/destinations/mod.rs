//! Where the datagrams of a send channel go.
//!
//! | channel | destinations | who fills the list | leaves it |
//! |---|---|---|---|
//! | unicast, multicast | one peer, which the socket is connected to unless `aeron.driver.connect=false` | | |
//! | `control-mode=dynamic` | receivers | their status messages within the stream | after 5 s of silence |
//! | `control-mode=manual` | what clients added | commands | by command |
//! | `control-mode=response` | for each stream the receiver that asked for it | the publication knows its own | |
//!
//! Anyone can send a status message, in the name of any address: see [`Heard`] and design note 44 for what it brings.

use std::net::SocketAddr;

use crate::endpoint::{SendDestinations, ShownDestination};
use crate::transport::Transport;

mod dynamic;
mod list;
mod manual;

pub(super) use dynamic::{DynamicDestinations, LEARNT_MAX};
pub(super) use manual::{Changed, ManualDestinations};

/// Silence after which a learnt receiver is no longer sent to, and another may have taken the place of an added one.
const SILENCE_NS: i64 = 5_000_000_000;

fn is_silent(last_heard_ns: i64, now_ns: i64) -> bool {
    now_ns.saturating_sub(last_heard_ns) > SILENCE_NS
}

/// What a status message means for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is from a destination, or the channel has no list.
    Known,
    /// It may be from an added destination that has not been heard of, which sends feedback from another of its
    /// addresses.
    Possible,
    /// It is from an address that becomes a destination once it shows that it has the stream.
    Newcomer,
    /// It is from no destination.
    Stranger,
}

/// The way to one destination: its address, none for the peer of the channel's socket, and its socket, none for that of
/// the channel.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    pub(super) to: Option<SocketAddr>,
    pub(super) via: Option<&'a dyn Transport>,
}

impl Route<'_> {
    fn of_channel(to: Option<SocketAddr>) -> Self {
        Self { to, via: None }
    }
}

/// The destinations of one send channel.
pub(super) enum Destinations {
    /// One peer; its address, if the socket is not connected to it.
    Peer(Option<SocketAddr>),
    Dynamic(DynamicDestinations),
    Manual(ManualDestinations),
    Response,
}

impl Destinations {
    /// None yet, but for the peer of the socket.
    pub(super) fn new(spec: &SendDestinations) -> Self {
        match spec {
            SendDestinations::Connected => Self::Peer(None),
            SendDestinations::Peer(address) | SendDestinations::Unreached(address) => {
                Self::Peer(Some(*address))
            }
            SendDestinations::Dynamic(count) => Self::Dynamic(DynamicDestinations::new(count.clone())),
            SendDestinations::Manual(count) => Self::Manual(ManualDestinations::new(count.clone())),
            SendDestinations::Response => Self::Response,
        }
    }

    /// The one peer is at another address. False if that is the socket's to know.
    pub(super) fn move_peer(&mut self, remote: SocketAddr) -> bool {
        let Self::Peer(Some(address)) = self else {
            return false;
        };
        *address = remote;
        true
    }

    /// How many there are, without the peer of the socket.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Dynamic(dynamic) => dynamic.list.all.len(),
            Self::Manual(manual) => manual.list.all.len(),
            Self::Peer(_) | Self::Response => 0,
        }
    }

    /// A turn of the channel: receivers that fell silent go, and another destination is the first to be sent to.
    pub(super) fn begin_turn(&mut self, now_ns: i64) {
        match self {
            Self::Dynamic(dynamic) => dynamic.begin_turn(now_ns),
            Self::Manual(manual) => manual.list.begin_turn(),
            Self::Peer(_) | Self::Response => {}
        }
    }

    /// Reports the destinations to the conductor if they have changed. While the conductor is busy, the report waits.
    pub(super) fn tell(&mut self, now_ns: i64, take: impl FnOnce(Vec<ShownDestination>) -> bool) {
        match self {
            Self::Dynamic(dynamic) => dynamic.list.tell(now_ns, take),
            Self::Manual(manual) => manual.list.tell(now_ns, take),
            Self::Peer(_) | Self::Response => {}
        }
    }

    /// Sends `whole` bytes to each destination and returns the least that any of them took: the caller sends the rest
    /// again, to all. `send` gets the route to a destination and returns how much that took.
    ///
    /// A destination that cannot be sent to at all counts as served, so that it does not hold the others. `send`
    /// returns `None` for it.
    pub(super) fn send_to_each(
        &self,
        whole: usize,
        mut send: impl FnMut(Route<'_>) -> Option<usize>,
    ) -> usize {
        match self {
            Self::Peer(address) => send(Route::of_channel(*address)).unwrap_or(0),
            Self::Dynamic(dynamic) => dynamic.list.send_to_each(whole, send),
            Self::Manual(manual) => manual.list.send_to_each(whole, send),
            Self::Response => 0, // a stream that a receiver asked for goes there
        }
    }

    /// The way of an answer to `source`, which was heard through the sockets of the `group` if one is given. It is sent to
    /// no other destination: a stranger must not bring more packets onto the network than it sends.
    pub(super) fn answer_to(&self, source: SocketAddr, group: Option<usize>) -> Route<'_> {
        if let (Self::Manual(manual), Some(group)) = (self, group)
            && let Some(route) = manual.route_to(group)
        {
            return route;
        }
        Route::of_channel(match self {
            Self::Peer(None) => None,
            // Receivers in a group send feedback to the group.
            Self::Peer(Some(group)) if group.ip().is_multicast() => Some(*group),
            _ => Some(source),
        })
    }

    /// Whose a status message is. It may be forged: nothing is believed of it yet.
    pub(super) fn speaker(&self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> Heard {
        match self {
            Self::Dynamic(dynamic) if dynamic.find(receiver_id, source).is_none() => Heard::Newcomer,
            Self::Manual(manual) => manual.speaker(receiver_id, source, now_ns),
            Self::Dynamic(_) | Self::Peer(_) | Self::Response => Heard::Known,
        }
    }

    /// A status message of a stream came, at a position that fits, from one that is known.
    pub(super) fn on_status_message(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        match self {
            Self::Dynamic(dynamic) => dynamic.on_status_message(receiver_id, source, now_ns),
            Self::Manual(manual) => manual.on_status_message(receiver_id, source, now_ns),
            Self::Peer(_) | Self::Response => {}
        }
    }

    /// A receiver that is not known to be a destination has shown that it has the stream. False where there is no room.
    pub(super) fn admit(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> bool {
        match self {
            Self::Dynamic(dynamic) => return dynamic.admit(receiver_id, source, now_ns),
            Self::Manual(manual) => manual.admit(receiver_id, source, now_ns),
            Self::Peer(_) | Self::Response => {}
        }
        true
    }
}

#[cfg(test)]
mod tests;
