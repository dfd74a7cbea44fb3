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

/*!
 * \brief Source text and the functions in it.
 *
 * `compiler` turns the source into code: compiler("load", source) gives a module of the compiled
 * functions, compiler("object", source, path) writes an object file.
 */
class CSourceModuleNode final : public runtime::ModuleNode {
 public:
  CSourceModuleNode(String source, Array<String> functions, PackedFunc compiler)
      : source_(std::move(source)),
        functions_(std::move(functions)),
        compiler_(std::move(compiler)) {}

  const char* type_key() const final { return "c"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    bool known = name == runtime::kModuleMain;
    for (const String& function : functions_) known = known || function == name;
    if (!known) return PackedFunc();
    std::lock_guard<std::mutex> lock(mutex_);
    if (!compiled_.defined()) {
      compiled_ = compiler_(String("load"), source_).cast<runtime::Module>();
    }
    // The code finds what it calls among the imports of the module that was loaded.
    for (size_t i = compiled_->imports().size(); i < imports_.size(); ++i) {
      compiled_.Import(imports_[i]);
    }
    return compiled_.GetFunction(name);
  }
  Array<String> ListFunctionNames() final { return functions_; }
  String GetSource(const String& format) final {
    TVM_CHECK(format.empty() || format == "c", ValueError)
        << "Module.get_source: a module of C source has the format \"c\", not \"" << format << '"';
    return source_;
  }
  String GetFormat() final { return "c"; }
  bool IsDSOExportable() const final { return true; }
  void SaveToFile(const String& path, const String& format) final {
    if (format == "o" || format == "obj") {
      compiler_(String("object"), source_, path);
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
  String source_;
  Array<String> functions_;
  PackedFunc compiler_;
  std::mutex mutex_;
  runtime::Module compiled_;
};

TVM_REGISTER_GLOBAL("target.CSourceModule")
    .set_body_typed([](String source, Array<String> functions, PackedFunc compiler) {
      return runtime::Module(ObjectPtr<Object>(make_object<CSourceModuleNode>(
          std::move(source), std::move(functions), std::move(compiler))));
    });

}  // namespace codegen
}  // namespace tvm
