//! Requesters that come, leave and die at random while others ask: each that stays reads all responses to its own requests.

use crate::common::{SECOND, World, faults};
use crate::{Requester, Server, run};

const NAMES: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

/// Returns how many of them died and how many left.
fn live(seed: u64) -> [usize; 2] {
    let (world, mut random) = (World::new(seed), fastrand::Rng::with_seed(seed));
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    world.network().set_links(faults());
    let mut requesters = Vec::new();
    let (mut count, mut ends) = (0, [0; 2]);
    for name in NAMES {
        // It asks from the beginning, and soon as much as the others.
        requesters.push(Requester::new(&world, name));
        count += random.usize(5..20);
        run(&world, &mut server, &mut requesters, count);
        if requesters.len() < 3 {
            continue;
        }
        // What it has asked last is on its way when it ends.
        for requester in &mut requesters {
            requester.turn(count + 1);
        }
        let ended = requesters.swap_remove(random.usize(0..requesters.len()));
        let dies = random.bool();
        if dies {
            ended.node.crash().unwrap();
        }
        drop(ended);
        ends[usize::from(!dies)] += 1;
        count += 1;
        run(&world, &mut server, &mut requesters, count);
    }
    world.run_until(30 * SECOND, "only those that stayed are answered", || {
        let connected = server
            .sessions
            .iter()
            .filter(|session| session.responses.is_connected());
        connected.count() == requesters.len()
    });
    run(&world, &mut server, &mut requesters, count + 10);
    ends
}

#[test]
fn requesters_that_come_leave_and_die_at_random_change_nothing_for_those_that_stay() {
    let mut all = [0; 2];
    for seed in 0..4 {
        println!("seed={seed}"); // shown if it fails
        for (sum, count) in all.iter_mut().zip(live(seed)) {
            *sum += count;
        }
    }
    assert!(all.iter().all(|count| *count > 5), "died and left {all:?}");
}
