/*!
 * \file src/tir/transforms/prim_func_pass.cc
 * \brief Passes that look at one PrimFunc at a time.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/transform.h>

namespace tvm {
namespace tir {
namespace transform {

Pass CreatePrimFuncPass(std::function<PrimFunc(PrimFunc, IRModule, PassContext)> pass_func,
                        int opt_level, String name, Array<String> required) {
  auto run = [pass_func = std::move(pass_func)](IRModule mod, PassContext ctx) -> IRModule {
    Map<GlobalVar, BaseFunc> functions;
    bool changed = false;
    for (const auto& [var, base] : mod->functions) {
      BaseFunc after = base;
      if (base.as<PrimFuncNode>() != nullptr) {
        after = pass_func(Downcast<PrimFunc>(base), mod, ctx);
        changed = changed || !after.same_as(base);
      }
      // A pass removes a function by returning none.
      if (after.defined()) functions.Set(var, after);
    }
    return changed ? IRModule(functions, mod->attrs) : mod;
  };
  return tvm::transform::CreateModulePass(run, opt_level, std::move(name), std::move(required));
}

TVM_REGISTER_GLOBAL("tir.transform.CreatePrimFuncPass")
    .set_body_typed([](TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)> pass_func,
                       int opt_level, String name, Array<String> required) {
      return CreatePrimFuncPass([pass_func](PrimFunc func, IRModule mod,
                                            PassContext ctx) { return pass_func(func, mod, ctx); },
                                opt_level, name, required);
    });

// Options that decide whether a pass is run at all, or what the pipeline marks functions with.
TVM_REGISTER_PASS_CONFIG_OPTION("tir.noalias", bool);
// Of the pass CommonSubexprElimTIR, which is written in Python.
TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_cse_tir", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.enable_equiv_terms_in_cse_tir", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_select_rewriting", bool);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
