//! What may be written in the operator's file, key by key. The checks, their messages, `config show`,
//! the names of environment variables and the page `host/docs/config.md` all come from here, and the
//! sentences of each key are the documentation of the field that it fills.

use std::fmt;

/// One key of the operator's file.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The documentation of the field.
    pub(crate) doc: String,
    pub(crate) rule: Rule,
}

/// What a key takes, and what holds without it.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) takes: Takes,
    pub(crate) unset: Unset,
    /// A value that is right, as it is written.
    pub(crate) example: Option<String>,
    /// The values of `provider` that the key goes with; any if empty.
    pub(crate) only: &'static [&'static str],
    /// Whether the value may be a credential, which is never shown.
    pub(crate) hidden: bool,
}

/// What holds if a key is not set.
#[derive(Debug, Clone)]
pub(crate) enum Unset {
    /// The key must be there.
    Refused,
    /// This value, as it is written.
    Value(String),
    /// What these words say; nothing if there are none.
    Means(&'static str),
}

/// A check of a text: `Err` says what it takes instead.
pub(crate) type Check = fn(&str) -> Result<(), String>;

/// What a key takes.
#[derive(Debug, Clone)]
pub(crate) enum Takes {
    Text(Check),
    Path,
    Switch,
    /// A whole number, or one of these words.
    Whole {
        least: u64,
        most: u64,
        words: &'static [&'static str],
    },
    /// A number of seconds, also with a fraction.
    Seconds,
    /// One of these words, each with its meaning.
    Word(Vec<(&'static str, &'static str)>),
    List(Box<Takes>),
    Table(Vec<Key>, Together),
    /// A list of tables: `[[plugins]]`.
    Tables(Vec<Key>, Together),
    /// A table of the operator's own names.
    Map(Check, Box<Takes>),
    Anything,
}

/// A check of a whole table whose keys are all right: `Err` says which do not go together.
pub(crate) type Together = fn(&toml::Value) -> Result<(), String>;

/// Seconds that anything may be made to wait.
pub(crate) const SECONDS_MAX: f64 = 86_400.0;

impl Rule {
    fn new(takes: Takes) -> Self {
        Self { takes, unset: Unset::Means(""), example: None, only: &[], hidden: false }
    }

    /// The key must be there.
    pub(crate) fn required(self) -> Self {
        Self { unset: Unset::Refused, ..self }
    }

    /// The value in force if the key is not set.
    pub(crate) fn or(self, value: impl Written) -> Self {
        Self { unset: Unset::Value(value.written()), ..self }
    }

    /// In words, what holds if the key is not set.
    pub(crate) fn or_else(self, words: &'static str) -> Self {
        Self { unset: Unset::Means(words), ..self }
    }

    /// A value that is right.
    pub(crate) fn such_as(self, value: impl Written) -> Self {
        Self { example: Some(value.written()), ..self }
    }

    /// The key goes with these values of `provider`.
    pub(crate) fn only_with(self, only: &'static [&'static str]) -> Self {
        Self { only, ..self }
    }

    /// The value may be a credential.
    pub(crate) fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }

    /// What makes a text wrong.
    pub(crate) fn checked(mut self, check: Check) -> Self {
        match &mut self.takes {
            Takes::Text(now) => *now = check,
            Takes::List(items) => **items = Takes::Text(check),
            _ => {}
        }
        self
    }

    /// What makes a table wrong whose keys are right.
    pub(crate) fn checked_together(mut self, check: Together) -> Self {
        if let Takes::Table(_, now) | Takes::Tables(_, now) = &mut self.takes {
            *now = check;
        }
        self
    }

    /// A word that stands for a number.
    pub(crate) fn or_words(mut self, words: &'static [&'static str]) -> Self {
        if let Takes::Whole { words: now, .. } = &mut self.takes {
            *now = words;
        }
        self
    }

    pub(crate) fn named(self, name: &'static str, doc: &str) -> Key {
        Key { name, doc: doc.trim().to_owned(), rule: self }
    }
}

/// A text.
pub(crate) fn text() -> Rule {
    Rule::new(Takes::Text(|_| Ok(())))
}

/// A text that is not empty.
pub(crate) fn some_text() -> Rule {
    text().checked(|text| match text.trim().is_empty() {
        true => Err("a text that is not empty".into()),
        false => Ok(()),
    })
}

/// A path; a relative one begins at the folder of the file.
pub(crate) fn path() -> Rule {
    Rule::new(Takes::Path)
}

/// `true` or `false`.
pub(crate) fn switch() -> Rule {
    Rule::new(Takes::Switch)
}

/// A whole number.
pub(crate) fn whole(least: u64, most: u64) -> Rule {
    Rule::new(Takes::Whole { least, most, words: &[] })
}

/// A number of seconds.
pub(crate) fn seconds() -> Rule {
    Rule::new(Takes::Seconds)
}

/// One of the words of a type.
pub(crate) fn word(words: &[(&'static str, &'static str)]) -> Rule {
    Rule::new(Takes::Word(words.to_vec()))
}

/// A list.
pub(crate) fn list(items: Rule) -> Rule {
    Rule::new(Takes::List(Box::new(items.takes)))
}

/// A table with these keys.
pub(crate) fn table(keys: Vec<Key>) -> Rule {
    Rule::new(Takes::Table(keys, |_| Ok(())))
}

/// A list of tables with these keys.
pub(crate) fn tables(keys: Vec<Key>) -> Rule {
    Rule::new(Takes::Tables(keys, |_| Ok(())))
}

/// A table of the operator's own names.
pub(crate) fn map(names: Check, values: Rule) -> Rule {
    Rule { hidden: values.hidden, ..Rule::new(Takes::Map(names, Box::new(values.takes))) }
}

/// Whatever TOML can say.
pub(crate) fn anything() -> Rule {
    Rule::new(Takes::Anything)
}

/// A value as it is written in the file.
pub(crate) trait Written {
    fn written(&self) -> String;
}

impl Written for &str {
    fn written(&self) -> String {
        toml::Value::from(*self).to_string()
    }
}

impl Written for String {
    fn written(&self) -> String {
        self.as_str().written()
    }
}

macro_rules! written_as_shown {
    ($($type:ty),+) => {
        $( impl Written for $type {
            fn written(&self) -> String {
                self.to_string()
            }
        } )+
    };
}
written_as_shown!(bool, u32, u64, usize);

impl Written for std::time::Duration {
    fn written(&self) -> String {
        self.as_secs_f64().to_string()
    }
}

impl<const N: usize> Written for [&str; N] {
    fn written(&self) -> String {
        let items: Vec<String> = self.iter().map(Written::written).collect();
        format!("[{}]", items.join(", "))
    }
}

/// What is written already.
pub(crate) struct Toml(pub(crate) &'static str);

impl Written for Toml {
    fn written(&self) -> String {
        self.0.into()
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("a text"),
            Self::Path => f.write_str("a path"),
            Self::Switch => f.write_str("`true` or `false`"),
            Self::Whole { least, most, words } => {
                write!(f, "a whole number from {least} to {most}")?;
                words.iter().try_for_each(|word| write!(f, ", or `{word}`"))
            }
            Self::Seconds => write!(f, "a number of seconds above 0, up to {SECONDS_MAX}"),
            Self::Word(words) => {
                let words: Vec<String> =
                    words.iter().map(|(word, _)| format!("`{word}`")).collect();
                write!(f, "one of {}", words.join(", "))
            }
            Self::List(items) => match &**items {
                Self::Text(_) => f.write_str("a list of texts"),
                Self::Word(_) => write!(f, "a list, each {items}"),
                _ => write!(f, "a list of {items}"),
            },
            Self::Table(..) => f.write_str("a table"),
            Self::Tables(..) => f.write_str("a list of tables"),
            Self::Map(_, values) => match &**values {
                Self::Text(_) => f.write_str("a table of texts"),
                _ => f.write_str("a table"),
            },
            Self::Anything => f.write_str("any value"),
        }
    }
}

/// Declares a struct of the operator's file together with the description of its keys.
macro_rules! keys {
    (
        $(#[$outer:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde($($serde:tt)+)])?
                pub $field:ident: $type:ty => $rule:expr
            ),+ $(,)?
        }
        $( beside { $( $(#[$own:meta])* pub $own_field:ident: $own_type:ty ),+ $(,)? } )?
    ) => {
        $(#[$outer])*
        pub struct $name {
            $( $(#[doc = $doc])+ $(#[serde($($serde)+)])? pub $field: $type, )+
            $( $( $(#[$own])* pub $own_field: $own_type, )+ )?
        }

        impl $name {
            /// What may be written here.
            pub(crate) fn keys() -> Vec<$crate::config::keys::Key> {
                vec![$( $rule.named(stringify!($field), concat!($($doc),+)) ),+]
            }
        }
    };
}

/// Declares an enum of words together with what each means.
macro_rules! words {
    (
        $(#[$outer:meta])*
        pub enum $name:ident {
            $( $(#[doc = $doc:literal])+ $(#[default$($default:tt)*])? $variant:ident = $word:literal ),+ $(,)?
        }
    ) => {
        $(#[$outer])*
        pub enum $name {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $word)]
                $(#[default$($default)*])?
                $variant,
            )+
        }

        impl $name {
            /// The words, and what each means.
            pub(crate) const WORDS: &[(&'static str, &'static str)] =
                &[$( ($word, concat!($($doc),+).trim_ascii()), )+];
        }

        impl $crate::config::keys::Written for $name {
            fn written(&self) -> String {
                match self {
                    $( Self::$variant => $crate::config::keys::Written::written(&$word), )+
                }
            }
        }
    };
}

pub(crate) use {keys, words};
