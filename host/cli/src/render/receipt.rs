//! Receipts for people.

use serde_json::Value;

/// The few figures that fit behind a call: `fuel 12,345 · peak 1.1 MiB · 3 host calls`.
pub(crate) fn summary(receipt: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(fuel) = receipt.get("fuel").and_then(Value::as_u64) {
        parts.push(format!("fuel {}", thousands(fuel)));
    }
    if let Some(peak) = receipt.get("peak_memory_bytes").and_then(Value::as_u64) {
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

/// The whole receipt, one figure a line.
pub(crate) fn receipt_table(receipt: &Value) -> String {
    let Value::Object(fields) = receipt else { return String::new() };
    let width = fields.keys().map(String::len).max().unwrap_or(0);
    let line = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::Number(number) if key.ends_with("bytes") => {
                number.as_u64().map_or_else(|| number.to_string(), bytes)
            }
            Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), thousands),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        format!("  {key:width$}  {value}")
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn bytes(amount: u64) -> String {
    match amount {
        0..1024 => format!("{amount} B"),
        1024..1_048_576 => format!("{:.1} KiB", amount as f64 / 1024.0),
        _ => format!("{:.1} MiB", amount as f64 / 1_048_576.0),
    }
}

fn thousands(amount: u64) -> String {
    let digits = amount.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
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
    fn a_summary_names_what_stands_out() {
        let receipt =
            json!({"fuel": 1200, "peak_memory_bytes": 1_114_112, "refusals": ["x"], "cuts": []});
        assert_eq!(summary(&receipt), "fuel 1,200 · memory 1.1 MiB · 1 refused");
        assert_eq!(summary(&json!({})), "");
    }
}
