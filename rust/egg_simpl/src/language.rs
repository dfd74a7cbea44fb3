//! The term language of equality saturation, and what its e-classes know.

use crate::facts::Facts;
use crate::graph::{apply_facts, Op};
use crate::number::Number;
use egg::{define_language, Analysis, DidMerge, EGraph, Id};
use std::fmt;
use std::str::FromStr;

/// A subexpression that the rules do not look into, by its id in the graph of normal forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Leaf(pub u32);

impl fmt::Display for Leaf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "${}", self.0)
    }
}

impl FromStr for Leaf {
    type Err = String;

    fn from_str(text: &str) -> Result<Leaf, String> {
        let index = text.strip_prefix('$').and_then(|digits| digits.parse().ok());
        index.map(Leaf).ok_or_else(|| format!("`{text}` is not a leaf"))
    }
}

define_language! {
    pub enum Term {
        Number(Number),
        Leaf(Leaf),
        "+" = Add([Id; 2]),
        "*" = Mul([Id; 2]),
        "^" = Pow([Id; 2]),
        "//" = FloorDiv([Id; 2]),
        "mod" = FloorMod([Id; 2]),
        "min" = Min([Id; 2]),
        "max" = Max([Id; 2]),
        "<" = Lt([Id; 2]),
        "<=" = Le([Id; 2]),
        "==" = Eq([Id; 2]),
        "!=" = Ne([Id; 2]),
        "&&" = And([Id; 2]),
        "||" = Or([Id; 2]),
        "!" = Not(Id),
        "select" = Select([Id; 3]),
        "log" = Log(Id),
        "exp" = Exp(Id),
        "floor" = Floor(Id),
        "ceil" = Ceil(Id),
        "abs" = Abs(Id),
        "sigmoid" = Sigmoid(Id),
        "hump" = Hump(Id),
    }
}

/// Interval and integrality of every e-class, from those of the leaves.
#[derive(Default)]
pub struct Ranges {
    /// By graph id of the leaf.
    pub leaves: std::collections::HashMap<Leaf, Facts>,
}

pub type Classes = EGraph<Term, Ranges>;
pub type Rewrite = egg::Rewrite<Term, Ranges>;

/// A bound counts as better only from this relative step on, so that intervals that tighten each
/// other through a cycle settle after few steps.
const MIN_IMPROVEMENT: f64 = 1e-6;

impl Analysis<Term> for Ranges {
    type Data = Facts;

    fn make(egraph: &mut Classes, term: &Term, _: Id) -> Facts {
        let of = |id: &Id| egraph[*id].data;
        let apply = |op: Op, args: &[Id]| {
            let args: Vec<Facts> = args.iter().map(of).collect();
            apply_facts(op, &args)
        };
        match term {
            Term::Number(number) => Facts::of_number(*number),
            Term::Leaf(leaf) => *egraph.analysis.leaves.get(leaf).unwrap_or(&Facts::UNKNOWN),
            Term::Add([a, b]) => of(a).add(of(b)),
            Term::Mul([a, b]) => of(a).mul(of(b)),
            Term::Pow([a, b]) => of(a).pow(of(b)),
            Term::FloorDiv(args) => apply(Op::FloorDiv, args),
            Term::FloorMod(args) => apply(Op::FloorMod, args),
            Term::Min(args) => apply(Op::Min, args),
            Term::Max(args) => apply(Op::Max, args),
            Term::Lt([a, b]) => {
                decided(of(a), of(b), |a, b| a.upper < b.lower, |a, b| a.lower >= b.upper)
            }
            Term::Le([a, b]) => {
                decided(of(a), of(b), |a, b| a.upper <= b.lower, |a, b| a.lower > b.upper)
            }
            Term::Eq(_) | Term::Ne(_) | Term::And(_) | Term::Or(_) | Term::Not(_) => Facts::BOOLEAN,
            Term::Select(args) => apply(Op::Select, args),
            Term::Log(a) => of(a).log(),
            Term::Exp(a) => of(a).exp(),
            Term::Floor(a) => of(a).floor(),
            Term::Ceil(a) => of(a).ceil(),
            Term::Abs(a) => of(a).abs(),
            Term::Sigmoid(a) => of(a).sigmoid(),
            Term::Hump(a) => of(a).hump(),
        }
    }

    fn merge(&mut self, into: &mut Facts, from: Facts) -> DidMerge {
        let met = into.meet(from);
        let better = |new: f64, old: f64| {
            old.is_infinite() != new.is_infinite()
                || (new - old).abs() > MIN_IMPROVEMENT * old.abs()
        };
        let differs = |a: Facts, b: Facts| {
            a.integer != b.integer || better(a.lower, b.lower) || better(a.upper, b.upper)
        };
        let (changed, other_changed) = (differs(met, *into), differs(met, from));
        if changed {
            *into = met;
        }
        DidMerge(changed, other_changed)
    }

    fn modify(egraph: &mut Classes, id: Id) {
        let facts = egraph[id].data;
        if let Some(number) = facts.constant().filter(|_| facts.integer) {
            let constant = egraph.add(Term::Number(number));
            egraph.union(id, constant);
        }
    }
}

fn decided(
    a: Facts,
    b: Facts,
    yes: fn(Facts, Facts) -> bool,
    no: fn(Facts, Facts) -> bool,
) -> Facts {
    if yes(a, b) {
        Facts::of_number(Number::ONE)
    } else if no(a, b) {
        Facts::of_number(Number::ZERO)
    } else {
        Facts::BOOLEAN
    }
}
