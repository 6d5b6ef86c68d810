//! The receipt of one call beside the limits that it ran under.

use super::Paint;
use cofferdam_app::receipt::{bytes, thousands};
use cofferdam_sandbox::Limits;
use cofferdam_sandbox::text::harmless;
use serde_json::Value;

/// The whole receipt, one figure a line beside the limit that it counts against; what is zero or
/// empty is left out. What ended the call, was refused, cut or dropped is red.
pub(crate) fn receipt_table(receipt: &Value, limits: &Limits, paint: Paint) -> String {
    let mut rows = Vec::new();
    collect("", receipt, &mut rows);
    let ended_by = receipt.get("ended_by").and_then(Value::as_str).unwrap_or_default();
    let width = |text: fn(&Row) -> &str| {
        rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0)
    };
    let (keys, values) =
        (width(|row| &row.key), width(|row| if row.amount.is_some() { &row.value } else { "" }));
    let lines = rows.iter().map(|row| {
        let limit = LIMITS.iter().find(|limit| limit.figure == row.key);
        let limit = limit.and_then(|limit| Some((limit, limit.of(limits)?)));
        let (mut line, mut over) = (format!("  {:keys$}  {}", row.key, row.value), row.is_bad());
        if let (Some((limit, most)), Some(amount)) = (limit, row.amount) {
            over |= amount >= most || limit.ends.contains(&ended_by);
            let share = (amount as f64 / most as f64 * 100.0).min(999.0);
            line = format!(
                "  {:keys$}  {:>values$}  {share:>4.0} % of {} ({})",
                row.key,
                row.value,
                shown(&row.key, most),
                limit.key
            );
        }
        if over { paint.red(&line) } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A figure of a receipt and the limit that it counts against.
struct Counted {
    figure: &'static str,
    key: &'static str,
    /// Units of the figure in one of the limit.
    scale: u64,
    /// The ends of calls that this limit brings about, though the figure stays below it.
    ends: &'static [&'static str],
}

impl Counted {
    /// The limit in the units of the figure; none if it is off.
    fn of(&self, limits: &Limits) -> Option<u64> {
        let row = limits.rows().into_iter().find(|row| row.key == self.key)?;
        Some(row.value.parse::<u64>().ok()?.saturating_mul(self.scale).max(1))
    }
}

const fn counted(
    figure: &'static str,
    key: &'static str,
    scale: u64,
    ends: &'static [&'static str],
) -> Counted {
    Counted { figure, key, scale, ends }
}

const LIMITS: &[Counted] = &[
    counted("fuel", "fuel", 1, &["fuel-limit"]),
    counted("memory_peak_bytes", "memory_mib", 1 << 20, &["memory-limit"]),
    counted("wall_us", "wall_ms", 1_000, &["time-limit"]),
    counted("waiting_us", "queue_ms", 1_000, &[]),
    counted("progress.shown", "progress_count", 1, &["output-limit"]),
    counted("host_calls.progress.bytes", "progress_kib", 1 << 10, &["output-limit"]),
    counted("log.lines", "log_lines", 1, &[]),
    counted("log.bytes", "log_kib", 1 << 10, &[]),
    counted("stdout.bytes", "stdio_kib", 1 << 10, &[]),
    counted("stderr.bytes", "stdio_kib", 1 << 10, &[]),
    counted("http_requests", "http_requests", 1, &[]),
    counted("host_calls.http.bytes", "http_body_kib", 1 << 10, &[]),
    counted("host_calls.random.bytes", "random_kib", 1 << 10, &[]),
];

/// One line of a table.
struct Row {
    key: String,
    value: String,
    /// None for texts.
    amount: Option<u64>,
}

impl Row {
    /// Whether it tells of something that the plugin did not get or that was lost.
    fn is_bad(&self) -> bool {
        matches!(&*self.key, "ended_by" | "refusals" | "cuts")
            || self.key.ends_with("dropped")
            || self.key.ends_with("late")
    }
}

fn collect(key: &str, value: &Value, rows: &mut Vec<Row>) {
    let mut row = |value: String, amount| rows.push(Row { key: key.into(), value, amount });
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                collect(&path, value, rows);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| row(plain(item), None)),
        Value::Number(number) => match number.as_u64() {
            Some(0) => {}
            Some(amount) => row(shown(key, amount), Some(amount)),
            None => row(number.to_string(), None),
        },
        Value::Null => {}
        Value::String(_) | Value::Bool(_) => row(plain(value), None),
    }
}

/// An amount in the unit that its name ends in.
fn shown(key: &str, amount: u64) -> String {
    if key.ends_with("bytes") {
        bytes(amount)
    } else if key.ends_with("_us") {
        format!("{:.1} ms", amount as f64 / 1_000.0)
    } else {
        thousands(amount)
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_leaves_out_what_is_nothing() {
        let receipt =
            json!({"fuel": 1200, "log": {"bytes": 0}, "stdout": {"bytes": 2048}, "cuts": ["x"]});
        assert_eq!(
            receipt_table(&receipt, &Limits { fuel: None, ..Limits::default() }, Paint::Plain),
            "  fuel          1,200\n  stdout.bytes  2.0 KiB     3 % of 64.0 KiB (stdio_kib)\n  cuts          x"
        );
    }

    #[test]
    fn what_went_over_its_limit_is_red() {
        let limits = Limits { fuel: Some(1_000), wall_ms: 10, memory_mib: 1, ..Limits::default() };
        let red = |receipt: Value| {
            let table = receipt_table(&receipt, &limits, Paint::Colour);
            let lines = table.lines().filter(|line| line.contains("\x1b[31m"));
            lines
                .map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            red(json!({"fuel": 999, "wall_us": 9_999, "memory_peak_bytes": 65_536})),
            Vec::<String>::new()
        );
        assert_eq!(red(json!({"fuel": 1_000, "ended_by": "fuel-limit"})), ["fuel", "ended_by"]);
        assert_eq!(red(json!({"wall_us": 10_001})), ["wall_us"]);
        // A growth that was denied does not show in the peak.
        let denied = json!({"ended_by": "memory-limit", "memory_peak_bytes": 65_536});
        assert_eq!(red(denied), ["ended_by", "memory_peak_bytes"]);
        assert_eq!(
            red(json!({"refusals": ["grants.http"], "cuts": [], "log": {"lines_dropped": 2}})),
            ["refusals", "log.lines_dropped"]
        );
    }

    #[test]
    fn every_limit_of_the_table_exists() {
        for limit in LIMITS {
            assert!(Limits::KEYS.contains(&limit.key), "{}", limit.key);
        }
    }
}
