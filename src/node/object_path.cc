#include <tvm/node/object_path.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>

#include <algorithm>
#include <vector>

namespace tvm {
namespace {

/*! \brief The value of a field of a node; null if the node has none of that name. */
Any FieldOf(const Any& value, const std::string& name) {
  if (!value.is_object()) return Any();
  const NodeReflection* reflection = value.object()->type_info()->reflection;
  if (reflection == nullptr || reflection->collect == nullptr) return Any();
  for (const FieldInfo& field : reflection->fields()) {
    if (name == field.name) return field.Get(value.object());
  }
  return Any();
}

}  // namespace

class RootPathNode final : public ObjectPathNode {
 public:
  Optional<String> name;
  std::string StepText() const final { return name ? std::string(name.value()) : "<root>"; }
  TVM_DECLARE_NODE(RootPathNode, ObjectPathNode, "RootPath", Maybe(name));
  TVM_NODE_ARGS();
};

class AttributeAccessPathNode final : public ObjectPathNode {
 public:
  String attr_key;
  std::string StepText() const final { return "." + attr_key.str(); }
  Any Step(const Any& value) const final { return FieldOf(value, attr_key); }
  TVM_DECLARE_NODE(AttributeAccessPathNode, ObjectPathNode, "AttributeAccessPath", Value(attr_key));
  TVM_NODE_ARGS();
};

class UnknownAttributeAccessPathNode final : public ObjectPathNode {
 public:
  std::string StepText() const final { return ".<unknown attribute>"; }
  TVM_DECLARE_NODE(UnknownAttributeAccessPathNode, ObjectPathNode, "UnknownAttributeAccessPath");
  TVM_NODE_ARGS();
};

class ArrayIndexPathNode final : public ObjectPathNode {
 public:
  int64_t index = 0;
  std::string StepText() const final { return "[" + std::to_string(index) + "]"; }
  Any Step(const Any& value) const final {
    const auto* array = value.as<ArrayNode>();
    const auto position = static_cast<size_t>(index);
    return array != nullptr && position < array->size() ? array->at(position) : Any();
  }
  TVM_DECLARE_NODE(ArrayIndexPathNode, ObjectPathNode, "ArrayIndexPath", Value(index));
  TVM_NODE_ARGS();
};

class MissingArrayElementPathNode final : public ObjectPathNode {
 public:
  int64_t index = 0;
  std::string StepText() const final {
    return "[<missing element #" + std::to_string(index) + ">]";
  }
  TVM_DECLARE_NODE(MissingArrayElementPathNode, ObjectPathNode, "MissingArrayElementPath",
                   Value(index));
  TVM_NODE_ARGS();
};

class MapValuePathNode final : public ObjectPathNode {
 public:
  Any key;
  std::string StepText() const final { return "[" + AsRepr(key) + "]"; }
  Any Step(const Any& value) const final {
    const auto* map = value.as<MapNode>();
    const MapNode::Entry* entry = map == nullptr ? nullptr : map->Find(key);
    return entry == nullptr ? Any() : entry->second;
  }
  TVM_DECLARE_NODE(MapValuePathNode, ObjectPathNode, "MapValuePath", Value(key));
  TVM_NODE_ARGS();
};

class MissingMapEntryPathNode final : public ObjectPathNode {
 public:
  std::string StepText() const final { return "[<missing entry>]"; }
  TVM_DECLARE_NODE(MissingMapEntryPathNode, ObjectPathNode, "MissingMapEntryPath");
  TVM_NODE_ARGS();
};

TVM_REGISTER_NODE(RootPathNode);
TVM_REGISTER_NODE(AttributeAccessPathNode);
TVM_REGISTER_NODE(UnknownAttributeAccessPathNode);
TVM_REGISTER_NODE(ArrayIndexPathNode);
TVM_REGISTER_NODE(MissingArrayElementPathNode);
TVM_REGISTER_NODE(MapValuePathNode);
TVM_REGISTER_NODE(MissingMapEntryPathNode);

namespace {

template <typename Node>
ObjectPtr<Node> Extend(const ObjectPath& path) {
  auto node = runtime::make_object<Node>();
  node->parent = path;
  node->length = path->length + 1;
  return node;
}

const ObjectPathNode* ParentOf(const ObjectPathNode* path) {
  return static_cast<const ObjectPathNode*>(path->parent.get());
}

bool SameStep(const ObjectPathNode* a, const ObjectPathNode* b) {
  if (a->type_info() != b->type_info()) return false;
  // A key is what it was found by: a variable is known by identity, a text by its letters.
  if (const auto* key = dynamic_cast<const MapValuePathNode*>(a)) {
    return runtime::AnyEqual()(key->key, static_cast<const MapValuePathNode*>(b)->key);
  }
  return a->StepText() == b->StepText();
}

}  // namespace

TVM_REGISTER_NODE(ObjectPathNode);

ObjectPath ObjectPath::Root(Optional<String> name) {
  auto node = runtime::make_object<RootPathNode>();
  node->name = std::move(name);
  return ObjectPath(node);
}
ObjectPath ObjectPath::Attr(const String& field) const {
  auto node = Extend<AttributeAccessPathNode>(*this);
  node->attr_key = field;
  return ObjectPath(node);
}
ObjectPath ObjectPath::UnknownAttr() const {
  return ObjectPath(Extend<UnknownAttributeAccessPathNode>(*this));
}
ObjectPath ObjectPath::ArrayIndex(int64_t index) const {
  auto node = Extend<ArrayIndexPathNode>(*this);
  node->index = index;
  return ObjectPath(node);
}
ObjectPath ObjectPath::MissingArrayElement(int64_t index) const {
  auto node = Extend<MissingArrayElementPathNode>(*this);
  node->index = index;
  return ObjectPath(node);
}
ObjectPath ObjectPath::MapValue(const Any& key) const {
  auto node = Extend<MapValuePathNode>(*this);
  node->key = key;
  return ObjectPath(node);
}
ObjectPath ObjectPath::MissingMapEntry() const {
  return ObjectPath(Extend<MissingMapEntryPathNode>(*this));
}

std::string ObjectPath::ToText() const {
  std::vector<const ObjectPathNode*> steps;
  for (const ObjectPathNode* at = get(); at != nullptr; at = ParentOf(at)) steps.push_back(at);
  std::string text;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) text += (*it)->StepText();
  return text;
}

bool ObjectPath::Equal(const ObjectPath& other) const {
  if (get()->length != other->length) return false;
  const ObjectPathNode* a = get();
  for (const ObjectPathNode* b = other.get(); a != nullptr && a != b;
       a = ParentOf(a), b = ParentOf(b)) {
    if (!SameStep(a, b)) return false;
  }
  return true;
}

bool ObjectPath::IsPrefixOf(const ObjectPath& other) const {
  return get()->length <= other->length && Equal(other.Prefix(get()->length));
}

ObjectPath ObjectPath::Prefix(int64_t length) const {
  TVM_CHECK(length >= 1, IndexError) << "Prefix length must be at least 1, got " << length;
  TVM_CHECK(length <= get()->length, IndexError)
      << "Attempted to get a prefix longer than the path itself: " << ToText() << " has "
      << get()->length << " steps, not " << length;
  const ObjectPathNode* at = get();
  while (at->length > length) at = ParentOf(at);
  return GetRef<ObjectPath>(at);
}

TVM_REGISTER_REPR(ObjectPathNode, [](const ObjectPathNode* node, ReprPrinter* p) {
  p->stream << GetRef<ObjectPath>(node).ToText();
});

TVM_REGISTER_GLOBAL("node.ObjectPathRoot").set_body_typed([](Optional<String> name) {
  return ObjectPath::Root(name);
});
TVM_REGISTER_GLOBAL("node.ObjectPathAttr")
    .set_body_typed([](ObjectPath path, Optional<String> field) {
      return field ? path.Attr(field.value()) : path.UnknownAttr();
    });
TVM_REGISTER_GLOBAL("node.ObjectPathArrayIndex").set_body_typed([](ObjectPath path, int64_t i) {
  return path.ArrayIndex(i);
});
TVM_REGISTER_GLOBAL("node.ObjectPathMissingArrayElement")
    .set_body_typed([](ObjectPath path, int64_t i) { return path.MissingArrayElement(i); });
TVM_REGISTER_GLOBAL("node.ObjectPathMapValue").set_body_typed([](ObjectPath path, Any key) {
  return path.MapValue(key);
});
TVM_REGISTER_GLOBAL("node.ObjectPathMissingMapEntry").set_body_typed([](ObjectPath path) {
  return path.MissingMapEntry();
});
TVM_REGISTER_GLOBAL("node.ObjectPathEqual").set_body_typed([](ObjectPath a, ObjectPath b) {
  return a.Equal(b);
});
TVM_REGISTER_GLOBAL("node.ObjectPathIsPrefixOf").set_body_typed([](ObjectPath a, ObjectPath b) {
  return a.IsPrefixOf(b);
});
TVM_REGISTER_GLOBAL("node.ObjectPathGetPrefix").set_body_typed([](ObjectPath path, int64_t n) {
  return path.Prefix(n);
});

}  // namespace tvm
