//! The floor under any UDP latency: two spinning processes that echo a datagram over loopback.

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Instant;

const LENGTH: usize = 64;

pub(crate) fn ping(remote: &str, samples: &str) -> Result<(), Box<dyn Error>> {
    let samples: usize = samples.parse()?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(remote)?;
    socket.set_nonblocking(true)?;
    let mut durations_ns = Vec::with_capacity(samples);
    let mut buffer = [0u8; LENGTH];
    for sample in 0..samples + samples / 10 {
        let start = Instant::now();
        socket.send(&buffer)?;
        receive(&socket, &mut buffer)?;
        if sample >= samples / 10 {
            durations_ns.push(start.elapsed().as_nanos());
        }
    }
    durations_ns.iter().for_each(|duration| println!("{duration}"));
    Ok(())
}

pub(crate) fn pong(local: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(local)?;
    socket.set_nonblocking(true)?;
    println!("READY");
    let mut buffer = [0u8; LENGTH];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, source)) => {
                socket.send_to(&buffer[..length], source)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Result<(), Box<dyn Error>> {
    loop {
        match socket.recv(buffer) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
}
