//! Extraction by the cost of evaluating all roots together, shared parts counted once.
//!
//! The cheapest choice of a node for every class is a hard problem. This one starts with the nodes
//! that are cheapest when each class counts its own parts once, and improves one class at a time by
//! the exact change of the total, as technology mapping recovers area in logic synthesis.

use crate::language::{Classes, Head, Term};
use crate::tape::Tape;
use egg::{Id, Language};
use std::collections::HashMap;

/// Improvement ends with a pass that changes nothing, or after this many.
const MAX_PASSES: usize = 6;
/// Between improvements, what is not in use is chosen anew, given what is.
const ROUNDS: usize = 2;

/// A tape in the e-graph: its entries and their classes.
pub type Spelling<'a> = (&'a Tape, &'a [Id]);

/// The cheapest tape found for the classes `roots`. The search starts from the given spelling and from
/// the cheapest parts, since what it ends with depends on where it starts.
pub fn extract(classes: &Classes, roots: &[Id], spelling: Spelling) -> Tape {
    let mut extractor = Extractor::new(classes);
    extractor.choose_by_parts();
    let by_parts = extractor.choice.clone();
    let starts = [Some(spelling), None].into_iter();
    let found = starts.map(|spelling| {
        extractor.choice.clone_from(&by_parts);
        extractor.uses.fill(0);
        if let Some((tape, ids)) = spelling {
            extractor.choose_as_spelt(classes, tape, ids);
        }
        extractor.take_roots(roots);
        for _ in 0..ROUNDS {
            extractor.choose_by_parts();
            if !extractor.improve(roots) {
                break;
            }
        }
        extractor.write(roots)
    });
    found.min_by_key(Tape::cost).expect("there is a start at least")
}

struct Node {
    head: Head,
    cost: u64,
    args: Vec<usize>,
}

struct Extractor {
    index: HashMap<Id, usize>,
    nodes: Vec<Vec<Node>>,
    choice: Vec<Option<usize>>,
    /// Users among the chosen nodes that some root needs.
    uses: Vec<u32>,
}

/// Classes as bits, and their total cost.
#[derive(Clone, Default)]
struct Parts {
    bits: Vec<u64>,
    cost: u64,
}

impl Extractor {
    fn new(classes: &Classes) -> Extractor {
        let mut ids: Vec<Id> = classes.classes().map(|class| class.id).collect();
        ids.sort_unstable();
        let index: HashMap<Id, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let node = |term: &Term| {
            let mut args: Vec<usize> =
                term.children().iter().map(|id| index[&classes.find(*id)]).collect();
            if term.commutes() {
                args[..2].sort_unstable();
            }
            Node { head: term.head, cost: term.cost(), args }
        };
        let nodes: Vec<Vec<Node>> =
            ids.iter().map(|id| classes[*id].nodes.iter().map(node).collect()).collect();
        let size = nodes.len();
        Extractor { index, nodes, choice: vec![None; size], uses: vec![0; size] }
    }

    /// For every class that is not in use the node whose parts, each counted once, cost least; what
    /// is in use costs nothing more. Chosen nodes in use need only others in use, so no class ends up
    /// needing itself.
    fn choose_by_parts(&mut self) {
        let size = self.nodes.len();
        let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); size];
        let mut queue = std::collections::VecDeque::new();
        for (class, nodes) in self.nodes.iter().enumerate() {
            for (k, node) in nodes.iter().enumerate() {
                for arg in &node.args {
                    users[*arg].push((class, k));
                }
                if node.args.is_empty() {
                    queue.push_back((class, k));
                }
            }
        }
        let mut parts: Vec<Option<Parts>> = vec![None; size];
        // What each class adds to the cost of whoever needs it.
        let mut prices: Vec<u64> = (0..size)
            .map(|class| match self.choice[class] {
                Some(k) if self.uses[class] == 0 => self.nodes[class][k].cost,
                _ => 0,
            })
            .collect();
        // What waits already need not wait twice.
        let mut waits: Vec<Vec<bool>> = self.nodes.iter().map(|n| vec![false; n.len()]).collect();
        while let Some((class, k)) = queue.pop_front() {
            waits[class][k] = false;
            let node = &self.nodes[class][k];
            let Some(found) = self.parts_of(class, node, &parts, &prices) else { continue };
            if parts[class].as_ref().is_some_and(|known| known.cost <= found.cost) {
                continue;
            }
            parts[class] = Some(found);
            if self.uses[class] == 0 {
                self.choice[class] = Some(k);
                prices[class] = node.cost;
            }
            for (user, k) in &users[class] {
                if !std::mem::replace(&mut waits[*user][*k], true) {
                    queue.push_back((*user, *k));
                }
            }
        }
    }

    /// For every class of a tape's entries the first of them. Each needs earlier ones only, so no
    /// class ends up needing itself.
    fn choose_as_spelt(&mut self, classes: &Classes, tape: &Tape, ids: &[Id]) {
        let place = |id: Id| self.index[&classes.find(id)];
        let mut chosen = vec![false; self.nodes.len()];
        let mut choices = Vec::new();
        for (entry, id) in tape.entries.iter().zip(ids) {
            let class = place(*id);
            let mut args: Vec<usize> = entry.args[..entry.op.arity()]
                .iter()
                .map(|arg| place(ids[*arg as usize]))
                .collect();
            if entry.op.commutes() {
                args[..2].sort_unstable();
            }
            let same = |node: &Node| node.head == Head::Op(entry.op) && node.args == args;
            if !std::mem::replace(&mut chosen[class], true) {
                choices.extend(self.nodes[class].iter().position(same).map(|k| (class, k)));
            }
        }
        for (class, k) in choices {
            self.choice[class] = Some(k);
        }
    }

    /// None where an operand has no choice yet, or needs the class itself.
    fn parts_of(
        &self,
        class: usize,
        node: &Node,
        parts: &[Option<Parts>],
        prices: &[u64],
    ) -> Option<Parts> {
        let mut out = Parts { bits: vec![0; self.nodes.len().div_ceil(64)], cost: 0 };
        for arg in &node.args {
            for (word, more) in out.bits.iter_mut().zip(&parts[*arg].as_ref()?.bits) {
                *word |= more;
            }
        }
        if out.bits[class / 64] >> (class % 64) & 1 == 1 {
            return None;
        }
        out.cost = if self.uses[class] > 0 { 0 } else { node.cost };
        for (i, word) in out.bits.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                out.cost += prices[i * 64 + rest.trailing_zeros() as usize];
                rest &= rest - 1;
            }
        }
        out.bits[class / 64] |= 1 << (class % 64);
        Some(out)
    }

    fn chosen(&self, class: usize) -> &Node {
        &self.nodes[class][self.choice[class].expect("every class has a finite term")]
    }

    /// Count a use of each class; the cost of what was not needed before.
    fn take(&mut self, classes: &[usize]) -> u64 {
        let mut cost = 0;
        let mut stack = classes.to_vec();
        while let Some(class) = stack.pop() {
            self.uses[class] += 1;
            if self.uses[class] == 1 {
                cost += self.chosen(class).cost;
                stack.extend(self.chosen(class).args.clone());
            }
        }
        cost
    }

    /// Take back a use of each class; the cost of what is not needed any more.
    fn release(&mut self, classes: &[usize]) -> u64 {
        let mut cost = 0;
        let mut stack = classes.to_vec();
        while let Some(class) = stack.pop() {
            self.uses[class] -= 1;
            if self.uses[class] == 0 {
                cost += self.chosen(class).cost;
                stack.extend(self.chosen(class).args.clone());
            }
        }
        cost
    }

    /// Whether the chosen terms of `from` need `class`.
    fn needs(&self, from: &[usize], class: usize, seen: &mut [u32], mark: u32) -> bool {
        let mut stack = from.to_vec();
        while let Some(next) = stack.pop() {
            if next == class {
                return true;
            }
            if seen[next] != mark {
                seen[next] = mark;
                stack.extend(&self.chosen(next).args);
            }
        }
        false
    }

    fn take_roots(&mut self, roots: &[Id]) {
        let roots: Vec<usize> = roots.iter().map(|root| self.index[root]).collect();
        self.take(&roots);
    }

    /// Whether anything changed.
    fn improve(&mut self, roots: &[Id]) -> bool {
        let roots: Vec<usize> = roots.iter().map(|root| self.index[root]).collect();
        let mut improved = false;
        let mut seen = vec![0; self.nodes.len()];
        let mut mark = 0;
        for _ in 0..MAX_PASSES {
            let mut changed = false;
            for class in self.needed(&roots) {
                if self.uses[class] == 0 || self.nodes[class].len() < 2 {
                    continue;
                }
                let old = self.choice[class];
                let args = self.chosen(class).args.clone();
                let mut best = (self.chosen(class).cost + self.release(&args), old);
                for k in 0..self.nodes[class].len() {
                    let args = self.nodes[class][k].args.clone();
                    mark += 1;
                    let usable = args.iter().all(|arg| self.choice[*arg].is_some());
                    if Some(k) == old || !usable || self.needs(&args, class, &mut seen, mark) {
                        continue;
                    }
                    let cost = self.nodes[class][k].cost + self.take(&args);
                    self.release(&args);
                    if cost < best.0 {
                        best = (cost, Some(k));
                    }
                }
                changed |= best.1 != old;
                self.choice[class] = best.1;
                let args = self.chosen(class).args.clone();
                self.take(&args);
            }
            improved |= changed;
            if !changed {
                break;
            }
        }
        improved
    }

    /// Chosen classes that the roots need, operands first.
    fn needed(&self, roots: &[usize]) -> Vec<usize> {
        let mut order = Vec::new();
        let mut state = vec![false; self.nodes.len()];
        let mut stack: Vec<(usize, usize)> = Vec::new();
        for root in roots {
            if !state[*root] {
                state[*root] = true;
                stack.push((*root, 0));
            }
            while let Some((class, next)) = stack.pop() {
                match self.chosen(class).args.get(next) {
                    Some(arg) => {
                        stack.push((class, next + 1));
                        if !state[*arg] {
                            state[*arg] = true;
                            stack.push((*arg, 0));
                        }
                    }
                    None => order.push(class),
                }
            }
        }
        order
    }

    fn write(&self, roots: &[Id]) -> Tape {
        let roots: Vec<usize> = roots.iter().map(|root| self.index[root]).collect();
        let mut tape = Tape::default();
        let mut entries: HashMap<usize, i32> = HashMap::new();
        for class in self.needed(&roots) {
            let node = self.chosen(class);
            let mut args: Vec<i32> = node.args.iter().map(|arg| entries[arg]).collect();
            // Constants lead, as in the normal form.
            if matches!(node.head, Head::Op(op) if op.commutes())
                && matches!(self.chosen(node.args[1]).head, Head::Number(_))
            {
                args.swap(0, 1);
            }
            let entry = match node.head {
                Head::Number(number) => tape.push_number(number),
                Head::Var(index) => tape.push(crate::tape::TapeOp::Var, &[], i64::from(index)),
                Head::Op(op) => tape.push(op, &args, 0),
            };
            entries.insert(class, entry);
        }
        tape.roots = roots.iter().map(|root| entries[root]).collect();
        tape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Ranges;
    use crate::tape::{TapeOp, Variable};

    /// exp(x), exp(y) and exp(x + y), where the last is also the product of the others.
    fn exponentials(roots: usize) -> (Classes, Tape, Vec<Id>, Vec<Id>) {
        let mut tape = Tape::default();
        let x = tape.push(TapeOp::Var, &[], 0);
        let y = tape.push(TapeOp::Var, &[], 1);
        let sum = tape.push(TapeOp::Add, &[x, y], 0);
        for arg in [sum, x, y] {
            tape.push(TapeOp::Exp, &[arg], 0);
        }
        let variable = Variable { lower: 0.0, upper: 4.0, is_integer: false };
        let mut classes = Classes::new(Ranges { variables: vec![variable; 2] });
        let ids = crate::saturate::load(&mut classes, &tape);
        let product = classes.add(Term::op(TapeOp::Mul, &[ids[4], ids[5]]));
        classes.union(ids[3], product);
        classes.rebuild();
        let roots = ids[3..3 + roots].iter().map(|id| classes.find(*id)).collect();
        (classes, tape, ids, roots)
    }

    fn count(tape: &Tape, op: TapeOp) -> usize {
        tape.entries.iter().filter(|entry| entry.op == op).count()
    }

    #[test]
    fn what_other_roots_need_costs_nothing_more() {
        let (classes, tape, ids, roots) = exponentials(3);
        let best = extract(&classes, &roots, (&tape, &ids));
        assert_eq!((count(&best, TapeOp::Exp), count(&best, TapeOp::Mul)), (2, 1));
    }

    #[test]
    fn a_root_on_its_own_takes_the_cheapest_way() {
        let (classes, tape, ids, roots) = exponentials(1);
        let best = extract(&classes, &roots, (&tape, &ids));
        assert_eq!((count(&best, TapeOp::Exp), count(&best, TapeOp::Add)), (1, 1));
    }

    #[test]
    fn a_class_never_needs_itself() {
        let (mut classes, tape, ids, _) = exponentials(3);
        // exp(x) = exp(x + y) / exp(y), and the product the other way round: a circle.
        let quotient = classes.add(Term::op(TapeOp::Div, &[ids[3], ids[5]]));
        classes.union(ids[4], quotient);
        classes.rebuild();
        let roots: Vec<Id> = ids[3..5].iter().map(|id| classes.find(*id)).collect();
        let best = extract(&classes, &roots, (&tape, &ids));
        assert!(count(&best, TapeOp::Exp) == 2 && best.compact().entries.len() <= 6);
    }
}
