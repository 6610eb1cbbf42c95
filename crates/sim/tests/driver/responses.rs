//! Response channels: which subscription reads the answers to which publication.

use headrace_protocol::ErrorCode;

use crate::byte_client::{CLIENT, Driver, IPC};
use crate::common::SECOND;

const REQUESTS: i32 = 10;
const ANSWERS: i32 = 11;
const ANSWERS_CHANNEL: &str = "aeron:ipc?control-mode=response";

fn answers_to(registration_id: i64) -> String {
    format!("aeron:ipc?term-length=64k|control-mode=response|response-correlation-id={registration_id}")
}

/// A subscription to answers, and the publication of requests whose answers it reads.
fn asker(driver: &mut Driver) -> (i64, i64) {
    let subscription = driver.add_subscription(ANSWERS_CHANNEL, ANSWERS);
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
fn a_subscription_to_answers_reads_nothing_until_its_request_is_answered() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    driver.add_publication(IPC, ANSWERS);
    assert_eq!(linked(&driver), []);
    let answers = driver.add_publication(&answers_to(request), ANSWERS);
    assert_eq!(linked(&driver), [(subscription, answers)]);
    // What comes later is not for it either.
    driver.add_exclusive(IPC, ANSWERS);
    assert_eq!(linked(&driver).len(), 1);
}

#[test]
fn pairs_on_the_same_two_streams_stay_apart() {
    for is_exclusive in [false, true] {
        let mut driver = Driver::new();
        let askers = [asker(&mut driver), asker(&mut driver), asker(&mut driver)];
        let mut expected = Vec::new();
        for (subscription, request) in askers {
            let channel = answers_to(request);
            let answers = if is_exclusive {
                driver.add_exclusive(&channel, ANSWERS)
            } else {
                driver.add_publication(&channel, ANSWERS)
            };
            expected.push((subscription, answers));
        }
        assert_eq!(linked(&driver), expected);
        // Three logs of requests, three of answers.
        assert_eq!(driver.log_files(), 6);
    }
}

#[test]
fn publications_are_shared_by_what_they_answer_and_by_who_reads_the_answers() {
    let mut driver = Driver::new();
    let (first, request) = asker(&mut driver);
    let same = format!("aeron:ipc?term-length=64k|response-correlation-id={first}");
    let shared = driver.add_publication_of(CLIENT + 1, &same, REQUESTS);
    assert_eq!(driver.ready(shared).original_registration_id, request);
    let without = driver.add_publication("aeron:ipc?response-correlation-id=-1|term-length=64k", REQUESTS);
    let plain = driver.add_publication(IPC, REQUESTS);
    assert_eq!(driver.ready(without).original_registration_id, without);
    assert_eq!(driver.ready(plain).original_registration_id, without);
    let answers = driver.add_publication(&answers_to(request), ANSWERS);
    let again = driver.add_publication(&answers_to(request), ANSWERS);
    assert_eq!(driver.ready(again).original_registration_id, answers);
    assert_eq!(linked(&driver), [(first, answers)]);
}

#[test]
fn answers_that_flow_are_not_turned_away_by_a_second_publication_of_answers() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let first = driver.add_exclusive(&answers_to(request), ANSWERS);
    driver.add_exclusive(&answers_to(request), ANSWERS);
    assert_eq!(linked(&driver), [(subscription, first)]);
    assert!(driver.recorded_errors()[0].contains("a second publication answers the same request"));
}

#[test]
fn after_the_answers_end_those_of_the_next_publication_are_read() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let first = driver.add_publication(&answers_to(request), ANSWERS);
    driver.remove_publication(first, false);
    driver.pass_alive(SECOND);
    let second = driver.add_publication(&answers_to(request), ANSWERS);
    assert_eq!(linked(&driver), [(subscription, first), (subscription, second)]);
    assert_eq!(driver.recorded_errors(), [""; 0]);
}

#[test]
fn answers_that_waited_for_the_first_to_end_are_read_then() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let [first, second, third] = [(); 3].map(|()| driver.add_exclusive(&answers_to(request), ANSWERS));
    driver.pass_alive(SECOND);
    assert_eq!(linked(&driver), [(subscription, first)]);
    driver.remove_publication(first, false);
    driver.pass_alive(3 * SECOND);
    assert_eq!(linked(&driver), [(subscription, first), (subscription, second)]);
    driver.remove_publication(second, true);
    driver.pass_alive(3 * SECOND);
    let expected = [first, second, third].map(|answers| (subscription, answers));
    assert_eq!(linked(&driver), expected);
}

#[test]
fn answers_to_nothing_reach_no_reader_and_change_nothing() {
    let mut driver = Driver::new();
    let (subscription, request) = asker(&mut driver);
    let plain = driver.add_subscription("aeron:ipc", ANSWERS + 1);
    // Not a publication; a publication whose answers nothing reads; a subscription that does not read answers.
    let of_plain = format!("aeron:ipc?term-length=64k|response-correlation-id={plain}");
    let misled = driver.add_publication(&of_plain, REQUESTS);
    for answered in [999_999, subscription, misled] {
        driver.add_exclusive(&answers_to(answered), ANSWERS);
    }
    assert_eq!(linked(&driver), []);
    let answers = driver.add_exclusive(&answers_to(request), ANSWERS);
    assert_eq!(linked(&driver), [(subscription, answers)]);
    driver.add_exclusive("aeron:ipc?term-length=64k", ANSWERS + 1);
    assert_eq!(
        linked(&driver).len(),
        2,
        "an ordinary subscription wants all sessions still"
    );
}

#[test]
fn a_publication_of_answers_says_what_it_answers() {
    let mut driver = Driver::new();
    driver.add_publication(ANSWERS_CHANNEL, ANSWERS);
    let (code, message) = driver.refusals().remove(0);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(message.contains("control-mode=response was specified, but no response-correlation-id set"));
    assert_eq!(driver.recorded_errors(), [message]);
    assert_eq!(driver.log_files(), 0);
}
