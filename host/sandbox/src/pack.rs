//! Writes what a plugin says of itself into its component, in the sections where every tool looks
//! for it, and the grants that it wants.

use crate::grants::GrantError;
use crate::inspect::{Metadata, Refused, WANTS_SECTION, inspect};
use crate::wants::Want;
use std::borrow::Cow;
use wasm_encoder::{ComponentSection as _, CustomSection, Encode as _};
use wasmparser::BinaryReader;

/// A component that cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// It is no plugin.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A wanted grant is none.
    #[error("the wanted grant `{pair}`: {problem}")]
    Want {
        /// What is wanted.
        pair: String,
        /// What is wrong with it.
        problem: GrantError,
    },
    /// A wanted grant has no reason.
    #[error(
        "the wanted grant `{0}` has no reason: say what the plugin does with it, for the operator who decides"
    )]
    NoReason(String),
}

const NAME_SECTION: &str = "component-name";
/// The part of the name section that names the component itself.
const NAME_OF_COMPONENT: u8 = 0;

/// The component with these texts and wants. What is absent stays as it is in the component; an
/// empty list of wants takes those away that are there.
pub fn pack(
    component: &[u8],
    metadata: &Metadata,
    wants: Option<&[Want]>,
) -> Result<Vec<u8>, PackError> {
    inspect(component)?;
    for want in wants.unwrap_or_default() {
        want.check().map_err(|problem| PackError::Want { pair: want.pair(), problem })?;
        if want.reason.trim().is_empty() {
            return Err(PackError::NoReason(want.pair()));
        }
    }
    let new = sections(metadata, wants);
    let replaced = |name: &str| new.iter().any(|(new, _)| *new == name);
    let (mut packed, names) = without(component, replaced)?;
    for (name, data) in &new {
        let data = match *name {
            NAME_SECTION => name_section(data, &names),
            _ => data.clone(),
        };
        if !data.is_empty() {
            CustomSection { name: Cow::Borrowed(name), data: Cow::Owned(data) }
                .append_to_component(&mut packed);
        }
    }
    Ok(packed)
}

fn sections(metadata: &Metadata, wants: Option<&[Want]>) -> Vec<(&'static str, Vec<u8>)> {
    let texts = [
        (NAME_SECTION, &metadata.name),
        ("version", &metadata.version),
        ("description", &metadata.description),
        ("authors", &metadata.authors),
        ("licenses", &metadata.licenses),
        ("homepage", &metadata.homepage),
        ("source", &metadata.source),
        ("revision", &metadata.revision),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| text.as_ref().map(|text| (name, text.clone().into_bytes())));
    let wants = wants.map(|wants| {
        // A list of structs of strings has nothing that could fail.
        let json = if wants.is_empty() {
            Vec::new()
        } else {
            serde_json::to_vec(wants).unwrap_or_default()
        };
        (WANTS_SECTION, json)
    });
    texts.chain(wants).collect()
}

/// The component without its own sections of these names, and what its name section says of other
/// things than the component itself.
fn without(component: &[u8], drop: impl Fn(&str) -> bool) -> Result<(Vec<u8>, Vec<u8>), Refused> {
    const HEADER: usize = 8;
    const CUSTOM: u8 = 0;
    let damaged = crate::inspect::damaged;
    let mut kept = component[..HEADER].to_vec();
    let mut names = Vec::new();
    let mut rest = BinaryReader::new(&component[HEADER..], HEADER);
    while !rest.eof() {
        let start = rest.current_position();
        let id = rest.read_u8().map_err(damaged)?;
        let mut content = rest.read_reader().map_err(damaged)?;
        if id == CUSTOM {
            let name = content.read_string().map_err(damaged)?;
            if drop(name) {
                if name == NAME_SECTION {
                    names = other_names(content).map_err(damaged)?;
                }
                continue;
            }
        }
        kept.extend_from_slice(&component[HEADER + start..HEADER + rest.current_position()]);
    }
    Ok((kept, names))
}

fn other_names(mut section: BinaryReader<'_>) -> wasmparser::Result<Vec<u8>> {
    let mut others = Vec::new();
    while !section.eof() {
        let id = section.read_u8()?;
        let mut part = section.read_reader()?;
        if id != NAME_OF_COMPONENT {
            others.push(id);
            let length = part.bytes_remaining();
            part.read_bytes(length)?.encode(&mut others);
        }
    }
    Ok(others)
}

fn name_section(name: &[u8], others: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    name.encode(&mut text);
    let mut section = vec![NAME_OF_COMPONENT];
    text.as_slice().encode(&mut section);
    section.extend_from_slice(others);
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Vec<u8> {
        wat::parse_str(
            "(component $mine (component $c) (instance $i (instantiate $c))
               (export \"cofferdam:plugin/tools@0.1.0\" (instance $i)))",
        )
        .expect("good text")
    }

    fn want(grant: &str, value: &str) -> Want {
        Want { grant: grant.into(), value: value.into(), reason: "so".into(), optional: false }
    }

    #[test]
    fn what_is_packed_is_what_inspection_finds() {
        let metadata = Metadata {
            name: Some("greet".into()),
            version: Some("1.2.3".into()),
            description: Some("Greets.".into()),
            ..Metadata::default()
        };
        let wants = [want("http", "GET https://a.com/"), want("kv", "on")];
        let packed = pack(&component(), &metadata, Some(&wants)).expect("packed");
        let found = inspect(&packed).expect("a plugin");
        assert_eq!(found.metadata, metadata);
        assert_eq!(found.wants.as_deref(), Some(&wants[..]));

        let later = Metadata { version: Some("1.2.4".into()), ..Metadata::default() };
        let again = pack(&packed, &later, Some(&[])).expect("packed again");
        let found = inspect(&again).expect("a plugin");
        assert_eq!(found.metadata, Metadata { version: later.version, ..metadata.clone() });
        assert_eq!(found.wants, None);

        assert_eq!(pack(&packed, &metadata, Some(&wants)).expect("the same").len(), packed.len());
    }

    #[test]
    fn mistakes_are_told() {
        let none = Metadata::default();
        for (want, part) in [
            (want("htpp", "x"), "did you mean `http`"),
            (want("files", "/data"), "HOST:GUEST"),
            (Want { reason: " ".into(), ..want("kv", "on") }, "has no reason"),
        ] {
            let problem = pack(&component(), &none, Some(&[want])).expect_err(part).to_string();
            assert!(problem.contains(part), "{problem}");
        }
        assert!(pack(b"text", &none, None).is_err());
    }
}
