//! The prefix text language: `(+ (* 2 x:k) 1)`.
//!
//! A name ends in its kind: `:s` shape, `:k` knob, `:v` shorthand, `:b` boolean, nothing for other
//! integers. Shapes, knobs and shorthands are integers from 1 up, with two exceptions that follow
//! from their names: `sp_G_J_P`, `E_G_P` and `ur_S_2` are exponents, which are reals from 0 up, and
//! an unroll limit `ur_S` may be 0.

use crate::number::Number;
use crate::saturate::Limits;
use crate::simplify::{roots_are_equivalent, simplify_tape};
use crate::tape::{Tape, TapeOp, Variable};
use std::collections::HashMap;

/// Shared parts are written out each time they occur, so the text can be far longer than the tape.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Simplify one expression.
pub fn simplify_expr(text: &str, limits: Limits) -> Result<String, String> {
    let mut reader = Reader::default();
    let root = reader.read(text)?;
    reader.tape.roots = vec![root];
    let (tape, _) = simplify_tape(&reader.tape, &reader.variables, limits)?;
    write_text(&tape, &reader.names)
}

/// Whether two expressions are provably equal.
pub fn is_equivalent(left: &str, right: &str, limits: Limits) -> Result<bool, String> {
    let mut reader = Reader::default();
    let roots = vec![reader.read(left)?, reader.read(right)?];
    reader.tape.roots = roots;
    roots_are_equivalent(&reader.tape, &reader.variables, limits)
}

fn domain(name: &str) -> Variable {
    let Some((stem, kind)) = name.rsplit_once(':') else {
        return Variable { lower: f64::NEG_INFINITY, upper: f64::INFINITY, is_integer: true };
    };
    if kind == "b" {
        return Variable { lower: 0.0, upper: 1.0, is_integer: true };
    }
    let parts: Vec<&str> = stem.split('_').collect();
    let numbered = parts[1..].iter().all(|part| part.parse::<u32>().is_ok());
    let family = parts[0].trim_end_matches(|c: char| c.is_ascii_digit());
    let is_exponent =
        numbered && matches!((family, parts.len()), ("sp", 4) | ("ur", 3) | ("E", 2) | ("E", 3));
    if is_exponent {
        return Variable { lower: 0.0, upper: f64::INFINITY, is_integer: false };
    }
    let lower = if numbered && family == "ur" { 0.0 } else { 1.0 };
    Variable { lower, upper: f64::INFINITY, is_integer: true }
}

#[derive(Default)]
struct Reader {
    tape: Tape,
    names: Vec<String>,
    variables: Vec<Variable>,
    index: HashMap<String, i64>,
}

/// An operator whose closing parenthesis has not come yet.
struct Open<'a> {
    operator: &'a str,
    args: Vec<i32>,
}

impl Reader {
    fn read(&mut self, text: &str) -> Result<i32, String> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut stack: Vec<Open> = Vec::new();
        let mut tokens = spaced.split_whitespace();
        let mut result: Option<i32> = None;
        while let Some(token) = tokens.next() {
            if result.is_some() {
                return Err(format!("expression text: `{token}` follows a complete expression"));
            }
            let value = match token {
                "(" => {
                    let operator = tokens.next().unwrap_or(")");
                    stack.push(Open { operator, args: Vec::new() });
                    continue;
                }
                ")" => {
                    let open = stack.pop().ok_or("expression text: `)` without `(`")?;
                    self.apply(open.operator, &open.args)?
                }
                _ => self.atom(token)?,
            };
            match stack.last_mut() {
                Some(open) => open.args.push(value),
                None => result = Some(value),
            }
        }
        match stack.last() {
            Some(open) => Err(format!("expression text: `({}` is never closed", open.operator)),
            None => result.ok_or_else(|| "expression text is empty".to_string()),
        }
    }

    fn atom(&mut self, token: &str) -> Result<i32, String> {
        match token {
            "true" => return Ok(self.tape.push_number(Number::ONE)),
            "false" => return Ok(self.tape.push_number(Number::ZERO)),
            _ => {}
        }
        if let Ok(number) = token.parse::<Number>() {
            return Ok(self.tape.push_number(number));
        }
        let starts_a_name = |c: char| c.is_alphabetic() || c == '_';
        let kind = token.rsplit_once(':').map_or("", |(_, kind)| kind);
        if !token.starts_with(starts_a_name) || !matches!(kind, "" | "s" | "k" | "v" | "b") {
            return Err(format!(
                "expression text: `{token}` is neither a number nor a name; a name starts with a \
                 letter and ends in :s, :k, :v, :b or nothing"
            ));
        }
        let next = self.names.len() as i64;
        let index = *self.index.entry(token.to_string()).or_insert(next);
        if index == next {
            self.names.push(token.to_string());
            self.variables.push(domain(token));
        }
        Ok(self.tape.push(TapeOp::Var, &[], index))
    }

    fn apply(&mut self, operator: &str, args: &[i32]) -> Result<i32, String> {
        let expect = |count: usize| {
            if args.len() == count {
                return Ok(());
            }
            Err(format!("expression text: `{operator}` takes {count} operands, got {}", args.len()))
        };
        match operator {
            ">" | ">=" => {
                expect(2)?;
                let op = if operator == ">" { TapeOp::Lt } else { TapeOp::Le };
                Ok(self.tape.push(op, &[args[1], args[0]], 0))
            }
            "logk" => {
                expect(2)?;
                let value = self.tape.push(TapeOp::Log, &[args[1]], 0);
                let base = self.tape.push(TapeOp::Log, &[args[0]], 0);
                Ok(self.tape.push(TapeOp::Div, &[value, base], 0))
            }
            _ => {
                let op = TapeOp::from_spelling(operator)
                    .ok_or_else(|| format!("expression text: `{operator}` is not an operator"))?;
                expect(op.arity())?;
                Ok(self.tape.push(op, args, 0))
            }
        }
    }
}

fn write_text(tape: &Tape, names: &[String]) -> Result<String, String> {
    let mut texts: Vec<String> = Vec::with_capacity(tape.entries.len());
    for entry in &tape.entries {
        let text = match entry.op {
            TapeOp::IntConst => entry.payload.to_string(),
            TapeOp::RealConst => format!("{:?}", f64::from_bits(entry.payload as u64)),
            TapeOp::Var => names[entry.payload as usize].clone(),
            op => {
                let args = entry.args[..op.arity()].iter().map(|arg| texts[*arg as usize].as_str());
                let args: Vec<&str> = args.collect();
                format!("({} {})", op.spelling(), args.join(" "))
            }
        };
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!(
                "the simplified expression is longer than {MAX_TEXT_BYTES} bytes as text; simplify \
                 it as a tape instead"
            ));
        }
        texts.push(text);
    }
    Ok(texts.swap_remove(tape.roots[0] as usize))
}
