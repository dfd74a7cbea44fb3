/*!
 * \file tvm/runtime/module.h
 * \brief Module: a set of callable functions with the modules they need.
 */
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/packed_func.h>

#include <string>
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
