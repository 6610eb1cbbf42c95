//! Space that is promised to sparse logs and not used yet.
//!
//! A store into a page for which the file system has no block left ends the process, so promises must not exceed the
//! free space. The threshold of low space is the margin for files of other programs, which are unknown here.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Unit of `st_blocks`, whatever the file system's blocks are.
const STAT_BLOCK_LENGTH: u64 = 512;

/// The sparse logs of one driver.
#[derive(Debug, Default)]
pub(crate) struct SparseLogs {
    lengths: HashMap<PathBuf, u64>,
    total_length: u64,
}

impl SparseLogs {
    pub(crate) fn add(&mut self, path: &Path, length: u64) {
        self.lengths.insert(path.to_owned(), length);
        self.total_length += length;
    }

    /// Also called for logs that are not sparse, which are not here.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.total_length -= self.lengths.remove(path).unwrap_or(0);
    }

    /// No publisher writes to the log any more: it keeps what it has taken, `unread_length`, and one block that a reader
    /// takes that looks for a frame after the last one. Also called for logs that are not sparse, which are not here.
    pub(crate) fn end(&mut self, path: &Path, unread_length: u64) {
        if let (Some(length), Ok(file)) = (self.lengths.get_mut(path), fs::metadata(path)) {
            let needed = length_taken(&file) + unread_length + file.blksize();
            self.total_length -= length.saturating_sub(needed);
            *length = needed.min(*length);
        }
    }

    /// No less than [`Self::missing_length`], without looking at any file.
    pub(crate) fn total_length(&self) -> u64 {
        self.total_length
    }

    /// What the logs may still take: looks at each file.
    pub(crate) fn missing_length(&self) -> u64 {
        self.lengths
            .iter()
            .map(|(path, length)| {
                let taken = fs::metadata(path).map_or(0, |file| length_taken(&file));
                length.saturating_sub(taken)
            })
            .sum()
    }
}

fn length_taken(file: &Metadata) -> u64 {
    file.blocks() * STAT_BLOCK_LENGTH
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    const LENGTH: u64 = 1 << 20;

    #[test]
    fn what_is_written_is_no_longer_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.logbuffer");
        let file = File::create(&path).unwrap();
        file.set_len(LENGTH).unwrap();
        let mut logs = SparseLogs::default();
        logs.add(&path, LENGTH);
        let before = logs.missing_length();
        file.write_all_at(&[1; 1 << 18], 0).unwrap();
        file.sync_all().unwrap();
        assert!(before <= LENGTH && logs.missing_length() <= before - (1 << 18));
        assert_eq!(logs.total_length(), LENGTH);
        logs.remove(&path);
        logs.remove(&path);
        assert_eq!((logs.missing_length(), logs.total_length()), (0, 0));
    }

    #[test]
    fn an_ended_log_is_promised_no_more_than_the_next_block() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.logbuffer");
        let file = File::create(&path).unwrap();
        file.set_len(LENGTH).unwrap();
        file.write_all_at(&[1; 1 << 18], 0).unwrap();
        file.sync_all().unwrap();
        let mut logs = SparseLogs::default();
        logs.add(&path, LENGTH);
        for _ in 0..2 {
            logs.end(&path, 0);
            assert!(logs.missing_length() <= file.metadata().unwrap().blksize());
            assert!(logs.total_length() >= 1 << 18 && logs.total_length() < LENGTH);
        }
        logs.remove(&path);
        assert_eq!((logs.missing_length(), logs.total_length()), (0, 0));
    }

    #[test]
    fn an_ended_log_that_was_written_from_end_to_end_is_promised_no_more_than_its_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.logbuffer");
        fs::write(&path, vec![1; LENGTH as usize]).unwrap();
        let mut logs = SparseLogs::default();
        logs.add(&path, LENGTH);
        logs.end(&path, 1);
        assert_eq!(logs.total_length(), LENGTH);
    }

    #[test]
    fn a_file_that_cannot_be_looked_at_counts_in_full() {
        let mut logs = SparseLogs::default();
        logs.add(Path::new("/no/such/log"), LENGTH);
        logs.end(Path::new("/no/such/log"), 0);
        assert_eq!(logs.missing_length(), LENGTH);
    }
}
