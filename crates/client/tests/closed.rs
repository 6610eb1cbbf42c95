//! Closing returns memory, whatever the program keeps.

mod live;

use std::sync::atomic::{AtomicBool, Ordering};

use headrace_client::{ClaimResult, Client, Image};
use live::{IPC, Live, MS, STREAM, await_that, pair, receive, send, start};

fn client(live: &Live) -> Client {
    let mut config = live.config();
    config.resource_linger_ns = MS;
    Client::connect(config).unwrap()
}

/// True while this process, of which the driver is a part, maps a log.
fn maps_a_log() -> bool {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .contains(".logbuffer")
}

// One test, since it is about the whole process.
#[test]
fn closed_objects_that_are_kept_map_no_log_and_what_they_lend_stays_valid() {
    let live = start();
    let client = client(&live);
    let (publication, subscription) = pair(&client, IPC);
    let exclusive = client.add_exclusive_publication(IPC, STREAM).unwrap();
    await_that("both images", || subscription.image_count() == 2);
    let images = subscription.images();
    let position = send(&publication, b"kept");
    assert_eq!(receive(&subscription, 1), [b"kept"]);
    let claim = match exclusive.try_claim(4).unwrap() {
        ClaimResult::Claimed(claim) => claim,
        ClaimResult::Refused(refused) => panic!("{refused:?}"),
    };
    assert!(maps_a_log());
    publication.close();
    exclusive.close();
    subscription.close();
    await_that("unmapped", || !maps_a_log());
    let image = images
        .iter()
        .find(|image| image.session_id() == publication.session_id());
    assert_eq!(image.unwrap().position(), position);
    assert!(images.iter().all(|image| image.poll(|_, _| {}, 1).unwrap() == 0));
    assert!(!claim.commit(), "it is said that it is not sent");

    a_poll_keeps_what_its_handler_reads(&client);
    await_that("unmapped", || !maps_a_log());

    let (_publication, subscription) = pair(&client, IPC);
    let kept: Vec<_> = subscription.images();
    assert!(maps_a_log());
    client.close().unwrap();
    await_that("unmapped", || !maps_a_log());
    assert!(kept.iter().all(|image| Image::is_closed(image)));
}

/// The handler closes its subscription and goes on reading for longer than the log lingers.
fn a_poll_keeps_what_its_handler_reads(client: &Client) {
    let (publication, subscription) = pair(client, IPC);
    send(&publication, b"read in place");
    let is_read = AtomicBool::new(false);
    await_that("message", || {
        subscription
            .poll(
                |payload, _| {
                    subscription.close();
                    publication.close();
                    // A later log of this client comes and goes: its conductor has been through.
                    let (another, later) = pair(client, "aeron:ipc?term-length=128k");
                    later.close();
                    drop((another, later));
                    await_that("the later one unmapped", || {
                        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
                        maps.lines().filter(|line| line.contains(".logbuffer")).count() < 2
                    });
                    is_read.store(payload == b"read in place", Ordering::Relaxed);
                },
                1,
            )
            .unwrap_or(0);
        is_read.load(Ordering::Relaxed)
    });
}
