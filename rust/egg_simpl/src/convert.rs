//! Tapes to normal form.

use crate::graph::{Graph, Id, Node};
use crate::number::Number;
use crate::tape::{Entry, Tape, TapeOp, TapeOp as Op};

/// Bring the roots to normal form; result k is the value of root k.
pub fn read_tape(graph: &mut Graph, tape: &Tape) -> Result<Vec<Id>, String> {
    let values = read_entries(graph, tape)?;
    Ok(tape.roots.iter().map(|root| values[*root as usize]).collect())
}

/// Bring every entry to normal form; result i is the value of entry i.
pub fn read_entries(graph: &mut Graph, tape: &Tape) -> Result<Vec<Id>, String> {
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
    Ok(ids)
}

fn read_entry(graph: &mut Graph, entry: &Entry, ids: &[Id]) -> Option<Id> {
    Some(match entry.op {
        TapeOp::IntConst => graph.int(entry.payload),
        TapeOp::RealConst => {
            let number = Number::from_f64(f64::from_bits(entry.payload as u64))?;
            graph.number(number)
        }
        TapeOp::Var => graph.variable(entry.payload as u32),
        op => {
            let args: Vec<Id> =
                entry.args[..op.arity()].iter().map(|arg| ids[*arg as usize]).collect();
            graph.apply(op, &args)
        }
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
            Op::Pow => self.pow(args[0], args[1]),
            Op::Add => fold(self, Graph::add),
            Op::Mul => fold(self, Graph::mul),
            Op::Sub => self.sub(args[0], args[1]),
            Op::Div => self.div(args[0], args[1]),
            Op::MulAdd => {
                let product = self.mul(args[0], args[1]);
                self.add(product, args[2])
            }
            Op::Exp => self.exp(args[0]),
            Op::Sqrt => self.sqrt(args[0]),
            Op::LogSize | Op::Step => self.function(op, args[0]),
            Op::SmoothFloorDiv => self.intern(Node::Apply(op, args.to_vec())),
            Op::Mix => self.mix(args[0], args[1], args[2]),
            Op::IntConst | Op::RealConst | Op::Var => unreachable!("a leaf has no operands"),
        }
    }
}
