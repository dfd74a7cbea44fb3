//! The term language of equality saturation, and what its e-classes know.

use crate::facts::Facts;
use crate::graph::apply_facts;
use crate::number::Number;
use crate::tape::{TapeOp, Variable};
use egg::{Analysis, DidMerge, EGraph, FromOp, Id, Language};
use std::fmt;

/// What a term applies to its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Head {
    Number(Number),
    Var(u32),
    Op(TapeOp),
}

/// An operation of the tape on e-classes. Of operands that may change places the smaller id comes
/// first, so the e-graph never holds both orders; patterns are matched in both instead.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    pub head: Head,
    args: [Id; 3],
}

impl Term {
    pub fn number(number: Number) -> Term {
        Term { head: Head::Number(number), args: [Id::from(0); 3] }
    }

    pub fn var(index: u32) -> Term {
        Term { head: Head::Var(index), args: [Id::from(0); 3] }
    }

    pub fn op(op: TapeOp, operands: &[Id]) -> Term {
        let mut args = [Id::from(0); 3];
        args[..operands.len()].copy_from_slice(operands);
        Term { head: Head::Op(op), args }
    }

    fn arity(&self) -> usize {
        match self.head {
            Head::Op(op) => op.arity(),
            _ => 0,
        }
    }

    pub fn commutes(&self) -> bool {
        matches!(self.head, Head::Op(op) if op.commutes())
    }

    pub fn cost(&self) -> u64 {
        match self.head {
            Head::Op(op) => op.cost(),
            _ => 0,
        }
    }
}

impl Language for Term {
    type Discriminant = Head;

    fn discriminant(&self) -> Head {
        self.head
    }

    fn matches(&self, other: &Term) -> bool {
        self.head == other.head
    }

    fn children(&self) -> &[Id] {
        &self.args[..self.arity()]
    }

    fn children_mut(&mut self) -> &mut [Id] {
        let arity = self.arity();
        &mut self.args[..arity]
    }

    fn update_children<F: FnMut(Id) -> Id>(&mut self, mut rename: F) {
        for id in self.children_mut() {
            *id = rename(*id);
        }
        if self.commutes() {
            self.args[..2].sort_unstable();
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.head {
            Head::Number(number) => write!(out, "{number}"),
            Head::Var(index) => write!(out, "${index}"),
            Head::Op(op) => write!(out, "{}", op.spelling()),
        }
    }
}

impl FromOp for Term {
    type Error = String;

    fn from_op(text: &str, children: Vec<Id>) -> Result<Term, String> {
        let refuse = || format!("`{text}` with {} operands is no term", children.len());
        if let Some(op) = TapeOp::from_spelling(text).filter(|op| op.arity() == children.len()) {
            return Ok(Term::op(op, &children));
        }
        if !children.is_empty() {
            return Err(refuse());
        }
        match text.strip_prefix('$') {
            Some(index) => index.parse().map(Term::var).map_err(|_| refuse()),
            None => text.parse().map(Term::number).map_err(|_| refuse()),
        }
    }
}

/// Interval and integrality of every e-class, from those of the variables.
#[derive(Clone, Default)]
pub struct Ranges {
    pub variables: Vec<Variable>,
}

pub type Classes = EGraph<Term, Ranges>;
pub type Rewrite = egg::Rewrite<Term, Ranges>;

/// A bound counts as better only from this relative step on, so that intervals that tighten each
/// other through a cycle settle after few steps.
const MIN_IMPROVEMENT: f64 = 1e-6;

impl Analysis<Term> for Ranges {
    type Data = Facts;

    fn make(classes: &mut Classes, term: &Term, _: Id) -> Facts {
        let op = match term.head {
            Head::Number(number) => return Facts::of_number(number),
            Head::Var(index) => {
                let variable = classes.analysis.variables[index as usize];
                return Facts::new(variable.lower, variable.upper, variable.is_integer);
            }
            Head::Op(op) => op,
        };
        let args: Vec<Facts> = term.children().iter().map(|id| classes[*id].data).collect();
        match (op, args.as_slice()) {
            (TapeOp::Lt, [a, b]) => decided(a.upper < b.lower, a.lower >= b.upper),
            (TapeOp::Le, [a, b]) => decided(a.upper <= b.lower, a.lower > b.upper),
            _ => apply_facts(op, &args),
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

    fn modify(classes: &mut Classes, id: Id) {
        let facts = classes[id].data;
        // A real interval can shrink to a point by rounding alone, and so can large integers.
        if let Some(number) = facts.constant().filter(|n| facts.integer && n.is_exact()) {
            let constant = classes.add(Term::number(number));
            classes.union(id, constant);
        }
    }
}

fn decided(yes: bool, no: bool) -> Facts {
    match (yes, no) {
        (true, _) => Facts::of_number(Number::ONE),
        (_, true) => Facts::of_number(Number::ZERO),
        _ => Facts::BOOLEAN,
    }
}
