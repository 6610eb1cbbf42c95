use super::*;

const IDENTITY: CncIdentity = CncIdentity {
    client_liveness_timeout_ns: 10_000_000_000,
    start_timestamp_ms: 1_700_000_000_000,
    pid: 4242,
    page_size: 4096,
};

fn small() -> CncLengths {
    CncLengths {
        to_driver: 1024 + ring::TRAILER_LENGTH,
        to_clients: 1024 + broadcast::TRAILER_LENGTH,
        counters_values: 1024,
        error_log: 4096,
    }
}

fn create(directory: &Path) -> CncFile {
    CncFile::create(directory, &small(), &IDENTITY).unwrap()
}

#[test]
fn the_default_file_has_the_documented_length() {
    assert_eq!(align(CncLengths::default().check().unwrap(), 4096), 48_238_592);
}

#[test]
fn a_file_is_refused_until_it_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let created = create(dir.path());
    let path = dir.path().join(FILE_NAME);
    assert!(matches!(
        CncFile::map(&path, Access::ReadOnly),
        Err(CncError::NotReady)
    ));
    created.signal_ready().unwrap();
    let mapped = CncFile::map(&path, Access::ReadWrite).unwrap();
    assert_eq!(mapped.version_acquire(), 512);
    assert_eq!(mapped.lengths(), &small());
    assert_eq!(
        (
            mapped.pid(),
            mapped.start_timestamp_ms(),
            mapped.client_liveness_timeout_ns()
        ),
        (4242, 1_700_000_000_000, 10_000_000_000)
    );
    created.counters_values().put_i64(0, 77);
    assert_eq!(mapped.counters_values().get_i64(0), 77);
}

#[test]
fn the_header_has_the_documented_bytes() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path()).signal_ready().unwrap();
    let bytes = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
    let words: Vec<_> = bytes[..24]
        .chunks(4)
        .map(|word| i32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(words, [512, 1024 + 768, 1024 + 128, 4096, 1024, 4096]);
    assert_eq!(bytes[40..48], 4242i64.to_le_bytes());
    assert_eq!(bytes[48..52], 4096i32.to_le_bytes());
    assert_eq!(bytes.len() % 4096, 0);
}

#[test]
fn sections_lie_back_to_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = create(dir.path());
    let base = file.whole.as_ptr() as usize;
    let offsets: Vec<_> = (0..5)
        .map(|index| file.section(index).as_ptr() as usize - base)
        .collect();
    let second = 128 + 1024 + 768;
    let third = second + 1024 + 128;
    assert_eq!(offsets, [128, second, third, third + 4096, third + 4096 + 1024]);
}

#[test]
fn headers_that_cannot_be_right_are_refused() {
    let cases: &[(usize, i32)] = &[
        (0, 1 << 16),       // foreign major version
        (0, -1),            // the same
        (4, 1000 + 768),    // not a power of two
        (4, -1),            // negative
        (8, 0),             // empty
        (12, 4095),         // not four times the values
        (16, 1 << 29),      // metadata overflow
        (20, 4097),         // misaligned
        (20, i32::MAX - 7), // sum does not fit
        (48, 4097),         // not a page size
        (48, -4096),
    ];
    for (offset, value) in cases {
        let dir = tempfile::tempdir().unwrap();
        let file = create(dir.path());
        file.signal_ready().unwrap();
        file.whole.put_i32(*offset, *value);
        let error = CncFile::map(&dir.path().join(FILE_NAME), Access::ReadOnly).unwrap_err();
        assert!(
            matches!(
                error,
                CncError::ForeignVersion { .. } | CncError::SectionLength { .. } | CncError::PageSize { .. }
            ),
            "offset={offset} value={value}: {error}"
        );
    }
}

#[test]
fn short_files_are_refused_as_such() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path()).signal_ready().unwrap();
    let path = dir.path().join(FILE_NAME);
    let bytes = std::fs::read(&path).unwrap();
    for length in [0, 1, 127, 128, 4096] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = CncFile::map(&path, Access::ReadOnly).unwrap_err();
        assert!(
            matches!(error, CncError::TooShort { .. }),
            "length={length}: {error}"
        );
    }
}

#[test]
fn an_older_driver_that_states_no_page_size_has_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let file = create(dir.path());
    file.signal_ready().unwrap();
    file.whole.put_i32(PAGE_SIZE_OFFSET, 0);
    let mapped = CncFile::map(&dir.path().join(FILE_NAME), Access::ReadOnly).unwrap();
    assert_eq!(mapped.page_size(), 4096);
}

#[test]
fn lengths_asked_for_are_checked_before_a_file_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let lengths = CncLengths {
        to_driver: 1000,
        ..small()
    };
    let error = CncFile::create(dir.path(), &lengths, &IDENTITY).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CnC section length is invalid: section=to_driver length=1000"
    );
    assert!(!dir.path().join(FILE_NAME).exists());
}
