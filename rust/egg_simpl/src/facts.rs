//! What is known about a value without evaluating it: an interval, and whether it is an integer.
//!
//! Every function answers only what follows from its arguments; "unknown" is the whole line.
//! Interval ends are doubles computed by the same monotone operations that evaluation uses.

use crate::number::Number;
use crate::tape::TapeOp;

/// The closed interval a value lies in, and whether it is always an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    pub lower: f64,
    pub upper: f64,
    pub integer: bool,
}

impl Facts {
    pub const UNKNOWN: Facts =
        Facts { lower: f64::NEG_INFINITY, upper: f64::INFINITY, integer: false };
    pub const BOOLEAN: Facts = Facts { lower: 0.0, upper: 1.0, integer: true };

    pub fn new(lower: f64, upper: f64, integer: bool) -> Facts {
        // An undefined end comes from inf - inf or 0 * inf and means nothing is known there.
        Facts {
            lower: if lower.is_nan() { f64::NEG_INFINITY } else { lower },
            upper: if upper.is_nan() { f64::INFINITY } else { upper },
            integer,
        }
    }

    pub fn of_number(number: Number) -> Facts {
        let value = number.to_f64();
        Facts::new(value, value, number.is_integer())
    }

    pub fn is_positive(self) -> bool {
        self.lower > 0.0
    }

    pub fn is_nonnegative(self) -> bool {
        self.lower >= 0.0
    }

    pub fn is_nonzero(self) -> bool {
        self.lower > 0.0 || self.upper < 0.0
    }

    pub fn is_boolean(self) -> bool {
        self.integer && self.lower >= 0.0 && self.upper <= 1.0
    }

    /// The single value the interval holds, if it holds just one.
    pub fn constant(self) -> Option<Number> {
        (self.lower == self.upper).then(|| Number::from_f64(self.lower)).flatten()
    }

    /// Both facts hold at once.
    pub fn meet(self, other: Facts) -> Facts {
        let met = Facts {
            lower: self.lower.max(other.lower),
            upper: self.upper.min(other.upper),
            integer: self.integer || other.integer,
        };
        // Rounding can part two intervals that share one point; the first is as good as any.
        if met.lower <= met.upper {
            met
        } else {
            self
        }
    }

    /// One of the two facts holds.
    pub fn join(self, other: Facts) -> Facts {
        Facts {
            lower: self.lower.min(other.lower),
            upper: self.upper.max(other.upper),
            integer: self.integer && other.integer,
        }
    }

    pub fn add(self, other: Facts) -> Facts {
        Facts::new(
            self.lower + other.lower,
            self.upper + other.upper,
            self.integer && other.integer,
        )
    }

    pub fn neg(self) -> Facts {
        Facts::new(-self.upper, -self.lower, self.integer)
    }

    pub fn sub(self, other: Facts) -> Facts {
        self.add(other.neg())
    }

    pub fn mul(self, other: Facts) -> Facts {
        let corners = [
            corner(self.lower, other.lower),
            corner(self.lower, other.upper),
            corner(self.upper, other.lower),
            corner(self.upper, other.upper),
        ];
        Facts::hull(&corners, self.integer && other.integer)
    }

    pub fn div(self, other: Facts) -> Facts {
        self.mul(other.pow(Facts::of_number(Number::MINUS_ONE)))
    }

    fn hull(corners: &[f64], integer: bool) -> Facts {
        let lower = corners.iter().copied().fold(f64::INFINITY, f64::min);
        let upper = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if corners.iter().any(|value| value.is_nan()) {
            return Facts { integer, ..Facts::UNKNOWN };
        }
        Facts { lower, upper, integer }
    }

    pub fn pow(self, exponent: Facts) -> Facts {
        let integer = self.integer && exponent.integer && exponent.lower >= 0.0;
        if let Some(power) = exponent.constant() {
            if let Some(power) = power.as_integer() {
                return self.pow_int(power, integer);
            }
        }
        let base_stays_off_zero = self.lower > 0.0 || (self.lower == 0.0 && exponent.lower > 0.0);
        if !base_stays_off_zero {
            return Facts { integer, ..Facts::UNKNOWN };
        }
        let corners = [
            self.lower.powf(exponent.lower),
            self.lower.powf(exponent.upper),
            self.upper.powf(exponent.lower),
            self.upper.powf(exponent.upper),
        ];
        Facts::hull(&corners, integer)
    }

    fn pow_int(self, power: i64, integer: bool) -> Facts {
        if power == 0 {
            return Facts::of_number(Number::ONE);
        }
        let contains_zero = self.lower <= 0.0 && self.upper >= 0.0;
        let ends = [self.lower.powf(power as f64), self.upper.powf(power as f64)];
        if power < 0 && contains_zero {
            // 1 / [0, u] is [1/u, inf]; a sign change leaves nothing.
            if self.lower == 0.0 {
                return Facts::new(ends[1], f64::INFINITY, false);
            }
            let lower = if power % 2 == 0 { 0.0 } else { f64::NEG_INFINITY };
            return Facts::new(lower, f64::INFINITY, false);
        }
        let mut result = Facts::hull(&ends, integer);
        if power > 0 && power % 2 == 0 && contains_zero {
            result.lower = 0.0;
        }
        result
    }

    pub fn log(self) -> Facts {
        if self.upper < 0.0 {
            return Facts::UNKNOWN;
        }
        Facts::new(self.lower.max(0.0).ln(), self.upper.ln(), false)
    }

    pub fn exp(self) -> Facts {
        Facts::new(self.lower.exp(), self.upper.exp(), false)
    }

    pub fn min(self, other: Facts) -> Facts {
        Facts {
            lower: self.lower.min(other.lower),
            upper: self.upper.min(other.upper),
            integer: self.integer && other.integer,
        }
    }

    pub fn max(self, other: Facts) -> Facts {
        Facts {
            lower: self.lower.max(other.lower),
            upper: self.upper.max(other.upper),
            integer: self.integer && other.integer,
        }
    }

    pub fn floor(self) -> Facts {
        Facts::new(self.lower.floor(), self.upper.floor(), true)
    }

    pub fn ceil(self) -> Facts {
        Facts::new(self.lower.ceil(), self.upper.ceil(), true)
    }

    pub fn floor_div(self, other: Facts) -> Facts {
        if other.is_positive() || other.upper < 0.0 {
            self.div(other).floor()
        } else {
            Facts { integer: true, ..Facts::UNKNOWN }
        }
    }

    /// The sign of a floor remainder is that of the divisor.
    pub fn floor_mod(self, other: Facts) -> Facts {
        let integer = self.integer && other.integer;
        if !other.is_positive() {
            return Facts { integer, ..Facts::UNKNOWN };
        }
        let largest = if integer { other.upper - 1.0 } else { other.upper };
        if self.is_nonnegative() {
            return Facts::new(0.0, self.upper.min(largest), integer);
        }
        Facts::new(0.0, largest, integer)
    }

    pub fn abs(self) -> Facts {
        if self.is_nonnegative() {
            self
        } else if self.upper <= 0.0 {
            self.neg()
        } else {
            Facts::new(0.0, self.upper.max(-self.lower), self.integer)
        }
    }

    pub fn step(self) -> Facts {
        let step = |end: f64| TapeOp::Step.apply(&[end]);
        Facts::new(step(self.lower), step(self.upper), false)
    }

    pub fn smooth_floor_div(self, other: Facts) -> Facts {
        if !other.is_positive() {
            return Facts::UNKNOWN;
        }
        let margin = Facts::new(0.5, 1.5, false);
        Facts { integer: false, ..self.floor().add(margin).div(other).floor() }
    }

    /// `self * yes + (1 - self) * no`; between the arms where the weight is between 0 and 1.
    pub fn mix(self, yes: Facts, no: Facts) -> Facts {
        if self.is_nonnegative() && self.upper <= 1.0 {
            return Facts { integer: false, ..yes.join(no) };
        }
        self.mul(yes).add(Facts::of_number(Number::ONE).sub(self).mul(no))
    }
}

/// Product of two interval ends; 0 times an infinite end is 0, since no value is infinite.
fn corner(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        0.0
    } else {
        a * b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lower: f64, upper: f64) -> Facts {
        Facts::new(lower, upper, true)
    }

    #[test]
    fn intervals_follow_the_operations() {
        assert_eq!(facts(-2.0, 3.0).mul(facts(4.0, 5.0)), facts(-10.0, 15.0));
        assert_eq!(facts(-2.0, 3.0).pow(facts(2.0, 2.0)), facts(0.0, 9.0));
        assert_eq!(facts(0.0, f64::INFINITY).mul(facts(0.0, 1.0)), facts(0.0, f64::INFINITY));
        assert_eq!(facts(3.0, 9.0).floor_div(facts(2.0, 4.0)), facts(0.0, 4.0));
        assert_eq!(facts(-5.0, 9.0).floor_mod(facts(4.0, 4.0)), facts(0.0, 3.0));
        assert!(facts(1.0, 8.0).pow(Facts::new(-1.0, -1.0, true)).is_positive());
    }

    #[test]
    fn unknown_proves_nothing() {
        let unknown = Facts::UNKNOWN;
        assert!(!unknown.is_positive() && !unknown.is_nonzero() && !unknown.integer);
        assert_eq!(unknown.constant(), None);
        let quotient = facts(1.0, 2.0).div(facts(-1.0, 1.0));
        assert_eq!((quotient.lower, quotient.upper), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
