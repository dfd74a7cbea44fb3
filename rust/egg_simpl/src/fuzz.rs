//! Random tapes: simplification keeps every value and reaches the same result twice.

use crate::evaluate::{evaluate, Generator};
use crate::saturate::Limits;
use crate::simplify::simplify_tape;
use crate::tape::{Tape, TapeOp, Variable};

const LIMITS: Limits = Limits { iterations: 4, nodes: 300, at_least_one: true };

fn variables() -> Vec<Variable> {
    let integer = |lower, upper| Variable { lower, upper, is_integer: true };
    let real = |lower, upper| Variable { lower, upper, is_integer: false };
    vec![
        integer(1.0, 8.0),
        integer(1.0, 64.0),
        integer(0.0, 5.0),
        integer(-4.0, 4.0),
        real(0.0, 6.0),
        real(-2.0, 2.0),
    ]
}

fn random_tape(generator: &mut Generator, length: usize) -> Tape {
    use TapeOp::*;
    const OPS: [TapeOp; 26] = [
        Add, Sub, Mul, Div, Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, Min, Max, Pow, Log, Exp,
        Sqrt, Lt, Le, Eq, Ne, And, Or, Not, Select, Abs,
    ];
    let mut tape = Tape::default();
    for index in 0..variables().len() {
        tape.push(Var, &[], index as i64);
    }
    for value in [0, 1, 2, 3, 4, -1] {
        tape.push(IntConst, &[], value);
    }
    tape.push(RealConst, &[], 0.5f64.to_bits() as i64);
    while tape.entries.len() < length {
        let op = if generator.below(12) == 0 {
            generator.pick(&[Step, Mix, MulAdd, LogSize, SmoothFloorDiv, Ceil, Floor])
        } else {
            generator.pick(&OPS)
        };
        let size = tape.entries.len() as u64;
        let args: Vec<i32> = (0..op.arity())
            .map(|_| {
                // Recent entries more often, so that expressions get deep.
                let back = if generator.below(2) == 0 { size.min(8) } else { size };
                (size - 1 - generator.below(back)) as i32
            })
            .collect();
        tape.push(op, &args, 0);
    }
    let size = tape.entries.len() as i32;
    tape.roots = vec![size - 1, size - 2, size - 5];
    tape
}

/// A point is fit for comparison where the tape is finite, moderate, and continuous in the sense
/// that no decision hangs on rounding: moving the reals by one part in 1e12 changes little.
fn stable_values(tape: &Tape, point: &[f64]) -> Option<Vec<f64>> {
    let mut every = tape.clone();
    every.roots = (0..tape.entries.len() as i32).collect();
    let inner = evaluate(&every, point);
    if inner.iter().any(|value| !value.is_finite() || value.abs() > 1e9) {
        return None;
    }
    for step in [1.0 - 1e-12, 1.0 + 1e-12] {
        let moved: Vec<f64> = point
            .iter()
            .zip(variables())
            .map(|(value, variable)| if variable.is_integer { *value } else { value * step })
            .collect();
        let near = evaluate(&every, &moved);
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1e-3);
        if !inner.iter().zip(&near).all(close) {
            return None;
        }
    }
    // Ties between rounded values: an exact form may decide the other way.
    let mut exact: Vec<bool> = Vec::new();
    for entry in &tape.entries {
        let x = |slot: usize| inner[entry.args[slot] as usize];
        let from_exact = entry.args[..entry.op.arity()].iter().all(|arg| exact[*arg as usize]);
        let near_integer = |v: f64| !from_exact && (v - v.round()).abs() < 1e-9 * v.abs().max(1.0);
        let fragile = match entry.op {
            TapeOp::Lt | TapeOp::Le | TapeOp::Eq | TapeOp::Ne => {
                !from_exact && (x(0) - x(1)).abs() < 1e-9 * x(0).abs().max(1.0)
            }
            TapeOp::FloorDiv | TapeOp::FloorMod => near_integer(x(0) / x(1)),
            // It is continuous in the dividend.
            TapeOp::SmoothFloorDiv => [0.5, 1.5]
                .iter()
                .any(|half| near_integer((x(0).floor() + half) / x(1)) || near_integer(x(0))),
            TapeOp::Ceil | TapeOp::Floor => near_integer(x(0)),
            TapeOp::Select | TapeOp::Not => x(0) != 0.0 && x(0).abs() < 1e-9,
            TapeOp::And | TapeOp::Or => (0..2).any(|k| x(k) != 0.0 && x(k).abs() < 1e-9),
            // 0^0, and differences that cancel to noise before a pole.
            TapeOp::Pow => x(0).abs() < 1e-9,
            TapeOp::Div | TapeOp::Log | TapeOp::Sqrt => {
                let value = if entry.op == TapeOp::Div { x(1) } else { x(0) };
                value.abs() < 1e-6
            }
            _ => false,
        };
        if fragile {
            return None;
        }
        exact.push(match entry.op {
            TapeOp::Var => variables()[entry.payload as usize].is_integer,
            TapeOp::Div | TapeOp::Pow | TapeOp::Log | TapeOp::Exp => false,
            TapeOp::Sqrt | TapeOp::LogSize | TapeOp::Step => false,
            _ => from_exact,
        });
    }
    Some(evaluate(tape, point))
}

fn listing(tape: &Tape) -> String {
    let mut text = format!("roots {:?}\n", tape.roots);
    for (i, entry) in tape.entries.iter().enumerate() {
        text += &format!("  {i} = {:?} {:?} {}\n", entry.op, entry.args, entry.payload);
    }
    text
}

#[test]
fn simplification_keeps_the_values_of_random_tapes() {
    let variables = variables();
    let mut checked = 0;
    for seed in 0..1500 {
        let mut generator = Generator::new(seed);
        let length = 14 + generator.below(22) as usize;
        let tape = random_tape(&mut generator, length);
        let (simple, _) = simplify_tape(&tape, &variables, LIMITS).unwrap();
        for _ in 0..12 {
            let point = generator.point(&variables);
            let Some(before) = stable_values(&tape, &point) else { continue };
            let after = evaluate(&simple, &point);
            for (root, (a, b)) in before.iter().zip(&after).enumerate() {
                assert!(
                    (a - b).abs() <= 1e-9 * a.abs().max(1.0),
                    "seed {seed}, root {root}: {a} became {b} at {point:?}\n{}{}",
                    listing(&tape),
                    listing(&simple)
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 1000, "only {checked} points were fit for comparison");
}

#[test]
fn equal_tapes_give_equal_results() {
    for seed in 0..60 {
        let tape = random_tape(&mut Generator::new(seed), 40);
        let first = simplify_tape(&tape, &variables(), LIMITS).unwrap();
        let second = simplify_tape(&tape, &variables(), LIMITS).unwrap();
        assert_eq!((first.0.entries, first.0.roots), (second.0.entries, second.0.roots));
    }
}

#[test]
fn the_result_never_costs_more() {
    for seed in 0..200 {
        let tape = random_tape(&mut Generator::new(seed), 40);
        let (simple, _) = simplify_tape(&tape, &variables(), LIMITS).unwrap();
        assert!(simple.cost() <= tape.compact().cost());
    }
}
