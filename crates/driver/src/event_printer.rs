//! The driver's changes of state as lines, for those who collect what a program prints.
//!
//! The driver keeps them in a file of its directory, which a thread of its own reads as any other program could. So no
//! agent waits for a disk or for the program that reads standard output.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use headrace_buffers::event_log::{Event, EventReader, FILE_NAME};

use crate::config::DriverConfig;

const NS_PER_S: i64 = 1_000_000_000;
const NS_PER_US: i64 = 1_000;

/// How long a change waits before it is printed.
const INTERVAL: Duration = Duration::from_millis(20);

/// Where the lines go.
pub(crate) enum Sink {
    Standard,
    File(LogFile),
}

/// A file that lines are appended to. One that has its length becomes `NAME.1`, in place of an older one, and a new one
/// begins.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    length_max: u64,
}

impl LogFile {
    fn open(path: &Path, length_max: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            path: path.to_owned(),
            length: file.metadata()?.len(),
            file,
            length_max,
        })
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        for line in lines.split_inclusive('\n') {
            let length = line.len() as u64;
            if self.length > 0 && self.length + length > self.length_max {
                let mut old = self.path.clone().into_os_string();
                old.push(".1");
                std::fs::rename(&self.path, old)?;
                *self = Self::open(&self.path, self.length_max)?;
            }
            self.file.write_all(line.as_bytes())?;
            self.length += length;
        }
        Ok(())
    }
}

impl Sink {
    /// What the settings name; none if nothing is to be printed.
    pub(crate) fn open(config: &DriverConfig) -> io::Result<Option<Self>> {
        if !config.prints_events() {
            return Ok(None);
        }
        let Some(path) = &config.event_log_filename else {
            return Ok(Some(Self::Standard));
        };
        let file = LogFile::open(Path::new(path), config.event_log_file_max_length as u64)?;
        Ok(Some(Self::File(file)))
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        match self {
            Self::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(lines.as_bytes())?;
                out.flush()
            }
            Self::File(file) => file.write(lines),
        }
    }
}

/// The thread that prints. Dropping it prints what is left, and ends it.
pub(crate) struct EventPrinter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EventPrinter {
    /// Of the driver on `directory`; none if it keeps no log, which a warning says.
    pub(crate) fn start(config: &DriverConfig, sink: Sink) -> io::Result<Option<Self>> {
        let Ok((_, reader)) = EventReader::open(&config.directory.join(FILE_NAME)) else {
            return Ok(None);
        };
        let mut printer = Printer {
            reader,
            kinds: config.printed_kinds(),
            sink: Some(sink),
        };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("event-printer".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    printer.print();
                }
                printer.print();
            })?;
        Ok(Some(Self {
            stop: Some(stop),
            thread: Some(thread),
        }))
    }
}

impl Drop for EventPrinter {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has no way to fail but a defect, and then the driver ends all the same.
            let _ = thread.join();
        }
    }
}

struct Printer {
    reader: EventReader,
    kinds: BTreeSet<&'static str>,
    // None once it took nothing any more.
    sink: Option<Sink>,
}

impl Printer {
    fn print(&mut self) {
        if let Some(sink) = &mut self.sink
            && print(&mut self.reader, &self.kinds, sink).is_err()
        {
            // A full disk or a reader that has gone must not stop the driver. The log keeps the events.
            self.sink = None;
        }
    }
}

fn print(reader: &mut EventReader, kinds: &BTreeSet<&str>, sink: &mut Sink) -> io::Result<()> {
    let (events, lost_count) = reader.drain()?;
    let mut lines = String::new();
    if lost_count > 0 {
        lines += &format!("{lost_count} events were lost: set aeron.headrace.event.limit higher\n");
    }
    for (_, event) in &events {
        if kinds.contains(event.kind.as_str()) {
            lines += &(line(event) + "\n");
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    sink.write(&lines)
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

    #[test]
    fn a_file_of_its_length_makes_room_for_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.log");
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let mut file = LogFile::open(&path, 10).unwrap();
        file.write("one\ntwo\n").unwrap();
        assert_eq!(read("events.log"), "one\ntwo\n");
        file.write("three\na line that is longer than a file\n").unwrap();
        assert_eq!(read("events.log.1"), "three\n");
        assert_eq!(read("events.log"), "a line that is longer than a file\n");
        // What an earlier driver wrote counts.
        let mut file = LogFile::open(&path, 10).unwrap();
        file.write("four\n").unwrap();
        assert_eq!(read("events.log"), "four\n");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
