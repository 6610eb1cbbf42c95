//! What happened, for people and for comparison.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use headrace_protocol::frame::{DataHeader, FrameKind, Nak, Setup, StatusMessage, classify};

/// Events kept for people. The digest covers all.
const KEPT_MAX: usize = 10_000;
/// Bytes of a datagram that are kept: enough for the header of every frame, and as data may be cut.
const HEAD_LENGTH: usize = 64;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives after this time.
    Arrives(i64),
    /// A second copy of it does.
    Duplicate(i64),
    /// The link lost it.
    Lost,
    /// The link is cut.
    Cut,
    /// No node has the address.
    NoNode,
    /// No socket is bound to the port, or it is connected to another peer.
    NoSocket,
    /// The receive buffer of its socket was full when it came.
    Overflow,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrives(after_ns) => write!(f, "arrives after {after_ns} ns"),
            Self::Duplicate(after_ns) => write!(f, "arrives again after {after_ns} ns"),
            Self::Lost => f.write_str("lost"),
            Self::Cut => f.write_str("link is cut"),
            Self::NoNode => f.write_str("no node has the address"),
            Self::NoSocket => f.write_str("no socket takes it"),
            Self::Overflow => f.write_str("receive buffer is full"),
        }
    }
}

/// Ends of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

enum Event {
    Datagram {
        route: Route,
        length: usize,
        head: [u8; HEAD_LENGTH],
        fate: Fate,
    },
    Note(String),
}

/// The events of a world in order.
#[derive(Default)]
pub(crate) struct Trace {
    kept: VecDeque<(i64, Event)>,
    count: u64,
    digest: u64,
}

impl Trace {
    pub(crate) fn on_datagram(&mut self, now_ns: i64, route: Route, bytes: &[u8], fate: Fate) {
        let length = bytes.len().min(HEAD_LENGTH);
        let mut head = [0; HEAD_LENGTH];
        head[..length].copy_from_slice(&bytes[..length]);
        let fate_code = match fate {
            Fate::Arrives(after_ns) => after_ns.rotate_left(3),
            Fate::Duplicate(after_ns) => after_ns.rotate_left(3) ^ 1,
            Fate::Lost => -1,
            Fate::Cut => -2,
            Fate::NoNode => -3,
            Fate::NoSocket => -4,
            Fate::Overflow => -5,
        };
        for word in [
            u64::from(route.from.port()) << 16 | u64::from(route.to.port()),
            u64::from(crc32c::crc32c(bytes)) << 32 | bytes.len() as u64,
            fate_code as u64,
        ] {
            self.mix(word);
        }
        let length = bytes.len();
        self.keep(
            now_ns,
            Event::Datagram {
                route,
                length,
                head,
                fate,
            },
        );
    }

    /// Something that a test or a program did to the world.
    pub(crate) fn note(&mut self, now_ns: i64, text: String) {
        self.mix(u64::from(crc32c::crc32c(text.as_bytes())));
        self.keep(now_ns, Event::Note(text));
    }

    fn keep(&mut self, now_ns: i64, event: Event) {
        self.mix(now_ns as u64);
        self.count += 1;
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((now_ns, event));
    }

    fn mix(&mut self, word: u64) {
        // One round of a multiplicative hash: order matters, and no word is lost on the next.
        self.digest = (self.digest ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    /// Number of events and a hash over all of them, times and bytes included.
    pub(crate) fn digest(&self) -> (u64, u64) {
        (self.count, self.digest)
    }

    /// The last events, one a line, at most `count`.
    pub(crate) fn last(&self, count: usize) -> String {
        let skipped = self.kept.len().saturating_sub(count);
        let mut text = String::new();
        for (now_ns, event) in self.kept.iter().skip(skipped) {
            text.push_str(&format!(
                "{:>6}.{:09} {event}\n",
                now_ns / 1_000_000_000,
                now_ns % 1_000_000_000
            ));
        }
        text
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) => f.write_str(text),
            Self::Datagram {
                route,
                length,
                head,
                fate,
            } => {
                let Route { from, to } = route;
                let frame = describe(&head[..(*length).min(HEAD_LENGTH)], *length);
                write!(f, "{from} > {to} {frame}: {fate}")
            }
        }
    }
}

fn describe(head: &[u8], length: usize) -> String {
    // Data is read as far as its header, so a long datagram does not need the rest to be told.
    let Ok(kind) = classify(head) else {
        return format!("{length} bytes");
    };
    let known = match kind {
        FrameKind::Data | FrameKind::Pad => DataHeader::decode(head).ok().map(|header| {
            let what = match (header.is_padding, header.frame_length) {
                (true, _) => "PAD",
                (false, 0) => "HEARTBEAT",
                (false, _) => "DATA",
            };
            format!(
                "{what} session={} stream={} term={} offset={} flags={:#04x}",
                header.session_id, header.stream_id, header.term_id, header.term_offset, header.flags
            )
        }),
        FrameKind::StatusMessage => StatusMessage::decode(head).ok().map(|message| {
            format!(
                "SM session={} stream={} term={} offset={} window={} flags={:#04x}",
                message.session_id,
                message.stream_id,
                message.consumption_term_id,
                message.consumption_term_offset,
                message.receiver_window_length,
                message.flags
            )
        }),
        FrameKind::Nak => Nak::decode(head).ok().map(|nak| {
            format!(
                "NAK session={} stream={} term={} offset={} missing={}",
                nak.session_id, nak.stream_id, nak.term_id, nak.term_offset, nak.length
            )
        }),
        FrameKind::Setup => Setup::decode(head).ok().map(|setup| {
            format!(
                "SETUP session={} stream={} term={} offset={}",
                setup.session_id, setup.stream_id, setup.active_term_id, setup.term_offset
            )
        }),
        other => Some(format!("{other:?}")),
    };
    format!(
        "{} length={length}",
        known.unwrap_or_else(|| "unreadable".to_owned())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: Route = Route {
        from: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1),
        to: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 2),
    };

    #[test]
    fn a_line_tells_time_ends_frame_and_fate() {
        let mut bytes = [0; 64];
        DataHeader::heartbeat(7, 10, 3, 96, 0xc0).encode(&mut bytes);
        let mut trace = Trace::default();
        trace.on_datagram(1_000_002_000, ROUTE, &bytes[..32], Fate::Arrives(50));
        trace.note(2_000_000_000, "left crashes".to_owned());
        assert_eq!(
            trace.last(2),
            "     1.000002000 127.0.0.1:1 > 127.0.0.1:2 HEARTBEAT session=7 stream=10 term=3 offset=96 flags=0xc0 \
             length=32: arrives after 50 ns\n     2.000000000 left crashes\n"
        );
        assert_eq!(trace.last(1), "     2.000000000 left crashes\n");
    }

    #[test]
    fn the_digest_sees_each_byte_each_time_and_each_fate() {
        let digest = |now_ns, bytes: &[u8], fate| {
            let mut trace = Trace::default();
            trace.on_datagram(now_ns, ROUTE, bytes, fate);
            trace.digest()
        };
        let first = digest(1, b"abc", Fate::Lost);
        assert_eq!(first, digest(1, b"abc", Fate::Lost));
        for other in [
            digest(2, b"abc", Fate::Lost),
            digest(1, b"abd", Fate::Lost),
            digest(1, b"abc", Fate::Cut),
        ] {
            assert_ne!(first, other);
        }
    }
}
