#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {

ArrayNode::ArrayNode(const ArrayNode& other) = default;
ArrayNode::~ArrayNode() = default;
MapNode::MapNode(const MapNode& other) = default;
MapNode::~MapNode() = default;
StringObj::~StringObj() = default;
String::String(const char* text) : String(std::string(text)) {}

ObjectPtr<Object> ConvertElements(const ArrayNode* node, ElementConverter convert) {
  auto out = make_object<ArrayNode>();
  out->data.resize(node->size());
  for (size_t i = 0; i < node->size(); ++i) {
    if (!convert(node->data[i], &out->data[i])) return nullptr;
  }
  return out;
}

ObjectPtr<Object> ConvertEntries(const MapNode* node, ElementConverter convert_key,
                                 ElementConverter convert_value) {
  auto out = make_object<MapNode>();
  for (const auto& [key, value] : node->entries()) {
    Any new_key, new_value;
    if (!convert_key(key, &new_key) || !convert_value(value, &new_value)) return nullptr;
    out->Set(std::move(new_key), std::move(new_value));
  }
  return out;
}

void ThrowIndexError(int64_t index, size_t size) {
  TVM_FATAL(IndexError) << "Array: index " << index << " is out of range for " << size
                        << " elements";
}

void ThrowElementError(const std::string& container, const Object* node) {
  std::string found;
  if (const auto* array = GetRef<ObjectRef>(node).as<ArrayNode>()) {
    for (const Any& item : array->data) found += (found.empty() ? "" : ", ") + item.TypeName();
  } else if (const auto* map = GetRef<ObjectRef>(node).as<MapNode>()) {
    for (const auto& [key, value] : map->entries()) {
      found += (found.empty() ? "" : ", ") + key.TypeName() + ": " + value.TypeName();
    }
  }
  TVM_FATAL(TypeError) << "Downcast: " << container
                       << " has elements of another type than expected: " << found;
}

int64_t MapNode::IndexOf(const Any& key, size_t hash) const {
  AnyEqual equal;
  if (slots_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equal(entries_[i].first, key)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    uint32_t index = slots_[at];
    if (index == kFree) return -1;
    if (equal(entries_[index].first, key)) return index;
  }
}

void MapNode::Rehash() {
  size_t capacity = 4 * kLinearLimit;
  while (capacity < 2 * entries_.size()) capacity *= 2;
  slots_.assign(entries_.size() > kLinearLimit ? capacity : 0, kFree);
  if (slots_.empty()) return;
  size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t at = AnyHash()(entries_[i].first) & mask;
    while (slots_[at] != kFree) at = (at + 1) & mask;
    slots_[at] = static_cast<uint32_t>(i);
  }
}

const MapNode::Entry* MapNode::Find(const Any& key) const {
  int64_t index = IndexOf(key, slots_.empty() ? 0 : AnyHash()(key));
  return index < 0 ? nullptr : &entries_[static_cast<size_t>(index)];
}

void MapNode::Set(Any key, Any value) {
  size_t hash = slots_.empty() ? 0 : AnyHash()(key);
  int64_t index = IndexOf(key, hash);
  if (index >= 0) {
    entries_[static_cast<size_t>(index)].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() <= kLinearLimit) return;
  if (2 * entries_.size() > slots_.size()) {
    Rehash();
    return;
  }
  size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != kFree) at = (at + 1) & mask;
  slots_[at] = static_cast<uint32_t>(entries_.size() - 1);
}

bool MapNode::Erase(const Any& key) {
  int64_t index = IndexOf(key, slots_.empty() ? 0 : AnyHash()(key));
  if (index < 0) return false;
  entries_.erase(entries_.begin() + index);
  Rehash();
  return true;
}

TVM_REGISTER_GLOBAL("runtime.Array").set_body([](Args args, RetValue* ret) {
  *ret = Array<Any>(args.begin(), args.end());
});

TVM_REGISTER_GLOBAL("runtime.ArraySize").set_body_typed([](Array<Any> array) {
  return static_cast<int64_t>(array.size());
});

TVM_REGISTER_GLOBAL("runtime.ArrayGetItem").set_body_typed([](Array<Any> array, int64_t i) {
  return array[i];
});

TVM_REGISTER_GLOBAL("runtime.Map").set_body([](Args args, RetValue* ret) {
  TVM_CHECK(args.size() % 2 == 0, TypeError)
      << "runtime.Map: expected keys and values in turn, got " << args.size() << " arguments";
  Map<Any, Any> map;
  for (int i = 0; i < args.size(); i += 2) map.Set(args[i], args[i + 1]);
  *ret = map;
});

TVM_REGISTER_GLOBAL("runtime.MapSize").set_body_typed([](Map<Any, Any> map) {
  return static_cast<int64_t>(map.size());
});

TVM_REGISTER_GLOBAL("runtime.MapGetItem").set_body_typed([](Map<Any, Any> map, Any key) {
  return map.at(key);
});

TVM_REGISTER_GLOBAL("runtime.MapCount").set_body_typed([](Map<Any, Any> map, Any key) {
  return map.contains(key);
});

/*! \brief Keys and values in turn, in the order of insertion. */
TVM_REGISTER_GLOBAL("runtime.MapItems").set_body_typed([](Map<Any, Any> map) {
  Array<Any> items;
  for (const auto& [key, value] : map.get()->entries()) {
    items.push_back(key);
    items.push_back(value);
  }
  return items;
});

}  // namespace runtime
}  // namespace tvm
