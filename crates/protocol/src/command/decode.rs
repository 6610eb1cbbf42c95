//! Reading commands. Lengths come from another process, so each is checked against the record.

use std::borrow::Cow;

use super::{Command, CommandError, CommandFault, HEADER_LENGTH, type_id};
use crate::bytes::{i32_at, i64_at, run_at, text};

const REVOKE_FLAG: i64 = 1;

impl<'a> Command<'a> {
    /// Reads the message of a ring record.
    pub fn decode(type_id: i32, message: &'a [u8]) -> Result<Self, CommandError> {
        decode(type_id, message).map_err(|fault| CommandError {
            type_id,
            length: message.len(),
            correlation_id: (message.len() >= HEADER_LENGTH).then(|| i64_at(message, 8)),
            fault,
        })
    }
}

/// Shortest message of each command, as the reference accepts it.
fn length_min(type_id: i32) -> Option<usize> {
    Some(match type_id {
        type_id::CLIENT_KEEPALIVE | type_id::CLIENT_CLOSE => 16,
        type_id::TERMINATE_DRIVER | type_id::NEXT_AVAILABLE_SESSION_ID => 20,
        type_id::ADD_PUBLICATION
        | type_id::ADD_EXCLUSIVE_PUBLICATION
        | type_id::REMOVE_PUBLICATION
        | type_id::REMOVE_SUBSCRIPTION
        | type_id::REMOVE_COUNTER => 24,
        type_id::ADD_DESTINATION
        | type_id::REMOVE_DESTINATION
        | type_id::ADD_RECEIVE_DESTINATION
        | type_id::REMOVE_RECEIVE_DESTINATION
        | type_id::ADD_COUNTER => 28,
        type_id::ADD_SUBSCRIPTION | type_id::REMOVE_DESTINATION_BY_ID => 32,
        type_id::ADD_STATIC_COUNTER | type_id::REJECT_IMAGE => 36,
        _ => return None,
    })
}

fn decode(type_id: i32, message: &[u8]) -> Result<Command<'_>, CommandFault> {
    let length_min = length_min(type_id).ok_or(CommandFault::UnknownType)?;
    if message.len() < length_min {
        return Err(CommandFault::TooShort);
    }
    let client_id = i64_at(message, 0);
    let correlation_id = i64_at(message, 8);
    // Only read where the minimum length says that it is there.
    let registration_id = || i64_at(message, 16);
    let destination_channel = || text_field(message, 24, "channel");
    Ok(match type_id {
        type_id::ADD_PUBLICATION | type_id::ADD_EXCLUSIVE_PUBLICATION => {
            let stream_id = i32_at(message, 16);
            let channel = text_field(message, 20, "channel")?;
            if type_id == type_id::ADD_PUBLICATION {
                Command::AddPublication {
                    client_id,
                    correlation_id,
                    stream_id,
                    channel,
                }
            } else {
                Command::AddExclusivePublication {
                    client_id,
                    correlation_id,
                    stream_id,
                    channel,
                }
            }
        }
        type_id::REMOVE_PUBLICATION => {
            // Clients from before revocation send no flags.
            let flags = if message.len() >= 32 {
                i64_at(message, 24)
            } else {
                0
            };
            let revoke = flags & REVOKE_FLAG != 0;
            Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id: registration_id(),
                revoke,
            }
        }
        type_id::ADD_SUBSCRIPTION => Command::AddSubscription {
            client_id,
            correlation_id,
            // The eight bytes at 16 have no meaning; C clients leave them undefined.
            stream_id: i32_at(message, 24),
            channel: text_field(message, 28, "channel")?,
        },
        type_id::REMOVE_SUBSCRIPTION => Command::RemoveSubscription {
            client_id,
            correlation_id,
            registration_id: registration_id(),
        },
        type_id::CLIENT_KEEPALIVE => Command::ClientKeepalive {
            client_id,
            correlation_id,
        },
        type_id::ADD_DESTINATION => Command::AddDestination {
            client_id,
            correlation_id,
            registration_id: registration_id(),
            channel: destination_channel()?,
        },
        type_id::REMOVE_DESTINATION => Command::RemoveDestination {
            client_id,
            correlation_id,
            registration_id: registration_id(),
            channel: destination_channel()?,
        },
        type_id::ADD_COUNTER => {
            let (key, label) = key_and_label(message, 20)?;
            Command::AddCounter {
                client_id,
                correlation_id,
                type_id: i32_at(message, 16),
                key,
                label,
            }
        }
        type_id::REMOVE_COUNTER => Command::RemoveCounter {
            client_id,
            correlation_id,
            registration_id: registration_id(),
        },
        type_id::CLIENT_CLOSE => Command::ClientClose {
            client_id,
            correlation_id,
        },
        type_id::ADD_RECEIVE_DESTINATION => Command::AddReceiveDestination {
            client_id,
            correlation_id,
            registration_id: registration_id(),
            channel: destination_channel()?,
        },
        type_id::REMOVE_RECEIVE_DESTINATION => Command::RemoveReceiveDestination {
            client_id,
            correlation_id,
            registration_id: registration_id(),
            channel: destination_channel()?,
        },
        type_id::TERMINATE_DRIVER => {
            let token = run_at(message, 16).ok_or(CommandFault::Field("token"))?;
            Command::TerminateDriver {
                client_id,
                correlation_id,
                token,
            }
        }
        type_id::ADD_STATIC_COUNTER => {
            let (key, label) = key_and_label(message, 28)?;
            Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id: registration_id(),
                type_id: i32_at(message, 24),
                key,
                label,
            }
        }
        type_id::REJECT_IMAGE => {
            let reason = run_at(message, 32).ok_or(CommandFault::Field("reason"))?;
            // C clients count a terminator as part of the text.
            let end = reason
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |last| last + 1);
            Command::RejectImage {
                client_id,
                correlation_id,
                image_correlation_id: i64_at(message, 16),
                position: i64_at(message, 24),
                reason: text(&reason[..end]),
            }
        }
        type_id::REMOVE_DESTINATION_BY_ID => Command::RemoveDestinationById {
            client_id,
            correlation_id,
            registration_id: registration_id(),
            destination_registration_id: i64_at(message, 24),
        },
        type_id::NEXT_AVAILABLE_SESSION_ID => Command::NextAvailableSessionId {
            client_id,
            correlation_id,
            stream_id: i32_at(message, 16),
        },
        _ => return Err(CommandFault::UnknownType),
    })
}

fn text_field<'a>(
    message: &'a [u8],
    offset: usize,
    field: &'static str,
) -> Result<Cow<'a, str>, CommandFault> {
    run_at(message, offset)
        .map(text)
        .ok_or(CommandFault::Field(field))
}

/// A key at `offset`, then a label at the next multiple of 4.
fn key_and_label(message: &[u8], offset: usize) -> Result<(&[u8], Cow<'_, str>), CommandFault> {
    let key = run_at(message, offset).ok_or(CommandFault::Field("key"))?;
    let label_offset = (offset + 4 + key.len()).next_multiple_of(4);
    Ok((key, text_field(message, label_offset, "label")?))
}
