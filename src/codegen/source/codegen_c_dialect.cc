/*!
 * \file codegen_c_dialect.cc
 * \brief C for devices that are described by a table of spellings, so that Python can add one.
 */
#include <tvm/codegen/codegen_c.h>
#include <tvm/runtime/registry.h>

#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace codegen {
namespace {

using tir::AllocateNode;
using tir::CallNode;

/*! \brief What a dialect says differently from C; see the Python class CDialect. */
struct Spellings {
  std::string language, prelude, function_prefix, pointer_prefix;
  Map<String, String> scopes, thread_index, barriers, intrinsics;
};

class CodeGenCDialect final : public CodeGenC {
 public:
  CodeGenCDialect(Target target, Spellings spellings)
      : CodeGenC(std::move(target)), spellings_(std::move(spellings)) {}

 protected:
  std::string LanguageName() const override { return spellings_.language; }
  std::string Prelude() const override { return spellings_.prelude; }
  std::string FunctionPrefix(const tir::PrimFunc& func, bool exported) override {
    std::string prefix = CodeGenC::FunctionPrefix(func, exported);
    return exported ? spellings_.function_prefix + prefix : prefix;
  }
  std::string Parameter(const tir::Var& param, const std::string& name, bool written) override {
    std::string text = CodeGenC::Parameter(param, name, written);
    return param->dtype.is_handle() ? spellings_.pointer_prefix + text : text;
  }
  std::string ThreadIndex(const std::string& tag) override {
    if (auto text = spellings_.thread_index.Get(tag)) return *text;
    Unsupported("a loop bound to thread index " + tag, "give its spelling in thread_index");
  }
  void StorageSync(const std::string& scope) override {
    if (auto text = spellings_.barriers.Get(scope)) return Line(*text);
    Unsupported("a barrier of scope \"" + scope + "\"", "give its statement in barriers");
  }
  void AllocateIn(const std::string& scope, const AllocateNode* op,
                  const std::string& name) override {
    auto qualifier = spellings_.scopes.Get(scope);
    if (!qualifier) return CodeGenC::AllocateIn(scope, op, name);
    int64_t count = op->ConstantAllocationSize();
    if (count <= 0) {
      Unsupported("an allocation of variable size for " + std::string(op->buffer_var->name_hint),
                  "give it constant extents");
    }
    Line(std::string(*qualifier) + Type(op->dtype.element_of()) + " " + name + "[" +
         std::to_string(count * op->dtype.lanes()) + "];");
  }
  bool CallIntrinsic(const std::string& name, const CallNode* op, std::string* text) override {
    auto function = spellings_.intrinsics.Get(name);
    if (!function) return false;
    *text = std::string(*function) + "(";
    for (size_t i = 0; i < op->args.size(); ++i) *text += (i ? ", " : "") + Print(op->args[i]);
    *text += ")";
    return true;
  }

 private:
  Spellings spellings_;
};

TVM_REGISTER_GLOBAL("target.PrintCDialect")
    .set_body_typed([](IRModule mod, Target target, Array<String> texts,
                       Array<Map<String, String>> tables) {
      ICHECK(texts.size() == 4 && tables.size() == 4);
      Spellings spellings{texts[0],  texts[1],  texts[2],  texts[3],
                          tables[0], tables[1], tables[2], tables[3]};
      CodeGenCDialect generator(std::move(target), std::move(spellings));
      return String(PrintModule(&generator, mod));
    });

}  // namespace
}  // namespace codegen
}  // namespace tvm
