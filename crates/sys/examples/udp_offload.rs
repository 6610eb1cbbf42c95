//! Datagrams a second over loopback in each offload mode, one thread sending and receiving by turns.
//!
//! `cargo run --release -p headrace-sys --example udp_offload [datagram length] [seconds]`

use std::time::{Duration, Instant};

use headrace_sys::Region;
use headrace_sys::net::{OffloadMode, ReceiveBatch, Run, SocketOptions, UdpSocket};

const BURST: usize = 128 * 1024;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let datagram_length: usize = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(1408);
    let seconds: u64 = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(2);
    for mode in [
        OffloadMode::Single,
        OffloadMode::Vectored,
        OffloadMode::Segmentation,
    ] {
        let rate = measure(mode, datagram_length, Duration::from_secs(seconds))?;
        println!(
            "{:>12}: {:>12.0} datagrams/s of {datagram_length} bytes, {:>8.1} MB/s",
            mode.name(),
            rate,
            rate * datagram_length as f64 / 1e6
        );
    }
    Ok(())
}

fn measure(offload: OffloadMode, datagram_length: usize, duration: Duration) -> std::io::Result<f64> {
    let options = SocketOptions {
        send_buffer_length: Some(2 * 1024 * 1024),
        receive_buffer_length: Some(2 * 1024 * 1024),
        offload,
        ..SocketOptions::default()
    };
    let local = "127.0.0.1:0".parse().map_err(std::io::Error::other)?;
    let (from, to) = (
        UdpSocket::bind(local, &options)?,
        UdpSocket::bind(local, &options)?,
    );
    from.connect(to.local_addr()?)?;
    let burst = vec![7; BURST / datagram_length * datagram_length];
    let run = Run {
        region: Region::of(&burst),
        datagram_length,
    };
    let mut batch = ReceiveBatch::new(16);
    let mut received = 0;
    let start = Instant::now();
    while start.elapsed() < duration {
        let sent = from.send_runs(&[run], None)?.div_ceil(datagram_length);
        let mut arrived = 0;
        while arrived < sent {
            match to.receive(&mut batch)? {
                0 => break,
                count => arrived += count,
            }
        }
        received += arrived;
    }
    Ok(received as f64 / start.elapsed().as_secs_f64())
}
