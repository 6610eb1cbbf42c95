//! The paths of log files, as events contain them.

use std::path::Path;

use crate::directory;
use crate::errors::CommandError;

/// The log of a publication.
pub(crate) fn publication_log(directory: &Path, registration_id: i64) -> Result<String, CommandError> {
    log_in(&directory.join(directory::PUBLICATIONS), registration_id)
}

/// The log of an image.
pub(crate) fn image_log(directory: &Path, correlation_id: i64) -> Result<String, CommandError> {
    log_in(&directory.join(directory::IMAGES), correlation_id)
}

fn log_in(folder: &Path, id: i64) -> Result<String, CommandError> {
    let path = folder.join(format!("{id}.logbuffer"));
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| CommandError::generic(format!("path is not text: {}", path.display())))
}
