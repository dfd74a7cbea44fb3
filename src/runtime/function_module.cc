/*!
 * \file function_module.cc
 * \brief A module put together from functions and text, for code generators written in Python.
 */
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <optional>
#include <utility>

namespace tvm {
namespace runtime {
namespace {

class FunctionModuleNode final : public ModuleNode {
 public:
  FunctionModuleNode(String kind, Map<String, PackedFunc> functions, Any source, String format)
      : kind_(std::move(kind)),
        functions_(std::move(functions)),
        source_(std::move(source)),
        format_(std::move(format)) {}

  const char* type_key() const override { return kind_.c_str(); }
  void Add(const String& name, PackedFunc function) { functions_.Set(name, std::move(function)); }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    return functions_.count(name) ? functions_[name] : PackedFunc();
  }
  Array<String> ListFunctionNames() override {
    Array<String> names;
    for (const auto& [name, function] : functions_) names.push_back(name);
    return names;
  }
  String GetSource(const String& format) override {
    TVM_CHECK(format == "" || format == format_, ValueError)
        << "Module.get_source: a module of kind " << kind_ << " has source of format \"" << format_
        << "\", not \"" << format << "\"";
    return Source();
  }
  String GetFormat() override { return format_; }
  // The text is the module: what reads it back compiles it again.
  void SaveToBinary(ByteWriter* writer) override {
    String source = Source();
    writer->Raw(source.data(), source.size());
  }

  TVM_DECLARE_OBJECT(FunctionModuleNode, ModuleNode, "runtime.FunctionModule");

 private:
  // The text, or a function that gives it when somebody asks.
  String Source() const {
    if (std::optional<PackedFunc> make = source_.TryCast<PackedFunc>()) {
      return (*make)().cast<String>();
    }
    return source_.cast<String>();
  }

  String kind_;
  Map<String, PackedFunc> functions_;
  Any source_;
  String format_;
};

TVM_REGISTER_GLOBAL("runtime.ModuleFromFunctions")
    .set_body_typed([](String kind, Map<String, PackedFunc> functions, Any source, String format) {
      return Module(ObjectPtr<Object>(make_object<FunctionModuleNode>(
          std::move(kind), std::move(functions), std::move(source), std::move(format))));
    });

/*! \brief (module, name, function): one more function, in the place of one of its name. */
TVM_REGISTER_GLOBAL("runtime.FunctionModuleAdd")
    .set_body_typed([](Module module, String name, PackedFunc function) {
      TVM_CHECK(module.defined() && module->IsInstance<FunctionModuleNode>(), TypeError)
          << "functions are added to modules of module_from_functions only";
      static_cast<FunctionModuleNode*>(module.get())->Add(name, std::move(function));
    });

}  // namespace
}  // namespace runtime
}  // namespace tvm
