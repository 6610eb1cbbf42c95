//! The conductor with a real sender or receiver and short queues: more ends at once than both queues hold.

use std::sync::Arc;

use headrace_buffers::counters::{STATE_ALLOCATED, system_counter, type_ids};
use headrace_protocol::command::Command;
use headrace_protocol::frame::Setup;
use headrace_sys::Clock;

use super::harness::{CLIENT, Harness, MS, SECOND};
use crate::agent::Agent;
use crate::receiver::{Receiver, ReceiverCounters, ReceiverSettings};
use crate::sender::{Sender, SenderCounters, SenderSettings};

const CAPACITY: usize = 4;
const OBJECT_COUNT: usize = 10 * CAPACITY;
const SEEDS: std::ops::Range<u64> = 0..4;
/// Far more duty cycles than everything needs.
const CYCLES_MAX: usize = 100_000;
const CYCLES_BETWEEN_CHECKS: usize = 16;

/// A driver with one of its two network agents, whose duty cycles come in any order.
struct World {
    driver: Harness,
    agent: Box<dyn Agent>,
    random: fastrand::Rng,
}

impl World {
    fn with_sender(seed: u64) -> Self {
        let driver = Harness::with_queues(CAPACITY, |_| {});
        let agent = Box::new(Sender::new(
            Arc::clone(&driver.to_sender),
            driver.conductor_proxy(),
            SenderCounters::new(|id| driver.counter(id)),
            SenderSettings::default(),
        ));
        Self::new(driver, agent, seed)
    }

    fn with_receiver(seed: u64) -> Self {
        let driver = Harness::with_queues(CAPACITY, |_| {});
        let agent = Box::new(Receiver::new(
            Arc::clone(&driver.to_receiver),
            driver.conductor_proxy(),
            ReceiverCounters::new(|id| driver.counter(id)),
            ReceiverSettings::default(),
        ));
        Self::new(driver, agent, seed)
    }

    fn new(driver: Harness, agent: Box<dyn Agent>, seed: u64) -> Self {
        Self {
            driver,
            agent,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// One duty cycle of one agent, and perhaps a moment that passes.
    fn step(&mut self) {
        if self.random.bool() {
            self.driver.turn();
        } else {
            self.agent.do_work(self.driver.clock.nano_time());
        }
        if self.random.u8(..) == 0 {
            self.driver.clock.advance_ns(50 * MS);
        }
    }

    fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..CYCLES_MAX / CYCLES_BETWEEN_CHECKS {
            if done(self) {
                return;
            }
            for _ in 0..CYCLES_BETWEEN_CHECKS {
                self.step();
            }
        }
        panic!(
            "{what} did not happen, errors={:?}",
            self.driver.recorded_errors()
        );
    }

    /// A client command is answered: the conductor is alive.
    fn assert_answers(&mut self) {
        let answered = self
            .driver
            .add_publication_of(CLIENT + 1, "aeron:ipc?term-length=64k", 3);
        self.run_until("an answer", |world| {
            world.driver.names().contains(&"PublicationReady".to_owned())
        });
        self.driver.ready(answered);
    }

    fn deliver_setup(&self, session_id: i32) {
        let mut frame = [0; Setup::LENGTH];
        let setup = Setup {
            flags: 0,
            term_offset: 0,
            session_id,
            stream_id: 10,
            initial_term_id: 7,
            active_term_id: 7,
            term_length: 65_536,
            mtu: 1408,
            ttl: 0,
        };
        setup.encode(&mut frame);
        self.driver.sockets.deliver(&frame);
    }

    fn counter_count(&self, type_id: i32) -> usize {
        let counters = &self.driver.counters;
        (0..counters.capacity() as i32)
            .filter(|id| {
                counters.state(*id) == Some(STATE_ALLOCATED) && counters.type_id(*id) == Some(type_id)
            })
            .count()
    }

    fn failed_offers(&self, id: i32) -> i64 {
        self.driver.counter(id).get()
    }
}

#[test]
fn a_client_with_many_publications_closes_and_the_driver_goes_on() {
    for seed in SEEDS {
        let mut world = World::with_sender(seed);
        for index in 0..OBJECT_COUNT {
            let port = 20_000 + index;
            let channel = format!("aeron:udp?endpoint=localhost:{port}|term-length=64k|linger=0");
            world.driver.add_publication(&channel, 10);
            let made = index + 1;
            world.run_until("a publication", |world| {
                world.counter_count(type_ids::SENDER_POSITION) == made
            });
        }
        world.driver.command(&Command::ClientClose {
            client_id: CLIENT,
            correlation_id: 0,
        });
        // All streams end in one tick, before the sender takes anything.
        world.driver.clock.advance_ns(SECOND);
        world.driver.run_cycles();
        world.driver.forget_events();
        world.run_until("the end of the channels", |world| {
            world.counter_count(type_ids::SEND_CHANNEL_STATUS) == 0
        });
        assert!(world.failed_offers(system_counter::SENDER_PROXY_FAILS) > 0);
        world.assert_answers();
    }
}

#[test]
fn a_flood_of_forged_setups_while_images_end_leaves_the_driver_going() {
    for seed in SEEDS {
        let mut world = World::with_receiver(seed);
        world
            .driver
            .add_subscription("aeron:udp?endpoint=localhost:24325", 10);
        for session_id in 0..OBJECT_COUNT as i32 {
            world.run_until("an image", |world| {
                world.deliver_setup(session_id);
                world.counter_count(type_ids::RECEIVER_POSITION) as i32 > session_id
            });
        }
        // No image hears from its publisher again, and new sessions come faster than they can be dealt with.
        for session_id in 1000..1000 + 100 * CAPACITY as i32 {
            world.deliver_setup(session_id);
            world.step();
            world.driver.clock.advance_ns(100 * MS);
        }
        assert!(world.failed_offers(system_counter::CONDUCTOR_PROXY_FAILS) > 0);
        world.driver.forget_events();
        world.run_until("the end of the images", |world| {
            world.driver.clock.advance_ns(MS);
            world.counter_count(type_ids::RECEIVER_POSITION) == 0
        });
        world.assert_answers();
    }
}
