//! Hash-consed graph of expressions in normal form.
//!
//! Nodes are created only through the constructors of `normal.rs` and `decide.rs`, so equal values
//! that the normal form recognises have equal ids. Children always have smaller ids than parents.

use crate::facts::Facts;
use crate::number::Number;
use crate::tape::{TapeOp as Op, Variable};
use std::collections::HashMap;

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u32);

/// A node in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Number(Number),
    Var(u32),
    /// Euler's number, only as the base of a factor.
    Euler,
    /// constant + sum of coefficient * term; terms are sorted, no numbers, and sums only if long.
    Sum(Number, Vec<(Id, Number)>),
    /// Product of base^exponent, sorted; neither products nor numeric coefficients inside.
    Product(Vec<(Id, Id)>),
    /// What the polynomial form does not look into. Operations that associate may have more than
    /// two operands; `Add` and `Mul` have constants that do not fit the number type.
    Apply(Op, Vec<Id>),
}

/// How far products of sums are multiplied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expand {
    /// Where it lowers the number of operations.
    WhenCheaper,
    /// Always, within a size limit, so that equal polynomials meet.
    Always,
}

/// The nodes, what is known about them, and the domains of the variables.
pub struct Graph {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
    index: HashMap<Node, Id>,
    variables: Vec<Variable>,
    pub(crate) expand: Expand,
    pub(crate) arithmetic_costs: HashMap<Id, u64>,
}

impl Graph {
    pub fn new(variables: Vec<Variable>, expand: Expand) -> Graph {
        Graph {
            nodes: Vec::new(),
            facts: Vec::new(),
            index: HashMap::new(),
            variables,
            expand,
            arithmetic_costs: HashMap::new(),
        }
    }

    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn facts(&self, id: Id) -> Facts {
        self.facts[id.0 as usize]
    }

    pub fn children(&self, id: Id) -> Vec<Id> {
        match self.node(id) {
            Node::Number(_) | Node::Var(_) | Node::Euler => Vec::new(),
            Node::Sum(_, terms) => terms.iter().map(|(term, _)| *term).collect(),
            Node::Product(factors) => factors.iter().flat_map(|(b, e)| [*b, *e]).collect(),
            Node::Apply(_, args) => args.clone(),
        }
    }

    /// Everything reachable from `roots`, children first.
    pub fn reachable(&self, roots: &[Id]) -> Vec<Id> {
        let mut seen = vec![false; self.nodes.len()];
        for root in roots {
            seen[root.0 as usize] = true;
        }
        for i in (0..self.nodes.len()).rev() {
            if seen[i] {
                for child in self.children(Id(i as u32)) {
                    seen[child.0 as usize] = true;
                }
            }
        }
        (0..self.nodes.len() as u32).map(Id).filter(|id| seen[id.0 as usize]).collect()
    }

    /// Store a node that is in normal form. A node proven to have one value becomes that number.
    pub(crate) fn intern(&mut self, node: Node) -> Id {
        if let Some(id) = self.index.get(&node) {
            return *id;
        }
        let facts = self.derive_facts(&node);
        // Only integers: a real interval can shrink to a point by rounding alone.
        if let (Node::Sum(..) | Node::Product(..) | Node::Apply(..), Some(number)) =
            (&node, facts.constant().filter(|_| facts.integer))
        {
            let id = self.number(number);
            self.index.insert(node, id);
            return id;
        }
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.facts.push(facts);
        self.index.insert(node, id);
        id
    }

    pub fn number(&mut self, number: Number) -> Id {
        self.intern(Node::Number(number))
    }

    pub fn int(&mut self, value: i64) -> Id {
        self.number(Number::int(value))
    }

    pub fn variable(&mut self, index: u32) -> Id {
        self.intern(Node::Var(index))
    }

    pub fn as_number(&self, id: Id) -> Option<Number> {
        match self.node(id) {
            Node::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_integer(&self, id: Id) -> Option<i64> {
        self.as_number(id).and_then(Number::as_integer)
    }

    fn derive_facts(&self, node: &Node) -> Facts {
        match node {
            Node::Number(number) => Facts::of_number(*number),
            Node::Var(index) => {
                let variable = self.variables[*index as usize];
                Facts::new(variable.lower, variable.upper, variable.is_integer)
            }
            Node::Euler => Facts::new(std::f64::consts::E, std::f64::consts::E, false),
            Node::Sum(constant, terms) => {
                terms.iter().fold(Facts::of_number(*constant), |sum, (term, coefficient)| {
                    sum.add(self.facts(*term).mul(Facts::of_number(*coefficient)))
                })
            }
            Node::Product(factors) => {
                factors.iter().fold(Facts::of_number(Number::ONE), |product, (base, exponent)| {
                    product.mul(self.facts(*base).pow(self.facts(*exponent)))
                })
            }
            Node::Apply(op, args) => {
                let args: Vec<Facts> = args.iter().map(|arg| self.facts(*arg)).collect();
                apply_facts(*op, &args)
            }
        }
    }
}

/// What `op` of such operands can be.
pub fn apply_facts(op: Op, args: &[Facts]) -> Facts {
    let fold = |step: fn(Facts, Facts) -> Facts| args[1..].iter().fold(args[0], |a, b| step(a, *b));
    match op {
        Op::Min => fold(Facts::min),
        Op::Max => fold(Facts::max),
        Op::And | Op::Or | Op::Not | Op::Lt | Op::Le | Op::Eq | Op::Ne => Facts::BOOLEAN,
        Op::Select => args[1].join(args[2]),
        Op::FloorDiv => fold(Facts::floor_div),
        Op::FloorMod => fold(Facts::floor_mod),
        Op::Floor => args[0].floor(),
        Op::Ceil => args[0].ceil(),
        Op::Log => args[0].log(),
        Op::Abs => args[0].abs(),
        Op::LogSize => {
            args[0].max(Facts::of_number(Number::ZERO)).add(Facts::of_number(Number::ONE)).log()
        }
        Op::Step => args[0].step(),
        Op::SmoothFloorDiv => args[0].smooth_floor_div(args[1]),
        Op::Mix => args[0].mix(args[1], args[2]),
        Op::Pow => args[0].pow(args[1]),
        Op::Add => fold(Facts::add),
        Op::Mul => fold(Facts::mul),
        Op::Sub => args[0].sub(args[1]),
        Op::Div => args[0].div(args[1]),
        Op::MulAdd => args[0].mul(args[1]).add(args[2]),
        Op::Exp => args[0].exp(),
        Op::Sqrt => args[0].pow(Facts::of_number(Number::Ratio { num: 1, den: 2 })),
        Op::IntConst | Op::RealConst | Op::Var => Facts::UNKNOWN,
    }
}
