//! Pages from granted hosts, as text that a model can read.
//!
//! `address` is what a URL means, `follow` walks redirects, `request` is the one place that talks
//! to the host, `render` turns a body into text by its type, `html` does so for pages.

mod address;
mod follow;
mod html;
mod render;
#[cfg_attr(not(target_family = "wasm"), path = "request_nowhere.rs")]
mod request;

use cofferdam_plugin::{Deserialize, Failure, JsonSchema, Result, export, tool};

use address::Address;

const CHARS: usize = 40_000;
const CHARS_MAX: usize = 200_000;

const DESCRIPTION: &str = "Gets an http or https URL and returns it as readable text: HTML as text with headings, lists \
    and numbered links, JSON indented, other text as it is. Follows up to 5 redirects. Only hosts that the operator \
    granted can be reached.";

/// What the model passes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fetch {
    /// Such as `https://example.com/docs?page=2`.
    url: String,
    /// How many characters of text to return; 40000 if absent.
    #[schemars(range(min = 1, max = 200000))]
    limit: Option<usize>,
    /// Where to begin in the text, in characters, to read on in a long page.
    #[serde(default)]
    from: usize,
    /// True for the body as it came, not made readable.
    #[serde(default)]
    raw: bool,
}

fn fetch(args: Fetch) -> Result {
    let address = Address::parse(&args.url).map_err(Failure::rejected)?;
    let (address, response) = follow::get(address, request::get)?;
    let limit = args.limit.unwrap_or(CHARS).clamp(1, CHARS_MAX);
    render::reply(&address, &response, args.raw, args.from, limit)
}

export! {
    tools: [tool("fetch", DESCRIPTION, fetch).label("Fetch page").read_only()],
}
