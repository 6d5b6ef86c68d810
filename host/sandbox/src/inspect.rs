//! What a plugin file is, read from its bytes: nothing is compiled and nothing runs.
//!
//! A file that is no plugin is refused with a sentence that says what it is and what to do.

mod sniff;
mod types;

use crate::imports::HostImport;
use crate::text::visible;
use crate::wants::{self, Want};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use wasmparser::{ComponentExternalKind, ComponentName, Encoding, KnownCustom, Parser, Payload};

/// The contract that this host serves, as plugins name it.
pub const CONTRACT: &str = "cofferdam:plugin";
/// The version of the contract that this host serves; it takes every version of the same track.
pub const CONTRACT_VERSION: &str = "0.1.0";
/// The custom section with the grants that a plugin wants.
pub const WANTS_SECTION: &str = "cofferdam:wants";

/// A file that is no plugin of this contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{what}; {advice}")]
pub struct Refused {
    /// What the file is.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// What a plugin says of itself and needs. All of it comes from the file, so all of it is claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// Size of the binary component in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the binary component, in hexadecimal.
    pub sha256: String,
    /// Version of the contract that the plugin was built for; empty if it knows nothing of the contract.
    pub contract_version: String,
    /// Which parts of the contract the plugin fills.
    pub roles: Roles,
    /// Names and texts from the component's metadata.
    pub metadata: Metadata,
    /// Everything that the component exports.
    pub exports: Vec<String>,
    /// Everything that the component imports.
    pub imports: Vec<String>,
    /// The grants that it wants, from its `cofferdam:wants` section; none if it has no such section.
    pub wants: Option<Vec<Want>>,
    /// How much there is to compile.
    pub code: CodeSize,
}

/// Which parts of the contract a plugin fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Roles {
    /// It offers tools.
    pub tools: bool,
    /// It repairs the arguments of its tools.
    pub argument_preparation: bool,
    /// It has a hook before calls.
    pub before_tool_call: bool,
    /// It has a hook after calls.
    pub after_tool_call: bool,
    /// It knows nothing of the contract: the functions that it exports are offered as tools.
    #[serde(default)]
    pub functions: bool,
}

/// Texts that the author put into the component.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// The component's name.
    pub name: Option<String>,
    /// The plugin's own version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Option<String>,
    /// Its licence, as an SPDX expression.
    pub licenses: Option<String>,
    /// Where to read about it.
    pub homepage: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// The revision of the source.
    pub revision: Option<String>,
}

/// How much there is to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CodeSize {
    /// Core modules.
    pub modules: u64,
    /// Functions with a body.
    pub functions: u64,
    /// Bytes of the largest function.
    pub largest_function_bytes: u64,
}

/// The bytes of a component: those of the file, or what its text form stands for.
pub fn component_bytes(file: &[u8], accept_text: bool) -> Result<Cow<'_, [u8]>, Refused> {
    if !accept_text || !sniff::is_wasm_text(file) {
        return Ok(Cow::Borrowed(file));
    }
    wat::parse_bytes(file).map_err(|error| Refused {
        what: format!(
            "this is WebAssembly text that does not parse: {}",
            visible(&error.to_string(), 600)
        ),
        advice: "correct it, or build the component from its source".into(),
    })
}

/// Reads what a component is. `Err` says why it is no plugin and what to do. Imports that only an
/// embedder offers are strange to it.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, Refused> {
    inspect_for(bytes, &[])
}

/// Reads what a component is that may import these interfaces of the embedder as well.
pub(crate) fn inspect_for(bytes: &[u8], offered: &[HostImport]) -> Result<Inspection, Refused> {
    if let Some(refused) = sniff::not_wasm(bytes) {
        return Err(refused);
    }
    let outline = Outline::read(bytes)?;
    let contract_version = outline.check_exports()?;
    outline.check_imports(offered)?;
    Ok(Inspection {
        size_bytes: bytes.len() as u64,
        sha256: sha256_hex(bytes),
        contract_version,
        roles: outline.roles(),
        metadata: outline.metadata,
        wants: outline.wants,
        code: outline.code,
        exports: outline.exports,
        imports: outline.imports,
    })
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// An interface name taken apart: `cofferdam:plugin/tools@0.1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InterfaceName<'a> {
    package: &'a str,
    interface: &'a str,
    version: &'a str,
}

impl<'a> InterfaceName<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (package, rest) = name.split_once('/')?;
        let (interface, version) = rest.split_once('@').unwrap_or((rest, ""));
        Some(Self { package, interface, version })
    }

    /// Whether this host serves the version: the same track, and no pre-release.
    fn is_served(self) -> bool {
        match self.package {
            CONTRACT => plain_version(self.version, "0.1."),
            package if package.starts_with("wasi:") => plain_version(self.version, "0.2."),
            _ => false,
        }
    }
}

/// Whether a version is `track` followed by a plain number.
fn plain_version(version: &str, track: &str) -> bool {
    version
        .strip_prefix(track)
        .is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()))
}

/// The parts of a component that matter here.
#[derive(Debug, Default)]
struct Outline {
    exports: Vec<String>,
    /// Whether it exports functions, or interfaces, that are neither the contract's nor WASI's.
    foreign: bool,
    /// Whether it exports types of components and nothing else: how tools write down a WIT package.
    described: bool,
    imports: Vec<String>,
    /// Those of the imports that somebody has to provide.
    needed: Vec<String>,
    types: types::Types,
    metadata: Metadata,
    wants: Option<Vec<Want>>,
    code: CodeSize,
}

const TEXT_MAX: usize = 2_000;
const NAME_MAX: usize = 200;
const WANTS_BYTES_MAX: usize = 65_536;
/// More names than any real component has; each is shown to people.
const NAMES_MAX: usize = 2_000;

const ROLES: [&str; 4] = ["tools", "argument-preparation", "before-tool-call", "after-tool-call"];
const CONTRACT_IMPORTS: [&str; 6] =
    ["types", "progress", "cancellation", "log", "config", "key-value"];
const WASI_PACKAGES: [&str; 7] = [
    "wasi:cli",
    "wasi:clocks",
    "wasi:filesystem",
    "wasi:http",
    "wasi:io",
    "wasi:random",
    "wasi:sockets",
];

impl Outline {
    fn read(bytes: &[u8]) -> Result<Self, Refused> {
        let mut outline = Self::default();
        let mut depth = 0_u32;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(damaged)?;
            match payload {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(sniff::core_module(bytes));
                }
                Payload::ModuleSection { .. } => {
                    outline.code.modules += 1;
                    depth += 1;
                }
                Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CodeSectionEntry(body) => outline.function(body.range().len()),
                other if depth == 0 => outline.top_level(&other)?,
                _ => {}
            }
        }
        Ok(outline)
    }

    fn function(&mut self, bytes: usize) {
        self.code.functions += 1;
        self.code.largest_function_bytes = self.code.largest_function_bytes.max(bytes as u64);
    }

    fn top_level(&mut self, payload: &Payload<'_>) -> Result<(), Refused> {
        self.types.section(payload)?;
        match payload {
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export.map_err(damaged)?;
                    let callable = matches!(
                        export.kind,
                        ComponentExternalKind::Func | ComponentExternalKind::Instance
                    );
                    self.foreign |= callable && !is_ours(export.name.name);
                    let is_type = export.kind == ComponentExternalKind::Type;
                    self.described = is_type && (self.described || self.exports.is_empty());
                    self.types.export(export.kind);
                    self.exports.push(visible(export.name.name, NAME_MAX));
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let import = import.map_err(damaged)?;
                    let name = visible(import.name.name, NAME_MAX);
                    // Of its own interfaces the host has those of the versions that it serves.
                    if self.types.import(&import.ty) || is_ours(import.name.name) {
                        self.needed.push(name.clone());
                    }
                    self.imports.push(name);
                }
            }
            Payload::CustomSection(section) => self.custom(section),
            _ => {}
        }
        if self.exports.len().max(self.imports.len()) > NAMES_MAX {
            return Err(Refused {
                what: format!("this component has more than {NAMES_MAX} imports or exports"),
                advice: "build it from the contract's world, which has a dozen".into(),
            });
        }
        Ok(())
    }

    fn custom(&mut self, section: &wasmparser::CustomSectionReader<'_>) {
        let metadata = &mut self.metadata;
        let field = match section.name() {
            "version" => &mut metadata.version,
            "description" => &mut metadata.description,
            "authors" => &mut metadata.authors,
            "licenses" => &mut metadata.licenses,
            "homepage" => &mut metadata.homepage,
            "source" => &mut metadata.source,
            "revision" => &mut metadata.revision,
            WANTS_SECTION if section.data().len() <= WANTS_BYTES_MAX => {
                self.wants = wants::read(section.data());
                return;
            }
            _ => {
                if let KnownCustom::ComponentName(names) = section.as_known() {
                    metadata.name = names.into_iter().flatten().find_map(|name| match name {
                        ComponentName::Component { name, .. } => Some(visible(name, NAME_MAX)),
                        _ => None,
                    });
                }
                return;
            }
        };
        *field = std::str::from_utf8(section.data()).ok().map(|text| visible(text, TEXT_MAX));
    }

    /// The version of the contract that the exports belong to.
    fn check_exports(&self) -> Result<String, Refused> {
        let ours = || {
            self.exports
                .iter()
                .filter_map(|name| InterfaceName::parse(name))
                .filter(|name| name.package == CONTRACT)
        };
        if let Some(role) = ours().find(|name| name.is_served() && ROLES.contains(&name.interface))
        {
            return Ok(role.version.into());
        }
        if self.foreign && ours().next().is_none() {
            return Ok(String::new());
        }
        let needed = format!(
            "a plugin exports at least one of {} at version {CONTRACT_VERSION}; `cofferdam plugin wit` writes the \
             contract to build against",
            ROLES.map(|role| format!("{CONTRACT}/{role}")).join(", ")
        );
        Err(match ours().next() {
            Some(other) => Refused {
                what: format!(
                    "this component was built for version {} of the contract {CONTRACT} and this host serves \
                     {CONTRACT_VERSION}",
                    other.version
                ),
                advice: "build it against this host's contract, which `cofferdam plugin wit` writes, or use a host \
                         of that version"
                    .into(),
            },
            None if self.described && self.code.modules == 0 => Refused {
                what: "this is a WIT package, which describes interfaces and has no code".into(),
                advice: "give the component that was built for them".into(),
            },
            None => Refused { what: format!("this is a component of another world: it exports {}", list(&self.exports)), advice: needed },
        })
    }

    fn check_imports(&self, offered: &[HostImport]) -> Result<(), Refused> {
        let is_offered = |name: &str| offered.iter().any(|import| import.interface() == name);
        let strange: Vec<String> = self
            .needed
            .iter()
            .filter(|name| !is_provided(name) && !is_offered(name))
            .cloned()
            .collect();
        if strange.is_empty() {
            return Ok(());
        }
        let newer = strange
            .iter()
            .filter_map(|name| InterfaceName::parse(name))
            .find(|name| name.package == CONTRACT);
        let later_wasi = strange
            .iter()
            .filter_map(|name| InterfaceName::parse(name))
            .find(|name| WASI_PACKAGES.contains(&name.package) && !name.version.is_empty());
        Err(Refused {
            what: format!(
                "this component imports what this host does not provide: {}",
                list(&strange)
            ),
            advice: match newer {
                None if later_wasi.is_some_and(|name| !name.is_served()) => format!(
                    "it was built for WASI {} and this host serves WASI 0.2: build it for that, as with cargo build \
                     --target wasm32-wasip2 (not wasip3) or with the release of its tools that makes 0.2",
                    later_wasi.map(|name| name.version).unwrap_or_default()
                ),
                Some(name) if !name.is_served() => format!(
                    "it was built for version {} of the contract and this host serves {CONTRACT_VERSION}",
                    name.version
                ),
                _ => format!(
                    "this host provides {CONTRACT}@{CONTRACT_VERSION} and WASI 0.2 (cli, clocks, filesystem, http, io, \
                     random, sockets); build it without the others"
                ),
            },
        })
    }

    fn roles(&self) -> Roles {
        let has = |role: &str| {
            self.exports
                .iter()
                .filter_map(|name| InterfaceName::parse(name))
                .any(|name| name.package == CONTRACT && name.interface == role && name.is_served())
        };
        Roles {
            tools: has("tools"),
            argument_preparation: has("argument-preparation"),
            before_tool_call: has("before-tool-call"),
            after_tool_call: has("after-tool-call"),
            functions: self.foreign && !ROLES.iter().any(|role| has(role)),
        }
    }
}

fn is_provided(import: &str) -> bool {
    InterfaceName::parse(import).is_some_and(|name| {
        name.is_served()
            && match name.package {
                CONTRACT => CONTRACT_IMPORTS.contains(&name.interface),
                package => WASI_PACKAGES.contains(&package),
            }
    })
}

/// Whether an interface belongs to the contract or to WASI, whatever its version.
pub(crate) fn is_ours(interface: &str) -> bool {
    interface.starts_with("wasi:")
        || InterfaceName::parse(interface).is_some_and(|name| name.package == CONTRACT)
}

pub(crate) fn damaged(error: wasmparser::BinaryReaderError) -> Refused {
    Refused {
        what: format!(
            "this WebAssembly file is damaged or cut: {}",
            visible(&error.to_string(), NAME_MAX)
        ),
        advice: "build it or fetch it again".into(),
    }
}

/// A few names for a sentence.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names {
        [] => "nothing".into(),
        names if names.len() > SHOWN => {
            format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
        }
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_of_types_alone_need_nobody() {
        let component = |import: &str| {
            let text = format!(
                "(component {import} (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
                 (func (export \"run\") (canon lift (core func $i \"f\"))))"
            );
            inspect(&wat::parse_str(text).expect("good text"))
        };
        for types in [
            "(type $r' (record (field \"f\" u8))) (import \"r\" (type $r (eq $r')))",
            "(type $t (instance (type $r (record (field \"f\" u8))) (export \"r\" (type (eq $r)))))
             (import \"a:b/types\" (instance (type $t)))",
            // Types that are counted before it: of an alias, of an import, of an export.
            "(import \"a:b/one\" (instance $one (type $r (record (field \"f\" u8))) (export \"r\" (type (eq $r)))))
             (alias export $one \"r\" (type $r)) (import \"s\" (type $s (eq $r))) (export $x \"x\" (type $s))
             (type $t (instance (alias outer 1 $r (type $r)) (export \"r\" (type (eq $r)))))
             (import \"a:b/two\" (instance (type $t)))",
        ] {
            let found = component(types).expect(types);
            assert!(!found.imports.is_empty(), "{types}");
        }
        for (code, name) in [
            (
                "(import \"a:b/files\" (instance (export \"file\" (type (sub resource)))))",
                "a:b/files",
            ),
            ("(import \"a:b/calls\" (instance (export \"call\" (func))))", "a:b/calls"),
            ("(import \"r\" (type (sub resource)))", "provide: r;"),
            (
                "(import \"cofferdam:plugin/types@0.2.0\" (instance (type $r u8) (export \"r\" (type (eq $r)))))",
                "cofferdam:plugin/types@0.2.0",
            ),
        ] {
            let refused = component(code).expect_err(code).to_string();
            assert!(refused.contains(name) && refused.contains("does not provide"), "{refused}");
        }
    }

    #[test]
    fn a_wit_package_is_no_plugin() {
        let package = "(component (type $w (component)) (export \"w\" (type $w)))";
        assert!(refusal(package).contains("this is a WIT package"));
    }

    fn refusal(wat: &str) -> String {
        inspect(&wat::parse_str(wat).expect("good text")).expect_err("no plugin").to_string()
    }

    /// A component that exports an empty instance under each name.
    fn exporting(names: &[&str], imports: &[&str]) -> Vec<u8> {
        let imports: String =
            imports.iter().map(|name| format!("(import \"{name}\" (instance))")).collect();
        let exports: String = names
            .iter()
            .map(|name| format!("(component $c) (instance $i (instantiate $c)) (export \"{name}\" (instance $i))"))
            .enumerate()
            .map(|(n, text)| text.replace("$c", &format!("$c{n}")).replace("$i", &format!("$i{n}")))
            .collect();
        wat::parse_str(format!("(component {imports} {exports})")).expect("good text")
    }

    #[test]
    fn a_plugin() {
        let bytes = exporting(
            &["cofferdam:plugin/tools@0.1.0", "other"],
            &["cofferdam:plugin/log@0.1.0", "wasi:cli/environment@0.2.6"],
        );
        let inspection = inspect(&bytes).expect("a plugin");
        assert_eq!(inspection.contract_version, "0.1.0");
        assert_eq!(inspection.roles, Roles { tools: true, ..Roles::default() });
        assert_eq!(inspection.imports.len(), 2);
        assert_eq!(inspection.size_bytes, bytes.len() as u64);
    }

    #[test]
    fn a_hook_only_plugin_and_a_later_patch_are_fine() {
        for name in
            ["cofferdam:plugin/before-tool-call@0.1.0", "cofferdam:plugin/after-tool-call@0.1.7"]
        {
            inspect(&exporting(&[name], &[])).expect(name);
        }
    }

    #[test]
    fn other_worlds_and_versions() {
        for (exports, imports, part) in [
            (
                &["wasi:cli/run@0.2.0"][..],
                &[][..],
                "of another world: it exports wasi:cli/run@0.2.0",
            ),
            (&[], &[], "it exports nothing"),
            (&["cofferdam:plugin/tools@0.2.0"], &[], "built for version 0.2.0 of the contract"),
            (&["cofferdam:plugin/tools@0.1.0-rc.1"], &[], "built for version 0.1.0-rc.1"),
            (
                &["cofferdam:plugin/tools@0.1.0"],
                &["acme:db/sql@1.0.0"],
                "does not provide: acme:db/sql@1.0.0",
            ),
            (&["cofferdam:plugin/tools@0.1.0"], &["env"], "does not provide: env"),
            (
                &["cofferdam:plugin/tools@0.1.0"],
                &["wasi:cli/environment@0.3.0"],
                "was built for WASI 0.3.0 and this host serves WASI 0.2",
            ),
            (
                &["cofferdam:plugin/tools@0.1.0"],
                &["cofferdam:plugin/log@0.2.0"],
                "it was built for version 0.2.0",
            ),
            (
                &["cofferdam:plugin/tools@0.1.0"],
                &["cofferdam:plugin/shell@0.1.1"],
                "does not provide: cofferdam:plugin/shell",
            ),
        ] {
            let refusal = inspect(&exporting(exports, imports)).expect_err(part).to_string();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    #[test]
    fn core_modules() {
        assert!(
            refusal("(module (import \"wasi_snapshot_preview1\" \"fd_write\" (func)))")
                .contains("wasm32-wasip2")
        );
        assert!(refusal("(module)").starts_with("this is a core module"));
    }

    #[test]
    fn cut_files() {
        let whole = exporting(&["cofferdam:plugin/tools@0.1.0"], &[]);
        let refused = (1..whole.len()).filter(|&end| inspect(&whole[..end]).is_err()).count();
        // A cut between two sections after the exports takes names away and nothing else.
        assert!(refused > whole.len() - 4, "{refused} of {}", whole.len());
    }

    #[test]
    fn text_is_for_those_who_ask() {
        assert!(component_bytes(b"(component)", false).expect("as it is").starts_with(b"("));
        assert!(component_bytes(b"(component)", true).expect("parsed").starts_with(b"\0asm"));
        assert!(component_bytes(b"(component", true).is_err());
    }
}
