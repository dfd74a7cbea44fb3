/*!
 * \file static_library.cc
 * \brief Object code as a module: it is linked where the module that imports it is exported.
 */
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <fstream>
#include <iterator>
#include <utility>

namespace tvm {
namespace runtime {
namespace {

class StaticLibraryNode final : public ModuleNode {
 public:
  StaticLibraryNode(std::string code, Array<String> functions)
      : code_(std::move(code)), functions_(std::move(functions)) {}

  const char* type_key() const override { return "static_library"; }
  // Nothing here can be called before it is linked.
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    return PackedFunc();
  }
  Array<String> ListFunctionNames() override { return functions_; }
  String GetFormat() override { return "o"; }
  bool IsDSOExportable() const override { return true; }
  void SaveToFile(const String& path, const String& format) override {
    TVM_CHECK(format.empty() || format == "o" || format == "obj", ValueError)
        << "Module.save(\"" << path << "\"): object code is written in format \"o\", not \""
        << format << '"';
    std::ofstream file(path.str(), std::ios::binary);
    file.write(code_.data(), static_cast<std::streamsize>(code_.size()));
    file.close();
    TVM_CHECK(!file.fail(), RuntimeError) << "Module.save: cannot write \"" << path << '"';
  }

  TVM_DECLARE_OBJECT(StaticLibraryNode, ModuleNode, "runtime.StaticLibrary");

 private:
  std::string code_;
  Array<String> functions_;
};

TVM_REGISTER_GLOBAL("runtime.ModuleLoadStaticLibrary")
    .set_body_typed([](String path, Array<String> functions) {
      std::ifstream file(path.str(), std::ios::binary);
      TVM_CHECK(file.good(), RuntimeError)
          << "load_static_library: there is no file \"" << path << '"';
      std::string code{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      return Module(
          ObjectPtr<Object>(make_object<StaticLibraryNode>(std::move(code), std::move(functions))));
    });

}  // namespace
}  // namespace runtime
}  // namespace tvm
