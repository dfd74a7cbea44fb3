//! The whole way: tape, normal form, saturation, tape.

use crate::convert::read_tape;
use crate::graph::{Expand, Graph};
use crate::saturate::{are_equal, saturate, Limits, Report};
use crate::tape::{Tape, Variable};
use crate::write::write_tape;

/// Saturation can open new simplifications of the normal form and the other way round.
const MAX_ROUNDS: usize = 2;

/// A tape whose roots have the values of the given one, at no more cost, and how the search went.
pub fn simplify_tape(
    tape: &Tape,
    variables: &[Variable],
    limits: Limits,
) -> Result<(Tape, Report), String> {
    check_variables(variables)?;
    let mut report = Report::NOTHING_TO_DO;
    let mut best = tape.compact();
    for round in 0..MAX_ROUNDS {
        let before = best.cost();
        let mut graph = Graph::new(variables.to_vec(), Expand::WhenCheaper);
        let roots = read_tape(&mut graph, &best)?;
        let mut candidates = vec![write_tape(&graph, &roots)];
        if limits.iterations > 0 {
            let (cheapest, round_report) = saturate(&candidates[0], variables, limits);
            report = report.and(round_report);
            candidates.push(cheapest.compact());
        }
        // The normal form is not always the cheapest spelling of a tape that was cheap already.
        for candidate in candidates {
            if candidate.cost() < best.cost() || (round == 0 && candidate.cost() == best.cost()) {
                best = candidate;
            }
        }
        if limits.iterations == 0 || best.cost() >= before {
            break;
        }
    }
    Ok((best, report))
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
    Ok(limits.iterations > 0 && are_equal(&write_tape(&graph, &roots), variables, limits))
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
