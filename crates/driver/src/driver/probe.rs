//! Whether the system grants the socket buffers that the settings ask for.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use headrace_sys::net::SocketOptions;

use super::DriverError;
use crate::config::{ConfigError, DriverConfig, property};
use crate::environment::{BufferLengths, Network, SocketRequest};

/// What the system grants, and what is worth knowing about it.
pub(super) struct SocketProbe {
    pub(super) buffers: BufferLengths,
    pub(super) warnings: Vec<String>,
}

/// Opens a socket as channels will, and checks that a datagram and a receiver window fit what came of it.
pub(super) fn socket_buffers(
    config: &DriverConfig,
    network: &dyn Network,
) -> Result<SocketProbe, DriverError> {
    let failed = |source: io::Error| DriverError::Io {
        action: "probe the socket buffers of the system",
        source,
    };
    let buffers = network.buffer_lengths().map_err(failed)?;
    let asked = |length: usize| Some(length).filter(|length| *length != 0);
    let request = SocketRequest {
        local: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        remote: None,
        options: SocketOptions {
            send_buffer_length: asked(config.socket_send_buffer_length),
            receive_buffer_length: asked(config.socket_receive_buffer_length),
            ..SocketOptions::default()
        },
    };
    let socket = network.open(&request).map_err(failed)?;
    let (send_length, receive_length) = (socket.send_buffer_length, socket.receive_buffer_length);
    if config.mtu_length > send_length {
        let rule = format!("must not be above the SO_SNDBUF the system grants, {send_length}");
        return Err(ConfigError::new(property::mtu_length, config.mtu_length, rule).into());
    }
    if config.receiver_initial_window_length > receive_length {
        let rule = format!("must not be above the SO_RCVBUF the system grants, {receive_length}");
        let setting = property::receiver_initial_window_length;
        return Err(ConfigError::new(setting, config.receiver_initial_window_length, rule).into());
    }
    let warnings = [
        ("SO_SNDBUF", config.socket_send_buffer_length, send_length),
        ("SO_RCVBUF", config.socket_receive_buffer_length, receive_length),
    ]
    .into_iter()
    .filter(|(_, asked, granted)| asked > granted)
    .map(|(name, asked, granted)| format!("Could not get desired {name}: attempted={asked} actual={granted}"))
    .collect();
    Ok(SocketProbe { buffers, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn the_defaults_fit_and_too_much_is_told() {
        let mut config = DriverConfig::default();
        let network = Environment::system().network;
        let socket_buffers = |config: &DriverConfig| socket_buffers(config, network.as_ref());
        assert!(socket_buffers(&config).is_ok_and(|probed| probed.warnings.is_empty()));
        config.socket_receive_buffer_length = 1 << 30;
        let probed = socket_buffers(&config).unwrap();
        assert!(
            probed.warnings[0].starts_with("Could not get desired SO_RCVBUF: attempted=1073741824 actual=")
        );
        config.receiver_initial_window_length = 1 << 30;
        assert!(matches!(socket_buffers(&config), Err(DriverError::Config(_))));
    }
}
