// Extents that bound inference finds, for sizes that are numbers and for sizes that are variables.
#include <gtest/gtest.h>
#include <tvm/arith/analyzer.h>
#include <tvm/arith/var_context.h>
#include <tvm/expr/op.h>
#include <tvm/te/schedule_pass.h>

#include <vector>

namespace tvm {
namespace te {
namespace {

using Exprs = std::vector<PrimExpr>;

struct Conv {
  Tensor data, weight, conv, relu;
  std::vector<IterVar> reduce;
};

// A strided convolution over `size` columns, then a rectifier.
Conv MakeConv(int size, int channels, int kernel, int stride) {
  Conv c;
  int input = (size - 1) * stride + kernel;
  c.data = placeholder({input, channels}, DataType::Float(32), "data");
  c.weight = placeholder({kernel, channels}, DataType::Float(32), "weight");
  IterVar k = reduce_axis(Range::FromMinExtent(0, kernel), "k");
  IterVar r = reduce_axis(Range::FromMinExtent(0, channels), "r");
  c.reduce = {k, r};
  c.conv = compute(
      Array<PrimExpr>{size},
      [&](const Array<Var>& i) {
        return sum(c.data(i[0] * stride + k->var, r->var) * c.weight(k->var, r->var), {k, r});
      },
      "conv");
  c.relu = compute(
      Array<PrimExpr>{size}, [&](const Array<Var>& i) { return max(c.conv(i[0]), 0.0f); }, "relu");
  return c;
}

// Splits innermost first, as transform steps do; returns the loops, outermost first.
std::vector<IterVar> SplitInto(Stage stage, IterVar axis, const Exprs& factors) {
  std::vector<IterVar> loops;
  for (size_t i = factors.size(); i != 0; --i) {
    IterVar outer, inner;
    stage.split(axis, factors[i - 1], &outer, &inner);
    loops.insert(loops.begin(), inner);
    axis = outer;
  }
  loops.insert(loops.begin(), axis);
  return loops;
}

IterVar Axis(const Tensor& tensor, int i) { return tensor->op.as<ComputeOpNode>()->axis[i]; }

// The normalized schedule rebased axes that are loops; find the loop by its name in its stage.
PrimExpr LeafExtent(const Schedule& sch, const Tensor& tensor, const Map<IterVar, Range>& bounds,
                    const std::string& name) {
  for (const IterVar& loop : sch[tensor]->leaf_iter_vars) {
    if (loop->var->name_hint == name) return bounds.at(loop)->extent;
  }
  ADD_FAILURE() << "no loop " << name << " in " << sch[tensor]->leaf_iter_vars;
  return PrimExpr(-1);
}

void ExpectEqual(const PrimExpr& actual, const PrimExpr& wanted) {
  EXPECT_TRUE(arith::Analyzer().CanProveEqual(actual, wanted)) << actual << " is not " << wanted;
}

TEST(InferBound, ExactSymbolicSplitsGiveMonomials) {
  Conv c = MakeConv(56, 16, 3, 1);
  Schedule s = create_schedule({c.relu->op});
  auto context = arith::VarContext::Make();
  auto group = context.DefineSplitGroup(56, 2);
  PrimExpr sp0 = group->vars[0], sp1 = group->vars[1], q = group->quotient;
  SplitInto(s[c.relu], Axis(c.relu, 0), {sp0, sp1});
  Schedule n = s.normalize();
  Map<IterVar, Range> bounds = InferBound(n, context);
  ExpectEqual(LeafExtent(n, c.relu, bounds, "ax0.outer.outer"), q);
  ExpectEqual(LeafExtent(n, c.relu, bounds, "ax0.outer.inner"), sp0);
  ExpectEqual(LeafExtent(n, c.relu, bounds, "ax0.inner"), sp1);
}

TEST(InferBound, ProducerRegionFollowsTheSymbolicTile) {
  Conv c = MakeConv(56, 16, 3, 2);
  Schedule s = create_schedule({c.relu->op});
  Tensor cached = s.cache_read(c.data, "global", {c.conv->op});
  auto context = arith::VarContext::Make();
  auto tile = context.DefineSplitGroup(56, 2);
  auto channel = context.DefineSplitGroup(16, 1);
  PrimExpr sp0 = tile->vars[0], sp1 = tile->vars[1], sp_r = channel->vars[0];
  std::vector<IterVar> relu_loops = SplitInto(s[c.relu], Axis(c.relu, 0), {sp0 * sp1});
  std::vector<IterVar> loops = SplitInto(s[c.conv], Axis(c.conv, 0), {sp0, sp1});
  std::vector<IterVar> channels = SplitInto(s[c.conv], c.reduce[1], {sp_r});
  s[c.conv].reorder({loops[0], loops[1], channels[0], c.reduce[0], channels[1], loops[2]});
  s[c.conv].compute_at(s[c.relu], relu_loops[0]);
  s[cached].compute_at(s[c.conv], channels[0]);
  Schedule n = s.normalize();
  Map<IterVar, Range> bounds = InferBound(n, context);
  // conv computes one tile of relu, and its own split of the tile is exact as well.
  ExpectEqual(bounds.at(Axis(c.conv, 0))->extent, sp0 * sp1);
  // Input columns of sp1 outputs at stride 2 with a kernel of 3; one channel block.
  const auto* cache_op = n[cached]->op.as<ComputeOpNode>();
  ExpectEqual(bounds.at(cache_op->axis[0])->extent, (sp1 - 1) * 2 + 3);
  ExpectEqual(bounds.at(cache_op->axis[1])->extent, sp_r);
}

TEST(InferBound, InexactSplitRoundsUp) {
  Conv c = MakeConv(10, 4, 3, 1);
  Schedule s = create_schedule({c.relu->op});
  std::vector<IterVar> loops = SplitInto(s[c.relu], Axis(c.relu, 0), {4});
  s[c.conv].compute_at(s[c.relu], loops[0]);
  Schedule n = s.normalize();
  Map<IterVar, Range> bounds = InferBound(n);
  ExpectEqual(bounds.at(loops[0])->extent, 3);
  ExpectEqual(bounds.at(loops[1])->extent, 4);
  ExpectEqual(bounds.at(Axis(c.conv, 0))->extent, 4);
}

TEST(InferBound, FactorAboveTheExtentIsTightened) {
  Conv c = MakeConv(10, 4, 3, 1);
  Schedule s = create_schedule({c.relu->op});
  std::vector<IterVar> loops = SplitInto(s[c.relu], Axis(c.relu, 0), {64});
  Map<IterVar, Range> bounds = InferBound(s.normalize());
  ExpectEqual(bounds.at(loops[0])->extent, 1);
  ExpectEqual(bounds.at(loops[1])->extent, 10);
}

TEST(InferBound, ThreadsShareWhatTheyReadThroughSharedMemory) {
  Conv c = MakeConv(64, 4, 1, 1);
  Schedule s = create_schedule({c.relu->op});
  Tensor shared = s.cache_read(c.data, "shared", {c.conv->op});
  s[c.conv].set_scope("local");
  std::vector<IterVar> loops = SplitInto(s[c.relu], Axis(c.relu, 0), {16});
  s[c.relu].bind(loops[0], thread_axis(Range(), "blockIdx.x"));
  s[c.relu].bind(loops[1], thread_axis(Range(), "threadIdx.x"));
  s[c.conv].compute_at(s[c.relu], loops[1]);
  s[shared].compute_at(s[c.conv], c.reduce[0]);
  Schedule n = s.normalize();
  Map<IterVar, Range> bounds = InferBound(n);
  ExpectEqual(bounds.at(Axis(c.conv, 0))->extent, 1);
  ExpectEqual(bounds.at(n[shared]->op.as<ComputeOpNode>()->axis[0])->extent, 16);
}

}  // namespace
}  // namespace te
}  // namespace tvm
