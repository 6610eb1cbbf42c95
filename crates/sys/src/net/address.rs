//! Socket addresses as the kernel writes them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Reads an address of a known family.
pub(super) fn from_storage(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which structure the storage holds, and the storage is large and aligned
            // enough for each.
            let address = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in>() };
            Some(SocketAddr::V4(SocketAddrV4::new(
                Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)),
                u16::from_be(address.sin_port),
            )))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in6>() };
            Some(SocketAddr::V6(SocketAddrV6::new(
                Ipv6Addr::from(address.sin6_addr.s6_addr),
                u16::from_be(address.sin6_port),
                address.sin6_flowinfo,
                address.sin6_scope_id,
            )))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_form() {
        for text in ["127.0.0.1:40123", "[fe80::1]:7"] {
            let address: SocketAddr = text.parse().unwrap();
            let kernel = socket2::SockAddr::from(address);
            // SAFETY: an all-zero storage is a valid value.
            let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
            // SAFETY: the source is a socket address of the length given, the target is large enough.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    kernel.as_ptr().cast::<u8>(),
                    std::ptr::from_mut(&mut storage).cast::<u8>(),
                    kernel.len() as usize,
                );
            }
            assert_eq!(from_storage(&storage), Some(address));
        }
    }

    #[test]
    fn an_unknown_family_is_no_address() {
        // SAFETY: an all-zero storage is a valid value.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        assert_eq!(from_storage(&storage), None);
    }
}
