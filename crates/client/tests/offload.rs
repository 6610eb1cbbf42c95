//! Streams over the system's own sockets, in whichever way each end moves its datagrams.

mod live;

use std::io;
use std::sync::Arc;

use headrace_driver::Environment;
use headrace_driver::environment::{BufferLengths, Network, OpenSocket, SocketRequest};
use headrace_protocol::channel::Interface;
use headrace_sys::net::OffloadMode;
use live::{pair, pattern, receive, send, start_in};

const UDP: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k";
const MODES: [OffloadMode; 3] = [
    OffloadMode::Segmentation,
    OffloadMode::Vectored,
    OffloadMode::Single,
];

/// The system's network, where sockets begin in a mode of the test's choice.
struct InMode {
    system: Arc<dyn Network>,
    send: OffloadMode,
    receive: OffloadMode,
}

impl Network for InMode {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let mut request = request.clone();
        request.options.offload = match request.remote {
            Some(_) => self.send,
            None => self.receive,
        };
        self.system.open(&request)
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        self.system.buffer_lengths()
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        self.system.interfaces()
    }
}

#[test]
fn streams_are_read_in_order_and_once_in_every_mode() {
    let lengths = |seed: usize| {
        if seed.is_multiple_of(3) {
            seed * 131 % 3_000
        } else {
            100
        }
    };
    for (send_mode, receive_mode) in MODES
        .iter()
        .flat_map(|send| MODES.map(|receive| (*send, receive)))
    {
        let system = Environment::system();
        let network = Arc::new(InMode {
            system: Arc::clone(&system.network),
            send: send_mode,
            receive: receive_mode,
        });
        let live = start_in(Environment { network, ..system }, |_| {});
        let client = live.client();
        let (publication, subscription) = pair(&client, UDP);
        let received = std::thread::scope(|scope| {
            scope.spawn(|| {
                for seed in 0..1_000 {
                    send(&publication, &pattern(seed, lengths(seed)));
                }
            });
            receive(&subscription, 1_000)
        });
        for (seed, received) in received.iter().enumerate() {
            assert!(
                *received == pattern(seed, lengths(seed)),
                "message {seed} differs, {send_mode:?} to {receive_mode:?}"
            );
        }
        let count = |name| {
            let mut found = None;
            client.counters_reader().for_each(|record| {
                if record.label.starts_with(name) {
                    found = Some(record.value);
                }
            });
            found
        };
        assert_eq!(count("Invalid packets"), Some(0));
        // A mode that the system lacks is left for the next one.
        assert!(count("snd-offload") >= Some(send_mode as i64), "{send_mode:?}");
        assert!(
            count("rcv-offload") >= Some(receive_mode as i64),
            "{receive_mode:?}"
        );
        assert!(live.errors.lock().unwrap().is_empty());
    }
}
