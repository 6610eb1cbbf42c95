//! What the protocol has and this version has not: transport security, which is an add-on of Aeron. A channel that asks
//! for it is refused, as Aeron's driver without the add-on does: a stream that silently lacks it is worse.

use super::{ChannelError, ChannelUri, Media, keys, params};
use crate::ErrorCode;

/// Refuses a channel whose sockets would have to be secured.
pub(super) fn check(uri: &ChannelUri) -> Result<(), ChannelError> {
    // A spy's channel is that of the publications it watches: it has no sockets, so what is said of them is theirs.
    let has_sockets = uri.media() == Media::Udp && !uri.is_spy();
    if has_sockets && params::boolean(uri, keys::TRANSPORT_SECURITY)? == Some(true) {
        return Err(ChannelError::new(
            ErrorCode::GenericError,
            format!(
                "channel parameter 'ats=true' is not supported by this version of Headrace: transport security is not built \
                 yet; remove it or set ats=false, channel={uri}"
            ),
        ));
    }
    Ok(())
}
