//! Every brake on a plugin as one value: what is enforced is what is printed, parsed and documented.
//!
//! A limit is declared once, in the table below. The struct, its defaults, the command line's
//! `KEY=VALUE`, the configuration file and the printed table all come from there.

use crate::nearest::nearest;
use serde::de::{Deserialize, Deserializer, Error as _};
use std::collections::BTreeMap;
use std::fmt;

/// One row of the table of limits, for printing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRow {
    /// The key, with its unit.
    pub key: &'static str,
    /// The value in force.
    pub value: String,
    /// The value without configuration.
    pub default: String,
    /// The least that it takes.
    pub least: u64,
    /// The most that it takes.
    pub most: u64,
    /// Whether it takes `off` as well.
    pub can_be_off: bool,
    /// What it bounds, in a sentence or two.
    pub doc: &'static str,
}

/// A limit that cannot be set as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No limit has this name.
    #[error("unknown limit `{key}`; did you mean `{suggestion}`?")]
    Unknown {
        /// What was asked for.
        key: String,
        /// The nearest existing key.
        suggestion: &'static str,
    },
    /// The value is not one that this limit takes.
    #[error("limit `{key}` cannot be `{value}`: {expected}")]
    Value {
        /// The limit.
        key: &'static str,
        /// What was asked for.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// Not of the form `KEY=VALUE`.
    #[error("`{0}` is not of the form KEY=VALUE, such as wall_ms=5000")]
    Form(String),
}

macro_rules! limits {
    ($( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr, $least:literal ..= $most:literal; )+) => {
        /// The brakes of one plugin, each with its unit in its name. Every field is enforced for
        /// every call, those at load included.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $( $(#[doc = $doc])+ pub $key: $type, )+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $( $key: $default, )+ }
            }
        }

        impl Limits {
            /// The names of all limits, in the order of the table.
            pub const KEYS: &[&str] = &[$( stringify!($key), )+];

            /// All limits with their values, defaults and meanings.
            pub fn rows(&self) -> Vec<LimitRow> {
                let default = Self::default();
                vec![$( LimitRow {
                    key: stringify!($key),
                    value: self.$key.show(),
                    default: default.$key.show(),
                    least: $least,
                    most: $most,
                    can_be_off: <$type>::CAN_BE_OFF,
                    doc: concat!($($doc),+).trim_ascii(),
                }, )+]
            }

            /// Whether every value is in its range, for limits that were not read from text.
            pub fn check(&self) -> Result<(), LimitError> {
                $( self.$key.check($least, $most).map_err(|expected| LimitError::Value {
                    key: stringify!($key),
                    value: self.$key.show(),
                    expected,
                })?; )+
                Ok(())
            }

            /// Sets one limit from text.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), LimitError> {
                match key {
                    $( stringify!($key) => {
                        self.$key = <$type>::read(value, $least, $most).map_err(|expected| {
                            LimitError::Value { key: stringify!($key), value: value.into(), expected }
                        })?;
                    } )+
                    _ => return Err(LimitError::Unknown {
                        key: key.into(),
                        suggestion: nearest(key, Self::KEYS),
                    }),
                }
                Ok(())
            }
        }
    };
}

limits! {
    /// Milliseconds of wall time of a call, from the moment it gets its slot.
    wall_ms: u64 = 30_000, 1 ..= 86_400_000;
    /// Milliseconds that a call may wait for its slot.
    queue_ms: u64 = 60_000, 1 ..= 86_400_000;
    /// Milliseconds that an aborted call gets to end tidily, if it has used the cancellation
    /// interface or is a hook after a call.
    grace_ms: u64 = 2_000, 0 ..= 60_000;
    /// Instructions of a call, roughly: the same call costs the same fuel on every machine. `off`
    /// runs the plugin uncounted, and faster.
    fuel: Option<u64> = Some(50_000_000_000), 1 ..= 1_000_000_000_000_000;
    /// MiB of linear memory of a call, all its memories together.
    memory_mib: u64 = 64, 1 ..= 4_096;
    /// Tables of a call.
    tables: u64 = 40, 1 ..= 40;
    /// Elements of each table.
    table_elements: u64 = 20_000, 1 ..= 100_000;
    /// Core instances of a call: a component in Python has 14, one in Rust 2 or 3.
    instances: u64 = 40, 1 ..= 40;
    /// Open resources of a call: streams, files, requests.
    resources: u64 = 256, 1 ..= 100_000;
    /// MiB that a call may make the host allocate while values cross the wall.
    host_alloc_mib: u64 = 8, 1 ..= 1_024;
    /// KiB of a result that the model gets; what is above is cut and marked.
    result_kib: u64 = 256, 1 ..= 65_536;
    /// KiB of a result that was cut, kept in a file where the operator named a folder for that.
    spill_kib: u64 = 65_536, 1 ..= 1_048_576;
    /// Progress reports of a call; one more ends it.
    progress_count: u64 = 10_000, 0 ..= 1_000_000;
    /// KiB of all progress reports of a call; more ends it.
    progress_kib: u64 = 4_096, 0 ..= 1_048_576;
    /// Log lines of a call; more are dropped and counted.
    log_lines: u64 = 1_000, 0 ..= 1_000_000;
    /// KiB of log lines of a call; more is dropped and counted.
    log_kib: u64 = 64, 0 ..= 65_536;
    /// KiB kept of each of standard output and standard error of a call; the rest is dropped and
    /// counted.
    stdio_kib: u64 = 64, 1 ..= 65_536;
    /// HTTP requests of a call.
    http_requests: u64 = 100, 0 ..= 100_000;
    /// KiB of HTTP bodies of a call, sent and received together.
    http_body_kib: u64 = 8_192, 0 ..= 1_048_576;
    /// KiB that a call may write to files.
    file_write_kib: u64 = 65_536, 0 ..= 1_073_741_824;
    /// Files, directories and links that a call may create.
    files_created: u64 = 1_000, 0 ..= 1_000_000;
    /// File operations of the plugin that run at the same time, all its calls together; more wait.
    /// One that the system does not finish keeps its place after its call.
    file_operations: u64 = 16, 1 ..= 1_024;
    /// KiB of random bytes of a call.
    random_kib: u64 = 1_024, 0 ..= 1_048_576;
    /// Calls of the plugin that run at the same time; more wait.
    concurrent_calls: u64 = 64, 1 ..= 10_000;
    /// Calls of the plugin that may wait for a slot; one more fails at once.
    queue: u64 = 1_024, 0 ..= 1_000_000;
    /// MiB of the component file.
    component_mib: u64 = 64, 1 ..= 1_024;
    /// KiB of the largest function of the component; compiling one takes time that nothing can cut.
    function_kib: u64 = 1_024, 1 ..= 7_475;
    /// MiB of its compiled code: two or three times the component.
    compiled_mib: u64 = 256, 1 ..= 4_096;
    /// Seconds of compiling: a component of 18 MB takes ten on a fast machine that has nothing else to do.
    compile_seconds: u64 = 300, 1 ..= 3_600;
}

impl Limits {
    /// Sets one limit from `KEY=VALUE`, as the command line has it.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), LimitError> {
        let (key, value) = pair.split_once('=').ok_or_else(|| LimitError::Form(pair.into()))?;
        self.set(key.trim(), value.trim())
    }

    /// The memory limit in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        mib(self.memory_mib)
    }
}

/// So many KiB in bytes.
pub(crate) fn kib(amount: u64) -> usize {
    usize::try_from(amount.saturating_mul(1 << 10)).unwrap_or(usize::MAX)
}

/// So many MiB in bytes.
pub(crate) fn mib(amount: u64) -> usize {
    usize::try_from(amount.saturating_mul(1 << 20)).unwrap_or(usize::MAX)
}

/// A value of a limit: a number, or a number that can be switched off.
trait Amount: Sized {
    const CAN_BE_OFF: bool;
    fn read(text: &str, least: u64, most: u64) -> Result<Self, String>;
    fn check(&self, least: u64, most: u64) -> Result<(), String>;
    fn show(&self) -> String;
}

impl Amount for u64 {
    const CAN_BE_OFF: bool = false;

    fn read(text: &str, least: u64, most: u64) -> Result<Self, String> {
        let amount: Option<Self> = text.replace('_', "").parse().ok();
        amount.unwrap_or(u64::MAX).check(least, most).map(|()| amount.unwrap_or_default())
    }

    fn check(&self, least: u64, most: u64) -> Result<(), String> {
        match (least..=most).contains(self) {
            true => Ok(()),
            false => Err(format!("it takes a whole number from {least} to {most}")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Amount for Option<u64> {
    const CAN_BE_OFF: bool = true;

    fn read(text: &str, least: u64, most: u64) -> Result<Self, String> {
        match text {
            "off" | "false" => Ok(None),
            _ => u64::read(text, least, most).map(Some).map_err(|e| format!("{e}, or `off`")),
        }
    }

    fn check(&self, least: u64, most: u64) -> Result<(), String> {
        match self {
            Some(amount) => amount.check(least, most).map_err(|e| format!("{e}, or `off`")),
            None => Ok(()),
        }
    }

    fn show(&self) -> String {
        self.map_or_else(|| "off".into(), |amount| amount.to_string())
    }
}

impl<'de> Deserialize<'de> for Limits {
    /// Reads a map such as `{ wall_ms = 5000, fuel = "off" }`; what it does not name keeps its
    /// default.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Scalar {
            Number(i64),
            Switch(bool),
            Text(String),
        }
        impl fmt::Display for Scalar {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Number(number) => number.fmt(f),
                    Self::Switch(switch) => switch.fmt(f),
                    Self::Text(text) => text.fmt(f),
                }
            }
        }
        let mut limits = Self::default();
        for (key, value) in BTreeMap::<String, Scalar>::deserialize(deserializer)? {
            limits.set(&key, &value.to_string()).map_err(D::Error::custom)?;
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read_back() {
        let mut limits = Limits::default();
        for row in Limits::default().rows() {
            assert_eq!(row.value, row.default);
            assert!(!row.doc.is_empty());
            limits.set(row.key, &row.value).expect("a default is in range");
        }
        assert_eq!(limits, Limits::default());
        assert_eq!(Limits::KEYS.len(), limits.rows().len());
    }

    #[test]
    fn pairs_of_the_command_line() {
        let mut limits = Limits::default();
        limits.set_pair("wall_ms=5_000").expect("a number");
        limits.set_pair("fuel=off").expect("a switch");
        assert_eq!((limits.wall_ms, limits.fuel), (5_000, None));
        for (pair, message) in [
            ("wall=3", "unknown limit `wall`; did you mean `wall_ms`?"),
            ("memory_mb=3", "unknown limit `memory_mb`; did you mean `memory_mib`?"),
            (
                "wall_ms=0",
                "limit `wall_ms` cannot be `0`: it takes a whole number from 1 to 86400000",
            ),
            (
                "fuel=much",
                "limit `fuel` cannot be `much`: it takes a whole number from 1 to 1000000000000000, or `off`",
            ),
            ("fuel", "`fuel` is not of the form KEY=VALUE, such as wall_ms=5000"),
        ] {
            assert_eq!(limits.set_pair(pair).expect_err(pair).to_string(), message);
        }
        assert_eq!(limits.check(), Ok(()));
        limits.queue = u64::MAX;
        assert!(limits.check().expect_err("too many").to_string().contains("limit `queue`"));
    }

    #[test]
    fn maps_of_a_configuration() {
        let read = |text: &str| serde_json::from_str::<Limits>(text);
        let limits = read(r#"{"wall_ms": 7, "fuel": false}"#).expect("two limits");
        assert_eq!((limits.wall_ms, limits.fuel, limits.memory_mib), (7, None, 64));
        assert!(read(r#"{"wall_ms": -1}"#).is_err());
        let unknown = read(r#"{"fule": 1}"#).expect_err("no such limit").to_string();
        assert!(unknown.contains("did you mean `fuel`"), "{unknown}");
    }
}
