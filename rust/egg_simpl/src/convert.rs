//! Tapes to normal form and back.

use crate::graph::{Graph, Id, Node, Op};
use crate::number::Number;
use crate::tape::{Entry, Tape, TapeOp};
use std::collections::{HashMap, HashSet};

/// Powers up to this one are written as multiplications.
const MAX_UNROLLED_POWER: i64 = 8;
/// A power of a constant is split into factors only if no factor can leave this range.
const SAFE_MAGNITUDE: f64 = 1e60;

/// Bring every entry to normal form; result k is the value of root k.
pub fn read_tape(graph: &mut Graph, tape: &Tape) -> Result<Vec<Id>, String> {
    let mut ids: Vec<Id> = Vec::with_capacity(tape.entries.len());
    for (i, entry) in tape.entries.iter().enumerate() {
        let id = read_entry(graph, entry, &ids).ok_or_else(|| {
            format!(
                "tape entry {i}: constant {} is not finite",
                f64::from_bits(entry.payload as u64)
            )
        })?;
        ids.push(id);
    }
    Ok(tape.roots.iter().map(|root| ids[*root as usize]).collect())
}

fn read_entry(graph: &mut Graph, entry: &Entry, ids: &[Id]) -> Option<Id> {
    let arg = |slot: usize| ids[entry.args[slot] as usize];
    Some(match entry.op {
        TapeOp::IntConst => graph.int(entry.payload),
        TapeOp::RealConst => {
            let number = Number::from_f64(f64::from_bits(entry.payload as u64))?;
            graph.number(number)
        }
        TapeOp::Var => graph.variable(entry.payload as u32),
        TapeOp::Add => graph.add(arg(0), arg(1)),
        TapeOp::Sub => graph.sub(arg(0), arg(1)),
        TapeOp::Mul => graph.mul(arg(0), arg(1)),
        TapeOp::Div => graph.div(arg(0), arg(1)),
        TapeOp::FloorDiv => graph.floor_div(arg(0), arg(1)),
        TapeOp::FloorMod => graph.floor_mod(arg(0), arg(1)),
        TapeOp::Min => graph.min(arg(0), arg(1)),
        TapeOp::Max => graph.max(arg(0), arg(1)),
        TapeOp::Pow => graph.pow(arg(0), arg(1)),
        TapeOp::Log => graph.log(arg(0)),
        TapeOp::Exp => graph.exp(arg(0)),
        TapeOp::Sqrt => graph.sqrt(arg(0)),
        TapeOp::Lt => graph.lt(arg(0), arg(1)),
        TapeOp::Le => graph.le(arg(0), arg(1)),
        TapeOp::Eq => graph.eq(arg(0), arg(1)),
        TapeOp::Ne => graph.ne(arg(0), arg(1)),
        TapeOp::And => graph.and(arg(0), arg(1)),
        TapeOp::Or => graph.or(arg(0), arg(1)),
        TapeOp::Not => graph.not(arg(0)),
        TapeOp::Select => graph.select(arg(0), arg(1), arg(2)),
        TapeOp::Sigmoid => graph.sigmoid(arg(0)),
        TapeOp::Hump => graph.hump(arg(0)),
        TapeOp::Abs => graph.abs(arg(0)),
        TapeOp::Ceil => graph.ceil(arg(0)),
        TapeOp::Floor => graph.floor(arg(0)),
    })
}

impl Graph {
    /// Apply an operation of the normal form to operands in normal form.
    pub fn apply(&mut self, op: Op, args: &[Id]) -> Id {
        let fold = |graph: &mut Graph, step: fn(&mut Graph, Id, Id) -> Id| {
            let mut all = args.iter().copied();
            let first = all.next().expect("an operation has operands");
            all.fold(first, |a, b| step(graph, a, b))
        };
        match op {
            Op::Min => fold(self, Graph::min),
            Op::Max => fold(self, Graph::max),
            Op::And => fold(self, Graph::and),
            Op::Or => fold(self, Graph::or),
            Op::Not => self.not(args[0]),
            Op::Lt => self.lt(args[0], args[1]),
            Op::Le => self.le(args[0], args[1]),
            Op::Eq => self.eq(args[0], args[1]),
            Op::Ne => self.ne(args[0], args[1]),
            Op::Select => self.select(args[0], args[1], args[2]),
            Op::FloorDiv => self.floor_div(args[0], args[1]),
            Op::FloorMod => self.floor_mod(args[0], args[1]),
            Op::Floor => self.floor(args[0]),
            Op::Ceil => self.ceil(args[0]),
            Op::Log => self.log(args[0]),
            Op::Abs => self.abs(args[0]),
            Op::Sigmoid => self.sigmoid(args[0]),
            Op::Hump => self.hump(args[0]),
            Op::Pow => self.pow(args[0], args[1]),
            Op::PlainAdd => self.add(args[0], args[1]),
            Op::PlainMul => self.mul(args[0], args[1]),
        }
    }

    /// Rebuild the roots with some nodes replaced by others of equal value.
    pub fn replace(&mut self, roots: &[Id], replacements: &HashMap<Id, Id>) -> Vec<Id> {
        let mut renamed: HashMap<Id, Id> = HashMap::new();
        for id in self.reachable(roots) {
            let new = match replacements.get(&id) {
                Some(replacement) => *replacement,
                None => self.rebuild(id, &renamed),
            };
            renamed.insert(id, new);
        }
        roots.iter().map(|root| renamed[root]).collect()
    }

    fn rebuild(&mut self, id: Id, renamed: &HashMap<Id, Id>) -> Id {
        if self.children(id).iter().all(|child| renamed[child] == *child) {
            return id;
        }
        match self.node(id).clone() {
            Node::Number(_) | Node::Var(_) | Node::Euler => id,
            Node::Sum(constant, terms) => {
                let parts: Vec<_> = terms.iter().map(|(term, c)| (renamed[term], *c)).collect();
                self.sum(constant, &parts).unwrap_or(id)
            }
            Node::Product(factors) => {
                let mut product = self.number(Number::ONE);
                for (base, exponent) in factors {
                    let factor = self.raise(renamed[&base], renamed[&exponent]);
                    product = self.mul(product, factor);
                }
                product
            }
            Node::Apply(op, args) => {
                let args: Vec<Id> = args.iter().map(|arg| renamed[arg]).collect();
                self.apply(op, &args)
            }
        }
    }

    /// `base^exponent`, where the base may be Euler's number.
    pub fn raise(&mut self, base: Id, exponent: Id) -> Id {
        match self.node(base) {
            Node::Euler => self.exp(exponent),
            _ => self.pow(base, exponent),
        }
    }
}

/// Write the roots as a tape, sharing equal entries between all of them.
pub fn write_tape(graph: &Graph, roots: &[Id]) -> Tape {
    let order = graph.reachable(roots);
    let split_bases = bases_to_split(graph, &order);
    let mut writer = Writer { graph, split_bases, tape: Tape::default(), written: HashMap::new() };
    // Children come first, so no expression is too deep; what no root needs is dropped at the end.
    for id in order {
        writer.write(id);
    }
    writer.tape.roots = roots.iter().map(|root| writer.written[root]).collect();
    writer.tape.compact()
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

struct Writer<'a> {
    graph: &'a Graph,
    split_bases: HashSet<Id>,
    tape: Tape,
    written: HashMap<Id, i32>,
}

impl Writer<'_> {
    fn write(&mut self, id: Id) -> i32 {
        if let Some(entry) = self.written.get(&id) {
            return *entry;
        }
        let entry = match self.graph.node(id) {
            Node::Number(number) => self.tape.push_number(*number),
            Node::Var(index) => self.tape.push(TapeOp::Var, &[], *index as i64),
            Node::Euler => self.real(std::f64::consts::E),
            Node::Sum(constant, terms) => self.write_sum(*constant, terms),
            Node::Product(factors) => self.write_product(Number::ONE, factors),
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

    fn write_operation(&mut self, op: Op, args: &[i32]) -> i32 {
        let op = match op {
            Op::Min => TapeOp::Min,
            Op::Max => TapeOp::Max,
            Op::And => TapeOp::And,
            Op::Or => TapeOp::Or,
            Op::Not => TapeOp::Not,
            Op::Lt => TapeOp::Lt,
            Op::Le => TapeOp::Le,
            Op::Eq => TapeOp::Eq,
            Op::Ne => TapeOp::Ne,
            Op::Select => TapeOp::Select,
            Op::FloorDiv => TapeOp::FloorDiv,
            Op::FloorMod => TapeOp::FloorMod,
            Op::Floor => TapeOp::Floor,
            Op::Ceil => TapeOp::Ceil,
            Op::Log => TapeOp::Log,
            Op::Abs => TapeOp::Abs,
            Op::Sigmoid => TapeOp::Sigmoid,
            Op::Hump => TapeOp::Hump,
            Op::Pow => TapeOp::Pow,
            Op::PlainAdd => TapeOp::Add,
            Op::PlainMul => TapeOp::Mul,
        };
        if op.arity() == 2 {
            let first = args[0];
            return args[1..].iter().fold(first, |a, b| self.binary(op, a, *b));
        }
        self.tape.push(op, args, 0)
    }

    fn write_sum(&mut self, constant: Number, terms: &[(Id, Number)]) -> i32 {
        // Start from a part with a plus sign, so that no negation is needed.
        let mut total: Option<i32> = None;
        let mut subtracted: Vec<i32> = Vec::new();
        for (term, coefficient) in terms {
            let negative = coefficient.is_negative();
            let size =
                if negative { coefficient.neg().unwrap_or(*coefficient) } else { *coefficient };
            let part = self.write_scaled(*term, size);
            if negative && size != *coefficient {
                subtracted.push(part);
            } else {
                total = Some(match total {
                    Some(sum) => self.binary(TapeOp::Add, sum, part),
                    None => part,
                });
            }
        }
        let mut rest = subtracted.into_iter();
        let mut sum = match total {
            Some(sum) if constant.is_zero() => sum,
            Some(sum) => match constant.neg().filter(|_| constant.is_negative()) {
                Some(positive) => {
                    let positive = self.tape.push_number(positive);
                    self.binary(TapeOp::Sub, sum, positive)
                }
                None => {
                    let constant = self.tape.push_number(constant);
                    self.binary(TapeOp::Add, sum, constant)
                }
            },
            None if constant.is_zero() && rest.len() == 1 => {
                let minus_one = self.tape.push_number(Number::MINUS_ONE);
                let part = rest.next().expect("length was checked");
                self.binary(TapeOp::Mul, minus_one, part)
            }
            None => self.tape.push_number(constant),
        };
        for part in rest {
            sum = self.binary(TapeOp::Sub, sum, part);
        }
        sum
    }

    fn write_scaled(&mut self, term: Id, size: Number) -> i32 {
        if size.is_one() {
            return self.write(term);
        }
        if let Node::Product(factors) = self.graph.node(term) {
            let product = self.graph;
            let divides = factors
                .iter()
                .any(|(_, exponent)| product.as_number(*exponent).is_some_and(Number::is_negative));
            // A coefficient 3/4 in front of a quotient joins it: 3 x / (4 y).
            if divides {
                return self.write_product(size, factors);
            }
        }
        let body = self.write(term);
        match size {
            Number::Ratio { num, den } if den > 1 && !is_power_of_two(den) => {
                let den = self.tape.push_number(Number::int(den));
                let scaled = if num == 1 {
                    body
                } else {
                    let num = self.tape.push_number(Number::int(num));
                    self.binary(TapeOp::Mul, num, body)
                };
                self.binary(TapeOp::Div, scaled, den)
            }
            _ => {
                let size = self.tape.push_number(size);
                self.binary(TapeOp::Mul, size, body)
            }
        }
    }

    fn write_product(&mut self, coefficient: Number, factors: &[(Id, Id)]) -> i32 {
        let mut over: Vec<i32> = Vec::new();
        let mut under: Vec<i32> = Vec::new();
        match coefficient {
            Number::Ratio { num, den } if den != 1 => {
                under.push(self.tape.push_number(Number::int(den)));
                if num != 1 {
                    over.push(self.tape.push_number(Number::int(num)));
                }
            }
            _ if coefficient.is_one() => {}
            _ => over.push(self.tape.push_number(coefficient)),
        }
        for (base, exponent) in factors {
            match self.graph.as_number(*exponent) {
                Some(power) => {
                    let size =
                        if power.is_negative() { power.neg().unwrap_or(power) } else { power };
                    let raised = self.write_power(*base, size);
                    if size == power {
                        over.push(raised)
                    } else {
                        under.push(raised)
                    }
                }
                None if self.split_bases.contains(base) => {
                    self.write_split_power(*base, *exponent, &mut over, &mut under);
                }
                None => {
                    let exponent = self.write(*exponent);
                    let raised = match self.graph.node(*base) {
                        Node::Euler => self.tape.push(TapeOp::Exp, &[exponent], 0),
                        _ => {
                            let base = self.write(*base);
                            self.binary(TapeOp::Pow, base, exponent)
                        }
                    };
                    over.push(raised);
                }
            }
        }
        let above = self.fold_product(&over);
        if under.is_empty() {
            return above;
        }
        let below = self.fold_product(&under);
        self.binary(TapeOp::Div, above, below)
    }

    fn fold_product(&mut self, parts: &[i32]) -> i32 {
        match parts {
            [] => self.tape.push_number(Number::ONE),
            [first, rest @ ..] => {
                rest.iter().fold(*first, |product, part| self.binary(TapeOp::Mul, product, *part))
            }
        }
    }

    /// base^power for a positive constant power.
    fn write_power(&mut self, base: Id, power: Number) -> i32 {
        if let Node::Euler = self.graph.node(base) {
            return self.real(power.to_f64().exp());
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

    /// c^(k1 x1 + k2 x2 + ...) as a product of powers of c^x1, c^x2, ...
    fn write_split_power(
        &mut self,
        base: Id,
        exponent: Id,
        over: &mut Vec<i32>,
        under: &mut Vec<i32>,
    ) {
        let (_, terms) = self.graph.terms_of(exponent);
        for (term, coefficient) in terms {
            let power = coefficient.as_integer().filter(|p| p.abs() <= MAX_UNROLLED_POWER);
            let single = self.graph.facts(base).pow(self.graph.facts(term));
            let whole = match power {
                Some(power) => single.pow(crate::facts::Facts::of_number(Number::int(power.abs()))),
                None => crate::facts::Facts::UNKNOWN,
            };
            let base = self.write(base);
            if let Some(power) = power
                .filter(|_| whole.lower >= 1.0 / SAFE_MAGNITUDE && whole.upper <= SAFE_MAGNITUDE)
            {
                let term = self.write(term);
                let raised = self.binary(TapeOp::Pow, base, term);
                let raised = self.multiply_up(raised, power.abs());
                if power > 0 {
                    over.push(raised)
                } else {
                    under.push(raised)
                }
            } else {
                let scaled = self.write_sum(Number::ZERO, &[(term, coefficient)]);
                over.push(self.binary(TapeOp::Pow, base, scaled));
            }
        }
    }
}

fn is_power_of_two(value: i64) -> bool {
    value > 0 && value & (value - 1) == 0
}
