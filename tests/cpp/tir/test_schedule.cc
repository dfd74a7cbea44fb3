#include <gtest/gtest.h>
#include <tvm/expr/op.h>
#include <tvm/tir/block.h>
#include <tvm/tir/function.h>
#include <tvm/tir/schedule/schedule.h>

#include "testing_text.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief B = A + 1 over 8 x 8 elements. */
IRModule Increment() {
  Buffer A = decl_buffer({8, 8}, DataType::Float(32), "A");
  Buffer B = decl_buffer({8, 8}, DataType::Float(32), "B");
  Var i("i"), j("j"), vi("vi"), vj("vj"), a("a", DataType::Handle()), b("b", DataType::Handle());
  Range dom = Range::FromMinExtent(0, 8);
  Block block({IterVar(dom, vi, kDataPar), IterVar(dom, vj, kDataPar)},
              {BufferRegion::FromPoint(A, {vi, vj})}, {BufferRegion::FromPoint(B, {vi, vj})}, "B",
              BufferStore(B, BufferLoad(A, {vi, vj}) + 1, {vi, vj}));
  Stmt loops = For(i, 0, 8, ForKind::kSerial,
                   For(j, 0, 8, ForKind::kSerial, BlockRealize({i, j}, const_true(), block)));
  Map<Var, Buffer> buffers{{a, A}, {b, B}};
  return IRModule::FromExpr(PrimFunc({a, b}, loops, VoidType(), buffers));
}

Array<ObjectRef> Apply(const Schedule& sch, const char* kind, const Array<Any>& arguments) {
  return sch->Apply(InstructionKind::Get(kind), arguments);
}

TEST(TirSchedule, CopiesGoTheirOwnWay) {
  Schedule sch(Increment(), 0);
  Array<ObjectRef> loops = Apply(sch, "GetLoops", {Any(String("B"))});
  Schedule other = Downcast<Schedule>(sch->Copy());
  std::string before = Text(sch->Mod());
  // A variable stands for the same loop in both.
  Apply(other, "Split", {loops[1], Array<Any>{Any(), Any(4)}});
  Apply(other, "Parallel", {loops[0]});
  EXPECT_EQ(Text(sch->Mod()), before);
  EXPECT_NE(Text(other->Mod()), before);
  Apply(sch, "Split", {loops[1], Array<Any>{Any(), Any(4)}});
  Apply(sch, "Parallel", {loops[0]});
  EXPECT_EQ(Text(sch->Mod()), Text(other->Mod()));
  EXPECT_EQ(sch->trace->AsJSON(false), other->trace->AsJSON(false));
}

TEST(TirSchedule, AStepThatFailsLeavesNothing) {
  Schedule sch(Increment(), 0, true, ErrorRenderLevel::kFast);
  Array<ObjectRef> loops = Apply(sch, "GetLoops", {Any(String("B"))});
  Apply(sch, "Reorder", {Any(Array<Any>{loops[1], loops[0]})});
  std::string before = Text(sch->Mod()), trace = sch->trace->AsJSON(false);
  // Two factors too small: refused after the loops of the parts were made.
  EXPECT_THROW(Apply(sch, "Split", {loops[0], Array<Any>{Any(2), Any(2)}}), Error);
  EXPECT_THROW(Apply(sch, "Bind", {loops[0], Any(String("warp"))}), Error);
  EXPECT_EQ(Text(sch->Mod()), before);
  EXPECT_EQ(sch->trace->AsJSON(false), trace);
}

TEST(TirSchedule, TracesGoThroughText) {
  Schedule sch(Increment(), 3);
  Array<ObjectRef> loops = Apply(sch, "GetLoops", {Any(String("B"))});
  Array<ObjectRef> sizes = Apply(sch, "SamplePerfectTile", {loops[1], Any(2)});
  Apply(sch, "Split", {loops[1], Array<Any>{sizes[0], sizes[1]}});
  Schedule again(Increment(), 4);
  Trace::FromJSON(sch->trace->AsJSON(false))->ApplyToSchedule(again, false);
  EXPECT_EQ(Text(again->Mod()), Text(sch->Mod()));
}

}  // namespace
}  // namespace tir
}  // namespace tvm
