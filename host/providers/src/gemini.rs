//! Google Gemini, `streamGenerateContent`.

pub(crate) mod decode;
mod partial_args;
pub(crate) mod request;

/// Whether a model is of this generation or a later one, by its name.
fn generation_at_least(model: &str, wanted: u32) -> bool {
    let digits = model.rsplit_once("gemini-").map_or("", |(_, rest)| rest);
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().is_ok_and(|generation| generation >= wanted)
}
