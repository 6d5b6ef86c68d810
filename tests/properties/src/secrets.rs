//! Secrets on every way out.

use arbitrary::{Arbitrary, Result, Unstructured};
use cofferdam_sandbox::testing::Secrets;
use serde_json::{Value, json};

/// Secrets, and a text that is full of them and of their pieces.
struct Echo {
    secrets: Secrets,
    text: String,
}

impl<'a> Arbitrary<'a> for Echo {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let values: Vec<String> =
            (0..u.int_in_range(1..=3)?).map(|_| secret(u)).collect::<Result<_>>()?;
        let secrets = Secrets::new(values.iter().map(String::as_str));
        let spellings: Vec<String> = secrets.spellings().map(str::to_owned).collect();
        let mut text = String::new();
        while !u.is_empty() && text.len() < 4_096 {
            let spelling = u.choose(&spellings)?;
            match u.int_in_range(0..=4)? {
                0 => text.push_str(spelling),
                1 => text.push_str(&spelling[..u.int_in_range(0..=spelling.len())?]),
                2 => text.push_str(&spelling[u.int_in_range(0..=spelling.len())?..]),
                3 => text.push(u.arbitrary()?),
                _ => text.push_str(u.arbitrary::<&str>()?),
            }
        }
        Ok(Self { secrets, text })
    }
}

/// What can be in a header; few letters, so that secrets overlap. The mask itself is none.
fn secret(u: &mut Unstructured<'_>) -> Result<String> {
    let letters = b"aab\"\\/ %2x";
    let mut value = String::new();
    for _ in 0..u.int_in_range(4..=12)? {
        value.push(char::from(*u.choose(letters)?));
    }
    Ok(value)
}

fn holds_none(echo: &Echo, shown: &str) {
    for spelling in echo.secrets.spellings() {
        assert!(!shown.contains(spelling), "{spelling:?} is in {shown:?}, from {:?}", echo.text);
    }
}

/// No spelling of a secret is left in a text, in JSON or in bytes.
pub fn mask(bytes: &[u8]) {
    let Ok(echo) = Echo::arbitrary(&mut Unstructured::new(bytes)) else { return };
    holds_none(&echo, &echo.secrets.mask_text(&echo.text));
    let value = json!({ "a": [echo.text], echo.text.as_str(): { "b": 1 } });
    each_text(&echo.secrets.mask_json(value), &mut |text| holds_none(&echo, text));
    let masked = echo.secrets.mask_bytes(echo.text.clone().into_bytes());
    assert_eq!(masked.len(), echo.text.len());
    holds_none(&echo, &String::from_utf8_lossy(&masked));
}

/// The same for a body in pieces, wherever they are cut; its length stays.
pub fn mask_pieces(bytes: &[u8]) {
    let Some((&size, rest)) = bytes.split_first() else { return };
    let Ok(echo) = Echo::arbitrary(&mut Unstructured::new(rest)) else { return };
    let pieces = echo.text.as_bytes().chunks(usize::from(size) + 1);
    let masked = echo.secrets.mask_pieces(pieces);
    assert_eq!(masked.len(), echo.text.len());
    holds_none(&echo, &String::from_utf8_lossy(&masked));
}

fn each_text(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, each)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            each(name);
            each_text(value, each);
        }),
        _ => {}
    }
}
