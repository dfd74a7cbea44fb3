//! Equality saturation of single subterms ("islands") of a graph of normal forms.

use crate::graph::{Graph, Id, Node, Op};
use crate::language::{Classes, Leaf, Ranges, Rewrite, Term};
use crate::number::Number;
use crate::rules;
use egg::{CostFunction, Extractor, Language, RecExpr, Runner};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::time::Duration;

/// The nodes that an island opens have at most this many operands together; what lies below stays a
/// leaf.
const MAX_OPEN_OPERANDS: usize = 96;
/// Exponents up to this size are spelt as repeated products for the rules.
const MAX_UNROLLED_POWER: i64 = 3;

/// Limits of saturation, per island.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub iterations: usize,
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

fn compiled(groups: impl FnOnce() -> Vec<rules::Rule>) -> Vec<Rewrite> {
    let compile = |rule: &rules::Rule| rule.compile().expect("the rule table is well formed");
    groups().iter().map(compile).collect()
}

fn basic_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::basic))
}

fn at_least_one_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::quantities_at_least_one))
}

fn regrouping_rules() -> &'static [Rewrite] {
    static RULES: OnceLock<Vec<Rewrite>> = OnceLock::new();
    RULES.get_or_init(|| compiled(rules::regrouping))
}

/// Nodes worth saturating on their own: decisions, and sums or products where decisions meet, if
/// their user is neither and at least two decisions are inside. Larger ids come first.
pub fn find_islands(graph: &Graph, roots: &[Id]) -> Vec<Id> {
    let order = graph.reachable(roots);
    let candidates: HashSet<Id> = order
        .iter()
        .copied()
        .filter(|id| is_decision(graph, *id) || decisions_meet(graph, *id))
        .collect();
    let mut starts: HashSet<Id> = roots.iter().copied().collect();
    for id in order.iter().filter(|id| !candidates.contains(id)) {
        starts.extend(graph.children(*id));
    }
    let mut covered: HashSet<Id> = HashSet::new();
    let mut islands = Vec::new();
    for id in order.into_iter().rev().filter(|id| candidates.contains(id)) {
        if covered.contains(&id) && !starts.contains(&id) {
            continue;
        }
        let open = open_nodes(graph, id);
        if open.iter().filter(|inner| is_decision(graph, **inner)).count() >= 2 {
            islands.push(id);
            covered.extend(open);
        }
    }
    islands
}

/// Step, bump and plain arithmetic have no rules between each other.
fn is_decision(graph: &Graph, id: Id) -> bool {
    match graph.node(id) {
        Node::Apply(op, _) => !matches!(op, Op::Sigmoid | Op::Hump | Op::PlainAdd | Op::PlainMul),
        _ => false,
    }
}

/// Whether a sum or product has two decisions as terms, or as factors of terms. Logarithms do not
/// count: the normal form already merges those.
fn decisions_meet(graph: &Graph, id: Id) -> bool {
    if !matches!(graph.node(id), Node::Sum(..) | Node::Product(_)) {
        return false;
    }
    let counts =
        |id: Id| is_decision(graph, id) && !matches!(graph.node(id), Node::Apply(Op::Log, _));
    let mut met: HashSet<Id> = HashSet::new();
    for child in graph.children(id) {
        match graph.node(child) {
            Node::Product(_) => {
                met.extend(graph.children(child).into_iter().filter(|c| counts(*c)))
            }
            _ if counts(child) => {
                met.insert(child);
            }
            _ => {}
        }
    }
    met.len() >= 2
}

fn open_nodes(graph: &Graph, root: Id) -> HashSet<Id> {
    let mut open = HashSet::new();
    let mut operands = 0;
    let mut queue = std::collections::VecDeque::from([root]);
    while let Some(id) = queue.pop_front() {
        let children = graph.children(id);
        // The root is opened whatever its size.
        let fits = id == root || operands + children.len() <= MAX_OPEN_OPERANDS;
        if !children.is_empty() && fits && open.insert(id) {
            operands += children.len();
            queue.extend(children);
        }
    }
    open
}

/// Spells graph nodes as terms.
struct Speller<'a> {
    graph: &'a Graph,
    open: HashSet<Id>,
    expr: RecExpr<Term>,
    spelt: HashMap<Id, egg::Id>,
    leaves: HashMap<Leaf, crate::facts::Facts>,
}

impl Speller<'_> {
    fn new(graph: &Graph, open: HashSet<Id>) -> Speller<'_> {
        Speller {
            graph,
            open,
            expr: RecExpr::default(),
            spelt: HashMap::new(),
            leaves: HashMap::new(),
        }
    }

    fn number(&mut self, number: Number) -> egg::Id {
        self.expr.add(Term::Number(number))
    }

    fn leaf(&mut self, id: Id) -> egg::Id {
        let leaf = Leaf(id.0);
        self.leaves.insert(leaf, self.graph.facts(id));
        self.expr.add(Term::Leaf(leaf))
    }

    fn spell(&mut self, id: Id) -> egg::Id {
        if let Some(known) = self.spelt.get(&id) {
            return *known;
        }
        let term = match self.graph.node(id) {
            Node::Number(number) => self.number(*number),
            _ if !self.open.contains(&id) => self.leaf(id),
            Node::Var(_) | Node::Euler => self.leaf(id),
            Node::Sum(constant, terms) => {
                let mut sum = (!constant.is_zero()).then(|| self.number(*constant));
                for (term, coefficient) in terms {
                    let mut part = self.spell(*term);
                    if !coefficient.is_one() {
                        let factor = self.number(*coefficient);
                        part = self.expr.add(Term::Mul([factor, part]));
                    }
                    sum = Some(match sum {
                        Some(sum) => self.expr.add(Term::Add([sum, part])),
                        None => part,
                    });
                }
                sum.expect("a sum has terms")
            }
            Node::Product(factors) => {
                let mut product = None;
                for (base, exponent) in factors {
                    let power = self.spell_power(*base, *exponent);
                    product = Some(match product {
                        Some(product) => self.expr.add(Term::Mul([product, power])),
                        None => power,
                    });
                }
                product.expect("a product has factors")
            }
            Node::Apply(op, args) => {
                let args: Vec<egg::Id> = args.iter().map(|arg| self.spell(*arg)).collect();
                self.spell_operation(*op, &args)
            }
        };
        self.spelt.insert(id, term);
        term
    }

    fn spell_power(&mut self, base: Id, exponent: Id) -> egg::Id {
        if let Node::Euler = self.graph.node(base) {
            let exponent = self.spell(exponent);
            return self.expr.add(Term::Exp(exponent));
        }
        let spelt = self.spell(base);
        match self.graph.as_integer(exponent) {
            Some(power) if (1..=MAX_UNROLLED_POWER).contains(&power) => {
                (1..power).fold(spelt, |product, _| self.expr.add(Term::Mul([product, spelt])))
            }
            _ => {
                let exponent = self.spell(exponent);
                self.expr.add(Term::Pow([spelt, exponent]))
            }
        }
    }

    fn spell_operation(&mut self, op: Op, args: &[egg::Id]) -> egg::Id {
        let pair = |make: fn([egg::Id; 2]) -> Term, expr: &mut RecExpr<Term>| {
            args[1..].iter().fold(args[0], |a, b| expr.add(make([a, *b])))
        };
        let expr = &mut self.expr;
        match op {
            Op::Min => pair(Term::Min, expr),
            Op::Max => pair(Term::Max, expr),
            Op::And => pair(Term::And, expr),
            Op::Or => pair(Term::Or, expr),
            Op::Lt => pair(Term::Lt, expr),
            Op::Le => pair(Term::Le, expr),
            Op::Eq => pair(Term::Eq, expr),
            Op::Ne => pair(Term::Ne, expr),
            Op::FloorDiv => pair(Term::FloorDiv, expr),
            Op::FloorMod => pair(Term::FloorMod, expr),
            Op::Pow => pair(Term::Pow, expr),
            Op::PlainAdd => pair(Term::Add, expr),
            Op::PlainMul => pair(Term::Mul, expr),
            Op::Select => expr.add(Term::Select([args[0], args[1], args[2]])),
            Op::Not => expr.add(Term::Not(args[0])),
            Op::Floor => expr.add(Term::Floor(args[0])),
            Op::Ceil => expr.add(Term::Ceil(args[0])),
            Op::Log => expr.add(Term::Log(args[0])),
            Op::Abs => expr.add(Term::Abs(args[0])),
            Op::Sigmoid => expr.add(Term::Sigmoid(args[0])),
            Op::Hump => expr.add(Term::Hump(args[0])),
        }
    }
}

/// Cost of evaluating a term, shared parts counted each time. Saturating, hence monotone.
struct EvaluationCost;

impl CostFunction<Term> for EvaluationCost {
    type Cost = u64;

    fn cost<C: FnMut(egg::Id) -> u64>(&mut self, term: &Term, mut costs: C) -> u64 {
        let own: u64 = match term {
            Term::Number(_) | Term::Leaf(_) => 1,
            Term::FloorDiv(_) | Term::FloorMod(_) => 8,
            Term::Sigmoid(_) | Term::Hump(_) => 8,
            Term::Log(_) | Term::Exp(_) => 16,
            Term::Pow(_) => 20,
            _ => 2,
        };
        term.fold(own, |sum, child| sum.saturating_add(costs(child)))
    }
}

fn run(classes: Classes, limits: Limits, regroup: bool) -> Runner<Term, Ranges> {
    let mut rules: Vec<&Rewrite> = basic_rules().iter().collect();
    if limits.at_least_one {
        rules.extend(at_least_one_rules());
    }
    if regroup {
        rules.extend(regrouping_rules());
    }
    // Counts bound the work; a clock would make results depend on the machine.
    Runner::new(Ranges::default())
        .with_egraph(classes)
        .with_iter_limit(limits.iterations)
        .with_node_limit(limits.nodes)
        .with_time_limit(Duration::MAX)
        .run(rules)
}

fn stop_reason(runner: &Runner<Term, Ranges>) -> StopReason {
    match runner.stop_reason {
        Some(egg::StopReason::IterationLimit(_)) => StopReason::IterationLimit,
        Some(egg::StopReason::NodeLimit(_)) => StopReason::NodeLimit,
        _ => StopReason::Saturated,
    }
}

/// The cheapest term found equal to the island at `root`.
pub fn saturate(graph: &Graph, root: Id, limits: Limits) -> (RecExpr<Term>, StopReason) {
    let mut speller = Speller::new(graph, open_nodes(graph, root));
    speller.spell(root);
    let mut classes = Classes::new(Ranges { leaves: speller.leaves });
    let start = classes.add_expr(&speller.expr);
    classes.rebuild();
    let runner = run(classes, limits, false);
    let (_, best) = Extractor::new(&runner.egraph, EvaluationCost).find_best(start);
    (best, stop_reason(&runner))
}

/// Whether saturation puts two nodes of the graph into one class.
pub fn are_equal(graph: &Graph, a: Id, b: Id, limits: Limits) -> bool {
    let mut open = open_nodes(graph, a);
    open.extend(open_nodes(graph, b));
    let mut speller = Speller::new(graph, open);
    let (left, right) = (speller.spell(a), speller.spell(b));
    let mut classes = Classes::new(Ranges { leaves: speller.leaves });
    let added: Vec<egg::Id> = speller.expr.as_ref().iter().fold(Vec::new(), |mut ids, term| {
        let term = term.clone().map_children(|child| ids[usize::from(child)]);
        ids.push(classes.add(term));
        ids
    });
    classes.rebuild();
    let runner = run(classes, limits, true);
    let [left, right] = [left, right].map(|id| runner.egraph.find(added[usize::from(id)]));
    left == right
}

/// Bring an extracted term back to normal form.
pub fn read_term(graph: &mut Graph, expr: &RecExpr<Term>) -> Id {
    let mut ids: Vec<Id> = Vec::new();
    for term in expr.as_ref() {
        let args: Vec<Id> = term.children().iter().map(|child| ids[usize::from(*child)]).collect();
        let id = match term {
            Term::Number(number) => graph.number(*number),
            Term::Leaf(leaf) => Id(leaf.0),
            Term::Add(_) => graph.add(args[0], args[1]),
            Term::Mul(_) => graph.mul(args[0], args[1]),
            Term::Exp(_) => graph.exp(args[0]),
            Term::Pow(_) => graph.pow(args[0], args[1]),
            Term::FloorDiv(_) => graph.floor_div(args[0], args[1]),
            Term::FloorMod(_) => graph.floor_mod(args[0], args[1]),
            Term::Min(_) => graph.min(args[0], args[1]),
            Term::Max(_) => graph.max(args[0], args[1]),
            Term::Lt(_) => graph.lt(args[0], args[1]),
            Term::Le(_) => graph.le(args[0], args[1]),
            Term::Eq(_) => graph.eq(args[0], args[1]),
            Term::Ne(_) => graph.ne(args[0], args[1]),
            Term::And(_) => graph.and(args[0], args[1]),
            Term::Or(_) => graph.or(args[0], args[1]),
            Term::Not(_) => graph.not(args[0]),
            Term::Select(_) => graph.select(args[0], args[1], args[2]),
            Term::Log(_) => graph.log(args[0]),
            Term::Floor(_) => graph.floor(args[0]),
            Term::Ceil(_) => graph.ceil(args[0]),
            Term::Abs(_) => graph.abs(args[0]),
            Term::Sigmoid(_) => graph.sigmoid(args[0]),
            Term::Hump(_) => graph.hump(args[0]),
        };
        ids.push(id);
    }
    *ids.last().expect("an extracted term is not empty")
}
