//! Equality saturation of a whole tape: one e-graph over all its roots.

use crate::extract::{extract, Spelling};
use crate::language::{Classes, Ranges, Rewrite, Term};
use crate::linear::add_linear_facts;
use crate::number::Number;
use crate::rules;
use crate::tape::{Tape, TapeOp, Variable};
use egg::{Id, Runner};
use std::sync::OnceLock;
use std::time::Duration;

/// Limits of saturation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub iterations: usize,
    /// Of the e-graph.
    pub nodes: usize,
    /// Also use the rules for quantities that are never below 1, where that is proven.
    pub at_least_one: bool,
}

/// Why saturation ended; the larger of two reasons is the one to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopReason {
    Saturated = 0,
    IterationLimit = 1,
    NodeLimit = 2,
}

/// How saturation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub reason: StopReason,
    /// Of the e-graph, at its largest.
    pub nodes: usize,
}

impl Report {
    pub const NOTHING_TO_DO: Report = Report { reason: StopReason::Saturated, nodes: 0 };

    pub fn and(self, other: Report) -> Report {
        Report { reason: self.reason.max(other.reason), nodes: self.nodes.max(other.nodes) }
    }
}

fn compiled(groups: impl FnOnce() -> Vec<rules::Rule>) -> Vec<Rewrite> {
    let compile = |rule: rules::Rule| rule.compile().expect("the rule table is well formed");
    groups().into_iter().flat_map(compile).collect()
}

fn basic_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::basic))
}

fn at_least_one_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::quantities_at_least_one))
}

fn cheaper_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::cheaper_spellings))
}

fn regrouping_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::regrouping))
}

/// Add the entries of a tape to the e-graph; the class of each.
pub(crate) fn load(classes: &mut Classes, tape: &Tape) -> Vec<Id> {
    let mut ids: Vec<Id> = Vec::with_capacity(tape.entries.len());
    for entry in &tape.entries {
        let real =
            |value: f64| Term::number(Number::from_f64(value).expect("constants are finite"));
        let term = match entry.op {
            TapeOp::IntConst => Term::number(Number::int(entry.payload)),
            TapeOp::RealConst => real(f64::from_bits(entry.payload as u64)),
            TapeOp::Var => Term::var(entry.payload as u32),
            op => {
                let args: Vec<Id> =
                    entry.args[..op.arity()].iter().map(|arg| ids[*arg as usize]).collect();
                Term::op(op, &args)
            }
        };
        ids.push(classes.add(term));
    }
    ids
}

fn run(classes: Classes, limits: Limits, more: &'static [Rewrite]) -> (Classes, Report) {
    let mut rules: Vec<&Rewrite> = basic_rules().iter().chain(more).collect();
    if limits.at_least_one {
        rules.extend(at_least_one_rules());
    }
    // Counts bound the work; a clock would make results depend on the machine.
    let runner: Runner<Term, Ranges> = Runner::new(Ranges::default())
        .with_egraph(classes)
        .with_iter_limit(limits.iterations)
        .with_node_limit(limits.nodes)
        .with_time_limit(Duration::MAX)
        .run(rules);
    let reason = match runner.stop_reason {
        Some(egg::StopReason::IterationLimit(_)) => StopReason::IterationLimit,
        Some(egg::StopReason::NodeLimit(_)) => StopReason::NodeLimit,
        _ => StopReason::Saturated,
    };
    let nodes = runner.egraph.total_number_of_nodes();
    (runner.egraph, Report { reason, nodes })
}

/// The cheapest tape found for the roots of a tape in normal form. The e-graph also holds the tape
/// that it came from; `places` are the entries of the one that have the value of those of the other.
pub fn saturate(
    normal: &Tape,
    plain: &Tape,
    places: &[Option<i32>],
    variables: &[Variable],
    limits: Limits,
) -> (Tape, Report) {
    let mut classes = Classes::new(Ranges { variables: variables.to_vec() });
    let ids = load(&mut classes, normal);
    let plain_ids = load(&mut classes, plain);
    for (id, place) in plain_ids.iter().zip(places) {
        if let Some(place) = place {
            classes.union(*id, ids[*place as usize]);
        }
    }
    classes.rebuild();
    let spellings: [Spelling; 2] = [(normal, &ids), (plain, &plain_ids)];
    add_linear_facts(&mut classes, &spellings);
    let (classes, report) = run(classes, limits, cheaper_rules());
    let roots: Vec<Id> =
        normal.roots.iter().map(|root| classes.find(ids[*root as usize])).collect();
    (extract(&classes, &roots, spellings[0]), report)
}

/// Whether saturation puts the two roots of a tape into one class.
pub fn are_equal(tape: &Tape, variables: &[Variable], limits: Limits) -> bool {
    let mut classes = Classes::new(Ranges { variables: variables.to_vec() });
    let ids = load(&mut classes, tape);
    classes.rebuild();
    let (classes, _) = run(classes, limits, regrouping_rules());
    let [left, right] = [0, 1].map(|k| classes.find(ids[tape.roots[k] as usize]));
    left == right
}
