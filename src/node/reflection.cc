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
  TVM_CHECK(type->reflection != nullptr && type->reflection->collect != nullptr, TypeError)
      << "objects of type " << type->key
      << " cannot be taken apart: the type is abstract or has no TVM_REGISTER_NODE";
  return *type->reflection;
}

const FieldTable& NodeReflection::Collected() const {
  // Not at registration: building the prototype may need other statics.
  std::call_once(collected_, [this] {
    if (collect == nullptr) return;
    collect(&table_);
    for (uint32_t offset : table_.arg_offsets) {
      for (const FieldInfo& field : table_.fields) {
        if (field.offset == offset) table_.args.push_back(&field);
      }
    }
  });
  return table_;
}

const FieldInfo* NodeReflection::Find(std::string_view name) const {
  for (const FieldInfo& field : fields()) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

void FieldInfo::Set(Object* node, const Any& value) const {
  bool written = write(Address(node), value);
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

void NodeReflection::Finish(Object* node, const std::vector<const FieldInfo*>& given) const {
  std::vector<Any> said;
  for (const FieldInfo* field : given) {
    said.push_back(field->is_object ? Any() : field->Get(node));
  }
  finish(node);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]->is_object) continue;
    Any made = given[i]->Get(node);
    // Literals are rounded to their type.
    bool same = made.type_code() == kTVMFloat || runtime::AnyEqual()(said[i], made);
    TVM_CHECK(same, TypeError) << node->GetTypeKey() << '.' << given[i]->name
                               << ": the other fields make it " << made << ", not " << said[i];
  }
}

ObjectRef MakeNode(const std::string& type_key,
                   const std::vector<std::pair<std::string, Any>>& fields) {
  const TypeInfo* type = TypeInfo::Find(type_key);
  TVM_CHECK(type != nullptr, ValueError) << "there is no node type \"" << type_key << '"';
  const NodeReflection& reflection = NodeReflection::Require(type);
  TVM_CHECK(reflection.create != nullptr, TypeError)
      << "the node type " << type_key << " is abstract";
  ObjectPtr<Object> node = reflection.create();
  std::vector<const FieldInfo*> given;
  for (const auto& [name, value] : fields) {
    const FieldInfo* field = reflection.Find(name);
    TVM_CHECK(field != nullptr, ValueError) << type_key << " has no field \"" << name << '"';
    field->Set(node.get(), value);
    given.push_back(field);
  }
  reflection.Finish(node.get(), given);
  return ObjectRef(node);
}

ObjectRef CopyNode(const ObjectRef& node) {
  if (!node.defined()) return node;
  const NodeReflection* reflection = node->type_info()->reflection;
  TVM_CHECK(reflection != nullptr && reflection->copy != nullptr, TypeError)
      << "objects of type " << node->GetTypeKey() << " cannot be copied";
  return ObjectRef(reflection->copy(node.get()));
}

namespace detail {

void ThrowMissing(const char* type_key, const char* field) {
  TVM_FATAL(ValueError) << type_key << '.' << field << " is missing";
}

void RequireElements(const ArrayNode* array, const char* type_key, const char* field) {
  for (size_t i = 0; i < array->data.size(); ++i) {
    TVM_CHECK(!array->data[i].is_null(), ValueError)
        << type_key << '.' << field << '[' << i << "] is missing";
  }
}

void RequireEntries(const MapNode* map, bool keys, bool values, const char* type_key,
                    const char* field) {
  for (const auto& [key, value] : map->entries()) {
    TVM_CHECK(!(keys && key.is_null()), ValueError)
        << type_key << '.' << field << ": a key is missing";
    TVM_CHECK(!(values && value.is_null()), ValueError)
        << type_key << '.' << field << '[' << key << "] is missing";
  }
}

void RegisterConstructor(const NodeReflection* reflection, const char* name) {
  runtime::Registry::RegisterImplied(name, [reflection, name](Args args, RetValue* ret) {
    const std::vector<const FieldInfo*>& fields = reflection->args();
    const size_t count = static_cast<size_t>(args.size());
    if (count < reflection->num_required_args() || count > fields.size()) {
      runtime::ThrowArgCountError(name, static_cast<int>(fields.size()), args.size());
    }
    ObjectPtr<Object> node = reflection->create();
    for (size_t i = 0; i < count; ++i) {
      const FieldInfo& field = *fields[i];
      if (!field.write(field.Address(node.get()), args[i])) {
        runtime::ThrowArgTypeError(name, static_cast<int>(i), field.type_name(), args[i]);
      }
    }
    reflection->finish(node.get());
    *ret = ObjectRef(node);
  });
}

}  // namespace detail

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
    if (type->reflection != nullptr && type->reflection->collect != nullptr) {
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
