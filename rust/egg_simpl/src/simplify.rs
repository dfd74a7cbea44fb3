//! The whole way: tape, normal form, saturation of what is left, tape.

use crate::convert::read_tape;
use crate::graph::{Expand, Graph, Id};
use crate::saturate::{are_equal, find_islands, read_term, saturate, Limits, StopReason};
use crate::tape::{Tape, Variable};
use crate::write::write_tape;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Saturation can open new simplifications of the normal form and the other way round; two rounds
/// settle nearly everything, and the bound keeps the work predictable.
const MAX_ROUNDS: usize = 3;

/// Saturating an island takes about a millisecond. Those nearest to the roots, which come first, see
/// most of what lies below them; a tape with more than these is left in normal form elsewhere.
const MAX_ISLANDS: usize = 128;

/// A tape whose roots have the values of the given one, and why the search for it ended.
pub fn simplify_tape(
    tape: &Tape,
    variables: &[Variable],
    limits: Limits,
) -> Result<(Tape, StopReason), String> {
    check_variables(variables)?;
    let mut graph = Graph::new(variables.to_vec(), Expand::WhenCheaper);
    let mut roots = read_tape(&mut graph, tape)?;
    let mut reason = StopReason::Saturated;
    if limits.iterations > 0 {
        let mut done = HashSet::new();
        for _ in 0..MAX_ROUNDS {
            let (better, round_reason) = saturate_islands(&mut graph, &roots, limits, &mut done);
            reason = reason.max(round_reason);
            if better.is_empty() {
                break;
            }
            roots = graph.replace(&roots, &better);
        }
    }
    let simplified = write_tape(&graph, &roots);
    let plain = tape.compact();
    // The normal form is not always the cheapest spelling of a tape that was cheap already.
    let result = if simplified.cost() <= plain.cost() { simplified } else { plain };
    Ok((result, reason))
}

/// Cheaper equals of subterms. Islands are independent, and each result depends on its island
/// alone, so running them in parallel does not change the outcome.
fn saturate_islands(
    graph: &mut Graph,
    roots: &[Id],
    limits: Limits,
    done: &mut HashSet<Id>,
) -> (HashMap<Id, Id>, StopReason) {
    let mut islands = find_islands(graph, roots);
    islands.retain(|id| !done.contains(id));
    let mut reason =
        if islands.len() > MAX_ISLANDS { StopReason::NodeLimit } else { StopReason::Saturated };
    islands.truncate(MAX_ISLANDS);
    done.extend(&islands);
    let view: &Graph = graph;
    let terms: Vec<_> = islands.par_iter().map(|id| saturate(view, *id, limits)).collect();
    let mut better = HashMap::new();
    for (id, (term, stopped)) in islands.into_iter().zip(terms) {
        reason = reason.max(stopped);
        let new = read_term(graph, &term);
        if new != id && is_cheaper(graph, new, id) {
            better.insert(id, new);
        }
    }
    (better, reason)
}

/// Whether `new` needs less than `old` beyond what both need.
fn is_cheaper(graph: &Graph, new: Id, old: Id) -> bool {
    let (in_new, in_old) = (graph.reachable(&[new]), graph.reachable(&[old]));
    let cost_beyond = |of: &[Id], other: &[Id]| -> u64 {
        let beyond = of.iter().filter(|id| other.binary_search(id).is_err());
        beyond.map(|id| graph.own_cost(*id)).sum()
    };
    cost_beyond(&in_new, &in_old) < cost_beyond(&in_old, &in_new)
}

/// Whether the two roots of a tape are provably equal for all values of the variables.
pub fn roots_are_equivalent(
    tape: &Tape,
    variables: &[Variable],
    limits: Limits,
) -> Result<bool, String> {
    check_variables(variables)?;
    let mut graph = Graph::new(variables.to_vec(), Expand::Always);
    let roots = read_tape(&mut graph, tape)?;
    let [a, b] = roots[..] else {
        return Err(format!("an equivalence test takes two roots, got {}", roots.len()));
    };
    let difference = graph.sub(a, b);
    if graph.facts(difference).constant().is_some_and(|number| number.is_zero()) {
        return Ok(true);
    }
    // Values that never meet need no search.
    if graph.facts(difference).is_nonzero() {
        return Ok(false);
    }
    Ok(limits.iterations > 0 && are_equal(&graph, a, b, limits))
}

fn check_variables(variables: &[Variable]) -> Result<(), String> {
    for (i, variable) in variables.iter().enumerate() {
        if variable.lower.is_nan() || variable.upper.is_nan() || variable.lower > variable.upper {
            return Err(format!(
                "variable {i}: the range [{}, {}] is empty",
                variable.lower, variable.upper
            ));
        }
    }
    Ok(())
}
