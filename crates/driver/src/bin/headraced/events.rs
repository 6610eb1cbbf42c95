//! The driver's changes of state as lines, for those who collect what a program prints.
//!
//! The driver keeps them in a file of its directory, which this reads as any other program could.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use headrace_buffers::event_log::{Event, EventReader, FILE_NAME};
use headrace_driver::config::DriverConfig;

const NS_PER_S: i64 = 1_000_000_000;
const NS_PER_US: i64 = 1_000;

/// Where the lines go.
pub(crate) type Sink = Box<dyn Write>;

/// Opens what the settings name; none if nothing is to be printed.
pub(crate) fn sink(config: &DriverConfig) -> io::Result<Option<Sink>> {
    if !config.prints_events() {
        return Ok(None);
    }
    let Some(path) = &config.event_log_filename else {
        return Ok(Some(Box::new(io::stdout())));
    };
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(Some(Box::new(file)))
}

/// Prints what it has not printed yet, whenever it is asked.
pub(crate) struct EventPrinter {
    reader: EventReader,
    // None once it took nothing any more.
    sink: Option<Sink>,
}

impl EventPrinter {
    /// Of the driver on `directory`; fails if it keeps no log.
    pub(crate) fn new(directory: &Path, sink: Sink) -> io::Result<Self> {
        let (_, reader) = EventReader::open(&directory.join(FILE_NAME))?;
        Ok(Self {
            reader,
            sink: Some(sink),
        })
    }

    pub(crate) fn print(&mut self) {
        if let Some(sink) = &mut self.sink
            && print(&mut self.reader, sink).is_err()
        {
            // A full disk or a reader that has gone must not stop the driver. The log keeps the events.
            self.sink = None;
        }
    }
}

fn print(reader: &mut EventReader, sink: &mut dyn Write) -> io::Result<()> {
    let (events, lost_count) = reader.drain()?;
    if lost_count > 0 {
        writeln!(
            sink,
            "{lost_count} events were lost: set aeron.headrace.event.limit higher"
        )?;
    }
    for (_, event) in &events {
        writeln!(sink, "{}", line(event))?;
    }
    if events.is_empty() { Ok(()) } else { sink.flush() }
}

/// When, what, which change and why, then what tells it from others.
fn line(event: &Event) -> String {
    let (seconds, us) = (event.time_ns / NS_PER_S, event.time_ns % NS_PER_S / NS_PER_US);
    let mut line = format!("[{seconds}.{us:06}] {} {}: ", event.kind, event.id);
    if !event.old.is_empty() {
        line += &format!("{} -> ", event.old);
    }
    line += &format!("{}: {}", event.new, event.reason);
    let numbers = [
        ("stream", event.stream_id.map(i64::from)),
        ("session", event.session_id.map(i64::from)),
        ("of", event.parent_id),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            line += &format!(" {name}={number}");
        }
    }
    if !event.detail.is_empty() {
        line += &format!(" {}", event.detail);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_known_of_a_change() {
        let mut event = Event {
            time_ns: 1_700_000_000_012_345_678,
            kind: "image".to_owned(),
            id: 3,
            new: "Init".to_owned(),
            reason: "SETUP received".to_owned(),
            ..Event::default()
        };
        assert_eq!(line(&event), "[1700000000.012345] image 3: Init: SETUP received");
        event.old = "Lost".to_owned();
        event.stream_id = Some(11);
        event.session_id = Some(-7);
        event.parent_id = Some(2);
        event.detail = "127.0.0.1:9".to_owned();
        assert_eq!(
            line(&event),
            "[1700000000.012345] image 3: Lost -> Init: SETUP received stream=11 session=-7 of=2 127.0.0.1:9"
        );
    }
}
