//! Whether a stream is over, which each path says for itself.

use headrace_protocol::frame::data;

use super::connections::Connections;
use super::counters::ReceiverCounters;
use crate::shared::ImageShared;

/// The end of the stream of an image.
#[derive(Default)]
pub(super) struct EndOfStream {
    /// Some path has said that the stream ends there.
    is_somewhere: bool,
    /// A path says so.
    is_revoked_somewhere: bool,
    pub(super) is_revoked: bool,
}

impl EndOfStream {
    /// A path says with these flags that the stream ends.
    pub(super) fn on_path(&mut self, flags: u8) {
        self.is_somewhere = true;
        self.is_revoked_somewhere |= flags & data::FLAG_REVOKED != 0;
    }

    /// The stream is over once each path that lives has said so.
    pub(super) fn check(
        &mut self,
        shared: &ImageShared,
        connections: &Connections,
        now_ns: i64,
        counters: &ReceiverCounters,
    ) {
        let may_end = !shared.is_end_of_stream() || (self.is_revoked_somewhere && !self.is_revoked);
        if !self.is_somewhere || !may_end {
            return;
        }
        let Some(position) = connections.end_of_stream(now_ns) else {
            return;
        };
        let metadata = shared.log.metadata();
        if self.is_revoked_somewhere && !self.is_revoked {
            self.is_revoked = true;
            metadata.put_is_publication_revoked_release();
            counters.publication_images_revoked.increment_release();
        }
        if !shared.is_end_of_stream() {
            metadata.put_end_of_stream_position_release(position);
            shared.set_end_of_stream();
        }
    }
}
