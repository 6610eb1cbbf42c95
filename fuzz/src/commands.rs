//! The to-driver ring: its records as commands, and the ring itself after another process scribbled over it.
//!
//! ```text
//! input := selector: u8, rest
//! selector even: rest is one record: type id: u8, message
//! selector odd:  rest is copied over a ring, data area and trailer
//! ```

use std::borrow::Cow;

use headrace_buffers::ring::{ManyToOneRing, ReadAction, TRAILER_LENGTH};
use headrace_buffers::{AtomicBuffer, Memory};
use headrace_protocol::command::Command;

const CAPACITY: usize = 4096;
/// More than a corrupt ring can hold records, so that a ring that never ends is noticed.
const READ_LIMIT: usize = CAPACITY;

/// Reads as a driver does.
pub fn run(input: &[u8]) {
    match input {
        [selector, type_id, message @ ..] if selector % 2 == 0 => run_record(i32::from(*type_id), message),
        [_, ring @ ..] => run_ring(ring),
        [] => {}
    }
}

fn run_record(type_id: i32, message: &[u8]) {
    let Ok(command) = Command::decode(type_id, message) else {
        return;
    };
    let mut written = Vec::new();
    let written_type = command.encode(&mut written);
    assert_eq!(written_type, type_id);
    // Padding, quirks and bad text are gone after one writing; what is left must be stable.
    let read_back = Command::decode(written_type, &written).expect("its own writing");
    assert_eq!(read_back, command);
}

fn run_ring(bytes: &[u8]) {
    let memory = AtomicBuffer::allocate(CAPACITY + TRAILER_LENGTH);
    let length = bytes.len().min(memory.capacity());
    memory.put_bytes(0, &bytes[..length]);
    let mut ring = ManyToOneRing::new(memory).expect("a capacity that is a power of two");
    for _ in 0..3 {
        let result = ring.read(READ_LIMIT, |type_id, message| {
            run_record(type_id, message);
            ReadAction::Continue
        });
        assert!(result.unwrap_or(0) < READ_LIMIT);
        let _ = ring.try_write(1, b"a command of another client");
        let _ = ring.unblock();
    }
}

/// Every command, and a ring with commands in it.
pub fn seeds() -> Vec<Vec<u8>> {
    let memory = AtomicBuffer::allocate(CAPACITY + TRAILER_LENGTH);
    let ring = ManyToOneRing::new(memory.clone()).expect("a capacity that is a power of two");
    let mut message = Vec::new();
    let mut seeds = Vec::new();
    let commands = [of_streams(), of_destinations(), of_counters(), of_clients()];
    for command in commands.iter().flatten() {
        let type_id = command.encode(&mut message);
        ring.try_write(type_id, &message).expect("a message that fits");
        seeds.push([&[0, type_id as u8], &message[..]].concat());
    }
    let mut image = vec![1; 1 + memory.capacity()];
    memory.get_bytes(0, &mut image[1..]);
    seeds.push(image);
    seeds
}

const CHANNEL: Cow<'static, str> = Cow::Borrowed("aeron:udp?endpoint=localhost:40123");

fn of_streams() -> Vec<Command<'static>> {
    let (client_id, correlation_id, registration_id, stream_id) = (1, 2, 3, 1001);
    let channel = CHANNEL;
    vec![
        Command::AddPublication {
            client_id,
            correlation_id,
            stream_id,
            channel: CHANNEL,
        },
        Command::AddExclusivePublication {
            client_id,
            correlation_id,
            stream_id,
            channel: CHANNEL,
        },
        Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
        Command::RemovePublication {
            client_id,
            correlation_id,
            registration_id,
            revoke: true,
        },
        Command::RemoveSubscription {
            client_id,
            correlation_id,
            registration_id,
        },
        Command::NextAvailableSessionId {
            client_id,
            correlation_id,
            stream_id,
        },
        Command::RejectImage {
            client_id,
            correlation_id,
            image_correlation_id: 4,
            position: 64,
            reason: "no".into(),
        },
    ]
}

fn of_destinations() -> Vec<Command<'static>> {
    let (client_id, correlation_id, registration_id) = (1, 2, 3);
    let (destination_registration_id, channel) = (4, CHANNEL);
    vec![
        Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: CHANNEL,
        },
        Command::RemoveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: CHANNEL,
        },
        Command::AddReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: CHANNEL,
        },
        Command::RemoveReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        Command::RemoveDestinationById {
            client_id,
            correlation_id,
            registration_id,
            destination_registration_id,
        },
    ]
}

fn of_counters() -> Vec<Command<'static>> {
    let (client_id, correlation_id, registration_id) = (1, 2, 3);
    let (type_id, key) = (1000, b"key");
    let label = || Cow::Borrowed("label");
    vec![
        Command::AddCounter {
            client_id,
            correlation_id,
            type_id,
            key,
            label: label(),
        },
        Command::AddStaticCounter {
            client_id,
            correlation_id,
            registration_id,
            type_id,
            key,
            label: label(),
        },
        Command::RemoveCounter {
            client_id,
            correlation_id,
            registration_id,
        },
    ]
}

fn of_clients() -> Vec<Command<'static>> {
    let (client_id, correlation_id) = (1, 2);
    vec![
        Command::ClientKeepalive {
            client_id,
            correlation_id,
        },
        Command::ClientClose {
            client_id,
            correlation_id,
        },
        Command::TerminateDriver {
            client_id,
            correlation_id,
            token: b"token",
        },
    ]
}
