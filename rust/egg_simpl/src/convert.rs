//! Tapes to normal form, and replacement inside it.

use crate::graph::{Graph, Id, Node, Op};
use crate::number::Number;
use crate::tape::{Entry, Tape, TapeOp};
use std::collections::HashMap;

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
