//! Writes the operations of a tape, of tape_ops.def, as Rust.

use std::fmt::Write;
use std::path::Path;

const TABLE: &str = "../../include/tvm/felix/tape_ops.def";

fn main() {
    println!("cargo:rerun-if-changed={TABLE}");
    println!("cargo:rerun-if-changed=build.rs");
    let text = std::fs::read_to_string(TABLE).unwrap_or_else(|error| panic!("{TABLE}: {error}"));
    let rows: Vec<Row> = text.lines().filter_map(read_row).collect();
    let folder = std::env::var("OUT_DIR").expect("cargo names the output folder");
    std::fs::write(Path::new(&folder).join("tape_ops.rs"), generate(&rows))
        .expect("the output folder is writable");
}

/// What the crate needs of a row; leaves have no operands and cost nothing.
struct Row {
    code: String,
    name: String,
    spelling: String,
    arity: String,
    commutes: String,
    cost: String,
    value: String,
}

fn read_row(line: &str) -> Option<Row> {
    let cells = |rest: &str| -> Vec<String> { split(rest.trim_end().strip_suffix(')').unwrap()) };
    if let Some(rest) = line.strip_prefix("TVM_TAPE_LEAF(") {
        let [code, name] = cells(rest).try_into().expect("a leaf has a code and a name");
        let text = |text: &str| text.to_string();
        return Some(Row {
            code,
            name,
            spelling: text("\"\""),
            arity: text("0"),
            commutes: text("false"),
            cost: text("0"),
            value: text("f64::NAN"),
        });
    }
    let rest = line.strip_prefix("TVM_TAPE_OP(")?;
    let [code, name, spelling, arity, commutes, cost, value, ..] =
        <[String; 10]>::try_from(cells(rest)).expect("an operation has ten cells");
    Some(Row { code, name, spelling, arity, commutes, cost, value })
}

/// The cells of a row: commas inside parentheses and text do not count.
fn split(row: &str) -> Vec<String> {
    let (mut cells, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for c in row.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 && !quoted {
            cells.push(String::new());
        } else {
            cells.last_mut().unwrap().push(c);
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_string()).collect()
}

fn generate(rows: &[Row]) -> String {
    let mut out = String::from(
        "/// Operation of a tape entry.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n\
         #[repr(u8)]\n\
         pub enum TapeOp {\n",
    );
    for row in rows {
        writeln!(out, "    {} = {},", row.name, row.code).unwrap();
    }
    out += "}\n\nimpl TapeOp {\n";
    let names: Vec<String> = rows.iter().map(|row| format!("TapeOp::{}", row.name)).collect();
    writeln!(out, "    pub const ALL: [TapeOp; {}] = [{}];", rows.len(), names.join(", ")).unwrap();
    table(
        &mut out,
        rows,
        "/// How many of the three argument slots it reads.",
        "arity",
        "usize",
        |row| &row.arity,
    );
    table(
        &mut out,
        rows,
        "/// Whether the first two operands may change places.",
        "commutes",
        "bool",
        |row| &row.commutes,
    );
    table(
        &mut out,
        rows,
        "/// Of evaluating an entry; an addition costs 10.",
        "cost",
        "u64",
        |row| &row.cost,
    );
    table(&mut out, rows, "/// In the prefix text language.", "spelling", "&'static str", |row| {
        &row.spelling
    });
    out += "    /// Value of an operation; booleans are 0 and 1.\n    \
            #[allow(unused_parens)]\n    \
            pub fn value(self, a: f64, b: f64, c: f64) -> f64 {\n        match self {\n";
    for row in rows {
        writeln!(out, "            TapeOp::{} => {},", row.name, row.value).unwrap();
    }
    out += "        }\n    }\n}\n";
    out
}

fn table(
    out: &mut String,
    rows: &[Row],
    doc: &str,
    name: &str,
    kind: &str,
    cell: fn(&Row) -> &String,
) {
    writeln!(out, "    {doc}\n    pub fn {name}(self) -> {kind} {{\n        match self {{")
        .unwrap();
    for row in rows {
        writeln!(out, "            TapeOp::{} => {},", row.name, cell(row)).unwrap();
    }
    *out += "        }\n    }\n";
}
