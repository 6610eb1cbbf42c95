//! The floor under a driver on one thread: a bare loop of `sendmmsg` and `recvmmsg` over loopback, with datagrams as long
//! as a driver makes them of messages.

use std::error::Error;
use std::time::{Duration, Instant};

use headrace_sys::Region;
use headrace_sys::net::{OffloadMode, ReceiveBatch, Run, SocketOptions, UdpSocket};

use crate::throughput::lengths;

/// A driver's default for this channel: the largest datagram, and room in a socket.
const MTU: usize = 1408;
const BUFFER_LENGTH: usize = 128 * 1024;
const HEADER_LENGTH: usize = 32;
const ALIGNMENT: usize = 32;
/// Datagrams of one turn, which fit the receiver's socket: the kernel counts more than their bytes.
const A_TURN: usize = 32;

/// Prints how many messages those datagrams would have held, and the nanoseconds of each window.
pub(crate) fn run(message_lengths: [&str; 2], windows: [&str; 2]) -> Result<(), Box<dyn Error>> {
    let [min_length, max_length] = [message_lengths[0].parse()?, message_lengths[1].parse()?];
    let window_count: usize = windows[0].parse()?;
    let window = Duration::from_millis(windows[1].parse()?);
    let datagrams = packed(&lengths(min_length, max_length));
    let options = SocketOptions {
        offload: OffloadMode::Vectored,
        receive_buffer_length: Some(BUFFER_LENGTH),
        send_buffer_length: Some(BUFFER_LENGTH),
        ..SocketOptions::default()
    };
    let (left, right) = (
        UdpSocket::bind("127.0.0.1:0".parse()?, &options)?,
        UdpSocket::bind("127.0.0.1:0".parse()?, &options)?,
    );
    left.connect(right.local_addr()?)?;
    let mut batch = ReceiveBatch::new(A_TURN);
    let bytes = vec![7; MTU];
    let mut turns = datagrams.chunks_exact(A_TURN).cycle();
    for _ in 0..window_count {
        let (mut messages, start) = (0, Instant::now());
        while start.elapsed() < window {
            let turn = turns.next().ok_or("too few datagrams")?;
            messages += exchange([&left, &right], turn, &bytes, &mut batch)?;
        }
        println!("{messages} {}", start.elapsed().as_nanos());
    }
    Ok(())
}

/// Length and number of messages of each datagram: as many whole frames as fit.
fn packed(message_lengths: &[usize]) -> Vec<(usize, usize)> {
    let mut datagrams = vec![(0, 0)];
    for length in message_lengths {
        let frame = (HEADER_LENGTH + length).next_multiple_of(ALIGNMENT);
        match datagrams.last_mut() {
            Some((filled, count)) if *filled + frame <= MTU => {
                (*filled, *count) = (*filled + frame, *count + 1)
            }
            _ => datagrams.push((frame, 1)),
        }
    }
    datagrams
}

/// Sends the datagrams of a turn and takes them from the other socket. Returns the messages in them.
fn exchange(
    [left, right]: [&UdpSocket; 2],
    turn: &[(usize, usize)],
    bytes: &[u8],
    batch: &mut ReceiveBatch,
) -> Result<usize, Box<dyn Error>> {
    let runs: Vec<Run<'_>> = turn
        .iter()
        .map(|(length, _)| Run {
            region: Region::of(&bytes[..*length]),
            datagram_length: *length,
        })
        .collect();
    let wanted: usize = turn.iter().map(|(length, _)| length).sum();
    if left.send_runs(&runs, None)? != wanted {
        return Err("the socket took less than a turn".into());
    }
    let mut taken = 0;
    while taken < turn.len() {
        taken += right.receive(batch)?;
        batch.for_each(|_| {});
    }
    Ok(turn.iter().map(|(_, count)| count).sum())
}
