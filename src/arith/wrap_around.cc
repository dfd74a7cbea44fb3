/*!
 * \file arith/wrap_around.cc
 * \brief What simplification may do to data, which may be any number of its type.
 */
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

#include <algorithm>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

bool AnalyzerCore::HoldsData(const Poly& p) {
  for (const Term& t : p.terms) {
    for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
      const Atom& atom = atoms_[id];
      if (atom.kind == Atom::kVar) {
        // No index is that narrow: it is what a load was bound to, or an argument.
        if (atom.expr.dtype().bits() < 32) return true;
        continue;
      }
      if (atom.kind != Atom::kOpaque) {
        if (HoldsData(Poly(atom.a)) || HoldsData(Poly(atom.b))) return true;
        continue;
      }
      bool loads = false;
      PostOrderVisit(atom.expr, [&loads](const ObjectRef& node) {
        loads = loads || node->IsInstance<BufferLoadNode>() || node->IsInstance<ProducerLoadNode>();
      });
      if (loads) return true;
    }
  }
  return false;
}

bool AnalyzerCore::Fits(const Poly& sum, DataType dtype) {
  bool single =
      sum.terms.size() == 1 && sum.terms[0].coef == 1 && ring_.Atoms(sum.terms[0].mono).size() == 1;
  if (single || sum.IsConst()) return true;
  Interval values = Bound(sum), type = IntervalOfType(dtype);
  return values.HasLower() && values.HasUpper() && values.lo >= type.lo && values.hi <= type.hi;
}

std::vector<std::pair<Poly, DataType>> AnalyzerCore::OperandsWithData(const PrimExpr& e) {
  std::vector<std::pair<Poly, DataType>> found;
  std::function<void(const PrimExpr&)> visit = [&](const PrimExpr& x) {
    auto operands = [&](const PrimExpr& a, const PrimExpr& b, bool exact) {
      for (const PrimExpr& operand : {a, b}) {
        visit(operand);
        if (!exact) continue;
        Poly p = Reduce(Normalize(operand));
        if (HoldsData(p)) found.emplace_back(std::move(p), operand.dtype());
      }
    };
#define TVM_OPERANDS(Node, exact) \
  if (const auto* op = x.as<Node>()) return operands(op->a, op->b, exact);
    TVM_OPERANDS(AddNode, false)
    TVM_OPERANDS(SubNode, false)
    TVM_OPERANDS(MulNode, false)
    TVM_OPERANDS(FloorDivNode, true)
    TVM_OPERANDS(FloorModNode, true)
    TVM_OPERANDS(DivNode, true)
    TVM_OPERANDS(ModNode, true)
    TVM_OPERANDS(MinNode, true)
    TVM_OPERANDS(MaxNode, true)
    TVM_OPERANDS(LTNode, true)
    TVM_OPERANDS(LENode, true)
    TVM_OPERANDS(GTNode, true)
    TVM_OPERANDS(GENode, true)
    TVM_OPERANDS(EQNode, true)
    TVM_OPERANDS(NENode, true)
#undef TVM_OPERANDS
  };
  visit(e);
  return found;
}

bool AnalyzerCore::KeepsData(const PrimExpr& before, const PrimExpr& after) {
  const auto known = OperandsWithData(before), used = OperandsWithData(after);
  return std::all_of(used.begin(), used.end(), [&](const auto& operand) {
    return Fits(operand.first, operand.second) ||
           std::find(known.begin(), known.end(), operand) != known.end();
  });
}

}  // namespace arith
}  // namespace tvm
