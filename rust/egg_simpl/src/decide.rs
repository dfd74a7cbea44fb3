//! Normal form of everything that decides: minimum, comparison, selection, rounding, booleans.
//!
//! Each constructor first asks the known intervals, of the operands and of their difference.

use crate::facts::Facts;
use crate::graph::{Graph, Id, Node};
use crate::number::Number;
use crate::tape::TapeOp as Op;

impl Graph {
    /// Facts about `a - b`, which are sharper than the two intervals when terms cancel.
    fn difference(&mut self, a: Id, b: Id) -> Facts {
        let apart = self.facts(a).sub(self.facts(b));
        let difference = self.sub(a, b);
        self.facts(difference).meet(apart)
    }

    fn proves_le(&mut self, a: Id, b: Id) -> bool {
        self.difference(a, b).upper <= 0.0
    }

    // ------------------------------------------------- minimum and maximum

    pub fn min(&mut self, a: Id, b: Id) -> Id {
        self.extremum(Op::Min, &[a, b])
    }

    pub fn max(&mut self, a: Id, b: Id) -> Id {
        self.extremum(Op::Max, &[a, b])
    }

    fn extremum(&mut self, op: Op, args: &[Id]) -> Id {
        let mut flat: Vec<Id> = Vec::new();
        for arg in args {
            match self.node(*arg) {
                Node::Apply(inner, more) if *inner == op => flat.extend(more.iter().copied()),
                _ => flat.push(*arg),
            }
        }
        flat.sort();
        flat.dedup();
        let mut kept: Vec<Id> = Vec::new();
        for candidate in flat {
            if kept.iter().any(|other| self.covers(op, *other, candidate)) {
                continue;
            }
            let others = std::mem::take(&mut kept);
            kept = others.into_iter().filter(|other| !self.covers(op, candidate, *other)).collect();
            kept.push(candidate);
        }
        match kept.as_slice() {
            [only] => *only,
            _ => self.shift_common_terms(op, kept),
        }
    }

    /// Whether `a` alone decides the extremum of `a` and `b`.
    fn covers(&mut self, op: Op, a: Id, b: Id) -> bool {
        match op {
            Op::Min => self.proves_le(a, b),
            _ => self.proves_le(b, a),
        }
    }

    /// min(x + y, x + z) is x + min(y, z).
    fn shift_common_terms(&mut self, op: Op, args: Vec<Id>) -> Id {
        let (_, mut common) = self.terms_of(args[0]);
        for arg in &args[1..] {
            let (_, terms) = self.terms_of(*arg);
            common.retain(|part| terms.contains(part));
        }
        if common.is_empty() {
            return self.intern(Node::Apply(op, args));
        }
        // What is left of each operand has no common terms any more, so this ends.
        let rest: Vec<Id> = args
            .iter()
            .map(|arg| {
                let (constant, mut terms) = self.terms_of(*arg);
                terms.retain(|part| !common.contains(part));
                self.intern_sum(constant, terms)
            })
            .collect();
        let shift = self.intern_sum(Number::ZERO, common);
        let extremum = self.extremum(op, &rest);
        self.add(shift, extremum)
    }

    // ---------------------------------------------------------- comparison

    pub fn lt(&mut self, a: Id, b: Id) -> Id {
        let difference = self.difference(a, b);
        if difference.upper < 0.0 {
            return self.int(1);
        }
        if difference.lower >= 0.0 {
            return self.int(0);
        }
        self.balanced(Op::Lt, a, b)
    }

    pub fn le(&mut self, a: Id, b: Id) -> Id {
        let difference = self.difference(a, b);
        if difference.upper <= 0.0 {
            return self.int(1);
        }
        if difference.lower > 0.0 {
            return self.int(0);
        }
        if difference.integer {
            // One form for integers: a <= b is a < b + 1.
            let one = self.int(1);
            let above = self.add(b, one);
            return self.lt(a, above);
        }
        self.balanced(Op::Le, a, b)
    }

    pub fn eq(&mut self, a: Id, b: Id) -> Id {
        let difference = self.difference(a, b);
        if difference.is_nonzero() {
            return self.int(0);
        }
        if difference.constant().is_some() {
            return self.int(1);
        }
        let (a, b) = if self.as_number(a).is_some() { (b, a) } else { (a, b) };
        if self.facts(a).is_boolean() {
            match self.as_integer(b) {
                Some(1) => return a,
                Some(0) => return self.not(a),
                _ => {}
            }
        }
        self.balanced(Op::Eq, a, b)
    }

    pub fn ne(&mut self, a: Id, b: Id) -> Id {
        let equal = self.eq(a, b);
        self.not(equal)
    }

    /// Move terms that occur on both sides out, positive parts right, negative parts left, and
    /// divide by the common content, so that equal comparisons meet.
    fn balanced(&mut self, op: Op, a: Id, b: Id) -> Id {
        self.try_balanced(op, a, b).unwrap_or_else(|| self.intern(Node::Apply(op, vec![a, b])))
    }

    fn try_balanced(&mut self, op: Op, a: Id, b: Id) -> Option<Id> {
        let difference = self.sub(b, a);
        let (mut constant, mut terms) = self.terms_of(difference);
        if terms.is_empty() {
            return None;
        }
        let first = terms[0].1;
        // Equality is symmetric: the first term goes right.
        let flip = op == Op::Eq && first.is_negative();
        let mut factor = if terms.iter().all(|(_, c)| c.is_exact()) && constant.is_exact() {
            let mut divisor = first;
            for (_, coefficient) in &terms {
                divisor = divisor.common_divisor(*coefficient)?;
            }
            if !constant.is_zero() {
                divisor = divisor.common_divisor(constant)?;
            }
            if divisor.is_negative() { divisor.neg()? } else { divisor }.recip()?
        } else {
            Number::ONE
        };
        if flip {
            factor = factor.neg()?;
        }
        constant = constant.mul(factor)?;
        for (_, coefficient) in &mut terms {
            *coefficient = coefficient.mul(factor)?;
        }
        let (right, left): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, c)| c.is_positive());
        let left: Option<Vec<_>> = left.into_iter().map(|(t, c)| Some((t, c.neg()?))).collect();
        let left = left?;
        // The constant stands alone if a side is free, and stays positive otherwise.
        let constant_right = if right.is_empty() || left.is_empty() {
            right.is_empty()
        } else {
            constant.is_positive()
        };
        let zero = Number::ZERO;
        let (left, right) = if constant_right {
            (self.sum(zero, &left)?, self.sum(constant, &right)?)
        } else {
            (self.sum(constant.neg()?, &left)?, self.sum(zero, &right)?)
        };
        Some(self.intern(Node::Apply(op, vec![left, right])))
    }

    // ------------------------------------------------------------ booleans

    /// `a` as 0 or 1.
    pub fn truth(&mut self, a: Id) -> Id {
        if self.facts(a).is_boolean() {
            return a;
        }
        if self.facts(a).is_nonzero() {
            return self.int(1);
        }
        let zero = self.int(0);
        let is_zero = self.eq(a, zero);
        self.not(is_zero)
    }

    pub fn not(&mut self, a: Id) -> Id {
        match self.node(a).clone() {
            Node::Number(number) => self.int(i64::from(number.is_zero())),
            Node::Apply(Op::Not, args) => self.truth(args[0]),
            // The opposite of a comparison is a comparison; for integers both spell `<`.
            Node::Apply(Op::Lt, args) => self.le(args[1], args[0]),
            Node::Apply(Op::Le, args) => self.lt(args[1], args[0]),
            Node::Apply(Op::Eq, args) => self.intern(Node::Apply(Op::Ne, args)),
            Node::Apply(Op::Ne, args) => self.intern(Node::Apply(Op::Eq, args)),
            _ if self.facts(a).is_boolean() => self.intern(Node::Apply(Op::Not, vec![a])),
            _ => {
                let truth = self.truth(a);
                self.not(truth)
            }
        }
    }

    pub fn and(&mut self, a: Id, b: Id) -> Id {
        self.junction(Op::And, a, b)
    }

    pub fn or(&mut self, a: Id, b: Id) -> Id {
        self.junction(Op::Or, a, b)
    }

    fn junction(&mut self, op: Op, a: Id, b: Id) -> Id {
        let neutral = i64::from(op == Op::And);
        let mut flat: Vec<Id> = Vec::new();
        for arg in [a, b] {
            let arg = self.truth(arg);
            match self.node(arg) {
                Node::Apply(inner, more) if *inner == op => flat.extend(more.iter().copied()),
                _ => flat.push(arg),
            }
        }
        flat.sort();
        flat.dedup();
        flat.retain(|arg| self.as_integer(*arg) != Some(neutral));
        for arg in flat.clone() {
            let opposite = self.not(arg);
            if self.as_integer(arg) == Some(1 - neutral) || flat.contains(&opposite) {
                return self.int(1 - neutral);
            }
        }
        match flat.as_slice() {
            [] => self.int(neutral),
            [only] => *only,
            _ => self.intern(Node::Apply(op, flat)),
        }
    }

    pub fn select(&mut self, condition: Id, if_true: Id, if_false: Id) -> Id {
        let condition = self.truth(condition);
        if let Some(number) = self.as_number(condition) {
            return if number.is_zero() { if_false } else { if_true };
        }
        if if_true == if_false {
            return if_true;
        }
        match (self.as_integer(if_true), self.as_integer(if_false)) {
            (Some(1), Some(0)) => return condition,
            (Some(0), Some(1)) => return self.not(condition),
            _ => {}
        }
        // Of a condition and its opposite, the one that was there first is used.
        let opposite = self.not(condition);
        let args = if opposite < condition {
            vec![opposite, if_false, if_true]
        } else {
            vec![condition, if_true, if_false]
        };
        self.intern(Node::Apply(Op::Select, args))
    }

    // ------------------------------------------------------------ rounding

    pub fn floor_div(&mut self, a: Id, b: Id) -> Id {
        if self.as_number(b) == Some(Number::ONE) {
            return self.floor(a);
        }
        if let Some((multiple, rest)) = self.split_multiple(a, b) {
            let quotient = self.floor_div_rest(rest, b);
            return self.add(multiple, quotient);
        }
        self.floor_div_rest(a, b)
    }

    fn floor_div_rest(&mut self, a: Id, b: Id) -> Id {
        let facts = self.facts(b);
        if facts.is_positive()
            && self.facts(a).is_nonnegative()
            && self.difference(a, b).upper < 0.0
        {
            return self.int(0);
        }
        if let (Some(a), Some(b)) = (self.as_integer(a), self.as_integer(b).filter(|b| *b != 0)) {
            if let Some(quotient) = a.checked_div_euclid(b).filter(|_| b > 0) {
                return self.int(quotient);
            }
        }
        // (x // c) // d is x // (c d) for a positive integer d, whatever x and c > 0.
        if let Node::Apply(Op::FloorDiv, args) = self.node(a).clone() {
            if facts.integer && facts.is_positive() && self.facts(args[1]).is_positive() {
                let divisor = self.mul(args[1], b);
                return self.floor_div(args[0], divisor);
            }
        }
        self.intern(Node::Apply(Op::FloorDiv, vec![a, b]))
    }

    /// `(q, r)` with a = q b + r and q a non-trivial integer part that divides out term by term.
    fn split_multiple(&mut self, a: Id, b: Id) -> Option<(Id, Id)> {
        if !self.facts(b).is_nonzero() {
            return None;
        }
        let (constant, terms) = self.terms_of(a);
        let mut multiple: Vec<(Id, Number)> = Vec::new();
        let mut rest: Vec<(Id, Number)> = Vec::new();
        for (term, coefficient) in terms {
            let part = self.sum(Number::ZERO, &[(term, coefficient)])?;
            let quotient = self.div(part, b);
            if self.facts(quotient).integer {
                multiple.push((quotient, Number::ONE));
            } else {
                rest.push((term, coefficient));
            }
        }
        let mut constant_rest = constant;
        if let (Some(constant), Some(divisor)) = (constant.as_integer(), self.as_integer(b)) {
            if divisor > 0 && constant.div_euclid(divisor) != 0 {
                let whole = self.int(constant.div_euclid(divisor));
                multiple.push((whole, Number::ONE));
                constant_rest = Number::int(constant.rem_euclid(divisor));
            }
        }
        if multiple.is_empty() {
            return None;
        }
        Some((self.sum(Number::ZERO, &multiple)?, self.sum(constant_rest, &rest)?))
    }

    pub fn floor_mod(&mut self, a: Id, b: Id) -> Id {
        let facts = self.facts(b);
        if self.as_number(b) == Some(Number::ONE) && self.facts(a).integer {
            return self.int(0);
        }
        if let Some((_, rest)) = self.split_multiple(a, b) {
            return self.floor_mod(rest, b);
        }
        if facts.is_positive()
            && self.facts(a).is_nonnegative()
            && self.difference(a, b).upper < 0.0
        {
            return a;
        }
        if let (Some(a), Some(b)) = (self.as_integer(a), self.as_integer(b).filter(|b| *b > 0)) {
            return self.int(a.rem_euclid(b));
        }
        self.intern(Node::Apply(Op::FloorMod, vec![a, b]))
    }

    pub fn floor(&mut self, a: Id) -> Id {
        self.round(Op::Floor, a)
    }

    pub fn ceil(&mut self, a: Id) -> Id {
        self.round(Op::Ceil, a)
    }

    fn round(&mut self, op: Op, a: Id) -> Id {
        if self.facts(a).integer {
            return a;
        }
        if let Some(number) = self.as_number(a) {
            let value = number.to_f64();
            let rounded = if op == Op::Floor { value.floor() } else { value.ceil() };
            if let Some(number) = Number::from_f64(rounded) {
                return self.number(number);
            }
        }
        // Integer terms leave the rounding.
        let (constant, terms) = self.terms_of(a);
        let (whole, rest): (Vec<_>, Vec<_>) =
            terms.into_iter().partition(|(term, c)| c.is_integer() && self.facts(*term).integer);
        let split = self.sum(Number::ZERO, &whole).zip(self.sum(constant, &rest));
        match split.filter(|_| !whole.is_empty()) {
            Some((whole, rest)) => {
                let rounded = self.round(op, rest);
                self.add(whole, rounded)
            }
            None => self.intern(Node::Apply(op, vec![a])),
        }
    }

    // ----------------------------------------------------------- functions

    pub fn abs(&mut self, a: Id) -> Id {
        let facts = self.facts(a);
        if facts.is_nonnegative() {
            return a;
        }
        let negated = self.scale(a, Number::MINUS_ONE);
        if facts.upper <= 0.0 {
            return negated;
        }
        self.intern(Node::Apply(Op::Abs, vec![a.min(negated)]))
    }

    /// A function of one operand that has no rules of its own.
    pub fn function(&mut self, op: Op, a: Id) -> Id {
        let number = self.as_number(a).and_then(|a| Number::from_f64(op.apply(&[a.to_f64()])));
        match number {
            Some(number) => self.number(number),
            None => self.intern(Node::Apply(op, vec![a])),
        }
    }

    pub fn mix(&mut self, weight: Id, yes: Id, no: Id) -> Id {
        match self.as_number(weight) {
            _ if yes == no => yes,
            Some(weight) if weight.is_one() => yes,
            Some(weight) if weight.is_zero() => no,
            _ => self.intern(Node::Apply(Op::Mix, vec![weight, yes, no])),
        }
    }
}
