//! Simplifies scalar expression tapes.
//!
//! A tape is read into a graph of normal forms: polynomials over monomials with exact coefficients,
//! logarithms of products as sums, and decisions (minimum, comparison, selection, floor division)
//! settled by intervals where those suffice. The spelling of that form then goes through equality
//! saturation, all roots in one e-graph, and the cheapest tape found comes back: cheapest by the
//! measured cost of evaluating each operation, what is shared counted once.
//!
//! Nothing depends on time, addresses or threads: equal input gives equal output.

mod convert;
mod decide;
#[cfg(test)]
mod evaluate;
mod extract;
mod facts;
mod ffi;
mod graph;
mod language;
mod linear;
mod normal;
mod number;
pub mod rules;
mod saturate;
mod share;
mod simplify;
mod tape;
mod text;
mod write;

#[cfg(test)]
mod fuzz;

pub use saturate::{Limits, Report, StopReason};
pub use simplify::{roots_are_equivalent, simplify_tape};
pub use tape::{Entry, Tape, TapeOp, Variable};
pub use text::{is_equivalent, simplify_expr};
