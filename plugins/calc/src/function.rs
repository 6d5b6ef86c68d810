//! The functions that an expression may call.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive};

use crate::number::{self, Number};

pub(crate) const NAMES: [&str; 10] =
    ["abs", "min", "max", "floor", "ceil", "round", "gcd", "lcm", "factorial", "sqrt"];

/// The largest whose factorial stays below the limit on digits.
const FACTORIAL_MAX: u32 = 3_248;
const PLACES_MAX: u32 = 1_000;

/// Applies a function of `NAMES` to at least one argument.
pub(crate) fn apply(name: &str, arguments: &[Number], digits: u32) -> Result<Number, String> {
    let exact = arguments.iter().all(|argument| argument.exact);
    let ratio = match (name, arguments) {
        ("abs", [x]) => x.ratio.abs(),
        ("floor", [x]) => x.ratio.floor(),
        ("ceil", [x]) => x.ratio.ceil(),
        ("round", [x]) => x.ratio.round(),
        ("round", [x, places]) => round(&x.ratio, places)?,
        ("min", many) => return Ok(fold(many, |a, b| if b < a { b } else { a })),
        ("max", many) => return Ok(fold(many, |a, b| if b > a { b } else { a })),
        ("gcd", many) => whole_fold(name, many, |a, b| a.gcd(b))?,
        ("lcm", many) => whole_fold(name, many, |a, b| a.lcm(b))?,
        ("factorial", [n]) => factorial(n)?,
        ("sqrt", [x]) => return sqrt(x, digits),
        _ => {
            return Err(format!("`{name}` does not take {} arguments", arguments.len()));
        }
    };
    Ok(Number { ratio, exact })
}

/// Half away from zero, at a place after the decimal point.
fn round(x: &BigRational, places: &Number) -> Result<BigRational, String> {
    let places =
        places.whole().and_then(|places| places.to_u32()).filter(|places| *places <= PLACES_MAX);
    let places =
        places.ok_or(format!("places of `round` is a whole number from 0 to {PLACES_MAX}"))?;
    let scale = BigRational::from_integer(BigInt::from(10).pow(places));
    Ok((x * &scale).round() / scale)
}

fn fold(numbers: &[Number], better: for<'a> fn(&'a Number, &'a Number) -> &'a Number) -> Number {
    let mut best = &numbers[0];
    for number in &numbers[1..] {
        best = better(best, number);
    }
    Number { ratio: best.ratio.clone(), exact: numbers.iter().all(|number| number.exact) }
}

/// Folds whole numbers, and stops where the result outgrows the limit.
fn whole_fold(
    name: &str,
    numbers: &[Number],
    step: fn(&BigInt, &BigInt) -> BigInt,
) -> Result<BigRational, String> {
    let whole =
        |number: &Number| number.whole().cloned().ok_or(format!("`{name}` takes whole numbers"));
    let mut result = whole(&numbers[0])?.abs();
    for number in &numbers[1..] {
        result = step(&result, &whole(number)?);
        if result.bits() > number::BITS_MAX {
            return Err(number::too_large());
        }
    }
    Ok(BigRational::from_integer(result))
}

fn factorial(n: &Number) -> Result<BigRational, String> {
    let n = n
        .whole()
        .filter(|n| !n.is_negative())
        .ok_or("`factorial` takes a whole number from 0 on")?;
    let n = n.to_u32().filter(|n| *n <= FACTORIAL_MAX);
    let n =
        n.ok_or_else(|| format!("{}; factorial goes to {FACTORIAL_MAX}", number::too_large()))?;
    Ok(BigRational::from_integer((2..=n).fold(BigInt::one(), |product, factor| product * factor)))
}

/// Exact for squares of fractions; else cut a few places behind the digits that are shown.
fn sqrt(x: &Number, digits: u32) -> Result<Number, String> {
    const GUARD: u32 = 10;
    let ratio = &x.ratio;
    if ratio.is_negative() {
        return Err("square root of a negative number".to_owned());
    }
    let (numerator, denominator) = (ratio.numer().sqrt(), ratio.denom().sqrt());
    if &numerator * &numerator == *ratio.numer() && &denominator * &denominator == *ratio.denom() {
        return Ok(Number { ratio: BigRational::new(numerator, denominator), exact: x.exact });
    }
    let scale = BigInt::from(10).pow(digits + GUARD);
    let scaled = (ratio.numer() * &scale * &scale).div_floor(ratio.denom()).sqrt();
    Ok(Number { ratio: BigRational::new(scaled, scale), exact: false })
}
