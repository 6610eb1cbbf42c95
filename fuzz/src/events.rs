//! The to-clients broadcast: its records as events, and the broadcast itself after a bad driver.
//!
//! ```text
//! input := selector: u8, rest
//! selector even: rest is one record: low byte of the type id: u8, message
//! selector odd:  rest is copied over a broadcast, data area and trailer
//! ```

use headrace_buffers::broadcast::{Receiver, TRAILER_LENGTH, Transmitter};
use headrace_buffers::{AtomicBuffer, Memory};
use headrace_protocol::ErrorCode;
use headrace_protocol::event::{Event, PublicationError, PublicationReady};

const CAPACITY: usize = 4096;
const TYPE_ID_BASE: i32 = 0x0F00;

/// Reads as a client does.
pub fn run(input: &[u8]) {
    match input {
        [selector, low, message @ ..] if selector % 2 == 0 => {
            run_record(TYPE_ID_BASE | i32::from(*low), message)
        }
        [_, broadcast @ ..] => run_broadcast(broadcast),
        [] => {}
    }
}

fn run_record(type_id: i32, message: &[u8]) {
    let Ok(event) = Event::decode(type_id, message) else {
        return;
    };
    let mut written = Vec::new();
    let written_type = event.encode(&mut written);
    assert_eq!(written_type, type_id);
    let read_back = Event::decode(written_type, &written).expect("its own writing");
    assert_eq!(read_back, event);
}

fn run_broadcast(bytes: &[u8]) {
    let memory = AtomicBuffer::allocate(CAPACITY + TRAILER_LENGTH);
    let mut receiver = Receiver::new(memory.clone()).expect("a capacity that is a power of two");
    let length = bytes.len().min(memory.capacity());
    memory.put_bytes(0, &bytes[..length]);
    let mut scratch = Vec::new();
    for _ in 0..2 {
        for _ in 0..CAPACITY / 8 {
            match receiver.receive(&mut scratch) {
                Ok(Some(type_id)) => run_record(type_id, &scratch),
                Ok(None) => break,
                Err(_lapped) => {}
            }
        }
        receiver = Receiver::new(memory.clone()).expect("a capacity that is a power of two");
    }
}

/// Every event, and a broadcast with events in it.
pub fn seeds() -> Vec<Vec<u8>> {
    let memory = AtomicBuffer::allocate(CAPACITY + TRAILER_LENGTH);
    let mut transmitter = Transmitter::new(memory.clone()).expect("a capacity that is a power of two");
    let mut message = Vec::new();
    let mut seeds = Vec::new();
    for event in of_streams().iter().chain(&of_ids()) {
        let type_id = event.encode(&mut message);
        transmitter
            .transmit(type_id, &message)
            .expect("a message that fits");
        seeds.push([&[0, type_id as u8], &message[..]].concat());
    }
    let mut image = vec![1; 1 + memory.capacity()];
    memory.get_bytes(0, &mut image[1..]);
    seeds.push(image);
    seeds
}

fn of_streams() -> Vec<Event<'static>> {
    let ready = || PublicationReady {
        correlation_id: 1,
        original_registration_id: 2,
        session_id: 3,
        stream_id: 4,
        publisher_limit_counter_id: 5,
        channel_status_counter_id: 6,
        log_file_name: "/dev/shm/x/publications/2.logbuffer".into(),
    };
    vec![
        Event::PublicationReady(ready()),
        Event::ExclusivePublicationReady(ready()),
        Event::AvailableImage {
            image_correlation_id: 1,
            session_id: 2,
            stream_id: 3,
            subscription_registration_id: 4,
            subscriber_position_counter_id: 5,
            log_file_name: "/dev/shm/x/images/1.logbuffer".into(),
            source_identity: "127.0.0.1:40123".into(),
        },
        Event::UnavailableImage {
            image_correlation_id: 1,
            subscription_registration_id: 2,
            stream_id: 3,
            channel: "aeron:ipc".into(),
        },
        Event::PublicationError(PublicationError {
            registration_id: 1,
            destination_registration_id: -1,
            session_id: 2,
            stream_id: 3,
            receiver_id: 4,
            group_tag: -1,
            source_address: Some(([127, 0, 0, 1], 40123).into()),
            error_code: ErrorCode::ImageRejected,
            message: "bad data".into(),
        }),
    ]
}

fn of_ids() -> Vec<Event<'static>> {
    let (correlation_id, registration_id, counter_id) = (1, 2, 3);
    let error_code = ErrorCode::InvalidChannel;
    vec![
        Event::Error {
            correlation_id,
            error_code,
            message: "no".into(),
        },
        Event::OperationSuccess { correlation_id },
        Event::SubscriptionReady {
            correlation_id,
            channel_status_counter_id: counter_id,
        },
        Event::CounterReady {
            registration_id,
            counter_id,
        },
        Event::UnavailableCounter {
            registration_id,
            counter_id,
        },
        Event::ClientTimeout { client_id: 1 },
        Event::StaticCounter {
            correlation_id,
            counter_id,
        },
        Event::NextAvailableSessionId {
            correlation_id,
            session_id: 2,
        },
    ]
}
