//! Which imports are names of types alone. A component has them where its functions use types of an
//! interface of its own world, and nobody has to provide anything for them.

use super::{Refused, damaged};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeRef, InstanceTypeDeclaration, Payload, TypeBounds,
};

/// The types of a component in the order of their indices: whether each is that of an instance which
/// has types and nothing else.
#[derive(Debug, Default)]
pub(super) struct Types(Vec<bool>);

impl Types {
    /// Follows the sections that define types. Imports and exports are told one by one.
    pub(super) fn section(&mut self, payload: &Payload<'_>) -> Result<(), Refused> {
        match payload {
            Payload::ComponentTypeSection(section) => {
                for ty in section.clone() {
                    self.0.push(has_types_alone(&ty.map_err(damaged)?));
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    let is_type = matches!(
                        alias.map_err(damaged)?,
                        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. }
                            | ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, .. }
                    );
                    self.0.extend(is_type.then_some(false));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether somebody has to provide this import.
    pub(super) fn import(&mut self, ty: &ComponentTypeRef) -> bool {
        match ty {
            ComponentTypeRef::Type(bounds) => {
                self.0.push(false);
                matches!(bounds, TypeBounds::SubResource)
            }
            ComponentTypeRef::Instance(index) => {
                let index = usize::try_from(*index).unwrap_or(usize::MAX);
                !self.0.get(index).copied().unwrap_or(false)
            }
            _ => true,
        }
    }

    /// An exported type is a type once more.
    pub(super) fn export(&mut self, kind: ComponentExternalKind) {
        self.0.extend((kind == ComponentExternalKind::Type).then_some(false));
    }
}

fn has_types_alone(ty: &ComponentType<'_>) -> bool {
    let ComponentType::Instance(declarations) = ty else { return false };
    !declarations.is_empty()
        && declarations.iter().all(|declaration| match declaration {
            InstanceTypeDeclaration::Export { ty, .. } => {
                matches!(ty, ComponentTypeRef::Type(TypeBounds::Eq(_)))
            }
            InstanceTypeDeclaration::CoreType(_)
            | InstanceTypeDeclaration::Type(_)
            | InstanceTypeDeclaration::Alias(_) => true,
        })
}
