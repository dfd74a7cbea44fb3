//! Rewrite rules, grouped by the domain in which they hold.
//!
//! A rule is data: name, left side, right side, conditions. A condition asks the interval analysis
//! and is false when nothing is proven. Operands of `&&`, `||`, `!` are the numbers 0 and 1, as are
//! results of comparisons. Every rule is checked on random values in this file's tests.

use crate::facts::Facts;
use crate::language::{Classes, Ranges, Rewrite, Term};
use egg::{ConditionalApplier, ENodeOrVar, Id, Language, Pattern, RecExpr, Subst, Var};

/// A claim about the values bound to pattern variables.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    Positive(&'static str),
    NonNegative(&'static str),
    AtLeastOne(&'static str),
    NonZero(&'static str),
    Integer(&'static str),
    Boolean(&'static str),
    /// The first is never greater than the second.
    LessEqual(&'static str, &'static str),
    /// The first is always smaller than the second.
    Less(&'static str, &'static str),
}

use Condition::{AtLeastOne, Boolean, Integer, Less, LessEqual, NonNegative, NonZero, Positive};

impl Condition {
    /// Whether the facts about the named variables prove the claim.
    pub fn is_proven(self, facts: impl Fn(&str) -> Facts) -> bool {
        match self {
            Positive(a) => facts(a).is_positive(),
            NonNegative(a) => facts(a).is_nonnegative(),
            AtLeastOne(a) => facts(a).lower >= 1.0,
            NonZero(a) => facts(a).is_nonzero(),
            Integer(a) => facts(a).integer,
            Boolean(a) => facts(a).is_boolean(),
            LessEqual(a, b) => facts(a).upper <= facts(b).lower,
            Less(a, b) => facts(a).upper < facts(b).lower,
        }
    }

    fn names(self) -> Vec<&'static str> {
        match self {
            Positive(a) | NonNegative(a) | AtLeastOne(a) | NonZero(a) | Integer(a) | Boolean(a) => {
                vec![a]
            }
            LessEqual(a, b) | Less(a, b) => vec![a, b],
        }
    }
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub name: &'static str,
    pub left: &'static str,
    pub right: &'static str,
    pub conditions: Vec<Condition>,
}

#[derive(Clone)]
struct All(Vec<(Condition, Vec<(&'static str, Var)>)>);

impl egg::Condition<Term, Ranges> for All {
    fn check(&self, classes: &mut Classes, _: Id, subst: &Subst) -> bool {
        self.0.iter().all(|(condition, vars)| {
            condition.is_proven(|name| {
                let var = vars.iter().find(|(known, _)| *known == name);
                var.map_or(Facts::UNKNOWN, |(_, var)| classes[subst[*var]].data)
            })
        })
    }

    fn vars(&self) -> Vec<Var> {
        // A misspelt variable fails when the rule is built.
        self.0.iter().flat_map(|(_, vars)| vars.iter().map(|(_, var)| *var)).collect()
    }
}

impl Rule {
    /// The rule in the forms that the e-graph runs: one for each order of operands that may change
    /// places.
    pub fn compile(&self) -> Result<Vec<Rewrite>, String> {
        let pattern = |text: &str| -> Result<Pattern<Term>, String> {
            text.parse().map_err(|error| format!("rule {}: {text}: {error}", self.name))
        };
        let mut conditions = Vec::new();
        for condition in &self.conditions {
            let mut vars = Vec::new();
            for name in condition.names() {
                let var = name.parse().map_err(|error| format!("rule {}: {error}", self.name))?;
                vars.push((name, var));
            }
            conditions.push((*condition, vars));
        }
        let right = pattern(self.right)?;
        let orders = orders(&pattern(self.left)?.ast);
        let compile = |(k, left): (usize, RecExpr<ENodeOrVar<Term>>)| {
            let (name, left) = (format!("{}/{k}", self.name), Pattern::new(left));
            if conditions.is_empty() {
                return Rewrite::new(name, left, right.clone());
            }
            let condition = All(conditions.clone());
            Rewrite::new(name, left, ConditionalApplier { condition, applier: right.clone() })
        };
        orders.into_iter().enumerate().map(compile).collect()
    }
}

/// A pattern with the operands of its commuting operations in all orders.
fn orders(pattern: &RecExpr<ENodeOrVar<Term>>) -> Vec<RecExpr<ENodeOrVar<Term>>> {
    let mut found = vec![pattern.clone()];
    for place in 0..pattern.as_ref().len() {
        let id = Id::from(place);
        let ENodeOrVar::ENode(term) = &pattern[id] else { continue };
        if !term.commutes() || term.children()[0] == term.children()[1] {
            continue;
        }
        for k in 0..found.len() {
            let mut swapped = found[k].clone();
            swapped[id].children_mut().swap(0, 1);
            found.push(swapped);
        }
    }
    found
}

macro_rules! rules {
    ($($name:literal : $left:literal => $right:literal $(if $($condition:expr),+)? ;)*) => {
        vec![$(Rule {
            name: $name, left: $left, right: $right, conditions: vec![$($($condition),+)?],
        }),*]
    };
}

/// Regrouping of sums and products of reals; used by the equivalence test only.
#[rustfmt::skip]
pub fn regrouping() -> Vec<Rule> { rules! {
    "add-associates": "(+ ?a (+ ?b ?c))" => "(+ (+ ?a ?b) ?c)";
    "mul-associates": "(* ?a (* ?b ?c))" => "(* (* ?a ?b) ?c)";
    "distribute":     "(* ?a (+ ?b ?c))" => "(+ (* ?a ?b) (* ?a ?c))";
    "sub-as-add":     "(- ?a ?b)" => "(+ ?a (* -1 ?b))";
}}

/// Spellings that may be cheaper to evaluate, for reals. A mix is a smooth selection, a step a smooth
/// condition, and 1 - x the opposite of either.
#[rustfmt::skip]
pub fn cheaper_spellings() -> Vec<Rule> { rules! {
    "fuse":            "(+ (* ?a ?b) ?c)" => "(muladd ?a ?b ?c)";
    "collect":         "(+ (* ?a ?b) (* ?a ?c))" => "(* ?a (+ ?b ?c))";
    "collect-sub":     "(- (* ?a ?b) (* ?a ?c))" => "(* ?a (- ?b ?c))";
    "collect-fused":   "(muladd ?a ?b (* ?a ?c))" => "(* ?a (+ ?b ?c))";
    "add-nothing":     "(+ ?a 0)" => "?a";
    "sub-nothing":     "(- ?a 0)" => "?a";
    "sub-same":        "(- ?a ?a)" => "0";
    "mul-nothing":     "(* ?a 0)" => "0";
    "mul-once":        "(* ?a 1)" => "?a";
    "div-once":        "(/ ?a 1)" => "?a";
    "add-product":     "(muladd ?a 1 ?c)" => "(+ ?a ?c)";
    "opposite-twice":  "(- 1 (- 1 ?a))" => "?a";
    "opposite-both":   "(* (- ?a 1) (- ?b 1))" => "(* (- 1 ?a) (- 1 ?b))";
    "sub-negative":    "(- ?a (* -1 ?b))" => "(+ ?a ?b)";
    "sub-of-sub":      "(- ?a (- ?b ?c))" => "(+ ?a (- ?c ?b))";
    "opposite-step":   "(- 1 (step ?a))" => "(step (- 1 ?a))";
    "opposite-mix":    "(- 1 (mix ?c ?a ?b))" => "(mix ?c (- 1 ?a) (- 1 ?b))";
    "mix-same":        "(mix ?c ?a ?a)" => "?a";
    "mix-opposite":    "(mix (- 1 ?c) ?a ?b)" => "(mix ?c ?b ?a)";
    "mix-of-parts":    "(+ (* ?c ?a) (* (- 1 ?c) ?b))" => "(mix ?c ?a ?b)";
    "mix-rest":        "(* (- 1 ?c) ?b)" => "(mix ?c 0 ?b)";
    "mix-either":      "(- 1 (* (- 1 ?a) (- 1 ?b)))" => "(mix ?a 1 ?b)";
    "mix-either-sum":  "(- (+ ?a ?b) (* ?a ?b))" => "(mix ?a 1 ?b)";
    "mix-one-but":     "(- 1 (* ?a ?b))" => "(mix ?a (- 1 ?b) 1)";
    "mix-keep":        "(mix ?c ?a 0)" => "(* ?c ?a)";
    "mix-drop":        "(mix ?c 0 ?b)" => "(* (- 1 ?c) ?b)";
    "mix-scale":       "(mix ?c (* ?x ?a) (* ?x ?b))" => "(* ?x (mix ?c ?a ?b))";
    "mix-scale-left":  "(mix ?c ?x (* ?x ?b))" => "(* ?x (mix ?c 1 ?b))";
    "mix-scale-right": "(mix ?c (* ?x ?a) ?x)" => "(* ?x (mix ?c ?a 1))";
    "mix-shift":       "(mix ?c (+ ?x ?a) (+ ?x ?b))" => "(+ ?x (mix ?c ?a ?b))";
    "mix-shift-left":  "(mix ?c ?x (+ ?x ?b))" => "(muladd (- 1 ?c) ?b ?x)";
    "mix-shift-right": "(mix ?c (+ ?x ?a) ?x)" => "(muladd ?c ?a ?x)";
    "mix-inner-some":  "(mix ?c (mix ?d ?x ?y) ?y)" => "(mix (* ?c ?d) ?x ?y)";
    "mix-inner-other": "(mix ?c ?x (mix ?d ?x ?y))" => "(mix (mix ?c 1 ?d) ?x ?y)";
    "mix-add":         "(+ (mix ?c ?a ?b) (mix ?c ?x ?y))" => "(mix ?c (+ ?a ?x) (+ ?b ?y))";
    "divide-once":     "(/ (/ ?a ?b) ?c)" => "(/ ?a (* ?b ?c))";
    "divide-last":     "(* (/ ?a ?b) ?c)" => "(/ (* ?a ?c) ?b)";
}}

/// Minimum and maximum of reals.
#[rustfmt::skip]
pub fn extrema() -> Vec<Rule> { rules! {
    "min-associates":  "(min ?a (min ?b ?c))" => "(min (min ?a ?b) ?c)";
    "max-associates":  "(max ?a (max ?b ?c))" => "(max (max ?a ?b) ?c)";
    "min-same":        "(min ?a ?a)" => "?a";
    "max-same":        "(max ?a ?a)" => "?a";
    "min-known":       "(min ?a ?b)" => "?a" if LessEqual("?a", "?b");
    "max-known":       "(max ?a ?b)" => "?b" if LessEqual("?a", "?b");
    "min-absorbs":     "(min ?a (max ?a ?b))" => "?a";
    "max-absorbs":     "(max ?a (min ?a ?b))" => "?a";
    "min-of-max":      "(min (max ?a ?b) (max ?a ?c))" => "(max ?a (min ?b ?c))";
    "max-of-min":      "(max (min ?a ?b) (min ?a ?c))" => "(min ?a (max ?b ?c))";
    "min-plus-max":    "(+ (min ?a ?b) (max ?a ?b))" => "(+ ?a ?b)";
    "min-times-max":   "(* (min ?a ?b) (max ?a ?b))" => "(* ?a ?b)";
    "min-shift":       "(min (+ ?a ?c) (+ ?b ?c))" => "(+ (min ?a ?b) ?c)";
    "max-shift":       "(max (+ ?a ?c) (+ ?b ?c))" => "(+ (max ?a ?b) ?c)";
    "min-scale":       "(min (* ?a ?c) (* ?b ?c))" => "(* (min ?a ?b) ?c)" if Positive("?c");
    "max-scale":       "(max (* ?a ?c) (* ?b ?c))" => "(* (max ?a ?b) ?c)" if Positive("?c");
    "min-scale-unit":  "(min ?c (* ?b ?c))" => "?c" if AtLeastOne("?b"), Positive("?c");
    "max-scale-unit":  "(max ?c (* ?b ?c))" => "(* ?b ?c)" if AtLeastOne("?b"), Positive("?c");
    "min-by-choice":   "(select (< ?a ?b) ?a ?b)" => "(min ?a ?b)";
    "max-by-choice":   "(select (< ?a ?b) ?b ?a)" => "(max ?a ?b)";
    "min-by-choice-le": "(select (<= ?a ?b) ?a ?b)" => "(min ?a ?b)";
    "max-by-choice-le": "(select (<= ?a ?b) ?b ?a)" => "(max ?a ?b)";
}}

/// Floor division and remainder. Each identity holds for all integers that meet its conditions.
#[rustfmt::skip]
pub fn floor_division() -> Vec<Rule> { rules! {
    "div-multiple":  "(// (* ?q ?c) ?c)" => "?q" if Integer("?q"), Integer("?c"), NonZero("?c");
    "mod-multiple":  "(mod (* ?q ?c) ?c)" => "0" if Integer("?q"), Integer("?c"), NonZero("?c");
    "div-nested":    "(// (// ?a ?b) ?c)" => "(// ?a (* ?b ?c))"
                     if Integer("?a"), Integer("?b"), Integer("?c"), Positive("?b"), Positive("?c");
    "div-split":     "(// (+ (* ?q ?c) ?r) ?c)" => "(+ ?q (// ?r ?c))"
                     if Integer("?q"), Integer("?r"), Integer("?c"), NonZero("?c");
    "mod-split":     "(mod (+ (* ?q ?c) ?r) ?c)" => "(mod ?r ?c)"
                     if Integer("?q"), Integer("?r"), Integer("?c"), NonZero("?c");
    "div-smaller":   "(// ?a ?b)" => "0" if NonNegative("?a"), Less("?a", "?b");
    "mod-smaller":   "(mod ?a ?b)" => "?a" if NonNegative("?a"), Less("?a", "?b");
    "mod-of-mod":    "(mod (mod ?a ?b) ?b)" => "(mod ?a ?b)" if Positive("?b");
    "mod-coarser":   "(mod (mod ?a (* ?b ?c)) ?c)" => "(mod ?a ?c)"
                     if Integer("?a"), Integer("?b"), Integer("?c"), Positive("?b"), Positive("?c");
    "div-of-mod":    "(// (mod ?a ?b) ?b)" => "0" if Integer("?a"), Integer("?b"), Positive("?b");
    "div-mod-whole": "(+ (* (// ?a ?b) ?b) (mod ?a ?b))" => "?a"
                     if Integer("?a"), Integer("?b"), NonZero("?b");
    "min-of-div":    "(min (// ?a ?c) (// ?b ?c))" => "(// (min ?a ?b) ?c)" if Positive("?c");
    "max-of-div":    "(max (// ?a ?c) (// ?b ?c))" => "(// (max ?a ?b) ?c)" if Positive("?c");
    "lt-div":        "(< (// ?a ?c) ?b)" => "(< ?a (* ?b ?c))"
                     if Integer("?a"), Integer("?b"), Integer("?c"), Positive("?c");
    "floor-integer": "(floor ?a)" => "?a" if Integer("?a");
    "ceil-integer":  "(ceil ?a)" => "?a" if Integer("?a");
}}

/// Comparisons of reals.
#[rustfmt::skip]
pub fn comparisons() -> Vec<Rule> { rules! {
    "lt-self":       "(< ?a ?a)" => "0";
    "le-self":       "(<= ?a ?a)" => "1";
    "eq-self":       "(== ?a ?a)" => "1";
    "ne-self":       "(!= ?a ?a)" => "0";
    "eq-apart":      "(== ?a ?b)" => "0" if Less("?a", "?b");
    "ne-apart":      "(!= ?a ?b)" => "1" if Less("?a", "?b");
    "not-lt":        "(! (< ?a ?b))" => "(<= ?b ?a)";
    "not-le":        "(! (<= ?a ?b))" => "(< ?b ?a)";
    "not-eq":        "(! (== ?a ?b))" => "(!= ?a ?b)";
    "not-ne":        "(! (!= ?a ?b))" => "(== ?a ?b)";
    "lt-both":       "(&& (< ?a ?b) (< ?a ?c))" => "(< ?a (min ?b ?c))";
    "lt-any":        "(|| (< ?a ?b) (< ?a ?c))" => "(< ?a (max ?b ?c))";
    "gt-both":       "(&& (< ?a ?c) (< ?b ?c))" => "(< (max ?a ?b) ?c)";
    "gt-any":        "(|| (< ?a ?c) (< ?b ?c))" => "(< (min ?a ?b) ?c)";
    "lt-min-self":   "(< ?a (min ?a ?b))" => "0";
    "lt-max-self":   "(< ?a (max ?a ?b))" => "(< ?a ?b)";
    "min-lt-self":   "(< (min ?a ?b) ?a)" => "(< ?b ?a)";
    "max-lt-self":   "(< (max ?a ?b) ?a)" => "0";
    "lt-scale":      "(< (* ?a ?c) (* ?b ?c))" => "(< ?a ?b)" if Positive("?c");
    "le-scale":      "(<= (* ?a ?c) (* ?b ?c))" => "(<= ?a ?b)" if Positive("?c");
    "eq-scale":      "(== (* ?a ?c) (* ?b ?c))" => "(== ?a ?b)" if NonZero("?c");
    "lt-asymmetric": "(&& (< ?a ?b) (< ?b ?a))" => "0";
    "lt-eq-exclude": "(&& (< ?a ?b) (== ?a ?b))" => "0";
    "le-antisym":    "(&& (<= ?a ?b) (<= ?b ?a))" => "(== ?a ?b)";
    "lt-or-eq":      "(|| (< ?a ?b) (== ?a ?b))" => "(<= ?a ?b)";
}}

/// Booleans, that is numbers proven to be 0 or 1.
#[rustfmt::skip]
pub fn booleans() -> Vec<Rule> { rules! {
    "and-associates": "(&& ?a (&& ?b ?c))" => "(&& (&& ?a ?b) ?c)";
    "or-associates":  "(|| ?a (|| ?b ?c))" => "(|| (|| ?a ?b) ?c)";
    "and-same":       "(&& ?a ?a)" => "?a" if Boolean("?a");
    "or-same":        "(|| ?a ?a)" => "?a" if Boolean("?a");
    "and-true":       "(&& ?a 1)" => "?a" if Boolean("?a");
    "or-false":       "(|| ?a 0)" => "?a" if Boolean("?a");
    "and-false":      "(&& ?a 0)" => "0";
    "or-true":        "(|| ?a 1)" => "1";
    "and-absorbs":    "(&& ?a (|| ?a ?b))" => "?a" if Boolean("?a");
    "or-absorbs":     "(|| ?a (&& ?a ?b))" => "?a" if Boolean("?a");
    "and-collect":    "(|| (&& ?a ?b) (&& ?a ?c))" => "(&& ?a (|| ?b ?c))";
    "or-collect":     "(&& (|| ?a ?b) (|| ?a ?c))" => "(|| ?a (&& ?b ?c))";
    "and-opposite":   "(&& ?a (! ?a))" => "0";
    "or-opposite":    "(|| ?a (! ?a))" => "1";
    "not-not":        "(! (! ?a))" => "?a" if Boolean("?a");
    "not-true":       "(! 1)" => "0";
    "not-false":      "(! 0)" => "1";
    "not-both":       "(|| (! ?a) (! ?b))" => "(! (&& ?a ?b))";
    "not-any":        "(&& (! ?a) (! ?b))" => "(! (|| ?a ?b))";
}}

/// Selection between reals.
#[rustfmt::skip]
pub fn selection() -> Vec<Rule> { rules! {
    "select-same":        "(select ?c ?a ?a)" => "?a";
    "select-true":        "(select ?c ?a ?b)" => "?a" if NonZero("?c");
    "select-false":       "(select 0 ?a ?b)" => "?b";
    "select-not":         "(select (! ?c) ?a ?b)" => "(select ?c ?b ?a)";
    "select-bool":        "(select ?c 1 0)" => "?c" if Boolean("?c");
    "select-again-true":  "(select ?c (select ?c ?a ?b) ?d)" => "(select ?c ?a ?d)";
    "select-again-false": "(select ?c ?a (select ?c ?b ?d))" => "(select ?c ?a ?d)";
    "select-and":         "(select ?c (select ?d ?a ?b) ?b)" => "(select (&& ?c ?d) ?a ?b)";
    "select-or":          "(select ?c ?a (select ?d ?a ?b))" => "(select (|| ?c ?d) ?a ?b)";
    "select-add":         "(+ (select ?c ?a ?b) (select ?c ?x ?y))" => "(select ?c (+ ?a ?x) (+ ?b ?y))";
    "select-mul":         "(* (select ?c ?a ?b) (select ?c ?x ?y))" => "(select ?c (* ?a ?x) (* ?b ?y))";
    "select-min":         "(min (select ?c ?a ?b) (select ?c ?x ?y))" => "(select ?c (min ?a ?x) (min ?b ?y))";
    "select-max":         "(max (select ?c ?a ?b) (select ?c ?x ?y))" => "(select ?c (max ?a ?x) (max ?b ?y))";
    "select-shift":       "(select ?c (+ ?a ?x) (+ ?b ?x))" => "(+ (select ?c ?a ?b) ?x)";
    "select-scale":       "(select ?c (* ?a ?x) (* ?b ?x))" => "(* (select ?c ?a ?b) ?x)";
    "select-le":          "(select (<= ?a ?b) ?x ?y)" => "(select (< ?b ?a) ?y ?x)";
}}

/// Logarithms and powers of positive quantities.
#[rustfmt::skip]
pub fn logarithms() -> Vec<Rule> { rules! {
    "log-of-product": "(log (* ?a ?b))" => "(+ (log ?a) (log ?b))" if Positive("?a"), Positive("?b");
    "log-of-power":   "(log (pow ?a ?b))" => "(* ?b (log ?a))" if Positive("?a");
    "log-of-exp":     "(log (exp ?a))" => "?a";
    "exp-of-log":     "(exp (log ?a))" => "?a" if Positive("?a");
    "min-of-logs":    "(min (log ?a) (log ?b))" => "(log (min ?a ?b))" if Positive("?a"), Positive("?b");
    "max-of-logs":    "(max (log ?a) (log ?b))" => "(log (max ?a ?b))" if Positive("?a"), Positive("?b");
    "select-of-logs": "(select ?c (log ?a) (log ?b))" => "(log (select ?c ?a ?b))" if Positive("?a"), Positive("?b");
    "min-of-powers":  "(min (pow ?a ?b) (pow ?a ?c))" => "(pow ?a (min ?b ?c))" if AtLeastOne("?a");
    "max-of-powers":  "(max (pow ?a ?b) (pow ?a ?c))" => "(pow ?a (max ?b ?c))" if AtLeastOne("?a");
}}

/// Comparisons with 1 of quantities that are never below 1, such as tile sizes.
#[rustfmt::skip]
pub fn quantities_at_least_one() -> Vec<Rule> { rules! {
    "one-lt-product": "(< 1 (* ?a ?b))" => "(|| (< 1 ?a) (< 1 ?b))" if AtLeastOne("?a"), AtLeastOne("?b");
    "one-eq-product": "(== 1 (* ?a ?b))" => "(&& (== 1 ?a) (== 1 ?b))" if AtLeastOne("?a"), AtLeastOne("?b");
    "one-eq":         "(== 1 ?a)" => "(! (< 1 ?a))" if AtLeastOne("?a");
    "product-lt-two": "(< (* ?a ?b) 2)" => "(&& (< ?a 2) (< ?b 2))"
                      if Integer("?a"), Integer("?b"), AtLeastOne("?a"), AtLeastOne("?b");
}}

/// Every rule, for the tests.
pub fn all() -> Vec<Rule> {
    let groups = [basic(), cheaper_spellings(), regrouping(), quantities_at_least_one()];
    groups.into_iter().flatten().collect()
}

/// The groups that simplification always uses.
pub fn basic() -> Vec<Rule> {
    let groups =
        [extrema(), floor_division(), comparisons(), booleans(), selection(), logarithms()];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Generator;
    use crate::language::Head;
    use crate::tape::Variable;
    use std::collections::{BTreeMap, BTreeSet};

    fn evaluate(pattern: &Pattern<Term>, values: &BTreeMap<Var, f64>) -> f64 {
        let mut results: Vec<f64> = Vec::new();
        for node in pattern.ast.as_ref() {
            let value = match node {
                egg::ENodeOrVar::Var(var) => values[var],
                egg::ENodeOrVar::ENode(term) => {
                    let args: Vec<f64> =
                        term.children().iter().map(|id| results[usize::from(*id)]).collect();
                    evaluate_term(term, &args)
                }
            };
            results.push(value);
        }
        *results.last().unwrap()
    }

    fn evaluate_term(term: &Term, x: &[f64]) -> f64 {
        match term.head {
            Head::Number(number) => number.to_f64(),
            Head::Var(_) => unreachable!("patterns hold no variables of a tape"),
            Head::Op(op) => op.apply(x),
        }
    }

    /// Small integers, quarters and booleans, so that ties and equal values are frequent and
    /// arithmetic is exact.
    fn sample(generator: &mut Generator) -> f64 {
        let small = generator.below(13) as f64 - 4.0;
        match generator.below(4) {
            0 => small / 4.0,
            1 => generator.below(2) as f64,
            _ => small,
        }
    }

    #[test]
    fn every_rule_holds_on_random_values_that_meet_its_conditions() {
        let mut generator = Generator::new(7);
        for rule in all() {
            let left: Pattern<Term> = rule.left.parse().unwrap();
            let right: Pattern<Term> = rule.right.parse().unwrap();
            let mut checked = 0;
            for _ in 0..200_000 {
                let values: BTreeMap<Var, f64> =
                    left.vars().into_iter().map(|var| (var, sample(&mut generator))).collect();
                let facts = |name: &str| {
                    let value = values[&name.parse::<Var>().unwrap()];
                    Facts::new(value, value, value.fract() == 0.0)
                };
                if !rule.conditions.iter().all(|condition| condition.is_proven(facts)) {
                    continue;
                }
                let (before, after) = (evaluate(&left, &values), evaluate(&right, &values));
                if !before.is_finite() {
                    continue;
                }
                let scale = before.abs().max(1.0);
                assert!(
                    (before - after).abs() <= 1e-9 * scale,
                    "rule {}: {} = {before} but {} = {after} at {values:?}",
                    rule.name,
                    rule.left,
                    rule.right
                );
                checked += 1;
                if checked == 300 {
                    break;
                }
            }
            assert!(checked >= 100, "rule {}: only {checked} points met its conditions", rule.name);
        }
    }

    #[test]
    fn rule_names_are_unique_and_every_rule_compiles() {
        let mut names = BTreeSet::new();
        for rule in all() {
            assert!(names.insert(rule.name), "two rules are called {}", rule.name);
            rule.compile().unwrap();
        }
    }

    #[test]
    fn a_condition_on_an_unbound_variable_is_refused() {
        let rule =
            Rule { name: "bad", left: "(log ?a)", right: "?a", conditions: vec![Positive("?b")] };
        assert!(rule.compile().is_err());
    }

    #[test]
    fn each_rule_fires_on_its_own_left_side() {
        // Leaves with the strongest facts: every condition on a single variable is met.
        for rule in all() {
            if rule.conditions.iter().any(|c| matches!(c, LessEqual(..) | Less(..) | Boolean(_))) {
                continue;
            }
            let mut text = rule.left.to_string();
            let vars = rule.left.parse::<Pattern<Term>>().unwrap().vars();
            for (k, var) in vars.iter().enumerate() {
                text = text.replace(&var.to_string(), &format!("${k}"));
            }
            let variable = Variable { lower: 3.0, upper: 1000.0, is_integer: true };
            let mut classes = Classes::new(Ranges { variables: vec![variable; vars.len()] });
            let start: RecExpr<Term> = text.parse().unwrap();
            let root = classes.add_expr(&start);
            classes.rebuild();
            let rewrites = rule.compile().unwrap();
            let matches = rewrites.iter().any(|rewrite| !rewrite.search(&classes).is_empty());
            assert!(matches, "rule {} never matches", rule.name);
            assert!(!classes[root].is_empty());
        }
    }
}
