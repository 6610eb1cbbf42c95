//! Two publishers of one stream, lines A and B, one of which falls too far behind the other.

mod common;

use common::{Reader, SECOND, STREAM, World, errors_of, is_accepted};

const SAME: &str = "session-id=7|init-term-id=5|term-id=5|term-offset=0|term-length=64k|linger=0";

#[test]
fn a_line_that_is_left_behind_says_so_in_the_error_log_of_its_driver() {
    let world = World::new(3);
    let nodes = ["reader", "ahead", "behind"].map(|name| world.add_node(name).unwrap());
    let clients = nodes.each_ref().map(|node| node.connect().unwrap());
    let mut reader = Reader::subscribe(&clients[0], "aeron:udp?control-mode=manual", STREAM);
    let [ahead, behind] = [1, 2].map(|line| {
        let endpoint = format!("aeron:udp?endpoint=reader:4000{line}");
        reader.subscription.add_destination(&endpoint).unwrap();
        clients[line]
            .add_exclusive_publication(&format!("{endpoint}|{SAME}"), STREAM)
            .unwrap()
    });
    world.run_until(12 * SECOND, "connections", || {
        ahead.is_connected() && behind.is_connected()
    });
    assert_eq!(errors_of(&nodes[2]), [""; 0]);
    world.run_until(SECOND, "more than half a term", || {
        reader.poll();
        while is_accepted(ahead.offer(&[7; 1_000])) {}
        ahead.position() > Some(40_000)
    });
    world.run_until(10 * SECOND, "the other one is left behind", || {
        reader.poll();
        !behind.is_connected()
    });
    let errors = errors_of(&nodes[2]);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = "a receiver is more than half a term ahead of a publication with streamId=1001";
    assert!(errors[0].contains(text), "{errors:?}");
    assert_eq!(errors_of(&nodes[1]), [""; 0]);
}
