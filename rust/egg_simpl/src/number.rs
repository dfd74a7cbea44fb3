//! Constants: exact rationals while they fit in 64 bits, floating point for the rest.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A constant. Rationals are in lowest terms with a positive denominator, so equal values have
/// equal fields; a real never holds a value that has a short rational form.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Ratio { num: i64, den: i64 },
    Real(f64),
}

/// Dyadic fractions up to this denominator (1/2, 3/4, ...) are taken as exact.
const MAX_EXACT_DENOMINATOR: f64 = 1_048_576.0;
/// Integers above 2^53 are not exact in a double.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

impl Number {
    pub const ZERO: Number = Number::Ratio { num: 0, den: 1 };
    pub const ONE: Number = Number::Ratio { num: 1, den: 1 };
    pub const MINUS_ONE: Number = Number::Ratio { num: -1, den: 1 };

    pub const fn int(value: i64) -> Number {
        Number::Ratio { num: value, den: 1 }
    }

    /// `num / den` in lowest terms; none if `den` is zero or the result does not fit.
    pub fn ratio(num: i128, den: i128) -> Option<Number> {
        if den == 0 {
            return None;
        }
        let divisor = gcd(num.unsigned_abs(), den.unsigned_abs()) as i128 * den.signum();
        Some(Number::Ratio {
            num: i64::try_from(num / divisor).ok()?,
            den: i64::try_from(den / divisor).ok()?,
        })
    }

    /// None for infinities and NaN: they are no values of a well-formed expression.
    pub fn from_f64(value: f64) -> Option<Number> {
        if !value.is_finite() {
            return None;
        }
        let scaled = value * MAX_EXACT_DENOMINATOR;
        if scaled.abs() < MAX_EXACT_INTEGER && scaled.fract() == 0.0 {
            return Number::ratio(scaled as i128, MAX_EXACT_DENOMINATOR as i128);
        }
        if value.abs() <= MAX_EXACT_INTEGER && value.fract() == 0.0 {
            return Some(Number::int(value as i64));
        }
        Some(Number::Real(value))
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Number::Ratio { num, den: 1 } => num as f64,
            Number::Ratio { num, den } => num as f64 / den as f64,
            Number::Real(value) => value,
        }
    }

    pub fn as_integer(self) -> Option<i64> {
        match self {
            Number::Ratio { num, den: 1 } => Some(num),
            _ => None,
        }
    }

    pub fn is_integer(self) -> bool {
        self.as_integer().is_some()
    }

    pub fn is_exact(self) -> bool {
        matches!(self, Number::Ratio { .. })
    }

    pub fn is_zero(self) -> bool {
        self == Number::ZERO
    }

    pub fn is_one(self) -> bool {
        self == Number::ONE
    }

    pub fn is_negative(self) -> bool {
        self.to_f64() < 0.0
    }

    pub fn is_positive(self) -> bool {
        self.to_f64() > 0.0
    }

    pub fn add(self, other: Number) -> Option<Number> {
        match (self, other) {
            (Number::Ratio { num: a, den: b }, Number::Ratio { num: c, den: d }) => {
                let (a, b, c, d) = (a as i128, b as i128, c as i128, d as i128);
                Number::ratio(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b * d)
            }
            _ => Number::from_f64(self.to_f64() + other.to_f64()),
        }
    }

    pub fn mul(self, other: Number) -> Option<Number> {
        match (self, other) {
            (Number::Ratio { num: a, den: b }, Number::Ratio { num: c, den: d }) => {
                Number::ratio(a as i128 * c as i128, b as i128 * d as i128)
            }
            _ => Number::from_f64(self.to_f64() * other.to_f64()),
        }
    }

    pub fn neg(self) -> Option<Number> {
        self.mul(Number::MINUS_ONE)
    }

    pub fn sub(self, other: Number) -> Option<Number> {
        self.add(other.neg()?)
    }

    /// None for zero.
    pub fn recip(self) -> Option<Number> {
        match self {
            Number::Ratio { num, den } => Number::ratio(den as i128, num as i128),
            Number::Real(value) => Number::from_f64(1.0 / value),
        }
    }

    /// None where the power is undefined or not finite.
    pub fn pow(self, exponent: Number) -> Option<Number> {
        if let (true, Some(mut n)) = (self.is_exact(), exponent.as_integer()) {
            let mut base = if n < 0 { self.recip()? } else { self };
            n = n.abs();
            if base.is_one() || n == 0 {
                return Some(Number::ONE);
            }
            let mut result = Number::ONE;
            while n > 0 {
                if n & 1 == 1 {
                    result = result.mul(base)?;
                }
                n >>= 1;
                if n > 0 {
                    base = base.mul(base)?;
                }
            }
            return Some(result);
        }
        if self.is_zero() && !exponent.is_positive() {
            return None;
        }
        Number::from_f64(self.to_f64().powf(exponent.to_f64()))
    }

    /// Largest number that divides both a whole number of times; none unless both are exact.
    pub fn common_divisor(self, other: Number) -> Option<Number> {
        match (self, other) {
            (Number::Ratio { num: a, den: b }, Number::Ratio { num: c, den: d }) => {
                let num = gcd(a.unsigned_abs() as u128, c.unsigned_abs() as u128);
                let den = b as u128 / gcd(b as u128, d as u128) * d as u128;
                Number::ratio(num as i128, i128::try_from(den).ok()?)
            }
            _ => None,
        }
    }

    /// `(root, power)` with `root^power` equal to this integer and the largest such power.
    pub fn perfect_power(self) -> Option<(i64, i64)> {
        let value = self.as_integer().filter(|value| *value >= 4)?;
        (2..=62).rev().find_map(|power: i64| {
            let root = (value as f64).powf(1.0 / power as f64).round() as i64;
            (root >= 2 && root.checked_pow(power as u32) == Some(value)).then_some((root, power))
        })
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        match (self, other) {
            (Number::Ratio { num: a, den: b }, Number::Ratio { num: c, den: d }) => {
                a == c && b == d
            }
            (Number::Real(a), Number::Real(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Number::Ratio { num, den } => (num, den).hash(state),
            Number::Real(value) => value.to_bits().hash(state),
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        if let (Number::Ratio { num: a, den: b }, Number::Ratio { num: c, den: d }) = (self, other)
        {
            return (*a as i128 * *d as i128).cmp(&(*c as i128 * *b as i128));
        }
        // A rational and a real never compare equal, or equality and order would disagree.
        let by_value = self.to_f64().total_cmp(&other.to_f64());
        by_value.then_with(|| self.is_exact().cmp(&other.is_exact()))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Ratio { num, den: 1 } => write!(out, "{num}"),
            // Debug prints the shortest text that reads back as the same double.
            _ => write!(out, "{:?}", self.to_f64()),
        }
    }
}

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Number, String> {
        if let Ok(value) = text.parse::<i64>() {
            return Ok(Number::int(value));
        }
        // "inf" and "nan" parse as floats but are names here.
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            if let Some(number) = text.parse::<f64>().ok().and_then(Number::from_f64) {
                return Ok(number);
            }
        }
        Err(format!("`{text}` is not a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_exact_and_reduced() {
        let third = Number::ratio(1, 3).unwrap();
        let sixth = Number::ratio(-2, -12).unwrap();
        assert_eq!(third.add(sixth), Number::ratio(1, 2));
        assert_eq!(third.mul(Number::int(3)), Some(Number::ONE));
        assert_eq!(Number::from_f64(0.75), Number::ratio(3, 4));
        assert!(!Number::from_f64(0.1).unwrap().is_exact());
    }

    #[test]
    fn overflow_and_undefined_results_are_none() {
        assert_eq!(Number::int(i64::MAX).add(Number::ONE), None);
        assert_eq!(Number::int(i64::MIN).neg(), None);
        assert_eq!(Number::ZERO.recip(), None);
        assert_eq!(Number::ZERO.pow(Number::int(-1)), None);
        assert_eq!(Number::int(-2).pow(Number::ratio(1, 2).unwrap()), None);
        assert_eq!(Number::from_f64(f64::INFINITY), None);
    }

    #[test]
    fn perfect_powers_are_found() {
        assert_eq!(Number::int(64).perfect_power(), Some((2, 6)));
        assert_eq!(Number::int(36).perfect_power(), Some((6, 2)));
        assert_eq!(Number::int(12).perfect_power(), None);
    }

    #[test]
    fn text_form_reads_back() {
        for number in [Number::int(-7), Number::ratio(1, 4).unwrap(), Number::Real(0.1)] {
            assert_eq!(number.to_string().parse(), Ok(number));
        }
    }
}
