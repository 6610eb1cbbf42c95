//! Network interfaces of this host.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;

use super::address;

/// One address of one network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Number given by the operating system.
    pub index: u32,
    /// Name given by the operating system, such as `eth0`.
    pub name: String,
    /// An address of the interface; an interface with several addresses is listed once for each.
    pub address: IpAddr,
    /// Length of the network part of the address in bits.
    pub prefix_length: u8,
    /// The interface is switched on.
    pub is_up: bool,
    /// The interface leads back to this host.
    pub is_loopback: bool,
    /// The interface can carry multicast.
    pub is_multicast: bool,
}

/// Every IPv4 and IPv6 address of every interface, in the system's order.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call stores the head of a list that is freed below.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: `next` is null or an entry of the list, which lives until freeifaddrs.
    while let Some(entry) = unsafe { next.as_ref() } {
        found.extend(read(entry));
        next = entry.ifa_next;
    }
    // SAFETY: the list came from getifaddrs, and no reference into it is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

fn read(entry: &libc::ifaddrs) -> Option<Interface> {
    let address = ip(entry.ifa_addr)?;
    let has = |flag: libc::c_int| entry.ifa_flags & flag as libc::c_uint != 0;
    Some(Interface {
        // SAFETY: the system stores a terminated name in each entry. 0 stands for an interface that is just gone.
        index: unsafe { libc::if_nametoindex(entry.ifa_name) },
        // SAFETY: the system stores a terminated name in each entry.
        name: unsafe { CStr::from_ptr(entry.ifa_name) }
            .to_string_lossy()
            .into_owned(),
        address,
        prefix_length: ip(entry.ifa_netmask).map_or(0, prefix_length),
        is_up: has(libc::IFF_UP),
        is_loopback: has(libc::IFF_LOOPBACK),
        is_multicast: has(libc::IFF_MULTICAST),
    })
}

fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, so an address whose family field says how long it is.
    let family = libc::c_int::from(unsafe { (*address).sa_family });
    let length = match family {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    // SAFETY: an all-zero storage is a valid value.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: the family gives the length of the source, and the storage holds any address.
    unsafe {
        std::ptr::copy_nonoverlapping(
            address.cast::<u8>(),
            std::ptr::from_mut(&mut storage).cast::<u8>(),
            length,
        );
    }
    address::from_storage(&storage).map(|address| address.ip())
}

fn prefix_length(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    ones as u8 // at most 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed() {
        let all = interfaces().unwrap();
        let loopback = all
            .iter()
            .find(|interface| interface.address == IpAddr::from([127, 0, 0, 1]))
            .expect("every host has 127.0.0.1");
        assert!(loopback.is_up && loopback.is_loopback && !loopback.name.is_empty());
        assert_ne!(loopback.index, 0);
        assert_eq!(loopback.prefix_length, 8);
    }

    #[test]
    fn masks_give_their_prefix() {
        assert_eq!(prefix_length("255.255.240.0".parse().unwrap()), 20);
        assert_eq!(prefix_length("ffff:ffff::".parse().unwrap()), 32);
    }
}
