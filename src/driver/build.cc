/*!
 * \file build.cc
 * \brief The pass pipeline between lowering and code generation.
 */
#include <tvm/driver/build.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/codegen.h>
#include <tvm/tir/transform.h>

namespace tvm {

using transform::Pass;
using transform::PassContext;

TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_assert", bool);

Array<Pass> BuildPasses(const Target& target) {
  namespace pass = tir::transform;
  Array<Pass> passes;
  passes.push_back(pass::LowerIntrin());
  passes.push_back(pass::MakePackedAPI());
  if (PassContext::Current()->GetConfig<bool>(kDisableAssert, false)) {
    passes.push_back(pass::SkipAssert());
  }
  return passes;
}

runtime::Module Build(IRModule lowered, const Target& target) {
  return codegen::Build(transform::Sequential(BuildPasses(target), "build")(std::move(lowered)),
                        target);
}

TVM_REGISTER_GLOBAL("driver.BuildPasses").set_body_typed(BuildPasses);
TVM_REGISTER_GLOBAL("driver.PrepareModule").set_body_typed([](IRModule lowered, Target target) {
  return transform::Sequential(BuildPasses(target), "build")(lowered);
});
TVM_REGISTER_GLOBAL("driver.BuildModule").set_body_typed(Build);

}  // namespace tvm
