/*!
 * \file tvm/ir/module.h
 * \brief IRModule: functions by name, the unit passes work on.
 */
#ifndef TVM_IR_MODULE_H_
#define TVM_IR_MODULE_H_

#include <tvm/ir/adt.h>
#include <tvm/ir/function.h>
#include <tvm/ir/global_info.h>

namespace tvm {

class IRModuleNode : public Object {
 public:
  Map<GlobalVar, BaseFunc> functions;
  DictAttrs attrs;
  /*! \brief Types that the functions use, by name. */
  Map<String, TypeData> type_definitions;
  /*! \brief What the module says that is no function, by kind: "vdevice" lists its devices. */
  Map<String, Array<GlobalInfo>> global_infos;
  /*! \brief The variable of each name; kept in step with `functions`. */
  Map<String, GlobalVar> global_var_map_;

  /*! \brief The function; KeyError that lists the names there are. */
  TVM_DLL BaseFunc Lookup(const GlobalVar& var) const;
  TVM_DLL BaseFunc Lookup(const String& name) const;
  TVM_DLL GlobalVar GetGlobalVar(const String& name) const;
  TVM_DLL Array<GlobalVar> GetGlobalVars() const;
  TVM_DLL bool ContainGlobalVar(const String& name) const;

  /*! \brief Add a function; ValueError if the name is taken, unless `update`. */
  TVM_DLL void Add(const GlobalVar& var, const BaseFunc& func, bool update = false);
  /*! \brief Add or replace. */
  void Update(const GlobalVar& var, const BaseFunc& func) { Add(var, func, true); }
  TVM_DLL void Remove(const GlobalVar& var);
  /*! \brief Add a type, whose constructors get their tags; ValueError if the name is taken, unless
   *         `update`. */
  TVM_DLL void AddTypeDef(const TypeData& definition, bool update = false);

  template <typename T>
  std::optional<T> GetAttr(const String& key) const {
    return attrs.GetAttr<T>(key);
  }

  /*! \brief Fills the table of names; ValueError if two functions share one. */
  TVM_DLL void Init();
  TVM_DECLARE_NODE(IRModuleNode, Object, "IRModule", Value(functions), Default(attrs),
                   Default(type_definitions), Default(global_infos), Ignore(global_var_map_));
};

class IRModule : public FromFields<ObjectRef, IRModuleNode> {
 public:
  using Constructors::Constructors;
  IRModule() : IRModule(Map<GlobalVar, BaseFunc>()) {}
  IRModule(std::nullptr_t) {}
  explicit IRModule(ObjectPtr<Object> data) : Constructors(std::move(data)) {}
  /*! \brief A module with one function, named by its global_symbol or else `name`. */
  TVM_DLL static IRModule FromExpr(const BaseFunc& func, String name = "main");

  using ContainerType = IRModuleNode;
  IRModuleNode* get() const { return static_cast<IRModuleNode*>(data_.get()); }
  IRModuleNode* operator->() const { return ::tvm::runtime::NotNull(get()); }
  /*! \brief A node to write, copied first if shared. */
  IRModuleNode* CopyOnWrite() {
    if (!data_.unique()) data_ = make_object<IRModuleNode>(*get());
    return get();
  }
};

}  // namespace tvm

#endif  // TVM_IR_MODULE_H_
