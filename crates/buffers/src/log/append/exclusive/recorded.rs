//! Appending frames that were recorded, read from their file straight into the log.
//!
//! The bytes read lie after the tail, where no reader looks, until their frames were checked and made this
//! publication's own. Only the length of the first frame is kept elsewhere until then; storing it publishes all.

use crate::{Memory, align};

use super::{Append, AppendError, BlockError, ExclusiveAppender};
use crate::log::frame::{self, FRAME_ALIGNMENT, HEADER_LENGTH, TYPE_DATA, TYPE_PAD, TermIdentity};

/// Where a block of recorded frames ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedEnd {
    /// Where it was to end, or before a frame that reaches beyond what was read.
    Whole,
    /// At a padding frame of this length, within its term; recordings keep the header alone.
    Padding(usize),
    /// At something that is no frame of this place in the stream.
    Malformed,
}

/// What became of a block of recorded frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedResult {
    /// Data frames of `length` bytes, which may be none, were appended.
    Appended {
        /// Bytes of the stream.
        length: usize,
        /// What stopped it.
        end: RecordedEnd,
    },
    /// Nothing was read.
    Refused(Append),
}

/// A range of the term that is zeroed when this is dropped, however the append ends.
struct Unpublished<'a, M: Memory> {
    term: &'a M,
    offset: usize,
    end: usize,
}

impl<M: Memory> Drop for Unpublished<'_, M> {
    fn drop(&mut self) {
        self.term.zero(self.offset, self.end - self.offset);
    }
}

impl<M: Memory> ExclusiveAppender<M> {
    /// Appends the whole data frames among `length` bytes of a recording, all visible at once, under the session
    /// and stream of this publication. Frames that begin `within` bytes or later are left for another time.
    ///
    /// `fill` is given the first header, the term, and the range of the term that the bytes after that header go
    /// to, and says how many bytes it filled in all. They must have been recorded at this very position.
    pub fn append_recorded<E: From<AppendError>>(
        &mut self,
        length: usize,
        within: usize,
        limit: i64,
        fill: impl FnOnce(&mut [u8; HEADER_LENGTH], &M, usize, usize) -> Result<usize, E>,
    ) -> Result<RecordedResult, E> {
        if self.term_offset >= self.limits.term_length {
            if self.is_last_term() {
                return Ok(RecordedResult::Refused(Append::MaxPositionExceeded));
            }
            self.rotate();
        }
        if self.position() >= limit {
            let refusal = self.limits.refusal(&self.log, self.position(), length);
            return Ok(RecordedResult::Refused(refusal));
        }
        let offset = self.term_offset;
        let remaining = self.limits.term_length - offset;
        let length = length.min(remaining);
        if length < HEADER_LENGTH {
            return Err(AppendError::from(BlockError::Length { length, remaining }).into());
        }
        let term = self.log.term(self.partition);
        let mut unpublished = Unpublished {
            term,
            offset,
            end: offset + length,
        };
        let mut first = [0; HEADER_LENGTH];
        let filled = fill(&mut first, term, offset + HEADER_LENGTH, length - HEADER_LENGTH)?.min(length);
        if filled < HEADER_LENGTH {
            let end = RecordedEnd::Whole;
            return Ok(RecordedResult::Appended { length: 0, end });
        }
        term.put_bytes(offset + frame::VERSION_OFFSET, &first[frame::VERSION_OFFSET..]);
        let first_length = super::word(&first, frame::FRAME_LENGTH_OFFSET);
        let identity = self.log.identity(self.term_id);
        let (adopted, end) = adopt(term, offset, first_length, filled, within, identity);
        unpublished.offset += adopted;
        // The bytes that follow must be zero before a reader can get there.
        drop(unpublished);
        if adopted > 0 {
            self.store_tail(offset + adopted);
            frame::commit(term, offset, first_length as usize);
            self.term_offset = offset + adopted;
        }
        Ok(RecordedResult::Appended { length: adopted, end })
    }
}

/// Makes the whole data frames of a range frames of this stream; their length, and what ended them.
fn adopt<M: Memory>(
    term: &M,
    offset: usize,
    first_length: i32,
    filled: usize,
    within: usize,
    identity: TermIdentity,
) -> (usize, RecordedEnd) {
    let mut at = 0;
    while at < within && at + HEADER_LENGTH <= filled {
        let place = offset + at;
        let length = if at == 0 {
            first_length
        } else {
            term.get_i32(place)
        };
        let is_here = frame::term_offset(term, place) == place as i32
            && frame::term_id(term, place) == identity.term_id;
        if length < HEADER_LENGTH as i32 || !is_here {
            return (at, RecordedEnd::Malformed);
        }
        let span = align(length as usize, FRAME_ALIGNMENT);
        match frame::frame_type(term, place) {
            TYPE_DATA => (),
            TYPE_PAD if span <= term.capacity() - place => {
                return (at, RecordedEnd::Padding(length as usize));
            }
            _ => return (at, RecordedEnd::Malformed),
        }
        if span > filled - at {
            break;
        }
        frame::put_place(term, place, identity);
        at += span;
    }
    (at, RecordedEnd::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;
    use crate::log::read::read;
    use crate::log::spec::{LogSpec, LogType};
    use crate::log::{FrameHeader, LogBuffers};

    const TERM: usize = 65_536;
    const INITIAL_TERM_ID: i32 = i32::MAX;

    fn exclusive(session_id: i32, stream_id: i32) -> ExclusiveAppender {
        let spec = LogSpec {
            log_type: LogType::ExclusivePublication,
            session_id,
            stream_id,
            initial_term_id: INITIAL_TERM_ID,
            ..LogSpec::default()
        };
        ExclusiveAppender::new(&LogBuffers::heap(&spec).unwrap()).unwrap()
    }

    /// What was recorded of messages of these lengths.
    fn recording(lengths: &[usize]) -> Vec<u8> {
        let mut source = exclusive(5, 6);
        for (index, length) in lengths.iter().enumerate() {
            let message = vec![index as u8 + 1; *length];
            assert!(matches!(
                source.offer_one(&message, i64::MAX),
                Ok(Append::Position(_))
            ));
        }
        let mut data = vec![0; source.position() as usize];
        source.log().term(0).get_bytes(0, &mut data);
        data
    }

    fn append(
        appender: &mut ExclusiveAppender,
        recorded: &[u8],
        length: usize,
        within: usize,
    ) -> RecordedResult {
        let from = appender.position() as usize;
        let rest = &recorded[from..];
        let fill = |first: &mut [u8; HEADER_LENGTH], term: &AtomicBuffer, offset, room: usize| {
            let count = rest.len().min(HEADER_LENGTH + room);
            first.copy_from_slice(&rest[..HEADER_LENGTH]);
            term.put_bytes(offset, &rest[HEADER_LENGTH..count]);
            Ok::<_, AppendError>(count)
        };
        appender.append_recorded(length, within, i64::MAX, fill).unwrap()
    }

    fn appended(length: usize, end: RecordedEnd) -> RecordedResult {
        RecordedResult::Appended { length, end }
    }

    fn messages(appender: &ExclusiveAppender) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        let log = appender.log();
        read(
            log.term(0),
            log.geometry(),
            &mut 0,
            TERM,
            usize::MAX,
            |payload, header| {
                assert_eq!((header.session_id(), header.stream_id()), (77, 1001));
                seen.push(payload.to_vec());
            },
        );
        seen
    }

    fn is_clean_behind_its_position(appender: &ExclusiveAppender) -> bool {
        let from = appender.position() as usize;
        let mut rest = vec![0; TERM - from];
        appender.log().term(0).get_bytes(from, &mut rest);
        rest.iter().all(|byte| *byte == 0)
    }

    #[test]
    fn a_recording_read_in_pieces_comes_out_whole_under_the_session_of_the_publication() {
        let lengths = [1, 0, 32, 33, 700, 64, 5, 1300, 31, 0, 900];
        let recorded = recording(&lengths);
        let expected: Vec<Vec<u8>> = (1..)
            .zip(lengths)
            .map(|(byte, length)| vec![byte; length])
            .collect();
        for piece in [1344, 1400, 2000, TERM, usize::MAX] {
            let mut appender = exclusive(77, 1001);
            while (appender.position() as usize) < recorded.len() {
                let RecordedResult::Appended { length, end } =
                    append(&mut appender, &recorded, piece, usize::MAX)
                else {
                    panic!("refused at {}", appender.position());
                };
                assert!(length > 0 && end == RecordedEnd::Whole);
                assert!(is_clean_behind_its_position(&appender));
            }
            assert_eq!(messages(&appender), expected);
        }
    }

    #[test]
    fn frames_from_within_on_and_frames_cut_short_are_left_for_another_time() {
        let recorded = recording(&[100, 100, 100]);
        let mut appender = exclusive(77, 1001);
        assert_eq!(
            append(&mut appender, &recorded, TERM, 161),
            appended(320, RecordedEnd::Whole)
        );
        assert_eq!(
            append(&mut appender, &recorded, 159, 160),
            appended(0, RecordedEnd::Whole)
        );
        assert!(is_clean_behind_its_position(&appender));
        assert_eq!(messages(&appender).len(), 2);
    }

    #[test]
    fn what_is_no_frame_of_this_place_ends_the_block_and_is_not_seen() {
        let whole = recording(&[100, 100, 100]);
        let second = 160;
        let spoilt: [(usize, &[u8]); 7] = [
            (second, &[0, 0, 0, 0]),
            (second, &[31, 0, 0, 0]),
            (second, &[255, 255, 255, 255]),
            (second + frame::VERSION_OFFSET + 2, &[2, 0]),
            // Padding, and longer than the rest of the term.
            (second, &[0, 0, 1, 0, 0, 0, 0, 0]),
            (second + frame::TERM_OFFSET_OFFSET, &[0, 0, 0, 0]),
            (second + frame::TERM_ID_OFFSET, &[0, 0, 0, 0]),
        ];
        for (at, bytes) in spoilt {
            let mut recorded = whole.clone();
            recorded[at..at + bytes.len()].copy_from_slice(bytes);
            let mut appender = exclusive(77, 1001);
            let result = append(&mut appender, &recorded, TERM, usize::MAX);
            assert_eq!(result, appended(second, RecordedEnd::Malformed), "{at}");
            assert!(is_clean_behind_its_position(&appender));
            let result = append(&mut appender, &recorded, TERM, usize::MAX);
            assert_eq!(result, appended(0, RecordedEnd::Malformed), "{at}");
            assert_eq!(messages(&appender).len(), 1);
        }
    }

    #[test]
    fn padding_ends_the_block_and_says_how_long_it_is() {
        let mut source = exclusive(5, 6);
        source.offer_one(b"before", i64::MAX).unwrap();
        source.append_padding(500, i64::MAX).unwrap();
        let mut recorded = vec![0; source.position() as usize];
        source.log().term(0).get_bytes(0, &mut recorded);
        let mut appender = exclusive(77, 1001);
        let result = append(&mut appender, &recorded, TERM, usize::MAX);
        assert_eq!(result, appended(64, RecordedEnd::Padding(532)));
        assert!(is_clean_behind_its_position(&appender));
    }

    #[test]
    fn a_read_that_fails_leaves_nothing_behind() {
        let mut appender = exclusive(77, 1001);
        let refused = AppendError::MessageTooLong { length: 1, max: 0 };
        let result = appender.append_recorded(TERM, TERM, i64::MAX, |_, term, offset, length| {
            term.put_bytes(offset, &vec![7; length]);
            Err::<usize, _>(refused)
        });
        assert_eq!(result, Err(refused));
        assert_eq!(appender.position(), 0);
        assert!(is_clean_behind_its_position(&appender));
    }

    #[test]
    fn nothing_is_read_when_there_is_no_room_or_no_length() {
        let mut appender = exclusive(77, 1001);
        let never = |_: &mut [u8; HEADER_LENGTH], _: &AtomicBuffer, _, _| -> Result<usize, AppendError> {
            panic!("nothing was to be read")
        };
        assert_eq!(
            appender.append_recorded(TERM, TERM, 0, never),
            Ok(RecordedResult::Refused(Append::NotConnected))
        );
        assert!(matches!(
            appender.append_recorded(31, TERM, i64::MAX, never),
            Err(AppendError::Block(BlockError::Length { length: 31, .. }))
        ));
    }

    #[test]
    fn the_block_after_a_full_term_goes_to_the_next() {
        let mut appender = exclusive(77, 1001);
        append(
            &mut appender,
            &recording(&[1024 - HEADER_LENGTH; TERM / 1024]),
            TERM,
            TERM,
        );
        assert_eq!(appender.position(), TERM as i64);
        let mut recorded = recording(&[10]);
        recorded[frame::TERM_ID_OFFSET..][..4].copy_from_slice(&i32::MIN.to_le_bytes());
        let result = appender.append_recorded(64, 64, i64::MAX, |first, term, offset, length| {
            first.copy_from_slice(&recorded[..HEADER_LENGTH]);
            term.put_bytes(offset, &recorded[HEADER_LENGTH..][..length]);
            Ok::<_, AppendError>(64)
        });
        assert_eq!(result, Ok(appended(64, RecordedEnd::Whole)));
        assert_eq!(FrameHeader::read(appender.log().term(1), 0).session_id, 77);
    }
}
