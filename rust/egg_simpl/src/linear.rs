//! Linear forms of the variables and their exponentials, as facts of the e-graph.
//!
//! A tile size is exp(x ln 2 + y ln 3), its loop's trip count the extent over the product of all
//! tile sizes of the loop, and every size a product of such factors. Which products to take from
//! which others is a question about sums of forms: exp(f + g) = exp(f) exp(g). Rewriting would find
//! them after regrouping all sums in all ways; here the forms are computed, and every sum of two
//! that is a third becomes an equality, as do the parts that several forms have in common.

use crate::extract::Spelling;
use crate::language::{Classes, Term};
use crate::number::Number;
use crate::share::{share, Item};
use crate::tape::{Entry, Tape, TapeOp, Variable};
use egg::Id;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Coefficients are logarithms of primes times small numbers; what differs by less than this is the
/// same one, rounded differently.
const RESOLUTION: f64 = (1u64 << 40) as f64;
/// Forms with other numbers are left as they are. A smaller one would lose digits to the resolution,
/// and so would the value of a form of variables that are larger together; a larger one does not fit
/// in its units; exponentials of what is larger leave the range of a double where a product of them
/// does not.
const SMALLEST_NUMBER: f64 = 1.0 / 256.0;
const LARGEST_NUMBER: f64 = 4096.0;
const LARGEST_SUM_OF_VARIABLES: f64 = 256.0;
const LARGEST_EXPONENT: f64 = 138.0; // 1e60
/// Pairs of exponentials are compared with each other, so their number is bounded.
const MAX_EXPONENTIALS: usize = 400;

/// Coefficients of the variables in units of 1 / RESOLUTION, without zeros.
type Form = BTreeMap<u32, i64>;

fn plus(a: &Form, b: &Form, sign: i64) -> Form {
    let mut sum = a.clone();
    for (variable, coefficient) in b {
        *sum.entry(*variable).or_insert(0) += sign * coefficient;
    }
    sum.retain(|_, coefficient| *coefficient != 0);
    sum
}

/// A linear form as computed, to full precision.
#[derive(Clone, Default)]
struct Exact {
    constant: f64,
    coefficients: BTreeMap<u32, f64>,
}

impl Exact {
    fn combine(&self, other: &Exact, factor: f64) -> Exact {
        let mut sum = self.clone();
        sum.constant += factor * other.constant;
        for (variable, coefficient) in &other.coefficients {
            *sum.coefficients.entry(*variable).or_insert(0.0) += factor * coefficient;
        }
        sum
    }

    fn scaled(&self, factor: f64) -> Exact {
        Exact::default().combine(self, factor)
    }

    fn is_constant(&self) -> bool {
        self.coefficients.is_empty()
    }

    /// Whether rounding to the resolution keeps nine digits of the form, wherever the variables are.
    fn is_well_scaled(&self, variables: &[Variable]) -> bool {
        let fits = SMALLEST_NUMBER..=LARGEST_NUMBER;
        let keeps_digits = |c: f64| c == 0.0 || fits.contains(&c.abs());
        keeps_digits(self.constant)
            && self.coefficients.values().all(|c| keeps_digits(*c))
            && self.reach(variables, |_| 1.0) <= LARGEST_SUM_OF_VARIABLES
    }

    fn largest_exponent(&self, variables: &[Variable]) -> f64 {
        self.constant.abs() + self.reach(variables, f64::abs)
    }

    /// The sum of the largest magnitudes of the variables, each with a weight by its coefficient.
    fn reach(&self, variables: &[Variable], weight: impl Fn(f64) -> f64) -> f64 {
        let largest = |v: u32| {
            let Variable { lower, upper, .. } = variables[v as usize];
            lower.abs().max(upper.abs())
        };
        let used = self.coefficients.iter().filter(|(_, c)| **c != 0.0);
        used.map(|(v, c)| weight(*c) * largest(*v)).sum()
    }

    fn rounded(&self) -> Form {
        let round = |(v, c): (&u32, &f64)| (*v, (c * RESOLUTION).round() as i64);
        self.coefficients.iter().map(round).filter(|(_, c)| *c != 0).collect()
    }
}

/// The linear form of each entry that has one.
fn forms_of(tape: &Tape) -> Vec<Option<Exact>> {
    let mut forms: Vec<Option<Exact>> = Vec::with_capacity(tape.entries.len());
    for entry in &tape.entries {
        let form = form_of(entry, &forms);
        forms.push(form);
    }
    forms
}

fn form_of(entry: &Entry, forms: &[Option<Exact>]) -> Option<Exact> {
    let number = |constant: f64| Some(Exact { constant, ..Exact::default() });
    match entry.op {
        TapeOp::IntConst => return number(entry.payload as f64),
        TapeOp::RealConst => return number(f64::from_bits(entry.payload as u64)),
        TapeOp::Var => {
            let coefficients = BTreeMap::from([(entry.payload as u32, 1.0)]);
            return Some(Exact { constant: 0.0, coefficients });
        }
        _ => {}
    }
    let arg = |slot: usize| forms[entry.args[slot] as usize].as_ref();
    let product = |a: &Exact, b: &Exact| match (a.is_constant(), b.is_constant()) {
        (true, _) => Some(b.scaled(a.constant)),
        (_, true) => Some(a.scaled(b.constant)),
        _ => None,
    };
    match entry.op {
        TapeOp::Add => Some(arg(0)?.combine(arg(1)?, 1.0)),
        TapeOp::Sub => Some(arg(0)?.combine(arg(1)?, -1.0)),
        TapeOp::Mul => product(arg(0)?, arg(1)?),
        TapeOp::Div if arg(1)?.is_constant() => Some(arg(0)?.scaled(1.0 / arg(1)?.constant)),
        TapeOp::MulAdd => Some(product(arg(0)?, arg(1)?)?.combine(arg(2)?, 1.0)),
        _ => None,
    }
}

/// Tell the e-graph what is known of forms and exponentials of tapes, whose entries have the given
/// classes.
pub fn add_linear_facts(classes: &mut Classes, tapes: &[Spelling]) {
    let variables = classes.analysis.variables.clone();
    let mut facts = Facts { classes, exponentials: HashMap::new(), linear: BTreeMap::new() };
    let mut wanted: BTreeSet<Form> = BTreeSet::new();
    for (tape, ids) in tapes {
        let well_scaled = |form: &Exact| form.is_well_scaled(&variables);
        let forms: Vec<Option<Exact>> =
            forms_of(tape).into_iter().map(|form| form.filter(well_scaled)).collect();
        for (form, id) in forms.iter().zip(*ids) {
            let Some(form) = form.as_ref().filter(|form| !form.is_constant()) else { continue };
            let key = (form.rounded(), (form.constant * RESOLUTION).round() as i64);
            let known = *facts.linear.entry(key).or_insert(*id);
            facts.classes.union(known, *id);
        }
        let exponentials = tape.entries.iter().zip(*ids).filter(|(e, _)| e.op == TapeOp::Exp);
        for (entry, id) in exponentials {
            let Some(form) = forms[entry.args[0] as usize].as_ref() else { continue };
            if form.largest_exponent(&variables) > LARGEST_EXPONENT {
                continue;
            }
            let rounded = form.rounded();
            let Some(scale) = power_of_e(form.constant) else { continue };
            if rounded.is_empty() || wanted.len() >= MAX_EXPONENTIALS {
                continue;
            }
            let plain = facts.exponential(&rounded);
            let scale = facts.classes.add(Term::number(scale));
            let scaled = facts.apply(TapeOp::Mul, scale, plain);
            facts.classes.union(*id, scaled);
            wanted.insert(rounded);
        }
    }
    facts.share_factors(&wanted);
    facts.relate();
    facts.classes.rebuild();
}

/// e^x, which is an integer where x is the logarithm of one.
fn power_of_e(x: f64) -> Option<Number> {
    let value = x.exp();
    let near = value.round();
    Number::from_f64(if (value - near).abs() <= 1e-13 * value { near } else { value })
}

struct Facts<'a> {
    classes: &'a mut Classes,
    exponentials: HashMap<Form, Id>,
    /// Form and constant to a class that computes it.
    linear: BTreeMap<(Form, i64), Id>,
}

impl Facts<'_> {
    fn apply(&mut self, op: TapeOp, a: Id, b: Id) -> Id {
        self.classes.add(Term::op(op, &[a, b]))
    }

    /// The class of a form without constant.
    fn form(&mut self, form: &Form) -> Id {
        if let Some(id) = self.linear.get(&(form.clone(), 0)) {
            return *id;
        }
        let mut sum: Option<Id> = None;
        for (variable, coefficient) in form {
            let coefficient = Number::from_f64(*coefficient as f64 / RESOLUTION);
            let coefficient = self.classes.add(Term::number(coefficient.expect("finite")));
            let variable = self.classes.add(Term::var(*variable));
            let part = self.apply(TapeOp::Mul, coefficient, variable);
            sum = Some(match sum {
                Some(sum) => self.apply(TapeOp::Add, sum, part),
                None => part,
            });
        }
        let id = sum.expect("a form has variables");
        self.linear.insert((form.clone(), 0), id);
        id
    }

    fn exponential(&mut self, form: &Form) -> Id {
        if let Some(id) = self.exponentials.get(form) {
            return *id;
        }
        let power = self.form(form);
        let id = self.classes.add(Term::op(TapeOp::Exp, &[power]));
        self.exponentials.insert(form.clone(), id);
        id
    }

    /// Every exponential as a quotient of products of those of single variables, with the parts that
    /// several have in common.
    fn share_factors(&mut self, wanted: &BTreeSet<Form>) {
        let mut bags: Vec<Vec<(u32, i64)>> = Vec::new();
        for form in wanted {
            let (over, under): (Vec<_>, Vec<_>) =
                form.iter().map(|(v, c)| (*v, *c)).partition(|(_, c)| *c > 0);
            bags.push(over);
            bags.push(under.into_iter().map(|(v, c)| (v, -c)).collect());
        }
        let shared = share(&bags);
        let mut items: Vec<Form> = Vec::with_capacity(shared.items.len());
        for item in &shared.items {
            let form = match item {
                Item::Single((variable, coefficient)) => Form::from([(*variable, *coefficient)]),
                Item::Pair(a, b) => plus(&items[*a], &items[*b], 1),
            };
            self.exponential(&form);
            items.push(form);
        }
        // Every partial product is an exponential of its own; `relate` finds what it consists of.
        for bag in &shared.bags {
            let mut form = Form::new();
            for item in bag {
                form = plus(&form, &items[*item], 1);
                self.exponential(&form);
            }
        }
    }

    /// For every two exponentials whose forms add up to that of a third: the third is their product,
    /// and each of them the quotient of the third and the other. The same for the forms.
    fn relate(&mut self) {
        let mut forms: Vec<Form> = self.exponentials.keys().cloned().collect();
        forms.sort();
        for (i, a) in forms.iter().enumerate() {
            for b in &forms[i..] {
                let sum = plus(a, b, 1);
                if sum.is_empty() {
                    let one = self.classes.add(Term::number(Number::ONE));
                    let (x, y) = (self.exponentials[a], self.exponentials[b]);
                    let inverse = self.apply(TapeOp::Div, one, x);
                    self.classes.union(y, inverse);
                    let inverse = self.apply(TapeOp::Div, one, y);
                    self.classes.union(x, inverse);
                    continue;
                }
                let Some(whole) = self.exponentials.get(&sum).copied() else { continue };
                let (x, y) = (self.exponentials[a], self.exponentials[b]);
                for (result, op, left, right) in [
                    (whole, TapeOp::Mul, x, y),
                    (x, TapeOp::Div, whole, y),
                    (y, TapeOp::Div, whole, x),
                ] {
                    let term = self.apply(op, left, right);
                    self.classes.union(result, term);
                }
                let key = |form: &Form| (form.clone(), 0);
                let (whole, x, y) = (key(&sum), key(a), key(b));
                let [Some(whole), Some(x), Some(y)] =
                    [whole, x, y].map(|key| self.linear.get(&key).copied())
                else {
                    continue;
                };
                for (result, op, left, right) in [
                    (whole, TapeOp::Add, x, y),
                    (x, TapeOp::Sub, whole, y),
                    (y, TapeOp::Sub, whole, x),
                ] {
                    let term = self.apply(op, left, right);
                    self.classes.union(result, term);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Ranges;

    #[test]
    fn what_is_left_of_an_extent_is_a_quotient_of_the_tile_sizes() {
        // exp(ln 24 - a ln 2 - b ln 3), exp(a ln 2), exp(b ln 3)
        let real = |value: f64| value.to_bits() as i64;
        let mut tape = Tape::default();
        let mut parts = Vec::new();
        for (variable, base) in [(0, 2.0f64), (1, 3.0)] {
            let exponent = tape.push(TapeOp::Var, &[], variable);
            let log = tape.push(TapeOp::RealConst, &[], real(base.ln()));
            parts.push(tape.push(TapeOp::Mul, &[log, exponent], 0));
        }
        let log = tape.push(TapeOp::RealConst, &[], real(24.0f64.ln()));
        let left = tape.push(TapeOp::Sub, &[log, parts[0]], 0);
        let left = tape.push(TapeOp::Sub, &[left, parts[1]], 0);
        let sizes = [parts[0], parts[1], left].map(|form| tape.push(TapeOp::Exp, &[form], 0));
        let variable = Variable { lower: 0.0, upper: 3.0, is_integer: false };
        let mut classes = Classes::new(Ranges { variables: vec![variable; 2] });
        let ids = crate::saturate::load(&mut classes, &tape);
        classes.rebuild();
        add_linear_facts(&mut classes, &[(&tape, &ids)]);
        let [a, b, left] = sizes.map(|size| ids[size as usize]);
        let product = classes.add(Term::op(TapeOp::Mul, &[a, b]));
        let one = classes.add(Term::number(Number::ONE));
        let inverse = classes.add(Term::op(TapeOp::Div, &[one, product]));
        let extent = classes.add(Term::number(Number::int(24)));
        let quotient = classes.add(Term::op(TapeOp::Mul, &[extent, inverse]));
        classes.rebuild();
        assert_eq!(classes.find(quotient), classes.find(left));
    }
}
