/*!
 * \file src/tir/transforms/prim_func_pass.cc
 * \brief Passes that look at one PrimFunc at a time.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/transform.h>

namespace tvm {
namespace tir {
namespace transform {

namespace {

/*! \brief A pass whose body is a function from one tensor program to another. */
class PrimFuncPassNode final : public tvm::transform::PassNode {
 public:
  std::function<PrimFunc(PrimFunc, IRModule, PassContext)> func;
  tvm::transform::PassInfo pass_info;

  tvm::transform::PassInfo Info() const override { return pass_info; }
  IRModule Run(IRModule mod, const PassContext& ctx) const override {
    Map<GlobalVar, BaseFunc> functions;
    bool changed = false;
    for (const auto& [var, base] : mod->functions) {
      BaseFunc after = base;
      if (base.as<PrimFuncNode>() != nullptr) {
        after = func(Downcast<PrimFunc>(base), mod, ctx);
        changed = changed || !after.same_as(base);
      }
      // A pass removes a function by returning none.
      if (after.defined()) functions.Set(var, after);
    }
    return changed ? IRModule(functions, mod->attrs) : mod;
  }
  // Not a node with fields: saved without its function it would be another pass.
  TVM_DECLARE_OBJECT(PrimFuncPassNode, tvm::transform::PassNode, "tir.PrimFuncPass");
};

}  // namespace

Pass CreatePrimFuncPass(std::function<PrimFunc(PrimFunc, IRModule, PassContext)> pass_func,
                        int opt_level, String name, Array<String> required) {
  auto node = make_object<PrimFuncPassNode>();
  node->func = std::move(pass_func);
  node->pass_info = tvm::transform::PassInfo(opt_level, std::move(name), std::move(required));
  return Pass(ObjectPtr<Object>(node));
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
