/*!
 * \file source_module.cc
 * \brief Runtime module over C source, compiled when one of its functions is asked for.
 */
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <fstream>
#include <mutex>

namespace tvm {
namespace codegen {

/*! \brief What Python registers to compile sources; see CSourceModuleNode. */
constexpr const char* kCompiler = "target.compile_source";

/*!
 * \brief Source text in C ("c") or C++ ("cc"), and the functions in it.
 *
 * The global function kCompiler turns the source into code: compiler("load", source, format) gives
 * a module of the compiled functions, compiler("object", source, format, path) writes an object
 * file.
 */
class CSourceModuleNode final : public runtime::ModuleNode {
 public:
  CSourceModuleNode(String source, String format, Array<String> functions)
      : source_(std::move(source)), format_(std::move(format)), functions_(std::move(functions)) {}

  const char* type_key() const final { return "c"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    bool known = name == runtime::kModuleMain;
    for (const String& function : functions_) known = known || function == name;
    if (!known) return PackedFunc();
    std::lock_guard<std::mutex> lock(mutex_);
    if (!compiled_.defined()) {
      compiled_ = Compiler()(String("load"), source_, format_).cast<runtime::Module>();
    }
    // The code finds what it calls among the imports of the module that was loaded.
    for (size_t i = compiled_->imports().size(); i < imports_.size(); ++i) {
      compiled_.Import(imports_[i]);
    }
    return compiled_.GetFunction(name);
  }
  Array<String> ListFunctionNames() final { return functions_; }
  String GetSource(const String& format) final {
    TVM_CHECK(format.empty() || format == format_, ValueError)
        << "Module.get_source: this module of source has the format \"" << format_ << "\", not \""
        << format << '"';
    return source_;
  }
  String GetFormat() final { return format_; }
  bool IsDSOExportable() const final { return true; }
  void SaveToFile(const String& path, const String& format) final {
    if (format == "o" || format == "obj") {
      Compiler()(String("object"), source_, format_, path);
      return;
    }
    TVM_CHECK(format == "c" || format == "cc" || format.empty(), ValueError)
        << "Module.save(\"" << path << "\"): cannot write format \"" << format
        << "\"; use \"c\" or \"o\", or export_library for a shared library";
    std::ofstream file(path.str());
    file << source_.str();
    file.close();
    TVM_CHECK(!file.fail(), RuntimeError) << "Module.save: cannot write \"" << path << '"';
  }

  TVM_DECLARE_OBJECT(CSourceModuleNode, runtime::ModuleNode, "runtime.CSourceModule");

 private:
  static PackedFunc Compiler() {
    const PackedFunc* compiler = runtime::Registry::Get(kCompiler);
    TVM_CHECK(compiler != nullptr, RuntimeError)
        << "a module of source is compiled by the function \"" << kCompiler
        << "\", which is not registered; import tvm.target";
    return *compiler;
  }

  String source_;
  String format_;
  Array<String> functions_;
  std::mutex mutex_;
  runtime::Module compiled_;
};

TVM_REGISTER_GLOBAL("runtime.CSourceModuleCreate")
    .set_body_typed([](String source, String format, Array<String> functions,
                       Array<String> constants) {
      if (format == "cpp") format = "cc";
      TVM_CHECK(format == "c" || format == "cc", ValueError)
          << "CSourceModuleCreate: source is \"c\" or \"cc\", not \"" << format << '"';
      TVM_CHECK(!constants.defined() || constants.size() == 0, ValueError)
          << "CSourceModuleCreate: no module hands out constants; let the function take them, or "
          << "put them in the source";
      return runtime::Module(ObjectPtr<Object>(make_object<CSourceModuleNode>(
          std::move(source), std::move(format), std::move(functions))));
    });

}  // namespace codegen
}  // namespace tvm
