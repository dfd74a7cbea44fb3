//! Normal form of sums, products, powers, exponentials and logarithms.
//!
//! Sums are polynomials with exact coefficients over monomials; monomials are products of powers.
//! Constant bases stay as they are (2^x is not turned into exp(x ln 2)), so that powers of integers
//! stay exact. A step whose constants leave the number type keeps the expression as written.

use crate::graph::{Expand, Graph, Id, Node};
use crate::number::Number;
use crate::tape::TapeOp as Op;

/// Multiplying out stops at this many terms, so that nested products cannot explode.
const MAX_EXPANDED_TERMS: usize = 32;
/// A longer sum stays one operand of the sum it is added to, so that running totals over hundreds of
/// parts do not grow quadratically.
const MAX_FLATTENED_TERMS: usize = 12;
/// Powers of sums up to this one are multiplied out.
const MAX_EXPANDED_POWER: i64 = 4;

type Terms = Vec<(Id, Number)>;
type Factors = Vec<(Id, Id)>;

impl Graph {
    // ---------------------------------------------------------------- sums

    pub fn add(&mut self, a: Id, b: Id) -> Id {
        self.sum(Number::ZERO, &[(a, Number::ONE), (b, Number::ONE)])
            .unwrap_or_else(|| self.plain(Op::Add, a, b))
    }

    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        let negated = self.scale(b, Number::MINUS_ONE);
        self.add(a, negated)
    }

    /// `factor * a`.
    pub fn scale(&mut self, a: Id, factor: Number) -> Id {
        self.sum(Number::ZERO, &[(a, factor)]).unwrap_or_else(|| {
            let factor = self.number(factor);
            self.plain(Op::Mul, a, factor)
        })
    }

    fn plain(&mut self, op: Op, a: Id, b: Id) -> Id {
        self.intern(Node::Apply(op, vec![a.min(b), a.max(b)]))
    }

    /// constant + sum of coefficient * part; none when a coefficient overflows.
    pub fn sum(&mut self, constant: Number, parts: &[(Id, Number)]) -> Option<Id> {
        let (constant, terms) = self.collect_terms(constant, parts)?;
        let flat = self.intern_sum(constant, terms.clone());
        let expandable = terms.iter().any(|(term, _)| self.has_sum_factor(*term));
        if !expandable && (terms.len() < 2 || self.expand == Expand::Always) {
            return Some(flat);
        }
        let (wide_constant, wide_terms) =
            self.multiply_out(constant, &terms).unwrap_or_else(|| (constant, terms.clone()));
        let wide = self.intern_sum(wide_constant, wide_terms.clone());
        if self.expand == Expand::Always {
            return Some(wide);
        }
        let mut best = flat;
        let factored = self.factor_out(wide_constant, &wide_terms);
        for candidate in [Some(wide), factored].into_iter().flatten() {
            if self.arithmetic_cost(candidate) < self.arithmetic_cost(best) {
                best = candidate;
            }
        }
        Some(best)
    }

    fn collect_terms(&self, constant: Number, parts: &[(Id, Number)]) -> Option<(Number, Terms)> {
        let mut constant = constant;
        let mut terms: Terms = Vec::with_capacity(parts.len());
        for (part, factor) in parts {
            match self.node(*part) {
                Node::Number(number) => constant = constant.add(number.mul(*factor)?)?,
                Node::Sum(inner_constant, inner)
                    if inner.len() <= MAX_FLATTENED_TERMS || parts.len() == 1 =>
                {
                    constant = constant.add(inner_constant.mul(*factor)?)?;
                    for (term, coefficient) in inner {
                        terms.push((*term, coefficient.mul(*factor)?));
                    }
                }
                _ => terms.push((*part, *factor)),
            }
        }
        terms.sort_by_key(|(term, _)| *term);
        let mut merged: Terms = Vec::with_capacity(terms.len());
        for (term, coefficient) in terms {
            match merged.last_mut() {
                Some((last, total)) if *last == term => *total = total.add(coefficient)?,
                _ => merged.push((term, coefficient)),
            }
        }
        merged.retain(|(_, coefficient)| !coefficient.is_zero());
        Some((constant, merged))
    }

    /// The sum of terms that are sorted, distinct and in normal form.
    pub(crate) fn intern_sum(&mut self, constant: Number, terms: Terms) -> Id {
        match terms.as_slice() {
            [] => self.number(constant),
            [(term, coefficient)] if constant.is_zero() && coefficient.is_one() => *term,
            _ => self.intern(Node::Sum(constant, terms)),
        }
    }

    fn has_sum_factor(&self, term: Id) -> bool {
        match self.node(term) {
            Node::Product(factors) => factors.iter().any(|(base, exponent)| {
                matches!(self.node(*base), Node::Sum(..))
                    && self.expandable_power(*exponent).is_some()
            }),
            _ => false,
        }
    }

    fn expandable_power(&self, exponent: Id) -> Option<i64> {
        self.as_integer(exponent).filter(|power| (1..=MAX_EXPANDED_POWER).contains(power))
    }

    /// Distribute every product over its sum factors; none beyond the size limit or on overflow.
    fn multiply_out(&mut self, constant: Number, terms: &Terms) -> Option<(Number, Terms)> {
        let mut parts: Terms = Vec::new();
        for (term, coefficient) in terms {
            for (monomial, factor) in self.multiply_out_term(*term)? {
                parts.push((monomial, factor.mul(*coefficient)?));
            }
            if parts.len() > MAX_EXPANDED_TERMS {
                return None;
            }
        }
        self.collect_terms(constant, &parts)
    }

    fn multiply_out_term(&mut self, term: Id) -> Option<Terms> {
        let Node::Product(factors) = self.node(term).clone() else {
            return Some(vec![(term, Number::ONE)]);
        };
        let mut rest: Factors = Vec::new();
        let mut sums: Vec<(Number, Terms)> = Vec::new();
        for (base, exponent) in factors {
            match (self.node(base), self.expandable_power(exponent)) {
                (Node::Sum(constant, inner), Some(power)) => {
                    for _ in 0..power {
                        sums.push((*constant, inner.clone()));
                    }
                }
                _ => rest.push((base, exponent)),
            }
        }
        let mut parts: Vec<(Factors, Number)> = vec![(rest, Number::ONE)];
        for (constant, inner) in sums {
            let mut next = Vec::new();
            for (factors, coefficient) in &parts {
                if !constant.is_zero() {
                    next.push((factors.clone(), coefficient.mul(constant)?));
                }
                for (term, factor) in &inner {
                    let mut longer = factors.clone();
                    self.append_factors(*term, &mut longer);
                    next.push((longer, coefficient.mul(*factor)?));
                }
            }
            if next.len() > MAX_EXPANDED_TERMS {
                return None;
            }
            parts = next;
        }
        let mut terms = Terms::new();
        for (factors, coefficient) in parts {
            // Powers of one base may meet here and leave a number or another product of sums,
            // which the caller's collection takes apart; one level of expansion is enough.
            terms.push((self.product(coefficient, factors)?, Number::ONE));
        }
        Some(terms)
    }

    /// Pull the factors common to all terms in front; none when there are none.
    fn factor_out(&mut self, constant: Number, terms: &Terms) -> Option<Id> {
        if !constant.is_zero() || terms.len() < 2 {
            return None;
        }
        let mut common = self.factors_of(terms[0].0);
        for (term, _) in &terms[1..] {
            let factors = self.factors_of(*term);
            common = common
                .into_iter()
                .filter_map(|(base, exponent)| {
                    let (_, other) = *factors.iter().find(|(b, _)| *b == base)?;
                    if other == exponent {
                        return Some((base, exponent));
                    }
                    let (a, b) = (self.as_number(exponent)?, self.as_number(other)?);
                    let splits =
                        self.facts(base).is_positive() || (a.is_integer() && b.is_integer());
                    let smaller = if a < b { (exponent, a) } else { (other, b) };
                    (splits && smaller.1.is_positive()).then_some((base, smaller.0))
                })
                .collect();
        }
        if common.is_empty() {
            return None;
        }
        let mut rest = Terms::new();
        for (term, coefficient) in terms {
            let mut factors = self.factors_of(*term);
            for (base, exponent) in &common {
                let slot = factors.iter_mut().find(|(b, _)| b == base)?;
                slot.1 = self.sub(slot.1, *exponent);
            }
            rest.push((self.product(*coefficient, factors)?, Number::ONE));
        }
        let (constant, rest) = self.collect_terms(Number::ZERO, &rest)?;
        let rest = self.intern_sum(constant, rest);
        let coefficient = self.split_coefficient(rest, &mut common)?;
        self.product(coefficient, common)
    }

    /// Operations spent inside sums and products; what they are made of is shared and costs 0.
    pub fn arithmetic_cost(&mut self, id: Id) -> u64 {
        if let Some(cost) = self.arithmetic_costs.get(&id) {
            return *cost;
        }
        let cost = match self.node(id) {
            Node::Sum(..) | Node::Product(_) => {
                let own = self.own_cost(id);
                let children = self.children(id).into_iter();
                children.fold(own, |sum, child| sum.saturating_add(self.arithmetic_cost(child)))
            }
            _ => 0,
        };
        self.arithmetic_costs.insert(id, cost);
        cost
    }

    /// Cost of computing a node once its children are there.
    pub fn own_cost(&self, id: Id) -> u64 {
        match self.node(id) {
            Node::Number(_) | Node::Var(_) | Node::Euler => 0,
            Node::Sum(constant, terms) => {
                let scaled = |c: &Number| !c.is_one() && *c != Number::MINUS_ONE;
                let scalings = terms.iter().filter(|(_, c)| scaled(c)).count();
                let additions = terms.len() as u64 - u64::from(constant.is_zero());
                additions * Op::Add.cost() + scalings as u64 * Op::Mul.cost()
            }
            Node::Product(factors) => {
                let mut cost = (factors.len() as u64 - 1) * Op::Mul.cost();
                let mut divides = false;
                for (base, exponent) in factors {
                    cost += match self.as_number(*exponent) {
                        Some(power) => {
                            divides |= power.is_negative();
                            match power.as_integer() {
                                Some(power) => {
                                    let unrolled = (power.unsigned_abs() - 1) * Op::Mul.cost();
                                    unrolled.min(Op::Pow.cost())
                                }
                                None => Op::Pow.cost(),
                            }
                        }
                        // Powers of constants are shared between monomials.
                        None if self.as_number(*base).is_some() => 0,
                        None if matches!(self.node(*base), Node::Euler) => Op::Exp.cost(),
                        None => Op::Pow.cost(),
                    };
                }
                cost + if divides { Op::Div.cost() } else { 0 }
            }
            Node::Apply(op, args) if op.arity() == 2 => (args.len() as u64 - 1) * op.cost(),
            Node::Apply(op, _) => op.cost(),
        }
    }

    // ------------------------------------------------------------ products

    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        let mut factors = Factors::new();
        let coefficient = self.split_coefficient(a, &mut factors).and_then(|left| {
            let right = self.split_coefficient(b, &mut factors)?;
            left.mul(right)
        });
        coefficient
            .and_then(|coefficient| self.product(coefficient, factors))
            .unwrap_or_else(|| self.plain(Op::Mul, a, b))
    }

    pub fn div(&mut self, a: Id, b: Id) -> Id {
        if let (Some(over), Some(under)) = (self.as_number(a), self.as_number(b)) {
            if !(over.is_exact() && under.is_exact()) {
                // Dividing once rounds as evaluation does: ln 8 / ln 2 is 3, not a little less.
                if let Some(quotient) = Number::from_f64(over.to_f64() / under.to_f64()) {
                    return self.number(quotient);
                }
            }
        }
        let exponent = self.number(Number::MINUS_ONE);
        let inverse = self.pow(b, exponent);
        self.mul(a, inverse)
    }

    /// Append the factors of `a` and return its coefficient. Sums give up their common content.
    fn split_coefficient(&mut self, a: Id, factors: &mut Factors) -> Option<Number> {
        match self.node(a).clone() {
            Node::Number(number) => Some(number),
            Node::Sum(constant, terms) => {
                // A leading minus sign goes too, so that a - b and b - a share a factor.
                let content = content(constant, &terms).mul(sign(terms[0].1))?;
                let primitive = self.sum_over(constant, &terms, content)?;
                self.append_factors(primitive, factors);
                Some(content)
            }
            _ => {
                self.append_factors(a, factors);
                Some(Number::ONE)
            }
        }
    }

    /// The sum divided by a number that divides it exactly; its form is kept.
    fn sum_over(&mut self, constant: Number, terms: &Terms, content: Number) -> Option<Id> {
        if content.is_one() {
            return Some(self.intern_sum(constant, terms.clone()));
        }
        let inverse = content.recip()?;
        let terms: Option<Terms> = terms
            .iter()
            .map(|(term, coefficient)| Some((*term, coefficient.mul(inverse)?)))
            .collect();
        Some(self.intern_sum(constant.mul(inverse)?, terms?))
    }

    /// A positive number and the rest of `a`, whose product is `a`.
    fn split_content(&mut self, a: Id) -> Option<(Number, Id)> {
        match self.node(a).clone() {
            Node::Sum(constant, terms) => {
                let content = content(constant, &terms);
                Some((content, self.sum_over(constant, &terms, content)?))
            }
            _ => Some((Number::ONE, a)),
        }
    }

    fn append_factors(&mut self, a: Id, factors: &mut Factors) {
        match self.node(a) {
            Node::Product(inner) => factors.extend(inner.iter().copied()),
            _ => {
                let one = self.number(Number::ONE);
                factors.push((a, one));
            }
        }
    }

    fn factors_of(&mut self, a: Id) -> Factors {
        let mut factors = Factors::new();
        self.append_factors(a, &mut factors);
        factors
    }

    /// coefficient * product of base^exponent; none when a constant overflows.
    pub fn product(&mut self, coefficient: Number, factors: Factors) -> Option<Id> {
        if coefficient.is_zero() {
            return Some(self.number(Number::ZERO));
        }
        let mut coefficient = coefficient;
        let mut merged = self.merge_factors(factors);
        let mut changed = false;
        for (base, exponent) in &mut merged {
            if let (Node::Euler, Some(power)) = (self.node(*base), self.as_number(*exponent)) {
                coefficient = coefficient.mul(Number::from_f64(power.to_f64().exp())?)?;
                *exponent = self.number(Number::ZERO);
                changed = true;
                continue;
            }
            let Some(number) = self.as_number(*base) else { continue };
            // c^(k + e) is c^k * c^e; the constant part belongs to the coefficient.
            let constant = match self.node(*exponent) {
                Node::Number(power) => *power,
                Node::Sum(constant, _) => *constant,
                _ => continue,
            };
            if constant.is_zero() {
                continue;
            }
            coefficient = coefficient.mul(number.pow(constant)?)?;
            *exponent = self.sum(constant.neg()?, &[(*exponent, Number::ONE)])?;
            changed = true;
        }
        if changed {
            merged.retain(|(_, exponent)| self.as_number(*exponent) != Some(Number::ZERO));
        }
        let body = match merged.as_slice() {
            [] => return Some(self.number(coefficient)),
            [(base, exponent)] if self.as_number(*exponent) == Some(Number::ONE) => *base,
            _ => self.intern(Node::Product(merged)),
        };
        if self.expand == Expand::Always && self.has_sum_factor(body) {
            return self.sum(Number::ZERO, &[(body, coefficient)]);
        }
        if coefficient.is_one() {
            return Some(body);
        }
        let (constant, terms) = self.collect_terms(Number::ZERO, &[(body, coefficient)])?;
        Some(self.intern_sum(constant, terms))
    }

    /// Sort, and add the exponents of equal bases where that holds for every value of the base.
    fn merge_factors(&mut self, mut factors: Factors) -> Factors {
        factors.sort();
        let mut merged = Factors::with_capacity(factors.len());
        for (base, exponent) in factors {
            let last = merged
                .last()
                .copied()
                .filter(|(b, e)| *b == base && self.exponents_add(base, *e, exponent));
            match last {
                Some((_, previous)) => {
                    merged.pop();
                    let total = self.add(previous, exponent);
                    if self.as_number(total) != Some(Number::ZERO) {
                        merged.push((base, total));
                    }
                }
                None => merged.push((base, exponent)),
            }
        }
        merged.retain(|(_, exponent)| self.as_number(*exponent) != Some(Number::ZERO));
        // A sum of exponents may sort differently from its parts.
        merged.sort();
        merged
    }

    /// Whether b^x * b^y = b^(x+y) for every value of b.
    fn exponents_add(&self, base: Id, x: Id, y: Id) -> bool {
        let facts = self.facts(base);
        if facts.is_positive() {
            return true;
        }
        let (x, y) = (self.facts(x), self.facts(y));
        let same_sign = (x.is_positive() && y.is_positive()) || (x.upper < 0.0 && y.upper < 0.0);
        (same_sign || facts.is_nonzero()) && ((x.integer && y.integer) || facts.is_nonnegative())
    }

    // -------------------------------------------------------------- powers

    pub fn pow(&mut self, base: Id, exponent: Id) -> Id {
        self.try_pow(base, exponent)
            .unwrap_or_else(|| self.intern(Node::Apply(Op::Pow, vec![base, exponent])))
    }

    pub fn sqrt(&mut self, a: Id) -> Id {
        let half = Number::Ratio { num: 1, den: 2 };
        let half = self.number(half);
        self.pow(a, half)
    }

    fn try_pow(&mut self, base: Id, exponent: Id) -> Option<Id> {
        let power = self.as_number(exponent);
        if power == Some(Number::ONE) {
            return Some(base);
        }
        if power == Some(Number::ZERO) || self.as_number(base) == Some(Number::ONE) {
            return Some(self.number(Number::ONE));
        }
        match self.node(base).clone() {
            Node::Number(number) => self.pow_of_number(number, exponent),
            Node::Product(factors) => self.pow_of_product(Number::ONE, factors, exponent),
            Node::Sum(constant, terms) => {
                let factored = match self.expandable_power(exponent) {
                    Some(_) => base,
                    None => self.factor_out(constant, &terms).unwrap_or(base),
                };
                let (mut content, primitive) = self.split_content(factored)?;
                let mut factors = Factors::new();
                if power.is_some_and(Number::is_integer) {
                    content = content.mul(self.split_coefficient(primitive, &mut factors)?)?;
                } else {
                    self.append_factors(primitive, &mut factors);
                }
                self.pow_of_product(content, factors, exponent)
            }
            _ => self.product(Number::ONE, vec![(base, exponent)]),
        }
    }

    fn pow_of_number(&mut self, base: Number, exponent: Id) -> Option<Id> {
        if let Some(power) = self.as_number(exponent) {
            return Some(self.number(base.pow(power)?));
        }
        if !base.is_positive() {
            return None;
        }
        // One base for all powers of a number: 8^x is 2^(3x), (1/2)^x is 2^(-x).
        if let Number::Ratio { num: 1, den } = base {
            let negated = self.scale(exponent, Number::MINUS_ONE);
            return self.pow_of_number(Number::int(den), negated);
        }
        if let Some((root, power)) = base.perfect_power() {
            let scaled = self.scale(exponent, Number::int(power));
            return self.pow_of_number(Number::int(root), scaled);
        }
        let base = self.number(base);
        self.product(Number::ONE, vec![(base, exponent)])
    }

    /// (content * factors)^exponent, moving out every factor that may be raised on its own.
    fn pow_of_product(&mut self, content: Number, factors: Factors, exponent: Id) -> Option<Id> {
        let power = self.as_number(exponent);
        let by_integer = power.is_some_and(Number::is_integer);
        let mut coefficient = Number::ONE;
        let mut raised = Factors::new();
        let mut together = Factors::new();
        if !content.is_one() {
            match power {
                Some(power) => coefficient = content.pow(power)?,
                None => {
                    let scaled = self.pow_of_number(content, exponent)?;
                    coefficient = self.split_coefficient(scaled, &mut raised)?;
                }
            }
        }
        for (base, inner) in factors {
            let facts = self.facts(base);
            let inner_is_integer = self.as_integer(inner).is_some();
            if facts.is_positive() || (by_integer && inner_is_integer) {
                let total = self.mul(inner, exponent);
                raised.push((base, total));
            } else {
                together.push((base, inner));
            }
        }
        match together.as_slice() {
            [] => {}
            [(base, inner)] if self.as_number(*inner) == Some(Number::ONE) => {
                raised.push((*base, exponent));
            }
            _ => {
                let base = self.product(Number::ONE, together)?;
                raised.push((base, exponent));
            }
        }
        self.product(coefficient, raised)
    }

    // ------------------------------------- exponentials and logarithms

    pub fn exp(&mut self, a: Id) -> Id {
        self.try_exp(a).unwrap_or_else(|| {
            let base = self.intern(Node::Euler);
            self.intern(Node::Product(vec![(base, a)]))
        })
    }

    fn try_exp(&mut self, a: Id) -> Option<Id> {
        if let Some(number) = self.as_number(a) {
            return Some(self.number(Number::from_f64(number.to_f64().exp())?));
        }
        let (constant, terms) = self.terms_of(a);
        let mut coefficient = Number::ONE;
        let mut factors = Factors::new();
        let mut rest = Terms::new();
        for (term, count) in terms {
            match self.node(term) {
                // exp(n ln x) is x^n; a fractional power would cost what the exponential costs.
                Node::Apply(Op::Log, args) if count.is_integer() => {
                    let base = args[0];
                    let power = self.number(count);
                    let raised = self.pow(base, power);
                    coefficient = coefficient.mul(self.split_coefficient(raised, &mut factors)?)?;
                }
                _ => rest.push((term, count)),
            }
        }
        let rest = self.intern_sum(constant, rest);
        factors.push((self.intern(Node::Euler), rest));
        self.product(coefficient, factors)
    }

    pub fn terms_of(&self, a: Id) -> (Number, Terms) {
        match self.node(a) {
            Node::Number(number) => (*number, Terms::new()),
            Node::Sum(constant, terms) => (*constant, terms.clone()),
            _ => (Number::ZERO, vec![(a, Number::ONE)]),
        }
    }

    /// Natural logarithm: ln of a product of positive factors is a sum.
    pub fn log(&mut self, a: Id) -> Id {
        self.try_log(a).unwrap_or_else(|| self.intern(Node::Apply(Op::Log, vec![a])))
    }

    fn try_log(&mut self, a: Id) -> Option<Id> {
        if let Some(number) = self.as_number(a) {
            return Some(self.number(Number::from_f64(number.to_f64().ln())?));
        }
        let mut factors = Factors::new();
        let mut content = Number::ONE;
        match self.node(a).clone() {
            Node::Sum(constant, terms) => {
                let factored = self.factor_out(constant, &terms).unwrap_or(a);
                let primitive;
                (content, primitive) = self.split_content(factored)?;
                self.append_factors(primitive, &mut factors);
            }
            _ => self.append_factors(a, &mut factors),
        }
        let mut total = Number::from_f64(content.to_f64().ln())?;
        let mut terms = Terms::new();
        let mut parts: Vec<Id> = Vec::new();
        let mut unproven = Factors::new();
        for (base, exponent) in factors {
            if !self.facts(base).is_positive() {
                unproven.push((base, exponent));
                continue;
            }
            let log_base = match self.node(base) {
                Node::Number(number) => {
                    let log = Number::from_f64(number.to_f64().ln())?;
                    self.number(log)
                }
                Node::Euler => self.number(Number::ONE),
                _ => self.intern(Node::Apply(Op::Log, vec![base])),
            };
            parts.push(self.mul(exponent, log_base));
        }
        if !unproven.is_empty() {
            let rest = self.product(Number::ONE, unproven)?;
            parts.push(self.intern(Node::Apply(Op::Log, vec![rest])));
        }
        for part in parts {
            let (constant, more) = self.terms_of(part);
            total = total.add(constant)?;
            terms.extend(more);
        }
        self.sum(total, &terms)
    }
}

fn sign(number: Number) -> Number {
    if number.is_negative() {
        Number::MINUS_ONE
    } else {
        Number::ONE
    }
}

/// The positive number to divide a sum by so that its coefficients become small integers.
fn content(constant: Number, terms: &Terms) -> Number {
    let first = terms[0].1;
    let Some(mut divisor) = first.mul(sign(first)) else { return Number::ONE };
    if terms.len() == 1 && constant.is_zero() {
        return divisor;
    }
    let rest = terms[1..].iter().map(|(_, c)| *c).chain(Some(constant).filter(|c| !c.is_zero()));
    for coefficient in rest {
        match divisor.common_divisor(coefficient) {
            Some(common) => divisor = common,
            None => return Number::ONE,
        }
    }
    divisor
}
