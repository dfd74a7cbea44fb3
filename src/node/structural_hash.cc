#include <tvm/node/structural_hash.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/stack_guard.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "float32_bits.h"

namespace tvm {
namespace {

using runtime::NDArrayObj;

// FNV-1a, because the hash of a text has to be the same in every process and on every platform.
uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

class Hasher {
 public:
  explicit Hasher(bool map_free_vars) : map_free_vars_(map_free_vars) {}

  uint64_t Hash(const Any& value, bool binding) {
    if (value.is_object()) return HashObject(value.object(), binding);
    if (value.type_code() == kTVMStr) return HashString(value.raw().v_str);
    // Some floats are equal that only have their float32 in common, so no more of them counts.
    if (value.type_code() == kTVMFloat) {
      return HashCombine(kTVMFloat, Float32Bits(value.raw().v_float64));
    }
    return HashCombine(static_cast<uint64_t>(value.type_code()),
                       static_cast<uint64_t>(value.raw().v_int64));
  }

 private:
  static uint64_t HashString(std::string_view text) {
    return HashCombine(HashBytes(StringObj::_type_key), HashBytes(text));
  }

  uint64_t HashObject(const Object* node, bool binding) {
    if (auto it = memo_.find(node); it != memo_.end()) return it->second;
    if (runtime::IsStackUsedUp()) {
      return runtime::ResultOnNewStack([&] { return HashObject(node, binding); });
    }
    uint64_t hash = HashContents(node, binding);
    memo_.emplace(node, hash);
    return hash;
  }

  uint64_t TypeHash(const runtime::TypeInfo* type) {
    auto [it, added] = type_hashes_.try_emplace(type, 0);
    if (added) it->second = HashBytes(type->key);
    return it->second;
  }

  uint64_t HashContents(const Object* node, bool binding) {
    if (node->IsInstance<StringObj>()) return HashString(static_cast<const StringObj*>(node)->data);
    uint64_t hash = TypeHash(node->type_info());
    if (node->IsInstance<ArrayNode>()) {
      const auto* array = static_cast<const ArrayNode*>(node);
      hash = HashCombine(hash, array->size());
      for (const Any& item : array->data) hash = HashCombine(hash, Hash(item, binding));
      return hash;
    }
    if (node->IsInstance<MapNode>()) {
      return HashCombine(hash, HashMap(static_cast<const MapNode*>(node), binding));
    }
    if (node->IsInstance<NDArrayObj>()) return HashCombine(hash, HashTensor(node));
    const NodeReflection* reflection = node->type_info()->reflection;
    if (reflection != nullptr && reflection->name_of != nullptr) {
      return HashCombine(hash, HashBytes(reflection->name_of(node)));
    }
    if (reflection == nullptr || reflection->collect == nullptr) {
      return HashCombine(hash, reinterpret_cast<uint64_t>(node));
    }
    if (reflection->is_variable) {
      if (!binding && !map_free_vars_) return HashCombine(hash, reinterpret_cast<uint64_t>(node));
      // A bound variable is known by the order in which it was bound.
      hash = HashFields(hash, node, *reflection, binding);
      return HashCombine(hash, ++num_bound_);
    }
    return HashFields(hash, node, *reflection, binding);
  }

  uint64_t HashFields(uint64_t hash, const Object* node, const NodeReflection& reflection,
                      bool binding) {
    for (const FieldInfo& field : reflection.fields()) {
      if (field.role == FieldRole::kIgnore) continue;
      bool bind = binding || field.role == FieldRole::kBind;
      if (field.is_object) {
        const ObjectRef& ref = field.GetRef(node);
        hash = HashCombine(hash, ref.defined() ? HashObject(ref.get(), bind) : 0);
      } else {
        hash = HashCombine(hash, Hash(field.Get(node), bind));
      }
    }
    return hash;
  }

  // Equality does not look at the order of entries, so keys are hashed first and then sorted.
  uint64_t HashMap(const MapNode* map, bool binding) {
    std::vector<std::pair<uint64_t, const Any*>> entries;
    for (const auto& [key, value] : map->entries()) {
      entries.emplace_back(Hash(key, binding), &value);
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    uint64_t hash = entries.size();
    for (const auto& [key_hash, value] : entries) {
      hash = HashCombine(HashCombine(hash, key_hash), Hash(*value, binding));
    }
    return hash;
  }

  static uint64_t HashTensor(const Object* node) {
    auto array =
        GetRef<runtime::NDArray>(static_cast<const NDArrayObj*>(node)).CopyTo(Device{kDLCPU, 0});
    uint64_t hash = HashBytes(array.dtype().ToString());
    for (int64_t extent : array.Shape()) hash = HashCombine(hash, static_cast<uint64_t>(extent));
    return HashCombine(hash, HashBytes({static_cast<const char*>(array.data()), array.NumBytes()}));
  }

  bool map_free_vars_;
  uint64_t num_bound_ = 0;
  std::unordered_map<const Object*, uint64_t> memo_;
  std::unordered_map<const runtime::TypeInfo*, uint64_t> type_hashes_;
};

}  // namespace

size_t StructuralHash::operator()(const Any& value, bool map_free_vars) const {
  return Hasher(map_free_vars).Hash(value, false);
}

TVM_REGISTER_GLOBAL("node.StructuralHash").set_body_typed([](Any value, bool map_free) {
  return static_cast<int64_t>(StructuralHash()(value, map_free));
});

}  // namespace tvm
