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
    // From here on every field up to `length_min` is there.
    let (client_id, correlation_id) = (i64_at(message, 0), i64_at(message, 8));
    match type_id {
        type_id::ADD_PUBLICATION | type_id::ADD_EXCLUSIVE_PUBLICATION | type_id::ADD_SUBSCRIPTION => {
            add_stream(type_id, message)
        }
        type_id::REMOVE_PUBLICATION | type_id::REMOVE_SUBSCRIPTION | type_id::REMOVE_COUNTER => {
            Ok(remove(type_id, message))
        }
        type_id::ADD_DESTINATION
        | type_id::REMOVE_DESTINATION
        | type_id::ADD_RECEIVE_DESTINATION
        | type_id::REMOVE_RECEIVE_DESTINATION => destination(type_id, message),
        type_id::REMOVE_DESTINATION_BY_ID => Ok(Command::RemoveDestinationById {
            client_id,
            correlation_id,
            registration_id: i64_at(message, 16),
            destination_registration_id: i64_at(message, 24),
        }),
        type_id::ADD_COUNTER | type_id::ADD_STATIC_COUNTER => add_counter(type_id, message),
        type_id::REJECT_IMAGE => reject_image(message),
        type_id::CLIENT_KEEPALIVE => Ok(Command::ClientKeepalive {
            client_id,
            correlation_id,
        }),
        type_id::CLIENT_CLOSE => Ok(Command::ClientClose {
            client_id,
            correlation_id,
        }),
        type_id::TERMINATE_DRIVER => {
            let token = run_at(message, 16).ok_or(CommandFault::Field("token"))?;
            Ok(Command::TerminateDriver {
                client_id,
                correlation_id,
                token,
            })
        }
        type_id::NEXT_AVAILABLE_SESSION_ID => {
            let stream_id = i32_at(message, 16);
            Ok(Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id,
            })
        }
        _ => Err(CommandFault::UnknownType),
    }
}

fn add_stream(type_id: i32, message: &[u8]) -> Result<Command<'_>, CommandFault> {
    let (client_id, correlation_id) = (i64_at(message, 0), i64_at(message, 8));
    // The eight bytes a subscription carries at 16 have no meaning; C clients leave them undefined.
    let offset = if type_id == type_id::ADD_SUBSCRIPTION {
        24
    } else {
        16
    };
    let stream_id = i32_at(message, offset);
    let channel = text_field(message, offset + 4, "channel")?;
    Ok(match type_id {
        type_id::ADD_PUBLICATION => Command::AddPublication {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
        type_id::ADD_EXCLUSIVE_PUBLICATION => Command::AddExclusivePublication {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
        _ => Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
    })
}

fn remove(type_id: i32, message: &[u8]) -> Command<'_> {
    let (client_id, correlation_id) = (i64_at(message, 0), i64_at(message, 8));
    let registration_id = i64_at(message, 16);
    match type_id {
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
                registration_id,
                revoke,
            }
        }
        type_id::REMOVE_SUBSCRIPTION => Command::RemoveSubscription {
            client_id,
            correlation_id,
            registration_id,
        },
        _ => Command::RemoveCounter {
            client_id,
            correlation_id,
            registration_id,
        },
    }
}

fn destination(type_id: i32, message: &[u8]) -> Result<Command<'_>, CommandFault> {
    let (client_id, correlation_id) = (i64_at(message, 0), i64_at(message, 8));
    let registration_id = i64_at(message, 16);
    let channel = text_field(message, 24, "channel")?;
    Ok(match type_id {
        type_id::ADD_DESTINATION => Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        type_id::REMOVE_DESTINATION => Command::RemoveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        type_id::ADD_RECEIVE_DESTINATION => Command::AddReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        _ => Command::RemoveReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
    })
}

fn add_counter(counter_command: i32, message: &[u8]) -> Result<Command<'_>, CommandFault> {
    let (client_id, correlation_id) = (i64_at(message, 0), i64_at(message, 8));
    if counter_command == type_id::ADD_COUNTER {
        let type_id = i32_at(message, 16);
        let (key, label) = key_and_label(message, 20)?;
        return Ok(Command::AddCounter {
            client_id,
            correlation_id,
            type_id,
            key,
            label,
        });
    }
    let (registration_id, type_id) = (i64_at(message, 16), i32_at(message, 24));
    let (key, label) = key_and_label(message, 28)?;
    Ok(Command::AddStaticCounter {
        client_id,
        correlation_id,
        registration_id,
        type_id,
        key,
        label,
    })
}

fn reject_image(message: &[u8]) -> Result<Command<'_>, CommandFault> {
    let reason = run_at(message, 32).ok_or(CommandFault::Field("reason"))?;
    // C clients count a terminator as part of the text.
    let end = reason
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    Ok(Command::RejectImage {
        client_id: i64_at(message, 0),
        correlation_id: i64_at(message, 8),
        image_correlation_id: i64_at(message, 16),
        position: i64_at(message, 24),
        reason: text(&reason[..end]),
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
