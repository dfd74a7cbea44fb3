/*!
 * \file tape_to_exprs.cc
 * \brief The entries of a tape as expressions again, for reading and for passes over expressions.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <bit>

#include "tape_formula.h"

namespace tvm {
namespace felix {

using namespace tir;

namespace {

const DataType kReal = DataType::Float(64);

/*! \brief What formulas are written in, on expressions: of float64, or of bool. */
struct Term {
  PrimExpr expr;
  Term() = default;
  Term(PrimExpr e) : expr(std::move(e)) {}              // NOLINT
  Term(double value) : expr(FloatImm(kReal, value)) {}  // NOLINT
};

PrimExpr Real(const Term& x) {
  if (!x.expr.dtype().is_bool()) return cast(kReal, x.expr);
  return Select(x.expr, FloatImm(kReal, 1), FloatImm(kReal, 0));
}
PrimExpr Bool(const Term& x) {
  return x.expr.dtype().is_bool() ? x.expr : NE(Real(x), FloatImm(kReal, 0));
}

#define TVM_TERM_BINARY(Name, make) \
  Term Name(const Term& x, const Term& y) { return PrimExpr(make(Real(x), Real(y))); }
TVM_TERM_BINARY(operator+, Add)
TVM_TERM_BINARY(operator-, Sub)
TVM_TERM_BINARY(operator*, Mul)
TVM_TERM_BINARY(operator/, div)
TVM_TERM_BINARY(operator<, LT)
TVM_TERM_BINARY(operator<=, LE)
TVM_TERM_BINARY(min, Min)
TVM_TERM_BINARY(max, Max)
TVM_TERM_BINARY(pow, tvm::pow)
#undef TVM_TERM_BINARY

// A boolean is compared with zero by asking it.
Term operator!=(const Term& x, const Term& y) {
  return x.expr.dtype().is_bool() && is_const_number(y.expr) ? x : Term(NE(Real(x), Real(y)));
}
Term operator==(const Term& x, const Term& y) {
  return x.expr.dtype().is_bool() && is_const_number(y.expr) ? Term(Not(x.expr))
                                                             : Term(EQ(Real(x), Real(y)));
}
Term operator&(const Term& x, const Term& y) { return PrimExpr(And(x.expr, y.expr)); }
Term operator|(const Term& x, const Term& y) { return PrimExpr(Or(x.expr, y.expr)); }
Term truth(const Term& condition) { return condition; }
Term choose(const Term& condition, const Term& x, const Term& y) {
  return PrimExpr(Select(Bool(condition), Real(x), Real(y)));
}

#define TVM_TERM_UNARY(name) \
  Term name(const Term& x) { return tvm::name(Real(x)); }
TVM_TERM_UNARY(floor)
TVM_TERM_UNARY(ceil)
TVM_TERM_UNARY(abs)
TVM_TERM_UNARY(log)
TVM_TERM_UNARY(exp)
TVM_TERM_UNARY(sqrt)
#undef TVM_TERM_UNARY

}  // namespace

/*
 * A tape and the variables that its variable table stands for: one expression for each root,
 * float64 or bool.
 */
TVM_REGISTER_GLOBAL("felix.TapeToExprs").set_body_typed([](Tape tape, Array<Var> vars) {
  const TapeData data = tape.Data();
  TVM_CHECK(vars.size() == data.vars.size(), ValueError)
      << "TapeToExprs: the tape has " << data.vars.size() << " variables, got " << vars.size();
  std::vector<Term> values;
  for (int32_t i = 0; i < data.size(); ++i) {
    const auto op = static_cast<TapeOp>(data.ops[i]);
    if (op == TapeOp::kIntConst) {
      values.emplace_back(static_cast<double>(data.payload[i]));
    } else if (op == TapeOp::kRealConst) {
      values.emplace_back(std::bit_cast<double>(data.payload[i]));
    } else if (op == TapeOp::kVar) {
      values.emplace_back(vars[data.payload[i]]);
    } else {
      Term in[3];
      for (int k = 0; k < TapeArity(op); ++k) in[k] = values[data.args[3 * i + k]];
      values.push_back(TapeValue(op, in[0], in[1], in[2]));
    }
  }
  Array<PrimExpr> out;
  for (int32_t root : data.roots) out.push_back(values[root].expr);
  return out;
});

}  // namespace felix
}  // namespace tvm
