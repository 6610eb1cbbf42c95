//! The media driver as a standalone program: `headraced [-v] [--allow-unknown] [-Dname=value]... [properties-file]...`

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use headrace_driver::config::{DriverConfig, Sources};
use headrace_driver::driver::{AERON_VERSION, VERSION};
use headrace_driver::{Invoker, MediaDriver, printing};
use headrace_sys::idle::IdleStrategy;
use headrace_sys::signals::ShutdownSignals;

/// Commit this was built from, as the Makefile knows it. The binaries alone take it, so that a commit links them anew and
/// compiles nothing else.
const COMMIT: &str = match option_env!("HEADRACE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Passes over `-D` names that are no setting of the driver, as `headrace archive` and `headrace cluster node` do.
const ALLOW_UNKNOWN: &str = "--allow-unknown";

/// How long the main thread waits before it looks whether a client asked the driver to stop.
const TERMINATION_CHECK_INTERVAL: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_else(|| "headraced".into());
    match run(&program.to_string_lossy(), arguments) {
        Ok(code) => code,
        Err(text) => {
            printing::to_stderr(text);
            ExitCode::FAILURE
        }
    }
}

fn run(program: &str, arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, String> {
    let mut sources = Sources::from_environment(std::env::vars_os());
    let mut files = Vec::new();
    let arguments: Vec<String> = arguments
        .map(|argument| argument.into_string())
        .collect::<Result<_, _>>()
        .map_err(|argument| format!("ERROR: argument {} must be text in UTF-8", argument.display()))?;
    let allows_unknown = arguments.iter().any(|argument| argument == ALLOW_UNKNOWN);
    for argument in arguments {
        if argument == "-v" {
            printing::to_stdout(version(program));
            return Ok(ExitCode::SUCCESS);
        } else if let Some(definition) = argument.strip_prefix("-D") {
            define(&mut sources, definition, allows_unknown)?;
        } else if argument.starts_with('-') && argument != ALLOW_UNKNOWN {
            return Err(format!("Usage: {program} [-v][-Dname=value][{ALLOW_UNKNOWN}]"));
        } else if argument != ALLOW_UNKNOWN {
            files.push(argument);
        }
    }
    for file in &files {
        sources
            .load(file)
            .map_err(|error| format!("ERROR: loading properties from {file} {error}"))?;
    }
    // Before any thread starts, so that no thread takes the signals for itself.
    let signals = ShutdownSignals::install().map_err(|error| format!("ERROR: driver init {error}"))?;
    let mut config = sources
        .into_config()
        .map_err(|error| format!("ERROR: context init {error}"))?;
    config.commit = COMMIT;
    print_settings(&config);
    let driver =
        MediaDriver::launch(config.clone()).map_err(|error| format!("ERROR: driver init {error}"))?;
    if let Some(chosen) = driver.chosen_threading() {
        printing::to_stdout(format_args!("threading mode {chosen}"));
    }
    match driver.invoker() {
        Some(invoker) => {
            let idle = config.shared_idle().strategy(&driver.idle_control());
            let idle = idle.map_err(|error| format!("ERROR: context init {error}"))?;
            invoke(&driver, &invoker, &signals, idle);
        }
        None => wait(&driver, &signals),
    }
    printing::to_stdout("Shutting down driver...");
    let failure = driver.failure();
    driver
        .close()
        .map_err(|error| format!("ERROR: driver close {error}"))?;
    match failure {
        Some(failure) => Err(format!("ERROR: driver stopped {failure}")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn define(sources: &mut Sources, definition: &str, allows_unknown: bool) -> Result<(), String> {
    let is_definition = if allows_unknown {
        sources.define(definition)
    } else {
        sources
            .define_for_driver(definition)
            .map_err(|error| format!("ERROR: context init {error}"))?
    };
    if is_definition {
        Ok(())
    } else {
        Err(format!("malformed define: {definition}"))
    }
}

/// As Aeron's driver tells of itself, with the version that this one implements; its own stands on the next line.
fn version(program: &str) -> String {
    let mut numbers = AERON_VERSION.split('.');
    let mut next = || numbers.next().unwrap_or("0");
    let (major, minor, patch) = (next(), next(), next());
    format!(
        "{program} <aeron version={AERON_VERSION} commit={COMMIT}> major {major} minor {minor} patch {patch} git {COMMIT}\n\
         headrace {VERSION}"
    )
}

fn print_settings(config: &DriverConfig) {
    if config.print_configuration {
        let line = "-".repeat(40);
        printing::to_stdout(&line);
        for (name, value) in config.entries() {
            printing::to_stdout(format_args!("{name}={value}"));
        }
        printing::to_stdout(&line);
    }
    // They are in the error log too. Standard error says nothing while a driver runs: test harnesses look at it.
    for doubt in &config.doubts() {
        printing::to_stdout(format_args!("WARNING: {doubt}"));
    }
}

/// Waits for a signal, or for a client to stop the driver.
fn wait(driver: &MediaDriver, signals: &ShutdownSignals) {
    while !driver.is_terminated() {
        if signals.wait_timeout(TERMINATION_CHECK_INTERVAL).is_some() {
            return;
        }
    }
}

fn invoke(driver: &MediaDriver, invoker: &Invoker, signals: &ShutdownSignals, mut idle: IdleStrategy) {
    while !driver.is_terminated() {
        if signals.received().is_some() {
            return;
        }
        idle.idle(invoker.invoke());
    }
}
