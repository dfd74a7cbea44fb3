/*!
 * \file tvm/runtime/module.h
 * \brief Module: a set of callable functions with the modules they need.
 */
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/serializer.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace runtime {

class Module;

class TVM_DLL ModuleNode : public Object {
 public:
  /*! \brief Short name of the kind of module, such as "jit" or "library". */
  virtual const char* type_key() const = 0;
  /*! \brief The function, or a null PackedFunc. The function keeps the module alive. */
  virtual PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) = 0;
  /*! \brief Names GetFunction answers to, as far as they can be listed. */
  virtual Array<String> ListFunctionNames() { return {}; }
  /*! \brief Source text ("" when there is none). `format` "" asks for the native one. */
  virtual String GetSource(const String& format) { return ""; }
  /*! \brief Native file format, such as "o" or "so"; "" when it cannot be saved. */
  virtual String GetFormat() { return ""; }
  virtual void SaveToFile(const String& path, const String& format);
  /*!
   * \brief Whether export_library links this module's code, written by SaveToFile as "o" or "c",
   * into the library. Other modules travel inside it as bytes.
   */
  virtual bool IsDSOExportable() const { return false; }
  /*!
   * \brief Write what the global function `runtime.module.loadbinary_<type_key>`, called with the
   * bytes, needs to make this module again. Imports are not part of it. ValueError if it cannot.
   */
  virtual void SaveToBinary(ByteWriter* writer);

  /*! \brief Add a module this one may call; ValueError for a cycle. */
  void Import(Module other);
  const std::vector<Module>& imports() const { return imports_; }

  TVM_DECLARE_OBJECT(ModuleNode, Object, "runtime.Module");

 protected:
  std::vector<Module> imports_;
};

class Module : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(Module, ObjectRef, ModuleNode);
  /*! \brief The function, looked for in imports too if asked; null when there is none. */
  TVM_DLL PackedFunc GetFunction(const String& name, bool query_imports = false) const;
  void Import(Module other) const { get()->Import(std::move(other)); }
  /*! \brief Load a file; the format is taken from its name unless given. */
  TVM_DLL static Module LoadFromFile(const String& path, const String& format = "");
};

/*! \brief Symbol under which a library names the function that its module runs by default. */
constexpr const char* kModuleMain = "__tvm_main__";
/*! \brief Pointer variable of compiled code that says whose code it is: TVMModuleHandle context. */
constexpr const char* kModuleContext = "__tvm_module_ctx";
/*! \brief Symbol of a library's imported modules: a 64-bit size, then as many bytes. */
constexpr const char* kModuleImports = "__tvm_module_imports";

/*!
 * \brief Where compiled code finds the functions it calls by name: first in the imports of its
 * module, then among the global functions.
 *
 * Code that lies in memory once may belong to several modules, if a library is loaded twice. The
 * address of the context is stored in the code's variable kModuleContext.
 */
class TVM_DLL ModuleContext {
 public:
  void Attach(ModuleNode* module);
  void Detach(ModuleNode* module);
  /*! \brief The function, which lives as long as the context; ValueError if there is none. */
  const PackedFuncObj* Find(const std::string& name);
  bool empty() const { return modules_.empty(); }

 private:
  PackedFunc Search(const std::string& name) const;

  std::mutex mutex_;
  std::vector<ModuleNode*> modules_;
  std::unordered_map<std::string, PackedFunc> found_;
};

/*! \brief A module and everything it imports, as bytes; ValueError naming what cannot be saved. */
TVM_DLL std::string SerializeModuleTree(const Module& root);
/*!
 * \brief What SerializeModuleTree gave.
 * \param library Takes the place of the modules that were linked into the library.
 */
TVM_DLL Module DeserializeModuleTree(std::string_view bytes, const Module& library);

/*!
 * \brief A module over functions in memory, given as name -> address of a TVMPackedCFunc.
 * \param owner Kept alive as long as the module or one of its functions.
 * \param source What GetSource returns.
 */
TVM_DLL Module ModuleFromAddresses(const Map<String, int64_t>& addresses, ObjectRef owner,
                                   String source = "");

/*! \brief A function of the C calling convention as a PackedFunc that keeps `owner` alive. */
TVM_DLL PackedFunc PackedFuncFromAddress(String name, TVMPackedCFunc function, ObjectRef owner);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_MODULE_H_
