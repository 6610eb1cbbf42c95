//! Deleting the logs of streams.

use std::fs;
use std::os::unix::fs::FileExt;

use headrace_buffers::counters::system_counter;
use headrace_buffers::log::descriptor::PAGE_SIZE_OFFSET;

use crate::byte_client::{Driver, IPC};
use crate::common::SECOND;

#[test]
fn a_log_that_cannot_be_deleted_is_tried_again_once_a_second() {
    let mut driver = Driver::new();
    let mapped = driver.system(system_counter::BYTES_CURRENTLY_MAPPED);
    let publication = driver.add_publication(IPC, 10);
    let path = driver.publication_path(publication);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    driver.remove_publication(publication, false);
    driver.pass_alive(20 * SECOND);
    let fails = driver.system(system_counter::FREE_FAILS);
    assert!((5..=20).contains(&fails), "{fails}");
    fs::remove_dir(&path).unwrap();
    driver.pass_alive(2 * SECOND);
    assert!(driver.system(system_counter::FREE_FAILS) <= fails + 1);
    assert_eq!(driver.system(system_counter::BYTES_CURRENTLY_MAPPED), mapped);
}

#[test]
fn what_a_client_writes_over_the_page_size_of_a_log_changes_no_account() {
    let mut driver = Driver::new();
    let mapped = driver.system(system_counter::BYTES_CURRENTLY_MAPPED);
    let publication = driver.add_publication(IPC, 10);
    let log = driver.log(publication);
    let metadata_offset = 3 * log.term_length();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(driver.publication_path(publication))
        .unwrap();
    file.write_all_at(&[0; 4], (metadata_offset + PAGE_SIZE_OFFSET) as u64)
        .unwrap();
    assert_eq!(log.metadata().page_size(), 0);
    driver.remove_publication(publication, false);
    driver.pass_alive(10 * SECOND);
    assert_eq!(driver.system(system_counter::BYTES_CURRENTLY_MAPPED), mapped);
}
