//! Publishers and receivers that the test plays, which take a turn after each step.

use std::net::SocketAddr;

use headrace_protocol::frame::{
    DataHeader, ErrorFrame, FrameKind, Nak, Setup, StatusMessage, classify, data, status_message,
};

use crate::byte_client::MS;
use crate::common::World;
use crate::common::peer::Peer;

/// How often a peer says that it lives.
const INTERVAL_NS: i64 = 100 * MS;

/// What a peer does between two steps of the world.
pub(crate) trait TakesTurns {
    fn turn(&mut self, now_ns: i64);
}

/// A receiver. It answers the publisher with the position and the window that the test gives.
pub(crate) struct FarReceiver {
    peer: Peer,
    /// Who publishes, and what.
    publisher: Option<(SocketAddr, Setup)>,
    /// Up to where it has received, without gaps of its own.
    pub(crate) received: i64,
    /// Up to where it says that it has read; none: all that came.
    pub(crate) consumed: Option<i64>,
    pub(crate) window: i32,
    pub(crate) receiver_id: i64,
    pub(crate) is_silent: bool,
    /// It says that it has heard of the end of the stream.
    pub(crate) confirms_end: bool,
    /// A heartbeat said that the stream is over.
    pub(crate) hears_end: bool,
    next_ns: i64,
}

impl FarReceiver {
    /// A receiver with room for half a term of 64 KiB.
    pub(crate) fn new(peer: Peer) -> Self {
        Self {
            peer,
            publisher: None,
            received: 0,
            consumed: None,
            window: 32_768,
            receiver_id: 77,
            is_silent: false,
            confirms_end: false,
            hears_end: false,
            next_ns: 0,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.peer.address
    }

    /// A publisher has told of its stream.
    pub(crate) fn has_publisher(&self) -> bool {
        self.publisher.is_some()
    }

    /// Becomes another receiver, which has answered the publisher once.
    pub(crate) fn become_receiver(&mut self, receiver_id: i64) {
        self.receiver_id = receiver_id;
        let (to, setup) = self.publisher.unwrap();
        self.send_status(to, &setup);
    }

    /// Refuses the stream.
    pub(crate) fn refuse(&self, error_code: i32, text: &str) {
        let (to, setup) = self.publisher.unwrap();
        let frame = ErrorFrame {
            session_id: setup.session_id,
            stream_id: setup.stream_id,
            receiver_id: self.receiver_id,
            group_tag: None,
            error_code,
            text: text.to_owned(),
        };
        let mut bytes = [0; ErrorFrame::LENGTH_MAX];
        let length = frame.encode(&mut bytes);
        self.peer.send(to, &bytes[..length]);
    }

    fn on_datagram(&mut self, source: SocketAddr, datagram: &[u8]) {
        match classify(datagram).unwrap() {
            FrameKind::Setup => {
                self.publisher = Some((source, Setup::decode(datagram).unwrap()));
            }
            FrameKind::Data | FrameKind::Pad => {
                let header = DataHeader::decode(datagram).unwrap();
                self.hears_end |= header.flags & data::FLAG_END_OF_STREAM != 0;
                if let Some((_, setup)) = self.publisher {
                    let terms = i64::from(header.term_id.wrapping_sub(setup.initial_term_id));
                    let begin = terms * i64::from(setup.term_length) + i64::from(header.term_offset);
                    let is_padding = header.is_padding;
                    let length = if is_padding {
                        i64::from(header.frame_length)
                    } else {
                        datagram.len() as i64
                    };
                    let is_heartbeat = header.frame_length == 0;
                    let end = begin + if is_heartbeat { 0 } else { length };
                    self.received = self.received.max(end);
                }
            }
            _ => {}
        }
    }

    fn send_status(&self, to: SocketAddr, setup: &Setup) {
        let position = self.consumed.unwrap_or(self.received);
        let term_length = i64::from(setup.term_length);
        let flags = if self.confirms_end {
            status_message::FLAG_END_OF_STREAM
        } else {
            0
        };
        let message = StatusMessage {
            flags,
            session_id: setup.session_id,
            stream_id: setup.stream_id,
            consumption_term_id: setup
                .initial_term_id
                .wrapping_add((position / term_length) as i32),
            consumption_term_offset: (position % term_length) as i32,
            receiver_window_length: self.window,
            receiver_id: self.receiver_id,
            group_tag: None,
        };
        let mut frame = [0; StatusMessage::LENGTH_WITH_GROUP_TAG];
        let length = message.encode(&mut frame);
        self.peer.send(to, &frame[..length]);
    }
}

impl TakesTurns for FarReceiver {
    fn turn(&mut self, now_ns: i64) {
        let before = self.received;
        for datagram in self.peer.take_datagrams() {
            self.on_datagram(datagram.from, &datagram.bytes);
        }
        let is_due = now_ns >= self.next_ns || self.received > before;
        if let Some((to, setup)) = self.publisher.filter(|_| is_due && !self.is_silent) {
            self.next_ns = now_ns + INTERVAL_NS;
            self.send_status(to, &setup);
        }
    }
}

/// A publisher. It says that it lives until it is told to be silent, and hears what the receiver answers.
pub(crate) struct FarPublisher {
    peer: Peer,
    to: SocketAddr,
    pub(crate) setup: Setup,
    pub(crate) is_silent: bool,
    /// Flags of its heartbeats.
    pub(crate) flags: u8,
    /// Up to where it has sent.
    pub(crate) sent: i64,
    pub(crate) statuses: Vec<StatusMessage>,
    pub(crate) naks: Vec<Nak>,
    pub(crate) errors: Vec<ErrorFrame>,
    next_ns: i64,
}

impl FarPublisher {
    /// Its stream is the one of the SETUP, and stands where that says.
    pub(crate) fn new(world: &World, to: SocketAddr, setup: Setup) -> Self {
        Self {
            peer: Peer::new(world),
            to,
            setup,
            is_silent: false,
            flags: data::FLAGS_UNFRAGMENTED,
            sent: position(&setup, setup.active_term_id, setup.term_offset),
            statuses: Vec::new(),
            naks: Vec::new(),
            errors: Vec::new(),
            next_ns: 0,
        }
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.peer.address
    }

    /// Sends a SETUP, of this stream or of another.
    pub(crate) fn send_setup(&self, setup: &Setup) {
        let mut frame = [0; Setup::LENGTH];
        setup.encode(&mut frame);
        self.peer.send(self.to, &frame);
    }

    /// Sends a SETUP from another port of its machine.
    pub(crate) fn send_setup_from(&self, port: u16, setup: &Setup) {
        let mut frame = [0; Setup::LENGTH];
        setup.encode(&mut frame);
        self.peer.send_from(port, self.to, &frame);
    }

    /// Sends message `index` of 96 bytes; together with its header it takes 128 bytes of the stream.
    pub(crate) fn send(&mut self, index: usize) {
        self.send_frame(index, 128);
    }

    /// Sends a frame of `length` bytes where message `index` is.
    pub(crate) fn send_frame(&mut self, index: usize, length: usize) {
        let start = position(&self.setup, self.setup.active_term_id, self.setup.term_offset);
        let at = start + 128 * index as i64;
        let (term_id, term_offset) = self.place(at);
        let header = DataHeader {
            frame_length: length as i32,
            flags: data::FLAGS_UNFRAGMENTED,
            is_padding: false,
            term_offset,
            session_id: self.setup.session_id,
            stream_id: self.setup.stream_id,
            term_id,
            reserved_value: 0,
        };
        let mut frame = vec![7; length];
        header.encode(&mut frame);
        self.peer.send(self.to, &frame);
        self.sent = self.sent.max(at + length as i64);
    }

    fn place(&self, position: i64) -> (i32, i32) {
        let length = i64::from(self.setup.term_length);
        let term_id = self
            .setup
            .initial_term_id
            .wrapping_add((position / length) as i32);
        (term_id, (position % length) as i32)
    }

    pub(crate) fn send_heartbeat(&self) {
        let (term_id, term_offset) = self.place(self.sent);
        let Setup {
            session_id,
            stream_id,
            ..
        } = self.setup;
        let header = DataHeader::heartbeat(session_id, stream_id, term_id, term_offset, self.flags);
        let mut frame = [0; DataHeader::LENGTH];
        header.encode(&mut frame);
        self.peer.send(self.to, &frame);
    }

    /// Where the last status message says that the receiver is.
    pub(crate) fn status_position(&self) -> Option<i64> {
        let last = self.statuses.iter().rfind(|status| !status.asks_for_setup())?;
        Some(position(
            &self.setup,
            last.consumption_term_id,
            last.consumption_term_offset,
        ))
    }
}

impl TakesTurns for FarPublisher {
    fn turn(&mut self, now_ns: i64) {
        for datagram in self.peer.take() {
            match classify(&datagram).unwrap() {
                FrameKind::StatusMessage => self.statuses.push(StatusMessage::decode(&datagram).unwrap()),
                FrameKind::Nak => self.naks.push(Nak::decode(&datagram).unwrap()),
                FrameKind::Error => self.errors.push(ErrorFrame::decode(&datagram).unwrap()),
                _ => {}
            }
        }
        if !self.is_silent && now_ns >= self.next_ns {
            self.next_ns = now_ns + INTERVAL_NS;
            self.send_setup(&self.setup);
            self.send_heartbeat();
        }
    }
}

fn position(setup: &Setup, term_id: i32, term_offset: i32) -> i64 {
    let terms = i64::from(term_id.wrapping_sub(setup.initial_term_id));
    terms * i64::from(setup.term_length) + i64::from(term_offset)
}
