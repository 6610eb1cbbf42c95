//! Response channels: which subscription reads the responses to which publication.

use headrace_protocol::ErrorCode;

use crate::byte_client::{CLIENT, Driver, IPC};
use crate::common::SECOND;

const REQUESTS: i32 = 10;
const RESPONSES: i32 = 11;
const RESPONSES_CHANNEL: &str = "aeron:ipc?control-mode=response";

fn responses_to(registration_id: i64) -> String {
    format!("aeron:ipc?term-length=64k|control-mode=response|response-correlation-id={registration_id}")
}

/// A subscription to responses, and the publication of requests whose responses it reads.
fn asker(driver: &mut Driver) -> (i64, i64) {
    let subscription = driver.add_subscription(RESPONSES_CHANNEL, RESPONSES);
    let channel = format!("aeron:ipc?term-length=64k|response-correlation-id={subscription}");
    (subscription, driver.add_publication(&channel, REQUESTS))
}

fn linked(driver: &Driver) -> Vec<(i64, i64)> {
    let images = driver.images();
    images
        .iter()
        .map(|image| (image.subscription_id, image.image_correlation_id))
        .collect()
}

#[test]
fn a_subscription_to_responses_reads_nothing_until_its_request_is_answered() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    driver.add_publication(IPC, RESPONSES);
    assert_eq!(linked(&driver), []);
    let responses = driver.add_publication(&responses_to(request), RESPONSES);
    assert_eq!(linked(&driver), [(subscription, responses)]);
    // What comes later is not for it either.
    driver.add_exclusive(IPC, RESPONSES);
    assert_eq!(linked(&driver).len(), 1);
}

#[test]
fn pairs_on_the_same_two_streams_stay_apart() {
    for is_exclusive in [false, true] {
        let mut driver = Driver::new();
        let askers = [asker(&mut driver), asker(&mut driver), asker(&mut driver)];
        let mut expected = Vec::new();
        for (subscription, request) in askers {
            let channel = responses_to(request);
            let responses = if is_exclusive {
                driver.add_exclusive(&channel, RESPONSES)
            } else {
                driver.add_publication(&channel, RESPONSES)
            };
            expected.push((subscription, responses));
        }
        assert_eq!(linked(&driver), expected);
        // Three logs of requests, three of responses.
        assert_eq!(driver.log_files(), 6);
    }
}

#[test]
fn publications_are_shared_by_what_they_respond_to_and_by_who_reads_the_responses() {
    let mut driver = Driver::new();
    let (first, request) = asker(&mut driver);
    let same = format!("aeron:ipc?term-length=64k|response-correlation-id={first}");
    let shared = driver.add_publication_of(CLIENT + 1, &same, REQUESTS);
    assert_eq!(driver.ready(shared).original_registration_id, request);
    let without = driver.add_publication("aeron:ipc?response-correlation-id=-1|term-length=64k", REQUESTS);
    let plain = driver.add_publication(IPC, REQUESTS);
    assert_eq!(driver.ready(without).original_registration_id, without);
    assert_eq!(driver.ready(plain).original_registration_id, without);
    let responses = driver.add_publication(&responses_to(request), RESPONSES);
    let again = driver.add_publication(&responses_to(request), RESPONSES);
    assert_eq!(driver.ready(again).original_registration_id, responses);
    assert_eq!(linked(&driver), [(first, responses)]);
}

#[test]
fn responses_that_flow_are_not_turned_away_by_a_second_publication_of_responses() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let first = driver.add_exclusive(&responses_to(request), RESPONSES);
    driver.add_exclusive(&responses_to(request), RESPONSES);
    assert_eq!(linked(&driver), [(subscription, first)]);
    assert!(driver.recorded_errors()[0].contains("a second publication responds to the same request"));
}

#[test]
fn after_the_responses_end_those_of_the_next_publication_are_read() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let first = driver.add_publication(&responses_to(request), RESPONSES);
    driver.remove_publication(first, false);
    driver.pass_alive(SECOND);
    let second = driver.add_publication(&responses_to(request), RESPONSES);
    assert_eq!(linked(&driver), [(subscription, first), (subscription, second)]);
    assert_eq!(driver.recorded_errors(), [""; 0]);
}

#[test]
fn responses_that_waited_for_the_first_to_end_are_read_then() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let [first, second, third] = [(); 3].map(|()| driver.add_exclusive(&responses_to(request), RESPONSES));
    driver.pass_alive(SECOND);
    assert_eq!(linked(&driver), [(subscription, first)]);
    driver.remove_publication(first, false);
    driver.pass_alive(3 * SECOND);
    assert_eq!(linked(&driver), [(subscription, first), (subscription, second)]);
    driver.remove_publication(second, true);
    driver.pass_alive(3 * SECOND);
    let expected = [first, second, third].map(|responses| (subscription, responses));
    assert_eq!(linked(&driver), expected);
}

#[test]
fn responses_to_nothing_reach_no_reader_and_change_nothing() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let plain = driver.add_subscription("aeron:ipc", RESPONSES + 1);
    // Not a publication; a publication whose responses nothing reads; a subscription that does not read responses.
    let of_plain = format!("aeron:ipc?term-length=64k|response-correlation-id={plain}");
    let misled = driver.add_publication(&of_plain, REQUESTS);
    for answered in [999_999, subscription, misled] {
        driver.add_exclusive(&responses_to(answered), RESPONSES);
    }
    assert_eq!(linked(&driver), []);
    let responses = driver.add_exclusive(&responses_to(request), RESPONSES);
    assert_eq!(linked(&driver), [(subscription, responses)]);
    driver.add_exclusive("aeron:ipc?term-length=64k", RESPONSES + 1);
    assert_eq!(
        linked(&driver).len(),
        2,
        "an ordinary subscription wants all sessions still"
    );
}

#[test]
fn a_publication_of_responses_says_what_it_responds_to() {
    let mut driver = Driver::new();
    driver.add_publication(RESPONSES_CHANNEL, RESPONSES);
    let (code, message) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(message.contains("control-mode=response was specified, but no response-correlation-id set"));
    assert_eq!(driver.recorded_errors(), [message]);
    assert_eq!(driver.log_files(), 0);
}
