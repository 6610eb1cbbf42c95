//! The local address that a setting gives.

use std::net::SocketAddr;

use headrace_protocol::channel::{Interface, ResolveError, Resolver, UdpEnvironment, local_address};

/// Knows no name.
struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _host: &str, _port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        Err(ResolveError {
            reason: "no such name".to_owned(),
        })
    }
}

fn interface(name: &str, address: &str, prefix_length: u8) -> Interface {
    Interface {
        index: prefix_length.into(),
        name: name.to_owned(),
        address: address.parse().unwrap(),
        prefix_length,
        is_up: true,
        is_loopback: name == "lo",
        is_multicast: name != "lo",
    }
}

#[test]
fn a_local_address_is_a_whole_one_or_that_of_an_interface() {
    let environment = UdpEnvironment {
        interfaces: &[interface("lo", "127.0.0.1", 8), interface("eth1", "10.1.2.5", 24)],
        resolver: &NoNames,
    };
    for (text, expected) in [
        ("127.0.0.2:4809", "127.0.0.2:4809"),
        ("127.0.0.2:4809/32", "127.0.0.2:4809"),
        ("10.1.2.4", "10.1.2.4:0"),
        ("[fd00::2]:4809", "[fd00::2]:4809"),
        ("127.0.0.2:4809/8", "127.0.0.1:4809"),
        ("0.0.0.0:4809", "0.0.0.0:4809"),
        ("{eth1}:4809", "10.1.2.5:4809"),
    ] {
        let expected: SocketAddr = expected.parse().unwrap();
        assert_eq!(local_address(text, &environment), Ok(expected), "{text}");
    }
    for (text, words) in [
        ("10.9.0.0:4809/16", "could not find matching interface"),
        ("{eth2}", "unknown interface eth2"),
    ] {
        let error = local_address(text, &environment).unwrap_err();
        assert!(error.message.contains(words), "{error}");
    }
}
