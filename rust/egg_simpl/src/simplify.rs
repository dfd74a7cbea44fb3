//! The whole way: tape, normal form, saturation, tape.

use crate::convert::{read_entries, read_tape};
use crate::graph::{Expand, Graph, Id};
use crate::saturate::{are_equal, saturate, Limits, Report};
use crate::tape::{Tape, Variable};
use crate::write::{write_entries, write_tape};

/// A tape whose roots have the values of the given one, at no more cost, and how the search went.
pub fn simplify_tape(
    tape: &Tape,
    variables: &[Variable],
    limits: Limits,
) -> Result<(Tape, Report), String> {
    check_variables(variables)?;
    let plain = tape.compact();
    let mut graph = Graph::new(variables.to_vec(), Expand::WhenCheaper);
    let values = read_entries(&mut graph, &plain)?;
    let roots: Vec<Id> = plain.roots.iter().map(|root| values[*root as usize]).collect();
    let (written, places) = write_entries(&graph, &roots);
    let normal = written.compact();
    // The normal form is not always the cheapest spelling of a tape that was cheap already; of
    // equally cheap ones it is the one to prefer.
    let mut report = Report::NOTHING_TO_DO;
    let mut found = None;
    if limits.iterations > 0 {
        let places: Vec<Option<i32>> = values.iter().map(|id| places.get(id).copied()).collect();
        let (cheapest, outcome) = saturate(&written, &plain, &places, variables, limits);
        report = outcome;
        found = Some(cheapest.compact());
    }
    let spellings = [Some(normal), Some(plain), found].into_iter().flatten();
    let best = spellings.min_by_key(Tape::cost).expect("there are two at least");
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
