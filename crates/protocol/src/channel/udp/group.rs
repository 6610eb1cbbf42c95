//! The two addresses of a multicast channel: data goes to one, and receivers send feedback to the next.

use std::net::{IpAddr, SocketAddr};

use super::environment::UdpEnvironment;
use super::interface;
use crate::channel::params::number_by;
use crate::channel::{ChannelError, ChannelUri, keys};

/// What a multicast channel has besides the address of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MulticastGroup {
    /// Where receivers send status messages and NAKs.
    pub control: SocketAddr,
    /// An address of the interface that the groups are reached through.
    pub interface_address: IpAddr,
    /// The system's number of that interface.
    pub interface_index: u32,
    /// Time to live of datagrams to the groups; the setting decides if the channel does not.
    pub ttl: Option<u8>,
}

/// The group of a channel whose endpoint is the group `data`, and the local address that tells its endpoints apart.
pub(super) fn parse(
    uri: &ChannelUri,
    data: SocketAddr,
    environment: &UdpEnvironment<'_>,
) -> Result<(MulticastGroup, SocketAddr), ChannelError> {
    if last_byte(data.ip()).is_multiple_of(2) {
        return Err(ChannelError::invalid(format!(
            "Multicast data address must be odd, as the next is that of control: endpoint={data}, channel={uri}"
        )));
    }
    if data.port() == 0 {
        return Err(ChannelError::generic(format!(
            "endpoint has port=0 for a group, whose senders and receivers must know the port: {uri}"
        )));
    }
    let (interface, port) = interface::select_for_group(uri, data.ip(), environment)?;
    let group = MulticastGroup {
        control: SocketAddr::new(next(data.ip()), data.port()),
        interface_address: interface.address,
        interface_index: interface.index,
        ttl: ttl(uri)?,
    };
    Ok((group, SocketAddr::new(interface.address, port)))
}

/// The time to live that a channel asks for, whatever its endpoint is.
pub(super) fn ttl(uri: &ChannelUri) -> Result<Option<u8>, ChannelError> {
    let Some(ttl) = number_by::<i64>(uri, keys::TTL, "a whole number from 0 to 255")? else {
        return Ok(None);
    };
    u8::try_from(ttl)
        .map(Some)
        .map_err(|_| ChannelError::generic(format!("ttl={ttl} is not in range 0 to 255, channel={uri}")))
}

fn last_byte(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}

/// One more in the last byte alone: 255 is followed by 0, and nothing is carried.
fn next(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mut octets = address.octets();
            octets[3] = octets[3].wrapping_add(1);
            octets.into()
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[15] = octets[15].wrapping_add(1);
            octets.into()
        }
    }
}
