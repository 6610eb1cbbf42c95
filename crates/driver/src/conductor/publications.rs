//! What IPC and network publications have in common.

use std::path::{Path, PathBuf};

use headrace_buffers::log::StartPosition;
use headrace_protocol::channel::{InitialPosition, PublicationParams};

use super::Conductor;
use super::ipc_publication::IpcPublication;
use super::network_publication::NetworkPublication;
use crate::directory;
use crate::errors::CommandError;

/// Entity tag of a publication without one.
pub(crate) const NO_TAG: i64 = -1;

/// File of a publication's log.
pub(crate) fn publication_log_path(directory: &Path, registration_id: i64) -> PathBuf {
    directory
        .join(directory::PUBLICATIONS)
        .join(format!("{registration_id}.logbuffer"))
}

/// File of an image's log.
pub(crate) fn image_log_path(directory: &Path, correlation_id: i64) -> PathBuf {
    directory
        .join(directory::IMAGES)
        .join(format!("{correlation_id}.logbuffer"))
}

/// The path as it travels in events.
pub(crate) fn shown_path(path: &Path) -> Result<String, CommandError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| CommandError::generic(format!("path is not text: {}", path.display())))
}

/// The explicit start for a log's metadata; none when the stream starts at its first byte.
pub(crate) fn log_start(params: &PublicationParams, start: InitialPosition) -> Option<StartPosition> {
    params.initial_position.map(|_| StartPosition {
        term_id: start.term_id,
        term_offset: start.term_offset as usize,
    })
}

impl Conductor {
    /// Where the stream starts: as asked for, or at the first byte of a random term.
    pub(crate) fn start_of(&mut self, params: &PublicationParams) -> InitialPosition {
        params.initial_position.unwrap_or_else(|| {
            let initial_term_id = self.random.i32(..);
            InitialPosition {
                initial_term_id,
                term_id: initial_term_id,
                term_offset: 0,
            }
        })
    }

    /// An entity tag names one publication.
    pub(crate) fn check_entity_tag(
        &self,
        params: &PublicationParams,
        channel: &str,
    ) -> Result<(), CommandError> {
        let Some(tag) = params.tags.entity else {
            return Ok(());
        };
        let is_ipc = |publication: &IpcPublication| publication.spec().tags.entity == Some(tag);
        let is_network = |publication: &NetworkPublication| publication.spec().tags.entity == Some(tag);
        let is_taken =
            self.ipc_publications.iter().any(is_ipc) || self.network_publications.iter().any(is_network);
        if is_taken {
            return Err(CommandError::invalid_channel(format!(
                "entityTag={tag} already in use, channel={channel}"
            )));
        }
        Ok(())
    }
}
