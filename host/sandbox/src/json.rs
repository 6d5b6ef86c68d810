//! JSON from guests, of bounded size in memory.
//!
//! Two bytes of text, `0,`, become a value of seventy: what a guest may hand over as text is not yet
//! what the host may hold as values.

use serde_json::Value;

/// Values in one JSON text: 14 MB of them, whatever they are.
const VALUES_MAX: usize = 200_000;

/// Reads JSON. `Err` says what is wrong, as a clause that fits after "its details". The parser's own
/// bound on nesting is that of the contract.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    if values(text) > VALUES_MAX {
        return Err(format!("hold more than {VALUES_MAX} values"));
    }
    serde_json::from_str(text).map_err(|error| {
        let problem = error.to_string();
        match problem.contains("recursion limit") {
            true => "are nested more than 128 levels deep".into(),
            false => format!("are no JSON: {problem}"),
        }
    })
}

/// The number of values in a text, if it is JSON.
fn values(text: &str) -> usize {
    let mut count = 1;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' => count += 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    count
}

fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_values_are_refused() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert!(parse(&list(VALUES_MAX - 1)).is_ok());
        assert!(parse(&list(VALUES_MAX)).expect_err("too many").contains("200000 values"));
        let commas = Value::from(",".repeat(VALUES_MAX) + "\"[\\").to_string();
        assert!(parse(&commas).is_ok(), "a text is one value");
    }

    #[test]
    fn each_value_is_counted() {
        for (text, count) in [("1", 1), ("[]", 2), ("[1,2]", 3), (r#"{"a,[":[{}],"b":"\","}"#, 5)] {
            assert!(values(text) >= count, "{text}");
        }
    }
}
