//! The tape: scalar operations in static single assignment form, as flat arrays.
//!
//! Operations are those of tvm/felix/tape_ops.def, arrays those of tvm/felix/tape.h.

use crate::number::Number;
use std::collections::HashMap;

/// Domain of a variable; the range is closed and an end may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    pub lower: f64,
    pub upper: f64,
    pub is_integer: bool,
}

/// The functions that formulas of the table are written in.
mod formula {
    pub fn truth(condition: bool) -> f64 {
        f64::from(u8::from(condition))
    }
    pub fn choose(condition: bool, x: f64, y: f64) -> f64 {
        if condition {
            x
        } else {
            y
        }
    }
    macro_rules! methods {
        ($($name:ident = $method:ident($($arg:ident),*);)*) => {
            $(pub fn $name($($arg: f64),*) -> f64 { f64::$method($($arg),*) })*
        };
    }
    methods! {
        min = min(a, b); max = max(a, b); pow = powf(a, b); floor = floor(a); ceil = ceil(a);
        abs = abs(a); log = ln(a); exp = exp(a); sqrt = sqrt(a);
    }
}

mod table {
    use super::formula::{abs, ceil, choose, exp, floor, log, max, min, pow, sqrt, truth};
    include!(concat!(env!("OUT_DIR"), "/tape_ops.rs"));
}
pub use table::TapeOp;

impl TapeOp {
    pub fn from_code(code: u8) -> Option<TapeOp> {
        TapeOp::ALL.into_iter().find(|op| *op as u8 == code)
    }

    pub fn from_spelling(text: &str) -> Option<TapeOp> {
        TapeOp::ALL.into_iter().find(|op| op.arity() > 0 && op.spelling() == text)
    }

    /// Value of an operation on as many operands as it has.
    pub fn apply(self, args: &[f64]) -> f64 {
        let x = |slot: usize| args.get(slot).copied().unwrap_or(f64::NAN);
        self.value(x(0), x(1), x(2))
    }
}

/// One entry; unused argument slots are -1, and the payload of an operation is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub op: TapeOp,
    pub args: [i32; 3],
    pub payload: i64,
}

/// A tape without equal entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tape {
    pub entries: Vec<Entry>,
    pub roots: Vec<i32>,
    index: HashMap<Entry, i32>,
}

impl Tape {
    /// Read the flat arrays, checking every index; `num_variables` bounds the variable payloads.
    pub fn from_arrays(
        ops: &[u8],
        args: &[i32],
        payload: &[i64],
        roots: &[i32],
        num_variables: usize,
    ) -> Result<Tape, String> {
        let mut entries = Vec::with_capacity(ops.len());
        for (i, (code, slots)) in ops.iter().zip(args.chunks_exact(3)).enumerate() {
            let op = TapeOp::from_code(*code)
                .ok_or_else(|| format!("tape entry {i}: {code} is not an operation code"))?;
            for (slot, arg) in slots.iter().take(op.arity()).enumerate() {
                if *arg < 0 || *arg as usize >= i {
                    return Err(format!(
                        "tape entry {i} ({op:?}): argument {slot} is {arg}; an argument must be an \
                         earlier entry, 0 to {}",
                        i as i64 - 1
                    ));
                }
            }
            if op == TapeOp::Var && !(0..num_variables as i64).contains(&payload[i]) {
                return Err(format!(
                    "tape entry {i}: variable {} is not in the table of {num_variables} variables",
                    payload[i]
                ));
            }
            let mut entry = Entry { op, args: [-1; 3], payload: 0 };
            entry.args[..op.arity()].copy_from_slice(&slots[..op.arity()]);
            if op.arity() == 0 {
                entry.payload = payload[i];
            }
            entries.push(entry);
        }
        for (k, root) in roots.iter().enumerate() {
            if *root < 0 || *root as usize >= entries.len() {
                return Err(format!("root {k} is {root}; the tape has {} entries", entries.len()));
            }
        }
        Ok(Tape { entries, roots: roots.to_vec(), index: HashMap::new() })
    }

    /// Append an operation, or return the equal entry already there.
    pub fn push(&mut self, op: TapeOp, args: &[i32], payload: i64) -> i32 {
        let mut entry = Entry { op, args: [-1; 3], payload };
        entry.args[..args.len()].copy_from_slice(args);
        let mut key = entry;
        if op.commutes() {
            key.args[..2].sort_unstable();
        }
        let next = self.entries.len() as i32;
        *self.index.entry(key).or_insert_with(|| {
            self.entries.push(entry);
            next
        })
    }

    pub fn push_number(&mut self, number: Number) -> i32 {
        match number.as_integer() {
            Some(value) => self.push(TapeOp::IntConst, &[], value),
            None => self.push(TapeOp::RealConst, &[], number.to_f64().to_bits() as i64),
        }
    }

    /// Total evaluation cost; shared entries count once.
    pub fn cost(&self) -> u64 {
        self.entries.iter().map(|entry| entry.op.cost()).sum()
    }

    /// The same roots with equal entries merged and unused ones dropped.
    pub fn compact(&self) -> Tape {
        let mut used = vec![false; self.entries.len()];
        for root in &self.roots {
            used[*root as usize] = true;
        }
        for i in (0..self.entries.len()).rev() {
            if used[i] {
                for arg in &self.entries[i].args[..self.entries[i].op.arity()] {
                    used[*arg as usize] = true;
                }
            }
        }
        let mut tape = Tape::default();
        let mut renamed = vec![-1; self.entries.len()];
        for (i, entry) in self.entries.iter().enumerate().filter(|(i, _)| used[*i]) {
            let args = entry.args.map(|arg| if arg < 0 { -1 } else { renamed[arg as usize] });
            renamed[i] = tape.push(entry.op, &args[..entry.op.arity()], entry.payload);
        }
        tape.roots = self.roots.iter().map(|root| renamed[*root as usize]).collect();
        tape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_arrays_are_refused_by_entry() {
        let refuse = |ops: &[u8], args: &[i32], roots: &[i32]| {
            let payload = vec![0; ops.len()];
            Tape::from_arrays(ops, args, &payload, roots, 0).unwrap_err()
        };
        assert!(refuse(&[99], &[-1; 3], &[]).contains("99 is not an operation code"));
        assert!(refuse(&[13], &[0, -1, -1], &[]).contains("must be an earlier entry"));
        assert!(refuse(&[2], &[-1; 3], &[]).contains("not in the table of 0 variables"));
        assert!(refuse(&[0], &[-1; 3], &[4]).contains("root 0 is 4"));
    }

    #[test]
    fn compact_shares_and_drops() {
        let mut tape = Tape::default();
        let x = tape.push(TapeOp::Var, &[], 0);
        let y = tape.push(TapeOp::Var, &[], 1);
        tape.push(TapeOp::Exp, &[x], 0);
        let left = tape.push(TapeOp::Mul, &[x, y], 0);
        let right = tape.push(TapeOp::Mul, &[y, x], 0);
        assert_eq!(left, right);
        tape.roots = vec![right];
        assert_eq!(tape.compact().entries.len(), 3);
    }
}
