//! The grammar, evaluated as it is read. Repetition is a loop and only nesting recurses, so that
//! the depth of the stack is bounded by `DEPTH_MAX` whatever the input.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/" | "%") signed }
//! signed  = { "+" | "-" } power
//! power   = atom [ "^" signed ]
//! atom    = number | name "(" sum { "," sum } ")" | "(" sum ")"
//! ```

use crate::function;
use crate::number::{BITS_MAX, Number};
use crate::token::{Placed, Token, tokens};

const DEPTH_MAX: usize = 100;
/// Sum of the sizes of all intermediate values of one expression.
const WORK_BITS_MAX: u64 = 4_000_000;

/// What is wrong, and at which column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) column: usize,
    pub(crate) message: String,
}

/// The value of an expression; square roots that do not end are taken to `digits` places.
pub(crate) fn evaluate(text: &str, digits: u32) -> Result<Number, Fault> {
    let mut reader = Reader { tokens: tokens(text)?, next: 0, depth: 0, work_bits: 0, digits };
    let value = reader.sum()?;
    match reader.peek() {
        Token::End => Ok(value),
        _ => Err(reader.fault("expected an operator or the end")),
    }
}

struct Reader {
    tokens: Vec<Placed>,
    next: usize,
    depth: usize,
    work_bits: u64,
    digits: u32,
}

impl Reader {
    fn sum(&mut self) -> Result<Number, Fault> {
        let mut left = self.product()?;
        while let Some((sign, column)) = self.sign_of(&['+', '-']) {
            let right = self.product()?;
            let value = if sign == '+' { left.plus(&right) } else { left.minus(&right) };
            left = self.bounded(column, Ok(value))?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Number, Fault> {
        let mut left = self.signed()?;
        while let Some((sign, column)) = self.sign_of(&['*', '/', '%']) {
            let right = self.signed()?;
            let value = match sign {
                '*' => Ok(left.times(&right)),
                '/' => left.over(&right),
                _ => left.modulo(&right),
            };
            left = self.bounded(column, value)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Number, Fault> {
        let mut negative = false;
        while let Some((sign, _)) = self.sign_of(&['+', '-']) {
            negative ^= sign == '-';
        }
        let value = self.power()?;
        Ok(if negative { value.negated() } else { value })
    }

    fn power(&mut self) -> Result<Number, Fault> {
        let base = self.atom()?;
        let Some((_, column)) = self.sign_of(&['^']) else {
            return Ok(base);
        };
        // To the right, so that 2^3^2 is 2^9, and with a sign, so that 2^-1 is a half.
        let exponent = self.nested(Self::signed)?;
        let value = base.power(&exponent);
        self.bounded(column, value)
    }

    fn atom(&mut self) -> Result<Number, Fault> {
        let column = self.column();
        match self.peek().clone() {
            Token::Number(text) => {
                self.next += 1;
                let value = Number::parse(&text);
                self.bounded(column, value)
            }
            Token::Name(name) => {
                self.next += 1;
                let arguments = self.arguments(&name, column)?;
                let value = function::apply(&name, &arguments, self.digits);
                self.bounded(column, value)
            }
            Token::Sign('(') => {
                self.next += 1;
                let value = self.nested(Self::sum)?;
                self.close()?;
                Ok(value)
            }
            _ => Err(self.fault("expected a number, a function or `(`")),
        }
    }

    fn arguments(&mut self, name: &str, column: usize) -> Result<Vec<Number>, Fault> {
        if !function::NAMES.contains(&name) {
            let message = format!("no function `{name}`; there are {}", function::NAMES.join(", "));
            return Err(Fault { column, message });
        }
        if self.sign_of(&['(']).is_none() {
            return Err(self.fault("expected `(` after the name of a function"));
        }
        let mut arguments = vec![self.nested(Self::sum)?];
        while self.sign_of(&[',']).is_some() {
            arguments.push(self.nested(Self::sum)?);
        }
        self.close()?;
        Ok(arguments)
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.sign_of(&[')']).map(drop).ok_or_else(|| self.fault("expected `)`"))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Number, Fault>) -> Result<Number, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(self.fault(&format!("nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// A value that is neither too large itself nor too much on top of those before.
    fn bounded(&mut self, column: usize, value: Result<Number, String>) -> Result<Number, Fault> {
        let fault = |message: String| Fault { column, message };
        let value = value.map_err(fault)?;
        if value.bits() > BITS_MAX {
            return Err(fault(crate::number::too_large()));
        }
        self.work_bits += value.bits();
        if self.work_bits > WORK_BITS_MAX {
            return Err(fault("too much work for one expression; split it".to_owned()));
        }
        Ok(value)
    }

    fn sign_of(&mut self, wanted: &[char]) -> Option<(char, usize)> {
        match self.peek() {
            Token::Sign(sign) if wanted.contains(sign) => {
                let found = (*sign, self.column());
                self.next += 1;
                Some(found)
            }
            _ => None,
        }
    }

    // `End` is the last token and nothing goes past it.
    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn column(&self) -> usize {
        self.tokens[self.next].column
    }

    fn fault(&self, message: &str) -> Fault {
        Fault { column: self.column(), message: message.to_owned() }
    }
}
