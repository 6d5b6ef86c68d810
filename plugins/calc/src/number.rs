//! Values: fractions in lowest terms, with a mark on those that a square root made inexact.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

const DECIMAL_DIGITS_MAX: u64 = 10_000;
/// The size of the largest value, numerator and denominator together: that many digits in bits.
pub(crate) const BITS_MAX: u64 = DECIMAL_DIGITS_MAX * 3322 / 1000;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    pub(crate) ratio: BigRational,
    /// False if something on the way was rounded.
    pub(crate) exact: bool,
}

pub(crate) fn too_large() -> String {
    format!("the value has more than {DECIMAL_DIGITS_MAX} digits")
}

impl Number {
    /// Reads digits with an optional point and exponent.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a number");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: BigInt = format!("{whole}{fraction}").parse().map_err(|_| bad())?;
        let exponent: i64 = exponent.parse().map_err(|_| too_large())?;
        // Checked before the power is taken: its size is the exponent's, not the text's.
        if exponent.unsigned_abs() > DECIMAL_DIGITS_MAX {
            return Err(too_large());
        }
        let exponent = exponent - i64::try_from(fraction.len()).map_err(|_| bad())?;
        let scale =
            BigInt::from(10).pow(u32::try_from(exponent.unsigned_abs()).map_err(|_| too_large())?);
        let ratio = match exponent {
            0.. => BigRational::from_integer(digits * scale),
            _ => BigRational::new(digits, scale),
        };
        Ok(Self { ratio, exact: true })
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, &self.ratio + &other.ratio)
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.with(other, &self.ratio - &other.ratio)
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        self.with(other, &self.ratio * &other.ratio)
    }

    pub(crate) fn over(&self, other: &Self) -> Result<Self, String> {
        if other.ratio.is_zero() {
            return Err("division by zero".to_owned());
        }
        Ok(self.with(other, &self.ratio / &other.ratio))
    }

    /// What is left after taking away whole multiples; has the sign of the divisor.
    pub(crate) fn modulo(&self, other: &Self) -> Result<Self, String> {
        let times = self.over(other)?.ratio.floor();
        Ok(self.with(other, &self.ratio - times * &other.ratio))
    }

    pub(crate) fn negated(self) -> Self {
        Self { ratio: -self.ratio, exact: self.exact }
    }

    /// Whole exponents only; anything else is a root. The size is estimated before the power is taken.
    pub(crate) fn power(&self, exponent: &Self) -> Result<Self, String> {
        let Some(whole) = exponent.whole() else {
            return Err("an exponent is a whole number; for a square root use sqrt(x)".to_owned());
        };
        if self.ratio.is_zero() && whole.is_negative() {
            return Err("division by zero".to_owned());
        }
        // Powers of 0, 1 and -1 never grow, whatever the exponent.
        if self.ratio.is_zero() || self.ratio.abs().is_one() {
            let odd = whole.bit(0);
            let ratio = match (whole.is_zero(), odd) {
                (true, _) => BigRational::one(),
                (false, true) => self.ratio.clone(),
                (false, false) => self.ratio.abs(),
            };
            return Ok(self.with(exponent, ratio));
        }
        let whole = whole.to_i32().ok_or_else(too_large)?;
        let size = |part: &BigInt| {
            (part.bits().saturating_sub(1)).saturating_mul(whole.unsigned_abs().into())
        };
        if size(self.ratio.numer()).max(size(self.ratio.denom())) > BITS_MAX {
            return Err(too_large());
        }
        Ok(self.with(exponent, self.ratio.pow(whole)))
    }

    /// The value if it is a whole number.
    pub(crate) fn whole(&self) -> Option<&BigInt> {
        self.ratio.is_integer().then(|| self.ratio.numer())
    }

    pub(crate) fn bits(&self) -> u64 {
        self.ratio.numer().bits() + self.ratio.denom().bits()
    }

    /// The decimal, without zeros at its end if it ends within `digits` places; else rounded, half
    /// away from zero, and true.
    pub(crate) fn decimal(&self, digits: u32) -> (String, bool) {
        let scale = BigInt::from(10).pow(digits);
        let scaled = &self.ratio * BigRational::from_integer(scale);
        let rounded = !scaled.is_integer();
        let all = scaled.round().to_integer();
        let places = digits as usize;
        let text = format!("{:0>width$}", all.abs().to_string(), width = places + 1);
        let (whole, fraction) = text.split_at(text.len() - places);
        let fraction = if rounded { fraction } else { fraction.trim_end_matches('0') };
        let sign = if all.is_negative() { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        (format!("{sign}{whole}{point}{fraction}"), rounded)
    }

    fn with(&self, other: &Self, ratio: BigRational) -> Self {
        Self { ratio, exact: self.exact && other.exact }
    }
}
