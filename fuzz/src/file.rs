//! Files with given bytes in them, for code that maps what it is told to.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// A sparse file of `length` bytes with `parts` written at their offsets; removed when dropped.
pub(crate) fn with_parts(length: u64, parts: &[(u64, &[u8])]) -> NamedTempFile {
    // Shared memory is where such files live, and keeps a fuzzer off the disk.
    let shared = Path::new("/dev/shm");
    let mut file = if shared.is_dir() {
        NamedTempFile::new_in(shared)
    } else {
        NamedTempFile::new()
    }
    .expect("room for a temporary file");
    for (offset, bytes) in parts {
        file.seek(SeekFrom::Start(*offset))
            .expect("a file can be positioned");
        file.write_all(bytes).expect("room for the bytes");
    }
    file.as_file()
        .set_len(length)
        .expect("a sparse file of this length");
    file
}
