/*!
 * \file codegen.cc
 * \brief Finds the code generator of a target.
 */
#include <tvm/codegen/codegen.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace codegen {

const PackedFunc& Generator(const Target& target) {
  std::string name = "target.build." + std::string(target->kind->name);
  const PackedFunc* generator = runtime::Registry::Get(name);
  TVM_CHECK(generator != nullptr, ValueError)
      << name << " is not enabled: no code generator is registered for target " << target->str()
      << ". Register a function under that name, or build for another kind";
  return *generator;
}

runtime::Module Build(IRModule mod, Target target) {
  Any result = Generator(target)(mod, target);
  auto module = result.TryCast<runtime::Module>();
  TVM_CHECK(module && module->defined(), TypeError)
      << "target.build." << target->kind->name << " must return a runtime.Module, got "
      << result.TypeName();
  return *module;
}

TVM_REGISTER_GLOBAL("target.Build").set_body_typed(Build);

}  // namespace codegen
}  // namespace tvm
