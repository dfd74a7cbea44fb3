//! Reference evaluation of tapes and random tapes, for the tests.

use crate::tape::{Tape, TapeOp, Variable};

/// Values of the roots at one point.
pub fn evaluate(tape: &Tape, point: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::with_capacity(tape.entries.len());
    for entry in &tape.entries {
        let value = match entry.op {
            TapeOp::IntConst => entry.payload as f64,
            TapeOp::RealConst => f64::from_bits(entry.payload as u64),
            TapeOp::Var => point[entry.payload as usize],
            op => {
                let operands = &entry.args[..op.arity()];
                let args: Vec<f64> = operands.iter().map(|arg| values[*arg as usize]).collect();
                op.apply(&args)
            }
        };
        values.push(value);
    }
    tape.roots.iter().map(|root| values[*root as usize]).collect()
}

/// A small deterministic random generator (splitmix64).
pub struct Generator(u64);

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A point inside the ranges, which must be finite.
    pub fn point(&mut self, variables: &[Variable]) -> Vec<f64> {
        let mut draw = |variable: &Variable| {
            let share = self.below(1 << 20) as f64 / f64::from(1 << 20);
            let value = variable.lower + share * (variable.upper - variable.lower);
            if variable.is_integer {
                value.round()
            } else {
                value
            }
        };
        variables.iter().map(&mut draw).collect()
    }
}
