//! Paths that take shorter datagrams than a publisher sends, and say nothing of it.

mod common;

use common::{SECOND, STREAM, Stream, World, errors_of, faults, trouble};
use headrace_sim::LinkSettings;

const CHANNEL: &str = "aeron:udp?endpoint=right:40123|term-length=64k|mtu=8192";
const ADVICE: &str = "give the publication's channel a smaller mtu";
/// What Ethernet takes, without the headers of IP and UDP.
const ETHERNET: usize = 1_472;

fn narrow(longest: usize) -> LinkSettings {
    LinkSettings {
        longest: Some(longest),
        ..LinkSettings::default()
    }
}

#[test]
fn a_stream_whose_datagrams_are_too_long_for_the_path_says_so_at_both_ends() {
    let world = World::new(7);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    assert!(stream.offers(&[1; 1_000]));
    world.run_until(SECOND, "what is short comes", || stream.reader.poll().len() == 1);
    world.network().set_links(narrow(ETHERNET));
    world.network().set_path_mtu(ETHERNET + 28);
    assert!(stream.offers(&[2; 5_000]));
    world.run_for(10 * SECOND);
    assert_eq!(stream.reader.poll().len(), 1);
    for (node, mark) in [
        (&stream.left, "snd-unrepaired"),
        (&stream.right, "rcv-unrepaired"),
    ] {
        let (mtu, _) = trouble(node, mark, " mtu=").unwrap();
        assert_eq!(mtu, "8192", "{mark}");
        let errors = errors_of(node);
        let told: Vec<_> = errors.iter().filter(|text| text.contains(ADVICE)).collect();
        assert_eq!(told.len(), 1, "{mark}: {errors:?}");
        for fact in ["mtu=8192", "streamId=1001", "sessionId=", "endpoint=right:40123"] {
            assert!(told[0].contains(fact), "{fact}: {}", told[0]);
        }
        let knows = told[0].contains("is 1500 bytes: use mtu=1472");
        assert_eq!(
            knows,
            mark == "snd-unrepaired",
            "the sender's kernel: {}",
            told[0]
        );
    }
    world.network().set_links(narrow(9_000));
    world.run_until(5 * SECOND, "all is there", || stream.reader.poll().len() == 2);
    world.run_for(3 * SECOND);
    for (node, mark) in [
        (&stream.left, "snd-unrepaired"),
        (&stream.right, "rcv-unrepaired"),
    ] {
        assert_eq!(trouble(node, mark, " mtu="), None);
    }
}

/// Loss is chance, a reader may be slow, and a publisher may be gone: nothing of that is the length of a datagram.
#[test]
fn what_is_lost_otherwise_is_not_blamed_on_the_mtu() {
    let world = World::new(7);
    let mut stream = Stream::connected(&world, CHANNEL, STREAM);
    world.network().set_links(LinkSettings {
        loss: 0.3,
        ..faults()
    });
    let end_ns = world.now_ns() + 20 * SECOND;
    let mut sent = 0;
    while world.now_ns() < end_ns {
        sent += usize::from(stream.offers(&[3; 5_000]));
        world.run_for(SECOND / 100);
        // It reads nothing for half of the time.
        if world.now_ns() / (5 * SECOND) % 2 == 0 {
            stream.reader.poll();
        }
    }
    world.network().set_links(LinkSettings::default());
    world.run_until(10 * SECOND, "all is there", || stream.reader.poll().len() == sent);
    world.network().set_links(narrow(ETHERNET));
    assert!(stream.offers(&[3; 5_000]));
    world.run_for(SECOND / 2);
    world.network().set_links(LinkSettings {
        loss: 1.0,
        ..LinkSettings::default()
    });
    world.run_for(15 * SECOND);
    for node in [&stream.left, &stream.right] {
        let errors = errors_of(node);
        assert!(errors.iter().all(|text| !text.contains(ADVICE)), "{errors:?}");
    }
}
