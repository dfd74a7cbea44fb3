// From a schedule to code that runs, by the driver alone.
#include <gtest/gtest.h>
#include <tvm/driver/build.h>
#include <tvm/driver/driver_api.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tvm {
namespace {

using runtime::NDArray;

struct Program {
  te::Tensor input, output;
  te::Schedule schedule;
  Array<ObjectRef> args() const { return {input, output}; }
};

// out[i] = in[i] * 3, over `size` floats, in vectors of 4.
Program Tripled(int size) {
  te::Tensor in = te::placeholder({size}, DataType::Float(32), "in");
  te::Tensor out = te::compute(
      Array<PrimExpr>{size}, [&](const Array<tir::Var>& i) { return in(i[0]) * 3.0f; }, "out");
  te::Schedule schedule = te::create_schedule({out->op});
  tir::IterVar outer, inner;
  te::Stage stage = schedule[out];
  stage.split(out->op.as<te::ComputeOpNode>()->axis[0], 4, &outer, &inner);
  stage.vectorize(inner);
  return {in, out, schedule};
}

std::vector<std::string> NamesOf(const Array<transform::Pass>& passes) {
  std::vector<std::string> names;
  for (const transform::Pass& pass : passes) names.push_back(pass->Info()->name);
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(LowerPasses, SimpleModeLeavesOutWhatRepeatsLoops) {
  std::vector<std::string> all = NamesOf(LowerPasses(false)), simple = NamesOf(LowerPasses(true));
  EXPECT_TRUE(Has(all, "tir.LoopPartition"));
  EXPECT_FALSE(Has(simple, "tir.LoopPartition"));
  EXPECT_TRUE(Has(simple, "tir.StorageFlatten"));
}

TEST(LowerSchedule, LeavesFlatWellFormedFunctions) {
  Program program = Tripled(16);
  IRModule mod = LowerSchedule(program.schedule, program.args(), "tripled");
  tir::PrimFunc func = Downcast<tir::PrimFunc>(mod->Lookup("tripled"));
  EXPECT_TRUE(tir::VerifyWellFormed(func));
  EXPECT_TRUE(tir::VerifySSA(func));
}

TEST(LowerSchedule, RunsThePassesOfTheContextInTheirPhase) {
  Array<String> seen;
  auto spy = transform::CreateModulePass(
      [&seen](IRModule mod, transform::PassContext) {
        seen.push_back("spy");
        return mod;
      },
      0, "test.Spy");
  auto context = transform::PassContext::Create();
  context->config.Set(kAddLowerPass, Array<Any>{Array<Any>{1, spy}, Array<Any>{3, spy}});
  With<transform::PassContext> scope(context);
  Program program = Tripled(16);
  LowerSchedule(program.schedule, program.args(), "tripled");
  EXPECT_EQ(seen.size(), 2U);
}

TEST(Build, MakesCodeThatComputes) {
  Program program = Tripled(10);
  IRModule mod = LowerSchedule(program.schedule, program.args(), "tripled");
  runtime::Module built = Build(mod, Target(String("stackvm")));
  Device cpu{kDLCPU, 0};
  NDArray in = NDArray::Empty({10}, DataType::Float(32), cpu);
  NDArray out = NDArray::Empty({10}, DataType::Float(32), cpu);
  auto* values = static_cast<float*>(in.data());
  for (int i = 0; i < 10; ++i) values[i] = static_cast<float>(i);
  built.GetFunction("tripled")(in, out);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(static_cast<float*>(out.data())[i], 3.0f * i) << i;
}

TEST(Build, SaysWhichKindHasNoGenerator) {
  Program program = Tripled(8);
  IRModule mod = LowerSchedule(program.schedule, program.args(), "tripled");
  try {
    Build(mod, Target(String("metal")));
    FAIL() << "a target without a generator was accepted";
  } catch (const runtime::Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_NE(error.message().find("target.build.metal is not enabled"), std::string::npos);
  }
}

TEST(HostOf, IsTheProcessorOfATargetWithThreads) {
  EXPECT_EQ(HostOf(Target(String("stackvm")))->kind->name, "stackvm");
  Target cuda(Target(String("cuda")), Target(String("c")));
  EXPECT_EQ(HostOf(cuda)->kind->name, "c");
}

}  // namespace
}  // namespace tvm
