//! Rewrite rules, grouped by the domain in which they hold.
//!
//! A rule is data: name, left side, right side, conditions. A condition asks the interval analysis
//! and is false when nothing is proven. Operands of `&&`, `||`, `!` are the numbers 0 and 1, as are
//! results of comparisons. Every rule is checked on random values in this file's tests.

use crate::facts::Facts;
use crate::language::{Classes, Ranges, Rewrite, Term};
use egg::{ConditionalApplier, Id, Pattern, Subst, Var};

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
    /// The rule in the form the e-graph runs.
    pub fn compile(&self) -> Result<Rewrite, String> {
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
        let (left, right) = (pattern(self.left)?, pattern(self.right)?);
        if conditions.is_empty() {
            return Rewrite::new(self.name, left, right);
        }
        let applier = ConditionalApplier { condition: All(conditions), applier: right };
        Rewrite::new(self.name, left, applier)
    }
}

macro_rules! rules {
    ($($name:literal : $left:literal => $right:literal $(if $($condition:expr),+)? ;)*) => {
        vec![$(Rule {
            name: $name, left: $left, right: $right, conditions: vec![$($($condition),+)?],
        }),*]
    };
}

/// Sums and products of reals: only the order of two operands. Everything else about them is
/// settled by the normal form before and after saturation.
#[rustfmt::skip]
pub fn commutation() -> Vec<Rule> { rules! {
    "add-commutes": "(+ ?a ?b)" => "(+ ?b ?a)";
    "mul-commutes": "(* ?a ?b)" => "(* ?b ?a)";
}}

/// Regrouping of sums and products of reals; used by the equivalence test only.
#[rustfmt::skip]
pub fn regrouping() -> Vec<Rule> { rules! {
    "add-associates": "(+ ?a (+ ?b ?c))" => "(+ (+ ?a ?b) ?c)";
    "mul-associates": "(* ?a (* ?b ?c))" => "(* (* ?a ?b) ?c)";
    "distribute":     "(* ?a (+ ?b ?c))" => "(+ (* ?a ?b) (* ?a ?c))";
    "collect":        "(+ (* ?a ?b) (* ?a ?c))" => "(* ?a (+ ?b ?c))";
}}

/// Minimum and maximum of reals.
#[rustfmt::skip]
pub fn extrema() -> Vec<Rule> { rules! {
    "min-commutes":    "(min ?a ?b)" => "(min ?b ?a)";
    "max-commutes":    "(max ?a ?b)" => "(max ?b ?a)";
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
    "eq-symmetric":  "(== ?a ?b)" => "(== ?b ?a)";
    "ne-symmetric":  "(!= ?a ?b)" => "(!= ?b ?a)";
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
    "and-commutes":   "(&& ?a ?b)" => "(&& ?b ?a)";
    "or-commutes":    "(|| ?a ?b)" => "(|| ?b ?a)";
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
    "log-of-power":   "(log (^ ?a ?b))" => "(* ?b (log ?a))" if Positive("?a");
    "log-of-exp":     "(log (exp ?a))" => "?a";
    "exp-of-log":     "(exp (log ?a))" => "?a" if Positive("?a");
    "min-of-logs":    "(min (log ?a) (log ?b))" => "(log (min ?a ?b))" if Positive("?a"), Positive("?b");
    "max-of-logs":    "(max (log ?a) (log ?b))" => "(log (max ?a ?b))" if Positive("?a"), Positive("?b");
    "select-of-logs": "(select ?c (log ?a) (log ?b))" => "(log (select ?c ?a ?b))" if Positive("?a"), Positive("?b");
    "min-of-powers":  "(min (^ ?a ?b) (^ ?a ?c))" => "(^ ?a (min ?b ?c))" if AtLeastOne("?a");
    "max-of-powers":  "(max (^ ?a ?b) (^ ?a ?c))" => "(^ ?a (max ?b ?c))" if AtLeastOne("?a");
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
    let groups = [basic(), regrouping(), quantities_at_least_one()];
    groups.into_iter().flatten().collect()
}

/// The groups that simplification always uses.
pub fn basic() -> Vec<Rule> {
    let groups = [
        commutation(),
        extrema(),
        floor_division(),
        comparisons(),
        booleans(),
        selection(),
        logarithms(),
    ];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Generator;
    use egg::{Language, RecExpr};
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
        let truth = |value: bool| f64::from(u8::from(value));
        match term {
            Term::Number(number) => number.to_f64(),
            Term::Leaf(_) => unreachable!("patterns hold no leaves"),
            Term::Add(_) => x[0] + x[1],
            Term::Mul(_) => x[0] * x[1],
            Term::Pow(_) => x[0].powf(x[1]),
            Term::FloorDiv(_) => (x[0] / x[1]).floor(),
            Term::FloorMod(_) => x[0] - (x[0] / x[1]).floor() * x[1],
            Term::Min(_) => x[0].min(x[1]),
            Term::Max(_) => x[0].max(x[1]),
            Term::Lt(_) => truth(x[0] < x[1]),
            Term::Le(_) => truth(x[0] <= x[1]),
            Term::Eq(_) => truth(x[0] == x[1]),
            Term::Ne(_) => truth(x[0] != x[1]),
            Term::And(_) => truth(x[0] != 0.0 && x[1] != 0.0),
            Term::Or(_) => truth(x[0] != 0.0 || x[1] != 0.0),
            Term::Not(_) => truth(x[0] == 0.0),
            Term::Select(_) => {
                if x[0] != 0.0 {
                    x[1]
                } else {
                    x[2]
                }
            }
            Term::Log(_) => x[0].ln(),
            Term::Exp(_) => x[0].exp(),
            Term::Floor(_) => x[0].floor(),
            Term::Ceil(_) => x[0].ceil(),
            Term::Abs(_) => x[0].abs(),
            Term::Sigmoid(_) => crate::facts::sigmoid(x[0]),
            Term::Hump(_) => crate::facts::hump(x[0]),
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
            let mut classes = Classes::new(Ranges::default());
            let mut leaves = BTreeMap::new();
            let mut text = rule.left.to_string();
            for (k, var) in rule.left.parse::<Pattern<Term>>().unwrap().vars().iter().enumerate() {
                let leaf = crate::language::Leaf(k as u32);
                leaves.insert(leaf, ());
                let facts = Facts::new(3.0, 1000.0, true);
                classes.analysis.leaves.insert(leaf, facts);
                text = text.replace(&var.to_string(), &leaf.to_string());
            }
            let start: RecExpr<Term> = text.parse().unwrap();
            let root = classes.add_expr(&start);
            classes.rebuild();
            let rewrite = rule.compile().unwrap();
            assert!(!rewrite.search(&classes).is_empty(), "rule {} never matches", rule.name);
            assert!(!classes[root].is_empty());
        }
    }
}
