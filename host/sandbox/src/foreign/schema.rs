//! WIT types as JSON Schema: what a model has to write for a value of each.

use serde_json::{Map, Value, json};
use std::cell::Cell;
use wasmtime::component::types::Type;

/// Types within types of one function: types may share parts, and a schema repeats them.
const TYPES_MAX: u32 = 1_000;
const DEPTH_MAX: u32 = 24;

/// The greatest whole number that every JSON reader keeps exact (RFC 8259, section 6).
pub(super) const EXACT_MAX: i64 = (1 << 53) - 1;

/// The schema of a function's parameters.
pub(super) fn of_params(params: &[(String, Type)]) -> Result<Value, String> {
    let budget = Budget(Cell::new(TYPES_MAX));
    let mut fields = Map::new();
    for (name, ty) in params {
        let schema =
            budget.schema(ty, 0).map_err(|problem| format!("its parameter `{name}` {problem}"))?;
        fields.insert(name.clone(), schema);
    }
    Ok(object(fields, params.iter().map(|(name, ty)| (name.as_str(), ty))))
}

/// Whether there are values of a type that can cross the wall as JSON.
pub(super) fn check(ty: &Type) -> Result<(), String> {
    Budget(Cell::new(TYPES_MAX)).schema(ty, 0).map(drop)
}

struct Budget(Cell<u32>);

impl Budget {
    fn schema(&self, ty: &Type, depth: u32) -> Result<Value, String> {
        let left = self.0.get();
        if left == 0 || depth > DEPTH_MAX {
            return Err("has a type with too many types in it".into());
        }
        self.0.set(left - 1);
        let inner = |ty: &Type| self.schema(ty, depth + 1);
        Ok(match ty {
            Type::Bool => json!({ "type": "boolean" }),
            Type::S8 => integer(i8::MIN.into(), i8::MAX.into()),
            Type::U8 => integer(0, u8::MAX.into()),
            Type::S16 => integer(i16::MIN.into(), i16::MAX.into()),
            Type::U16 => integer(0, u16::MAX.into()),
            Type::S32 => integer(i32::MIN.into(), i32::MAX.into()),
            Type::U32 => integer(0, u32::MAX.into()),
            Type::S64 => long(-EXACT_MAX, "^-?[0-9]{1,19}$"),
            Type::U64 => long(0, "^[0-9]{1,20}$"),
            Type::Float32 | Type::Float64 => json!({ "type": "number" }),
            Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Type::String => json!({ "type": "string" }),
            Type::List(list) => json!({ "type": "array", "items": inner(&list.ty())? }),
            Type::FixedLengthList(list) => json!({
                "type": "array", "items": inner(&list.ty())?, "minItems": list.len(), "maxItems": list.len(),
            }),
            Type::Map(map) => {
                let pair = [inner(&map.key())?, inner(&map.value())?];
                json!({ "type": "array", "items": tuple(pair.to_vec()) })
            }
            Type::Record(record) => {
                let mut fields = Map::new();
                for field in record.fields() {
                    fields.insert(field.name.into(), inner(&field.ty)?);
                }
                let types: Vec<(&str, Type)> =
                    record.fields().map(|field| (field.name, field.ty)).collect();
                object(fields, types.iter().map(|(name, ty)| (*name, ty)))
            }
            Type::Tuple(types) => {
                tuple(types.types().map(|ty| inner(&ty)).collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => {
                let bare: Vec<&str> = variant
                    .cases()
                    .filter(|case| case.ty.is_none())
                    .map(|case| case.name)
                    .collect();
                let mut cases = Vec::new();
                if !bare.is_empty() {
                    cases.push(json!({ "type": "string", "enum": bare }));
                }
                for case in variant.cases() {
                    if let Some(ty) = case.ty {
                        cases.push(single(case.name, inner(&ty)?));
                    }
                }
                json!({ "anyOf": cases })
            }
            Type::Enum(cases) => {
                json!({ "type": "string", "enum": cases.names().collect::<Vec<_>>() })
            }
            Type::Option(option) => {
                let some = inner(&option.ty())?;
                let some =
                    if let Type::Option(_) = option.ty() { single("some", some) } else { some };
                json!({ "anyOf": [some, { "type": "null" }] })
            }
            Type::Result(result) => {
                let side =
                    |ty: Option<Type>| ty.map_or(Ok(json!({ "type": "null" })), |ty| inner(&ty));
                json!({ "anyOf": [single("ok", side(result.ok())?), single("err", side(result.err())?)] })
            }
            Type::Flags(flags) => json!({
                "type": "array", "uniqueItems": true,
                "items": { "type": "string", "enum": flags.names().collect::<Vec<_>>() },
            }),
            Type::Own(_) | Type::Borrow(_) => {
                return Err("is a resource, which lives as long as its instance, and every call has an instance of its own".into());
            }
            Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
                return Err(format!("is a {}, which outlives no call", name(ty)));
            }
        })
    }
}

fn integer(least: i64, most: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

/// Beyond what JSON keeps exact, digits as text.
fn long(least: i64, digits: &str) -> Value {
    json!({ "anyOf": [integer(least, EXACT_MAX), { "type": "string", "pattern": digits }] })
}

fn tuple(items: Vec<Value>) -> Value {
    let count = items.len();
    json!({ "type": "array", "prefixItems": items, "minItems": count, "maxItems": count })
}

/// An object with one field.
fn single(name: &str, schema: Value) -> Value {
    json!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false })
}

fn object<'a>(
    fields: Map<String, Value>,
    types: impl Iterator<Item = (&'a str, &'a Type)>,
) -> Value {
    let required: Vec<&str> =
        types.filter(|(_, ty)| !matches!(ty, Type::Option(_))).map(|(name, _)| name).collect();
    json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false })
}

/// A type in the words of WIT, in short: what is within a record or a variant is in the schema.
pub(super) fn name(ty: &Type) -> String {
    match ty {
        Type::List(list) => format!("list<{}>", name(&list.ty())),
        Type::Option(option) => format!("option<{}>", name(&option.ty())),
        Type::Result(result) => {
            let side = |ty: Option<Type>| ty.map_or_else(|| "_".into(), |ty| name(&ty));
            format!("result<{}, {}>", side(result.ok()), side(result.err()))
        }
        Type::Tuple(types) => {
            format!("tuple<{}>", types.types().map(|ty| name(&ty)).collect::<Vec<_>>().join(", "))
        }
        Type::Bool => "bool".into(),
        Type::S8 => "s8".into(),
        Type::U8 => "u8".into(),
        Type::S16 => "s16".into(),
        Type::U16 => "u16".into(),
        Type::S32 => "s32".into(),
        Type::U32 => "u32".into(),
        Type::S64 => "s64".into(),
        Type::U64 => "u64".into(),
        Type::Float32 => "f32".into(),
        Type::Float64 => "f64".into(),
        Type::Char => "char".into(),
        Type::String => "string".into(),
        Type::Map(_) => "map".into(),
        Type::FixedLengthList(_) => "list".into(),
        Type::Record(_) => "record".into(),
        Type::Variant(_) => "variant".into(),
        Type::Enum(_) => "enum".into(),
        Type::Flags(_) => "flags".into(),
        Type::Own(_) | Type::Borrow(_) => "resource".into(),
        Type::Future(_) => "future".into(),
        Type::Stream(_) => "stream".into(),
        Type::ErrorContext => "error-context".into(),
    }
}
