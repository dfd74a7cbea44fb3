/*!
 * \file tvm/node/reflection.h
 * \brief What is derived from a node's one declaration: its field table and how to build one.
 */
#ifndef TVM_NODE_REFLECTION_H_
#define TVM_NODE_REFLECTION_H_

#include <tvm/runtime/any.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tvm {

class ReprPrinter;

/*! \brief The part a field plays in comparison. */
enum class FieldRole : uint8_t {
  /*! \brief Compared and hashed. */
  kValue,
  /*! \brief Introduces variables: equality maps those of one side to those of the other. */
  kBind,
  /*! \brief Not part of the meaning: source spans, caches, display names. */
  kIgnore,
};

/*! \brief One field. `address` below is that of the object plus `offset`. */
struct FieldInfo {
  const char* name;
  FieldRole role;
  /*! \brief The field is an ObjectRef, which may be read in place. */
  bool is_object;
  uint32_t offset;
  Any (*read)(const void* address);
  /*! \brief Convert and store; returns false when the value has the wrong type. */
  bool (*write)(void* address, const Any& value);
  std::string (*type_name)();

  void* Address(Object* node) const { return reinterpret_cast<char*>(node) + offset; }
  Any Get(const Object* node) const { return read(reinterpret_cast<const char*>(node) + offset); }
  const ObjectRef& GetRef(const Object* node) const {
    return *reinterpret_cast<const ObjectRef*>(reinterpret_cast<const char*>(node) + offset);
  }
  /*! \brief Store a value; TypeError naming type, field, expected and actual type. */
  TVM_DLL void Set(Object* node, const Any& value) const;
};

struct FieldTable {
  std::vector<FieldInfo> fields;
  /*! \brief Offsets of the constructor's arguments; see NodeReflection::args. */
  std::vector<uint32_t> arg_offsets;
  std::vector<const FieldInfo*> args;
  size_t num_required = 0;
};

struct NodeReflection {
  /*! \brief Parents' fields first, then own ones, in the order of declaration. */
  const std::vector<FieldInfo>& fields() const { return Collected().fields; }
  /*! \brief What constructors take, in order; see TVM_NODE_ARGS. */
  const std::vector<const FieldInfo*>& args() const { return Collected().args; }
  /*! \brief How many of them cannot be left out. */
  size_t num_required_args() const { return Collected().num_required; }
  /*! \brief The field called `name`, or null. */
  TVM_DLL const FieldInfo* Find(std::string_view name) const;

  /*! \brief Null for abstract types. */
  ObjectPtr<Object> (*create)() = nullptr;
  ObjectPtr<Object> (*copy)(const Object*) = nullptr;
  void (*collect)(FieldTable*) = nullptr;
  /*! \brief Last step of making a node: requires references that must be there, calls Init(). */
  void (*finish)(Object*) = nullptr;
  /*! \brief A variable: compared by the binding that introduced it, else by identity. */
  bool is_variable = false;
  /*! \brief For objects that exist once under a name (operators): saved and found by it. */
  std::string (*name_of)(const Object*) = nullptr;
  ObjectPtr<Object> (*find_named)(const std::string&) = nullptr;
  std::function<void(const Object*, ReprPrinter*)> repr;

  /*!
   * \brief `finish` for a node whose fields in `given` were set by somebody who may not know what
   * follows from what; TypeError if a type or number among them is not what the others make it.
   */
  TVM_DLL void Finish(Object* node, const std::vector<const FieldInfo*>& given) const;

  /*! \brief The entry of a type, made if missing. Only for registration. */
  TVM_DLL static NodeReflection* Mutable(const runtime::TypeInfo* type);
  /*! \brief The entry of a type; TypeError if the type was not registered with its fields. */
  TVM_DLL static const NodeReflection& Require(const runtime::TypeInfo* type);

 private:
  TVM_DLL const FieldTable& Collected() const;
  mutable std::once_flag collected_;
  mutable FieldTable table_;
};

/*! \brief Value of a field by name; AttributeError that lists the fields if there is none. */
TVM_DLL Any GetField(const Object* node, std::string_view name);
/*! \brief Names of all fields; empty for types without reflection. */
TVM_DLL std::vector<std::string> ListFieldNames(const Object* node);
/*! \brief A node built from named field values; missing ones keep their default. */
TVM_DLL ObjectRef MakeNode(const std::string& type_key,
                           const std::vector<std::pair<std::string, Any>>& fields);
/*! \brief A shallow copy. */
TVM_DLL ObjectRef CopyNode(const ObjectRef& node);

}  // namespace tvm

#endif  // TVM_NODE_REFLECTION_H_
