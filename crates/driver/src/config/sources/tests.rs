use std::path::PathBuf;

use super::Sources;
use crate::config::{DriverConfig, ThreadingMode};

#[test]
fn a_properties_file_has_comments_continuations_and_two_separators() {
    let mut sources = Sources::from_environment([("AERON_MTU_LENGTH".into(), "8192".into())]);
    sources
        .define_all(
            "# note\n! note\n  aeron.threading.mode: SHARED\naeron.dir=/tmp/\\\n  x\naeron.mtu.length=\n",
        )
        .unwrap();
    let config = sources.into_config().unwrap();
    assert_eq!(config.threading_mode, Some(ThreadingMode::Shared));
    assert_eq!(config.directory, PathBuf::from("/tmp/x"));
    // An empty value unsets what an earlier place set.
    assert_eq!(config.mtu_length, 1408);
    assert!(
        Sources::default()
            .define_all("nonsense\n")
            .unwrap_err()
            .contains("line=1")
    );
}

#[test]
fn a_misspelt_variable_is_doubted_and_those_of_other_programs_are_not() {
    let variables = [
        ("AERON_THREDAING_MODE", "SHARED"),
        ("AERON_MTU_LENGTH", "8k"),
        ("AERON_ARCHIVE_IDLE_STRATEGY", "spin"),
        ("AERON_CLIENT_NAME", "mine"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let config = Sources::from_environment(variables).into_config().unwrap();
    let expected = "AERON_THREDAING_MODE=SHARED has no effect: no setting has this name, did you mean AERON_THREADING_MODE?";
    assert_eq!(config.doubts(), [expected]);
}

#[test]
fn a_time_that_probably_lacks_its_unit_is_told() {
    let doubts_of = |pairs: &[(&str, &str)]| {
        let variables = pairs.iter().map(|(name, value)| (name.into(), value.into()));
        Sources::from_environment(variables)
            .into_config()
            .unwrap()
            .doubts()
    };
    let told = doubts_of(&[
        ("AERON_IMAGE_LIVENESS_TIMEOUT", "10"),
        ("AERON_TIMER_INTERVAL", "999999"),
    ]);
    assert_eq!(
        told,
        [
            "aeron.image.liveness.timeout=10 means 10 nanoseconds: give a unit, as in 10ms or 10s",
            "aeron.timer.interval=999999 means 999999 nanoseconds: give a unit, as in 999999ms or 999999s",
        ]
    );
    let right = [
        ("AERON_IMAGE_LIVENESS_TIMEOUT", "10s"),
        ("AERON_TIMER_INTERVAL", "1000000000"),
        ("AERON_PUBLICATION_LINGER_TIMEOUT", "0"),
        // Short by nature.
        ("AERON_NAK_UNICAST_DELAY", "1000"),
        ("AERON_MTU_LENGTH", "1408"),
    ];
    assert_eq!(doubts_of(&right), [""; 0]);
    let mut config = DriverConfig::default();
    config.set("aeron.timer.interval", "10").unwrap();
    let told = "aeron.timer.interval=10 means 10 nanoseconds: give a unit, as in 10ms or 10s";
    assert_eq!(config.doubts(), [told]);
    config.set("aeron.timer.interval", "10ns").unwrap();
    assert_eq!(config.doubts(), [""; 0], "meant so");
    config.set("aeron.client.liveness.timeout", "5").unwrap();
    let refused = config.validate().unwrap_err().to_string();
    assert!(
        refused.contains("=5 means 5 nanoseconds: give a unit"),
        "{refused}"
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused_if_it_is_a_setting() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let odd = || OsString::from_vec(b"/tmp/\xff".to_vec());
    let of = |name: OsString| Sources::from_environment([(name, odd())]);
    for other in ["PATH", "AERON_CLIENT_NAME", "AERON_MTU_LENGHT"] {
        assert!(of(other.into()).into_config().is_ok(), "{other}");
    }
    assert!(of(odd()).into_config().is_ok());
    let error = of("AERON_DIR".into()).into_config().unwrap_err();
    assert!(error.to_string().contains("AERON_DIR=/tmp/\u{fffd}"), "{error}");
    let mut sources = of("AERON_DIR".into());
    sources.put("aeron.dir", "/tmp/mine");
    assert!(sources.into_config().is_ok(), "what is given later counts");
}
