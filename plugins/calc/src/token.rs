//! The pieces of an expression, each with its column.

use crate::eval::Fault;

/// One piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// Digits, with point and exponent as written, without separators.
    Number(String),
    Name(String),
    /// One of `+ - * / % ^ ( ) ,`.
    Sign(char),
    End,
}

/// A piece and the column of its first character, counted in characters from one.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) column: usize,
}

pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, Fault> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        let token = match chars[at] {
            c if c.is_whitespace() => {
                at += 1;
                continue;
            }
            c if c.is_ascii_digit() || c == '.' => number(&chars, &mut at),
            c if c.is_ascii_alphabetic() => {
                let name = take(&chars, &mut at, |c| c.is_ascii_alphanumeric() || c == '_');
                Token::Name(name)
            }
            '*' if chars.get(at + 1) == Some(&'*') => {
                at += 2;
                Token::Sign('^')
            }
            c => {
                at += 1;
                let message = || format!("unexpected `{}`", c.escape_debug());
                Token::Sign(sign(c).ok_or_else(|| Fault { column: start + 1, message: message() })?)
            }
        };
        tokens.push(Placed { token, column: start + 1 });
    }
    tokens.push(Placed { token: Token::End, column: chars.len() + 1 });
    Ok(tokens)
}

/// Signs as typed and as typeset.
fn sign(c: char) -> Option<char> {
    Some(match c {
        '+' | '-' | '*' | '/' | '%' | '^' | '(' | ')' | ',' => c,
        '×' | '·' => '*',
        '÷' => '/',
        '−' => '-',
        _ => return None,
    })
}

/// An exponent belongs to the number only if digits follow: `2e` is a number and a name.
fn number(chars: &[char], at: &mut usize) -> Token {
    let digit = |c: char| c.is_ascii_digit() || c == '_';
    let mut text = take(chars, at, digit);
    if chars.get(*at) == Some(&'.') {
        *at += 1;
        text.push('.');
        text.push_str(&take(chars, at, digit));
    }
    if matches!(chars.get(*at), Some('e' | 'E')) {
        let signed = matches!(chars.get(*at + 1), Some('+' | '-'));
        let first = *at + 1 + usize::from(signed);
        if chars.get(first).is_some_and(char::is_ascii_digit) {
            text.push('e');
            text.extend(&chars[*at + 1..first]);
            *at = first;
            text.push_str(&take(chars, at, digit));
        }
    }
    Token::Number(text.replace('_', ""))
}

fn take(chars: &[char], at: &mut usize, wanted: impl Fn(char) -> bool) -> String {
    let rest = &chars[*at..];
    let taken: String = rest.iter().take_while(|c| wanted(**c)).collect();
    *at += taken.chars().count();
    taken
}
