//! A driver whose directory another driver took over while it did not run, or was deleted.

mod live;

use std::path::PathBuf;

use headrace_client::{Client, ClientConfig, Publication};
use headrace_driver::{DriverConfig, MediaDriver, ThreadingMode};
use live::{IPC, Live, MS, STREAM, await_that, receive, send, start_with};

const SECOND: i64 = 1_000 * MS;

/// A publication, a subscription that reads it, and the files of two more logs.
fn streams(client: &Client) -> (Vec<Publication>, headrace_client::Subscription) {
    let add = |stream_id| client.add_publication(IPC, stream_id).unwrap();
    let publications = (STREAM..STREAM + 3).map(add).collect();
    let subscription = client.add_subscription(IPC, STREAM, Default::default()).unwrap();
    (publications, subscription)
}

fn logs(live: &Live) -> Vec<PathBuf> {
    let directory = live.driver.directory().join("publications");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// As a driver that starts when the first one has been silent for long: the directory is made anew.
fn take_over(first: &Live) -> MediaDriver {
    MediaDriver::launch(DriverConfig {
        directory: first.driver.directory().to_owned(),
        dir_delete_on_start: true,
        threading_mode: Some(ThreadingMode::Shared),
        ..DriverConfig::default()
    })
    .unwrap()
}

#[test]
fn it_deletes_nothing_of_the_other_one_and_says_why_it_ends() {
    for mode in [ThreadingMode::Shared, ThreadingMode::Dedicated] {
        let first = start_with(|config| config.threading_mode = Some(mode));
        let first_client = first.client();
        let first_streams = streams(&first_client);

        let second = take_over(&first);
        let second_client = Client::connect(ClientConfig {
            directory: second.directory().to_owned(),
            ..first.config()
        })
        .unwrap();
        let (publications, subscription) = streams(&second_client);
        let logs_before = logs(&first);

        // What the first driver frees has the names of the second one's logs.
        drop(first_streams);
        await_that("the first driver ends", || first.driver.is_terminated());
        let failure = first.driver.failure().unwrap();
        assert!(
            failure.contains("another driver has taken over aeron.dir="),
            "{failure}"
        );
        drop(first_client);
        first.driver.close().unwrap();
        assert_eq!(logs(&first), logs_before, "{mode:?}");
        assert!(!second.is_terminated());
        send(&publications[0], b"goes on");
        assert_eq!(receive(&subscription, 1), [b"goes on"]);
    }
}

#[test]
fn it_makes_no_log_for_a_client_that_asks_before_it_has_noticed() {
    // Noticed with the timers, long after this test; the other times may not be shorter.
    let first = start_with(|config| {
        config.timer_interval_ns = 600 * SECOND;
        config.client_liveness_timeout_ns = 700 * SECOND;
        config.publication_unblock_timeout_ns = 800 * SECOND;
        config.untethered_window_limit_timeout_ns = 700 * SECOND;
        config.untethered_resting_timeout_ns = 700 * SECOND;
    });
    let client = first.client();
    let second = take_over(&first);
    let refused = client.add_publication(IPC, STREAM).err().unwrap().to_string();
    assert!(
        refused.contains("another driver has taken the directory over"),
        "{refused}"
    );
    assert!(logs(&first).is_empty());
    assert!(!second.is_terminated());
}

#[test]
fn it_ends_by_itself_when_its_files_are_deleted() {
    for mode in [ThreadingMode::Shared, ThreadingMode::Dedicated] {
        let first = start_with(|config| config.threading_mode = Some(mode));
        let client = first.client();
        let _streams = streams(&client);
        std::fs::remove_dir_all(first.driver.directory()).unwrap();

        await_that("the driver ends", || first.driver.is_terminated());
        let failure = first.driver.failure().unwrap();
        let directory = first.driver.directory().display();
        assert!(
            failure.starts_with(&format!(
                "the files of aeron.dir={directory} were deleted while this driver ran"
            )),
            "{failure}"
        );
        first.driver.close().unwrap();
        await_that("its client ends", || client.is_closed());
    }
}
