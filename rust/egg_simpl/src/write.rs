//! Normal form to tape: the spelling that is cheap to evaluate.
//!
//! Division comes once per product, powers of constants are shared between variables, and parts that
//! several sums or products have in common are computed once.

use crate::facts::Facts;
use crate::graph::{Graph, Id, Node};
use crate::number::Number;
use crate::share::{share, Item, Shared};
use crate::tape::{Tape, TapeOp};
use std::collections::{HashMap, HashSet};

/// Powers up to this one are written as multiplications.
const MAX_UNROLLED_POWER: i64 = 8;
/// A power of a constant is split into factors only if no factor can leave this range.
const SAFE_MAGNITUDE: f64 = 1e60;

/// A factor with a positive exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Factor {
    /// base^number
    Power(Id, Number),
    /// base^exponent
    Symbolic(Id, Id),
    /// (base^variable)^count
    Split(Id, Id, i64),
}

/// A part of a sum: coefficient * term.
type Part = (Id, Number);

/// Write the roots as a tape, sharing equal entries between all of them.
pub fn write_tape(graph: &Graph, roots: &[Id]) -> Tape {
    write_entries(graph, roots).0.compact()
}

/// Write the roots, and say where each value is that was written on the way.
pub fn write_entries(graph: &Graph, roots: &[Id]) -> (Tape, HashMap<Id, i32>) {
    let order = graph.reachable(roots);
    let mut writer = Writer::new(graph, &order);
    // Children come first, so no expression is too deep; what no root needs stays in the tape.
    for id in order {
        writer.write(id);
    }
    writer.tape.roots = roots.iter().map(|root| writer.written[root]).collect();
    (writer.tape, writer.written)
}

/// Constant bases whose powers are cheaper as products of powers of single variables: 2^(x - y)
/// as 2^x / 2^y, when there are fewer variables than exponents.
fn bases_to_split(graph: &Graph, order: &[Id]) -> HashSet<Id> {
    let mut exponents: HashMap<Id, HashSet<Id>> = HashMap::new();
    let mut parts: HashMap<Id, HashSet<Id>> = HashMap::new();
    for id in order {
        let Node::Product(factors) = graph.node(*id) else { continue };
        for (base, exponent) in factors {
            if graph.as_number(*base).is_none() {
                continue;
            }
            exponents.entry(*base).or_default().insert(*exponent);
            let (_, terms) = graph.terms_of(*exponent);
            parts.entry(*base).or_default().extend(terms.iter().map(|(term, _)| *term));
        }
    }
    exponents.into_iter().filter(|(b, e)| parts[b].len() <= e.len()).map(|(b, _)| b).collect()
}

/// Numerator and denominator of a product.
fn split_quotient(
    graph: &Graph,
    split_bases: &HashSet<Id>,
    factors: &[(Id, Id)],
) -> (Vec<Factor>, Vec<Factor>) {
    let (mut over, mut under) = (Vec::new(), Vec::new());
    for (base, exponent) in factors {
        match graph.as_number(*exponent) {
            Some(power) => match power.neg().filter(|_| power.is_negative()) {
                Some(positive) => under.push(Factor::Power(*base, positive)),
                None => over.push(Factor::Power(*base, power)),
            },
            None => match split_power(graph, split_bases, *base, *exponent) {
                Some(powers) => {
                    for (variable, count) in powers {
                        let side = if count > 0 { &mut over } else { &mut under };
                        side.push(Factor::Split(*base, variable, count.abs()));
                    }
                }
                None => over.push(Factor::Symbolic(*base, *exponent)),
            },
        }
    }
    (over, under)
}

/// c^(k1 x1 + k2 x2 + ...) as the list of (x, k), where that is wanted and stays in range.
fn split_power(
    graph: &Graph,
    split_bases: &HashSet<Id>,
    base: Id,
    exponent: Id,
) -> Option<Vec<(Id, i64)>> {
    if !split_bases.contains(&base) {
        return None;
    }
    let (_, terms) = graph.terms_of(exponent);
    terms
        .into_iter()
        .map(|(term, coefficient)| {
            let count = coefficient.as_integer().filter(|k| k.abs() <= MAX_UNROLLED_POWER)?;
            let single = graph.facts(base).pow(graph.facts(term));
            let whole = single.pow(Facts::of_number(Number::int(count.abs())));
            let safe = whole.lower >= 1.0 / SAFE_MAGNITUDE && whole.upper <= SAFE_MAGNITUDE;
            safe.then_some((term, count))
        })
        .collect()
}

struct Writer<'a> {
    graph: &'a Graph,
    tape: Tape,
    written: HashMap<Id, i32>,
    sums: Shared<Part>,
    products: Shared<Factor>,
    /// Bag of a sum; bags of numerator and denominator of a product.
    sum_bags: HashMap<Id, usize>,
    product_bags: HashMap<Id, (usize, usize)>,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Graph, order: &[Id]) -> Writer<'a> {
        let split_bases = bases_to_split(graph, order);
        let (mut sum_bags, mut product_bags) = (HashMap::new(), HashMap::new());
        let (mut sums, mut products) = (Vec::new(), Vec::new());
        for id in order {
            match graph.node(*id) {
                Node::Sum(_, terms) => {
                    sum_bags.insert(*id, sums.len());
                    sums.push(terms.clone());
                }
                Node::Product(factors) => {
                    let (over, under) = split_quotient(graph, &split_bases, factors);
                    product_bags.insert(*id, (products.len(), products.len() + 1));
                    products.push(over);
                    products.push(under);
                }
                _ => {}
            }
        }
        Writer {
            graph,
            tape: Tape::default(),
            written: HashMap::new(),
            sums: share(&sums),
            products: share(&products),
            sum_bags,
            product_bags,
        }
    }

    fn write(&mut self, id: Id) -> i32 {
        if let Some(entry) = self.written.get(&id) {
            return *entry;
        }
        let entry = match self.graph.node(id) {
            Node::Number(number) => self.tape.push_number(*number),
            Node::Var(index) => self.tape.push(TapeOp::Var, &[], *index as i64),
            Node::Euler => self.real(std::f64::consts::E),
            Node::Sum(constant, _) => self.write_sum(id, *constant),
            Node::Product(_) => self.write_product(id, Number::ONE),
            Node::Apply(op, args) => {
                let args: Vec<i32> = args.iter().map(|arg| self.write(*arg)).collect();
                self.write_operation(*op, &args)
            }
        };
        self.written.insert(id, entry);
        entry
    }

    fn real(&mut self, value: f64) -> i32 {
        self.tape.push(TapeOp::RealConst, &[], value.to_bits() as i64)
    }

    fn binary(&mut self, op: TapeOp, a: i32, b: i32) -> i32 {
        self.tape.push(op, &[a, b], 0)
    }

    fn write_operation(&mut self, op: TapeOp, args: &[i32]) -> i32 {
        if op.arity() == 2 {
            let first = args[0];
            return args[1..].iter().fold(first, |a, b| self.binary(op, a, *b));
        }
        self.tape.push(op, args, 0)
    }

    // ---------------------------------------------------------------- sums

    fn write_sum(&mut self, id: Id, constant: Number) -> i32 {
        let bag = self.sums.bags[self.sum_bags[&id]].clone();
        let mut parts: Vec<(i32, bool)> = bag.iter().map(|item| self.write_part(*item)).collect();
        // Start from a part with a plus sign, so that no negation is needed.
        parts.sort_by_key(|(_, negative)| *negative);
        if !constant.is_zero() {
            let size = constant.neg().filter(|_| constant.is_negative());
            let entry = self.tape.push_number(size.unwrap_or(constant));
            // A constant leads only if everything else is subtracted from it.
            let leads = parts[0].1 && size.is_none();
            parts.insert(if leads { 0 } else { parts.len() }, (entry, size.is_some()));
        }
        let total = parts[1..].iter().fold(parts[0], |sum, part| self.add_signed(sum, *part));
        self.with_sign(total)
    }

    /// A part or a shared group of parts, and whether its sign is a minus.
    fn write_part(&mut self, item: usize) -> (i32, bool) {
        match self.sums.items[item] {
            Item::Pair(a, b) => {
                let (a, b) = (self.write_part(a), self.write_part(b));
                if a.1 && !b.1 {
                    self.add_signed(b, a)
                } else {
                    self.add_signed(a, b)
                }
            }
            Item::Single((term, coefficient)) => {
                match coefficient.neg().filter(|_| coefficient.is_negative()) {
                    Some(size) => (self.write_scaled(term, size), true),
                    None => (self.write_scaled(term, coefficient), false),
                }
            }
        }
    }

    fn add_signed(&mut self, a: (i32, bool), b: (i32, bool)) -> (i32, bool) {
        let op = if a.1 == b.1 { TapeOp::Add } else { TapeOp::Sub };
        (self.binary(op, a.0, b.0), a.1)
    }

    fn with_sign(&mut self, (entry, negative): (i32, bool)) -> i32 {
        if !negative {
            return entry;
        }
        let minus_one = self.tape.push_number(Number::MINUS_ONE);
        self.binary(TapeOp::Mul, minus_one, entry)
    }

    fn write_scaled(&mut self, term: Id, size: Number) -> i32 {
        if size.is_one() {
            return self.write(term);
        }
        // A coefficient 3/4 in front of a quotient joins it: 3 x / (4 y).
        if let Some((_, under)) = self.product_bags.get(&term) {
            if !self.products.bags[*under].is_empty() {
                return self.write_product(term, size);
            }
        }
        let body = self.write(term);
        match size {
            Number::Ratio { num, den } if !den.unsigned_abs().is_power_of_two() => {
                let scaled = self.times(Number::int(num), body);
                let den = self.tape.push_number(Number::int(den));
                self.binary(TapeOp::Div, scaled, den)
            }
            _ => self.times(size, body),
        }
    }

    fn times(&mut self, size: Number, body: i32) -> i32 {
        if size.is_one() {
            return body;
        }
        let size = self.tape.push_number(size);
        self.binary(TapeOp::Mul, size, body)
    }

    // ------------------------------------------------------------ products

    /// coefficient * the product `id`.
    fn write_product(&mut self, id: Id, coefficient: Number) -> i32 {
        let (over, under) = self.product_bags[&id];
        let (num, den) = match coefficient {
            Number::Ratio { num, den } => (Number::int(num), Number::int(den)),
            Number::Real(_) => (coefficient, Number::ONE),
        };
        let above = match self.write_bag(over) {
            Some(above) => self.times(num, above),
            None => self.tape.push_number(num),
        };
        let below = match self.write_bag(under) {
            Some(below) => self.times(den, below),
            None if den.is_one() => return above,
            None => self.tape.push_number(den),
        };
        self.binary(TapeOp::Div, above, below)
    }

    /// None for an empty product.
    fn write_bag(&mut self, bag: usize) -> Option<i32> {
        let bag = self.products.bags[bag].clone();
        let entries: Vec<i32> = bag.iter().map(|item| self.write_factor(*item)).collect();
        entries.into_iter().reduce(|product, factor| self.binary(TapeOp::Mul, product, factor))
    }

    fn write_factor(&mut self, item: usize) -> i32 {
        match self.products.items[item] {
            Item::Pair(a, b) => {
                let (a, b) = (self.write_factor(a), self.write_factor(b));
                self.binary(TapeOp::Mul, a, b)
            }
            Item::Single(Factor::Power(base, power)) => self.write_power(base, power),
            Item::Single(Factor::Symbolic(base, exponent)) => {
                let exponent = self.write(exponent);
                if let Node::Euler = self.graph.node(base) {
                    return self.tape.push(TapeOp::Exp, &[exponent], 0);
                }
                let base = self.write(base);
                self.binary(TapeOp::Pow, base, exponent)
            }
            Item::Single(Factor::Split(base, variable, count)) => {
                let (base, variable) = (self.write(base), self.write(variable));
                let single = self.binary(TapeOp::Pow, base, variable);
                self.multiply_up(single, count)
            }
        }
    }

    /// base^power for a positive constant power.
    fn write_power(&mut self, base: Id, power: Number) -> i32 {
        if let Node::Euler = self.graph.node(base) {
            let value = power.to_f64().exp();
            if value.is_finite() {
                return self.real(value);
            }
            let power = self.tape.push_number(power);
            return self.tape.push(TapeOp::Exp, &[power], 0);
        }
        let base = self.write(base);
        match power {
            Number::Ratio { num, den: 1 } if num <= MAX_UNROLLED_POWER => {
                self.multiply_up(base, num)
            }
            Number::Ratio { num, den: 2 } if num <= MAX_UNROLLED_POWER => {
                let root = self.tape.push(TapeOp::Sqrt, &[base], 0);
                self.multiply_up(root, num)
            }
            _ => {
                let power = self.tape.push_number(power);
                self.binary(TapeOp::Pow, base, power)
            }
        }
    }

    /// base^power by repeated squaring.
    fn multiply_up(&mut self, base: i32, power: i64) -> i32 {
        if power == 1 {
            return base;
        }
        let half = self.multiply_up(base, power / 2);
        let square = self.binary(TapeOp::Mul, half, half);
        if power % 2 == 0 {
            square
        } else {
            self.binary(TapeOp::Mul, square, base)
        }
    }
}
