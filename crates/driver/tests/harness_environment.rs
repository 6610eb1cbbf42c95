//! The driver under every variable that the test harness of the reference sets, each at a value that is not its default.
//!
//! Source: specification, channels and configuration 7.2 to 7.5. The harness wants nothing on standard error and nothing in
//! the error log.

mod process;

use std::net::{SocketAddr, UdpSocket};

use headrace_buffers::cnc::CncFile;
use headrace_buffers::counters::CountersReader;
use headrace_buffers::error_log;

use process::{Driver, headraced, text};

/// A variable, what the harness gives it, and the line in which the driver prints the setting.
type Row = (&'static str, &'static str, &'static str);

const ALWAYS: &[Row] = &[
    (
        "AERON_DRIVER_TERMINATION_VALIDATOR",
        "allow",
        "aeron.driver.termination.validator=allow",
    ),
    (
        "AERON_PRINT_CONFIGURATION",
        "true",
        "aeron.print.configuration=true",
    ),
    (
        "AERON_DIR_DELETE_ON_START",
        "true",
        "aeron.dir.delete.on.start=true",
    ),
    (
        "AERON_DIR_DELETE_ON_SHUTDOWN",
        "true",
        "aeron.dir.delete.on.shutdown=true",
    ),
    (
        "AERON_TERM_BUFFER_SPARSE_FILE",
        "false",
        "aeron.term.buffer.sparse.file=false",
    ),
    (
        "AERON_PERFORM_STORAGE_CHECKS",
        "false",
        "aeron.perform.storage.checks=false",
    ),
    (
        "AERON_SPIES_SIMULATE_CONNECTION",
        "true",
        "aeron.spies.simulate.connection=true",
    ),
    ("AERON_ENABLE_EXPERIMENTAL_FEATURES", "true", ""),
    (
        "AERON_TERM_BUFFER_LENGTH",
        "65536",
        "aeron.term.buffer.length=64k",
    ),
    (
        "AERON_IPC_TERM_BUFFER_LENGTH",
        "131072",
        "aeron.ipc.term.buffer.length=128k",
    ),
    ("AERON_FILE_PAGE_SIZE", "8192", "aeron.file.page.size=8k"),
    ("AERON_SOCKET_SO_RCVBUF", "98304", "aeron.socket.so_rcvbuf=96k"),
    ("AERON_SOCKET_SO_SNDBUF", "102400", "aeron.socket.so_sndbuf=100k"),
    (
        "AERON_RCV_INITIAL_WINDOW_LENGTH",
        "65536",
        "aeron.rcv.initial.window.length=64k",
    ),
    (
        "AERON_CLIENT_LIVENESS_TIMEOUT",
        "9000000000",
        "aeron.client.liveness.timeout=9s",
    ),
    (
        "AERON_IMAGE_LIVENESS_TIMEOUT",
        "8000000000",
        "aeron.image.liveness.timeout=8s",
    ),
    (
        "AERON_PUBLICATION_UNBLOCK_TIMEOUT",
        "14000000000",
        "aeron.publication.unblock.timeout=14s",
    ),
    (
        "AERON_PUBLICATION_CONNECTION_TIMEOUT",
        "4000000000",
        "aeron.publication.connection.timeout=4s",
    ),
    // Less than the least counts as the least.
    (
        "AERON_PUBLICATION_LINGER_TIMEOUT",
        "0",
        "aeron.publication.linger.timeout=1us",
    ),
    (
        "AERON_RCV_STATUS_MESSAGE_TIMEOUT",
        "100000000",
        "aeron.rcv.status.message.timeout=100ms",
    ),
    ("AERON_TIMER_INTERVAL", "100000000", "aeron.timer.interval=100ms"),
    (
        "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT",
        "2000000000",
        "aeron.untethered.window.limit.timeout=2s",
    ),
    (
        "AERON_UNTETHERED_RESTING_TIMEOUT",
        "3000000000",
        "aeron.untethered.resting.timeout=3s",
    ),
    (
        "AERON_UNTETHERED_LINGER_TIMEOUT",
        "1000000000",
        "aeron.untethered.linger.timeout=1s",
    ),
    // Not the name of a setting, which the harness does not know.
    ("AERON_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY", "yield", ""),
    ("AERON_RECEIVER_GROUP_TAG", "-7", "aeron.receiver.group.tag=-7"),
    (
        "AERON_FLOW_CONTROL_GROUP_TAG",
        "77",
        "aeron.flow.control.group.tag=77",
    ),
    (
        "AERON_FLOW_CONTROL_GROUP_MIN_SIZE",
        "2",
        "aeron.flow.control.group.min.size=2",
    ),
    (
        "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
        "aeron_tagged_flow_control_strategy_supplier",
        "aeron.multicast.FlowControl.supplier=multicast_tagged",
    ),
    (
        "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
        "aeron_unicast_flow_control_strategy_supplier",
        "",
    ),
    (
        "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD",
        "7000000000",
        "aeron.driver.conductor.cycle.threshold=7s",
    ),
    (
        "AERON_DRIVER_SENDER_CYCLE_THRESHOLD",
        "8000000000",
        "aeron.driver.sender.cycle.threshold=8s",
    ),
    (
        "AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD",
        "9000000000",
        "aeron.driver.receiver.cycle.threshold=9s",
    ),
    (
        "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
        "6000000000",
        "aeron.name.resolver.threshold=6s",
    ),
    (
        "AERON_SENDER_WILDCARD_PORT_RANGE",
        "20700 20709",
        "aeron.sender.wildcard.port.range=20700 20709",
    ),
    (
        "AERON_RECEIVER_WILDCARD_PORT_RANGE",
        "20710 20719",
        "aeron.receiver.wildcard.port.range=20710 20719",
    ),
    (
        "AERON_DRIVER_STREAM_SESSION_LIMIT",
        "5",
        "aeron.driver.stream.session.limit=5",
    ),
    ("AERON_EVENT_LOG_DISABLE", "", ""),
    ("AERON_NAK_UNICAST_DELAY", "0", "aeron.nak.unicast.delay=1us"),
];

const BY_NAME: &[Row] = &[
    (
        "AERON_NAME_RESOLVER_SUPPLIER",
        "driver",
        "aeron.name.resolver.supplier=driver",
    ),
    (
        "AERON_DRIVER_RESOLVER_NAME",
        "me",
        "aeron.driver.resolver.name=me",
    ),
    (
        "AERON_DRIVER_RESOLVER_INTERFACE",
        "127.0.0.1:0",
        "aeron.driver.resolver.interface=127.0.0.1:0",
    ),
    (
        "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT",
        "5000000000",
        "aeron.driver.resolver.neighbor.timeout=5s",
    ),
    (
        "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL",
        "500000000",
        "aeron.driver.resolver.self.resolution.interval=500ms",
    ),
    (
        "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL",
        "600000000",
        "aeron.driver.resolver.neighbor.resolution.interval=600ms",
    ),
    (
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL",
        "700000000",
        "aeron.driver.resolver.bootstrap.neighbor.resolution.interval=700ms",
    ),
];

const BY_TABLE: &[Row] = &[
    (
        "AERON_NAME_RESOLVER_SUPPLIER",
        "csv_table",
        "aeron.name.resolver.supplier=csv_table",
    ),
    (
        "AERON_NAME_RESOLVER_INIT_ARGS",
        "there,localhost,127.0.0.2|",
        "aeron.name.resolver.init.args=there,localhost,127.0.0.2|",
    ),
];

const WITH_LOSS: &[Row] = &[
    (
        "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS",
        "loss,fixed-loss,multi-gap-loss",
        "aeron.udp.channel.incoming.interceptors=loss,fixed-loss,multi-gap-loss",
    ),
    (
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS",
        "rate=0.1|seed=3405691582|recv-msg-mask=0x4c",
        "aeron.udp.channel.transport.bindings.loss.args=rate=0.1|seed=3405691582|recv-msg-mask=0x4c",
    ),
    (
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS",
        "term-id=5|term-offset=102|length=100000",
        "aeron.udp.channel.transport.bindings.fixed.loss.args=term-id=5|term-offset=102|length=100000",
    ),
    (
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS",
        "term-id=0|gap-radix=4096|gap-length=128|total-gaps=100",
        "aeron.udp.channel.transport.bindings.multi.gap.loss.args=term-id=0|gap-radix=4096|gap-length=128|total-gaps=100",
    ),
];

const DEDICATED: &[Row] = &[
    (
        "AERON_THREADING_MODE",
        "DEDICATED",
        "aeron.threading.mode=DEDICATED",
    ),
    (
        "AERON_CONDUCTOR_IDLE_STRATEGY",
        "sleep-ns",
        "aeron.conductor.idle.strategy=sleep-ns",
    ),
    (
        "AERON_SENDER_IDLE_STRATEGY",
        "yield",
        "aeron.sender.idle.strategy=yield",
    ),
    (
        "AERON_RECEIVER_IDLE_STRATEGY",
        "backoff",
        "aeron.receiver.idle.strategy=backoff",
    ),
];
const SHARED_NETWORK: &[Row] = &[
    (
        "AERON_THREADING_MODE",
        "SHARED_NETWORK",
        "aeron.threading.mode=SHARED_NETWORK",
    ),
    (
        "AERON_CONDUCTOR_IDLE_STRATEGY",
        "noop",
        "aeron.conductor.idle.strategy=noop",
    ),
    (
        "AERON_SHAREDNETWORK_IDLE_STRATEGY",
        "sleep-ms",
        "aeron.sharednetwork.idle.strategy=sleep-ms",
    ),
];
const SHARED: &[Row] = &[
    ("AERON_THREADING_MODE", "SHARED", "aeron.threading.mode=SHARED"),
    (
        "AERON_SHARED_IDLE_STRATEGY",
        "spin",
        "aeron.shared.idle.strategy=spin",
    ),
];

/// Labels in which settings show, in every group.
fn labels(mode: &str) -> Vec<String> {
    [
        "Conductor work cycle exceeded threshold count: threshold=7s MODE",
        "Sender work cycle exceeded threshold count: threshold=8s MODE",
        "Receiver work cycle exceeded threshold count: threshold=9s MODE",
        "NameResolver exceeded threshold count: threshold=6s",
    ]
    .map(|label| label.replace("MODE", mode))
    .to_vec()
}

fn labels_of(file: &CncFile) -> Vec<String> {
    let mut labels = Vec::new();
    CountersReader::new(file.counters_metadata(), file.counters_values())
        .for_each(|record| labels.push(record.label));
    labels
}

fn check(mode: &str, groups: &[&[Row]], neighbor: Option<SocketAddr>, further_labels: &[&str]) {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let rows: Vec<Row> = groups.concat();
    let mut command = headraced(&directory);
    command.envs(rows.iter().map(|(variable, value, _)| (variable, value)));
    let neighbor = neighbor.map(|address| address.to_string());
    command.envs(
        neighbor
            .iter()
            .map(|address| ("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR", address)),
    );
    let driver = Driver::start(command, &directory);
    let file = driver.cnc();
    assert_eq!(file.client_liveness_timeout_ns(), 9_000_000_000);
    assert_eq!(file.page_size(), 8192);
    let (seen, further) = (labels_of(&file), further_labels.iter().map(ToString::to_string));
    for label in labels(mode).into_iter().chain(further) {
        assert!(
            seen.iter().any(|found| found.starts_with(&label)),
            "{label}: {seen:#?}"
        );
    }
    assert_eq!(error_log::read(&file.error_log(), 0), []);
    driver.terminate();
    let output = driver.wait();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    assert!(!directory.exists(), "it was to be deleted at the end");
    let stdout = text(&output.stdout);
    for (variable, _, line) in rows.iter().filter(|(_, _, line)| !line.is_empty()) {
        assert!(
            stdout.lines().any(|found| found == *line),
            "{variable} as {line}: {stdout}"
        );
    }
}

#[test]
fn dedicated_threads_and_names_told_by_other_drivers() {
    // One that takes what it is told: the driver would note a refusal.
    let neighbor = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = neighbor.local_addr().unwrap();
    check(
        "DEDICATED",
        &[ALWAYS, DEDICATED, BY_NAME],
        Some(address),
        &[
            "Resolution changes: driverName=me",
            "Resolver neighbors: bound 127.0.0.1:",
            "Resolver cache entries: name=me",
            &format!("Bootstrap neighbor: name={address} "),
        ],
    );
}

#[test]
fn a_shared_network_thread_and_a_table_of_names() {
    check(
        "SHARED_NETWORK",
        &[ALWAYS, SHARED_NETWORK, BY_TABLE],
        None,
        &["NameEntry{name='there', initialResolutionHost='localhost', reResolutionHost='127.0.0.2'}"],
    );
}

#[test]
fn one_thread_and_loss() {
    check("SHARED", &[ALWAYS, SHARED, WITH_LOSS], None, &[]);
}

#[test]
fn a_warning_is_on_standard_output_and_in_the_error_log() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d");
    let mut command = headraced(&directory);
    command
        .env("AERON_USE_WINDOWS_HIGH_RES_TIMER", "true")
        .env("AERON_DRIVER_TERMINATION_VALIDATOR", "allow");
    let driver = Driver::start(command, &directory);
    let file = driver.cnc();
    let errors = error_log::read(&file.error_log(), 0);
    let warning = "aeron.use.windows.high.res.timer=true has no effect: ";
    assert!(
        errors[0].text.starts_with(&format!("WARN - {warning}")),
        "{errors:?}"
    );
    driver.terminate();
    let output = driver.wait();
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with(&format!("WARNING: {warning}")));
}
