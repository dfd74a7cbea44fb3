#include <tvm/node/node.h>
#include <tvm/node/reflection.h>

#include <mutex>

namespace tvm {

using runtime::TypeInfo;

NodeReflection* NodeReflection::Mutable(const TypeInfo* type) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (type->reflection == nullptr) type->reflection = new NodeReflection();
  return const_cast<NodeReflection*>(type->reflection);
}

const NodeReflection& NodeReflection::Require(const TypeInfo* type) {
  TVM_CHECK(type->reflection != nullptr && type->reflection->collect_fields != nullptr, TypeError)
      << "objects of type " << type->key
      << " cannot be taken apart: the type is abstract or has no TVM_REGISTER_NODE";
  return *type->reflection;
}

const std::vector<FieldInfo>& NodeReflection::fields() const {
  // Not at registration: building the prototype may need other statics.
  std::call_once(collected_, [this] {
    if (collect_fields != nullptr) collect_fields(&fields_);
  });
  return fields_;
}

const FieldInfo* NodeReflection::Find(std::string_view name) const {
  for (const FieldInfo& field : fields()) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

void FieldInfo::Set(Object* node, const Any& value) const {
  bool written = write(reinterpret_cast<char*>(node) + offset, value);
  TVM_CHECK(written, TypeError) << node->GetTypeKey() << "." << name << ": expected " << type_name()
                                << ", got " << value.TypeName();
}

std::vector<std::string> ListFieldNames(const Object* node) {
  std::vector<std::string> names;
  if (const NodeReflection* reflection = node->type_info()->reflection) {
    for (const FieldInfo& field : reflection->fields()) names.push_back(field.name);
  }
  return names;
}

Any GetField(const Object* node, std::string_view name) {
  if (const NodeReflection* reflection = node->type_info()->reflection) {
    if (const FieldInfo* field = reflection->Find(name)) return field->Get(node);
  }
  std::ostringstream known;
  for (const std::string& field : ListFieldNames(node)) known << ' ' << field;
  TVM_FATAL(AttributeError) << node->GetTypeKey() << " has no attribute " << name
                            << "; its fields are:" << known.str();
}

ObjectRef MakeNode(const std::string& type_key,
                   const std::vector<std::pair<std::string, Any>>& fields) {
  const TypeInfo* type = TypeInfo::Find(type_key);
  TVM_CHECK(type != nullptr, ValueError) << "there is no node type \"" << type_key << '"';
  const NodeReflection& reflection = NodeReflection::Require(type);
  TVM_CHECK(reflection.create != nullptr, TypeError)
      << "the node type " << type_key << " is abstract";
  ObjectPtr<Object> node = reflection.create();
  for (const auto& [name, value] : fields) {
    const FieldInfo* field = reflection.Find(name);
    TVM_CHECK(field != nullptr, ValueError) << type_key << " has no field \"" << name << '"';
    field->Set(node.get(), value);
  }
  if (reflection.check) reflection.check(node.get());
  return ObjectRef(node);
}

ObjectRef CopyNode(const ObjectRef& node) {
  if (!node.defined()) return node;
  const NodeReflection* reflection = node->type_info()->reflection;
  TVM_CHECK(reflection != nullptr && reflection->copy != nullptr, TypeError)
      << "objects of type " << node->GetTypeKey() << " cannot be copied";
  return ObjectRef(reflection->copy(node.get()));
}

TVM_REGISTER_GLOBAL("node.GetField").set_body_typed([](ObjectRef node, std::string name) {
  TVM_CHECK(node.defined(), ValueError) << "node.GetField: got None";
  return GetField(node.get(), name);
});

TVM_REGISTER_GLOBAL("node.ListFieldNames").set_body_typed([](ObjectRef node) {
  TVM_CHECK(node.defined(), ValueError) << "node.ListFieldNames: got None";
  Array<String> names;
  for (const std::string& name : ListFieldNames(node.get())) names.push_back(name);
  return names;
});

/*! \brief (type key, field name, value, field name, value, ...). */
TVM_REGISTER_GLOBAL("node.MakeNode").set_body([](Args args, RetValue* ret) {
  TVM_CHECK(args.size() % 2 == 1, TypeError)
      << "node.MakeNode: expected a type key and then names and values in turn";
  std::vector<std::pair<std::string, Any>> fields;
  for (int i = 1; i < args.size(); i += 2)
    fields.emplace_back(args[i].cast<std::string>(), args[i + 1]);
  *ret = MakeNode(args[0], fields);
});

/*! \brief Keys of all types whose fields are known, in the order the types were met. */
TVM_REGISTER_GLOBAL("node.ListTypeKeys").set_body_typed([]() {
  Array<String> keys;
  for (uint32_t index = 0; index < TypeInfo::Count(); ++index) {
    const TypeInfo* type = TypeInfo::FromIndex(index);
    if (type->reflection != nullptr && type->reflection->collect_fields != nullptr) {
      keys.push_back(type->key);
    }
  }
  return keys;
});

/*! \brief Names and declared types of the fields of a type. */
TVM_REGISTER_GLOBAL("node.ListFieldTypes").set_body_typed([](std::string type_key) {
  const TypeInfo* type = TypeInfo::Find(type_key);
  TVM_CHECK(type != nullptr, ValueError) << "there is no node type \"" << type_key << '"';
  Map<String, String> types;
  for (const FieldInfo& field : NodeReflection::Require(type).fields()) {
    types.Set(field.name, field.type_name());
  }
  return types;
});

/*! \brief The fields of a type as const std::vector<FieldInfo>*, null for types without. */
TVM_REGISTER_GLOBAL("node.FieldTable").set_body_typed([](std::string type_key) {
  const TypeInfo* type = TypeInfo::Find(type_key);
  const NodeReflection* reflection = type == nullptr ? nullptr : type->reflection;
  const std::vector<FieldInfo>* fields = reflection == nullptr ? nullptr : &reflection->fields();
  return const_cast<void*>(static_cast<const void*>(fields));
});

TVM_REGISTER_GLOBAL("node.CopyNode").set_body_typed([](ObjectRef node) { return CopyNode(node); });

}  // namespace tvm
