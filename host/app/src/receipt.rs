//! Receipts for people: figures with units, and only those that say something.

use cofferdam_sandbox::text::harmless;
use serde_json::Value;

/// The few figures that fit behind a call: `fuel 12,345 · peak 1.1 MiB · 3 host calls`.
pub fn summary(receipt: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(fuel) = receipt.get("fuel").and_then(Value::as_u64) {
        parts.push(format!("fuel {}", thousands(fuel)));
    }
    if let Some(peak) = receipt.get("memory_peak_bytes").and_then(Value::as_u64) {
        parts.push(format!("memory {}", bytes(peak)));
    }
    for (key, word) in [("refusals", "refused"), ("cuts", "cut")] {
        let count = receipt.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(" · ")
}

/// The whole receipt, one figure a line; what is zero or empty is left out.
pub fn table(receipt: &Value) -> String {
    let mut rows = Vec::new();
    collect("", receipt, &mut rows);
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(key, value)| format!("  {key:width$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn collect(key: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                collect(&path, value, rows);
            }
        }
        Value::Array(items) => {
            rows.extend(items.iter().map(|item| (key.to_owned(), plain(item))));
        }
        Value::Number(number) => match number.as_u64() {
            Some(0) => {}
            Some(amount) if key.ends_with("bytes") => rows.push((key.to_owned(), bytes(amount))),
            Some(amount) => rows.push((key.to_owned(), thousands(amount))),
            None => rows.push((key.to_owned(), number.to_string())),
        },
        Value::Null => {}
        Value::String(_) | Value::Bool(_) => rows.push((key.to_owned(), plain(value))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

/// An amount of bytes: `1.5 KiB`.
pub fn bytes(amount: u64) -> String {
    match amount {
        0..1024 => format!("{amount} B"),
        1024..1_048_576 => format!("{:.1} KiB", amount as f64 / 1024.0),
        _ => format!("{:.1} MiB", amount as f64 / 1_048_576.0),
    }
}

/// A number with a comma every three digits.
pub fn thousands(amount: u64) -> String {
    let digits = amount.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_easy_to_read() {
        for (amount, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(amount), want);
        }
        for (amount, want) in [(5, "5 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB")] {
            assert_eq!(bytes(amount), want);
        }
    }

    #[test]
    fn a_table_leaves_out_what_is_nothing() {
        let receipt =
            json!({"fuel": 1200, "log": {"bytes": 0}, "stdout": {"bytes": 2048}, "cuts": ["x"]});
        assert_eq!(
            table(&receipt),
            "  fuel          1,200\n  stdout.bytes  2.0 KiB\n  cuts          x"
        );
    }

    #[test]
    fn a_summary_names_what_stands_out() {
        let receipt =
            json!({"fuel": 1200, "memory_peak_bytes": 1_114_112, "refusals": ["x"], "cuts": []});
        assert_eq!(summary(&receipt), "fuel 1,200 · memory 1.1 MiB · 1 refused");
        assert_eq!(summary(&json!({})), "");
    }
}
