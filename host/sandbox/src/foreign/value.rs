//! Values of WIT types from JSON and back, in the forms that the schemas describe.

use super::schema::{EXACT_MAX, name};
use serde_json::{Map, Value, json};
use std::str::FromStr;
use wasmtime::component::Val;
use wasmtime::component::types::Type;

/// A value of this type. `Err` says what would do.
pub(super) fn from_json(json: &Value, ty: &Type) -> Result<Val, String> {
    let wrong = || format!("a value of the type {} is wanted, not {json}", name(ty));
    Ok(match ty {
        Type::Bool => Val::Bool(json.as_bool().ok_or_else(wrong)?),
        Type::S8 => Val::S8(whole(json).ok_or_else(wrong)?),
        Type::U8 => Val::U8(whole(json).ok_or_else(wrong)?),
        Type::S16 => Val::S16(whole(json).ok_or_else(wrong)?),
        Type::U16 => Val::U16(whole(json).ok_or_else(wrong)?),
        Type::S32 => Val::S32(whole(json).ok_or_else(wrong)?),
        Type::U32 => Val::U32(whole(json).ok_or_else(wrong)?),
        Type::S64 => Val::S64(whole(json).ok_or_else(wrong)?),
        Type::U64 => Val::U64(whole(json).ok_or_else(wrong)?),
        Type::Float32 => Val::Float32(json.as_f64().ok_or_else(wrong)? as f32),
        Type::Float64 => Val::Float64(json.as_f64().ok_or_else(wrong)?),
        Type::Char => {
            let mut chars = json.as_str().ok_or_else(wrong)?.chars();
            match (chars.next(), chars.next()) {
                (Some(one), None) => Val::Char(one),
                _ => return Err(wrong()),
            }
        }
        Type::String => Val::String(json.as_str().ok_or_else(wrong)?.to_owned()),
        Type::List(list) => Val::List(all(json, &list.ty())?),
        Type::FixedLengthList(list) => {
            let items = all(json, &list.ty())?;
            if items.len() != list.len() as usize {
                return Err(format!("{} items are wanted, not {}", list.len(), items.len()));
            }
            Val::FixedLengthList(items)
        }
        Type::Map(map) => {
            let pair = |item: &Value| match item.as_array().map(Vec::as_slice) {
                Some([key, value]) => {
                    Ok((from_json(key, &map.key())?, from_json(value, &map.value())?))
                }
                _ => Err("pairs of a key and a value are wanted".to_owned()),
            };
            Val::Map(json.as_array().ok_or_else(wrong)?.iter().map(pair).collect::<Result<_, _>>()?)
        }
        Type::Record(record) => {
            let object = json.as_object().ok_or_else(wrong)?;
            let field = |field: wasmtime::component::types::Field<'_>| {
                let given = object.get(field.name).unwrap_or(&Value::Null);
                let value = from_json(given, &field.ty)
                    .map_err(|problem| format!("`{}`: {problem}", field.name))?;
                Ok::<_, String>((field.name.to_owned(), value))
            };
            Val::Record(record.fields().map(field).collect::<Result<_, _>>()?)
        }
        Type::Tuple(types) => {
            let items = json.as_array().ok_or_else(wrong)?;
            if items.len() != types.types().len() {
                return Err(format!(
                    "{} items are wanted, not {}",
                    types.types().len(),
                    items.len()
                ));
            }
            let pairs = items.iter().zip(types.types());
            Val::Tuple(pairs.map(|(item, ty)| from_json(item, &ty)).collect::<Result<_, _>>()?)
        }
        Type::Variant(variant) => {
            let (case, payload) = case(json).ok_or_else(wrong)?;
            let found = variant.cases().find(|known| known.name == case).ok_or_else(wrong)?;
            let payload = match (found.ty, payload) {
                (None, None) => None,
                (Some(ty), Some(payload)) => Some(Box::new(from_json(payload, &ty)?)),
                _ => return Err(wrong()),
            };
            Val::Variant(case.to_owned(), payload)
        }
        Type::Enum(cases) => {
            let case = json.as_str().ok_or_else(wrong)?;
            if !cases.names().any(|known| known == case) {
                return Err(wrong());
            }
            Val::Enum(case.to_owned())
        }
        Type::Option(option) => match (json, option.ty()) {
            (Value::Null, _) => Val::Option(None),
            (json, ty @ Type::Option(_)) => {
                let inner = json.get("some").ok_or_else(wrong)?;
                Val::Option(Some(Box::new(from_json(inner, &ty)?)))
            }
            (json, ty) => Val::Option(Some(Box::new(from_json(json, &ty)?))),
        },
        Type::Result(result) => {
            let side = |given: &Value, ty: Option<Type>| match ty {
                Some(ty) => from_json(given, &ty).map(|value| Some(Box::new(value))),
                None => Ok(None),
            };
            match case(json).ok_or_else(wrong)? {
                ("ok", Some(given)) => Val::Result(Ok(side(given, result.ok())?)),
                ("err", Some(given)) => Val::Result(Err(side(given, result.err())?)),
                _ => return Err(wrong()),
            }
        }
        Type::Flags(flags) => {
            let one = |item: &Value| {
                let flag = item.as_str().filter(|flag| flags.names().any(|known| known == *flag));
                flag.map(str::to_owned).ok_or_else(wrong)
            };
            Val::Flags(
                json.as_array().ok_or_else(wrong)?.iter().map(one).collect::<Result<_, _>>()?,
            )
        }
        Type::Own(_) | Type::Borrow(_) | Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
            return Err(wrong());
        }
    })
}

/// A whole number, or one in digits as text.
fn whole<T: TryFrom<i64> + TryFrom<u64> + FromStr>(json: &Value) -> Option<T> {
    match json {
        Value::String(digits) => digits.parse().ok(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => T::try_from(number).ok(),
            (None, Some(number)) => T::try_from(number).ok(),
            // 3.0 is a whole number to JSON Schema.
            (None, None) => {
                let number =
                    number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= EXACT_MAX as f64)?;
                T::try_from(number as i64).ok()
            }
        },
        _ => None,
    }
}

fn all(json: &Value, ty: &Type) -> Result<Vec<Val>, String> {
    let items = json.as_array().ok_or_else(|| format!("a list is wanted, not {json}"))?;
    items.iter().map(|item| from_json(item, ty)).collect()
}

/// A case by its name, or an object whose only field is the case.
fn case(json: &Value) -> Option<(&str, Option<&Value>)> {
    match json {
        Value::String(name) => Some((name, None)),
        Value::Object(fields) if fields.len() == 1 => {
            fields.iter().next().map(|(name, payload)| (name.as_str(), Some(payload)))
        }
        _ => None,
    }
}

/// A value as JSON.
pub(super) fn to_json(value: &Val) -> Value {
    let payload =
        |value: &Option<Box<Val>>| value.as_ref().map_or(Value::Null, |value| to_json(value));
    match value {
        Val::Bool(value) => json!(value),
        Val::S8(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::S16(value) => json!(value),
        Val::U16(value) => json!(value),
        Val::S32(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::S64(value) if value.unsigned_abs() <= EXACT_MAX.unsigned_abs() => json!(value),
        Val::S64(value) => json!(value.to_string()),
        Val::U64(value) if *value <= EXACT_MAX.unsigned_abs() => json!(value),
        Val::U64(value) => json!(value.to_string()),
        Val::Float32(value) => number((*value).into()),
        Val::Float64(value) => number(*value),
        Val::Char(value) => json!(value),
        Val::String(value) => json!(value),
        Val::List(items) | Val::Tuple(items) | Val::FixedLengthList(items) => {
            items.iter().map(to_json).collect()
        }
        Val::Map(pairs) => {
            pairs.iter().map(|(key, value)| json!([to_json(key), to_json(value)])).collect()
        }
        Val::Record(fields) => {
            let fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), to_json(value))).collect();
            Value::Object(fields)
        }
        Val::Variant(case, None) => json!(case),
        Val::Variant(case, Some(value)) => json!({ case.as_str(): to_json(value) }),
        Val::Enum(case) => json!(case),
        Val::Option(None) => Value::Null,
        Val::Option(Some(value)) => match &**value {
            inner @ Val::Option(_) => json!({ "some": to_json(inner) }),
            value => to_json(value),
        },
        Val::Result(Ok(value)) => json!({ "ok": payload(value) }),
        Val::Result(Err(value)) => json!({ "err": payload(value) }),
        Val::Flags(flags) => json!(flags),
        // Functions with these in their types are not offered.
        Val::Resource(_) | Val::Future(_) | Val::Stream(_) | Val::ErrorContext(_) => Value::Null,
    }
}

/// JSON has no words for infinite numbers and for none.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}
