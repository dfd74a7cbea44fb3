#include <tvm/node/object_path.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>
#include <tvm/node/structural_hash.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/stack_guard.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "float32_bits.h"

namespace tvm {
namespace {

using runtime::NDArrayObj;

/*! \brief From the place of an object to that of a part of it. */
using Step = std::function<ObjectPath(const ObjectPath&)>;

class EqualFinder {
 public:
  explicit EqualFinder(bool map_free_vars) : map_free_vars_(map_free_vars) {}

  struct Places {
    ObjectPath lhs = ObjectPath::Root();
    ObjectPath rhs = ObjectPath::Root();
    std::string reason;
  };

  std::optional<Places> Run(const Any& lhs, const Any& rhs) {
    if (Equal(lhs, rhs, false)) return std::nullopt;
    Places places;
    // The steps were collected from the difference outwards.
    for (auto it = steps_.rbegin(); it != steps_.rend(); ++it) {
      places.lhs = it->first(places.lhs);
      places.rhs = it->second(places.rhs);
    }
    places.reason = reason_;
    return places;
  }

 private:
  bool Equal(const Any& lhs, const Any& rhs, bool binding) {
    if (lhs.is_object() && rhs.is_object()) return EqualObject(lhs.object(), rhs.object(), binding);
    // Floats are compared by their bits, so that NaN equals itself and equal graphs hash alike.
    bool floats = lhs.type_code() == kTVMFloat && rhs.type_code() == kTVMFloat;
    if (floats ? lhs.raw().v_int64 == rhs.raw().v_int64 : runtime::AnyEqual()(lhs, rhs))
      return true;
    return Differ(AsRepr(lhs) + " vs. " + AsRepr(rhs));
  }

  bool EqualObject(const Object* lhs, const Object* rhs, bool binding) {
    if (runtime::IsStackUsedUp()) {
      return runtime::ResultOnNewStack([&] { return EqualObject(lhs, rhs, binding); });
    }
    if (lhs->type_info() != rhs->type_info()) {
      return Differ("type " + lhs->GetTypeKey() + " vs. " + rhs->GetTypeKey());
    }
    if (auto it = to_rhs_.find(lhs); it != to_rhs_.end()) {
      if (it->second == rhs) return true;
      // Copies of one subtree are equal to it, but a variable corresponds to one variable only.
      if (IsVariable(lhs)) return Differ(Name(lhs) + " corresponds to " + Name(it->second));
    }
    const NodeReflection* reflection = lhs->type_info()->reflection;
    if (reflection != nullptr && reflection->is_variable) return EqualVariable(lhs, rhs, binding);
    // An object without free variables inside is equal to itself, but the same object may stand
    // under different bindings on the two sides, so identity is only a shortcut for leaves.
    if (reflection != nullptr && reflection->name_of != nullptr) {
      return lhs == rhs || Differ(Name(lhs) + " vs. " + Name(rhs));
    }
    if (lhs == rhs && to_rhs_.empty()) return true;
    if (!EqualContents(lhs, rhs, binding)) return false;
    to_rhs_.emplace(lhs, rhs);
    return true;
  }

  static bool IsVariable(const Object* node) {
    const NodeReflection* reflection = node->type_info()->reflection;
    return reflection != nullptr && reflection->is_variable;
  }

  static std::string Name(const Object* node) { return AsRepr(Any(GetRef<ObjectRef>(node))); }

  bool EqualVariable(const Object* lhs, const Object* rhs, bool binding) {
    if (auto it = to_lhs_.find(rhs); it != to_lhs_.end()) {
      return Differ(Name(rhs) + " already corresponds to " + Name(it->second));
    }
    if (!binding && !map_free_vars_) {
      return lhs == rhs || Differ("free variable " + Name(lhs) + " vs. " + Name(rhs));
    }
    // A parameter also binds the symbolic extents of its type.
    if (!EqualFields(lhs, rhs, binding)) return false;
    to_rhs_.emplace(lhs, rhs);
    to_lhs_.emplace(rhs, lhs);
    return true;
  }

  bool EqualContents(const Object* lhs, const Object* rhs, bool binding) {
    if (lhs->IsInstance<StringObj>()) {
      const auto& a = static_cast<const StringObj*>(lhs)->data;
      const auto& b = static_cast<const StringObj*>(rhs)->data;
      return a == b || Differ(Name(lhs) + " vs. " + Name(rhs));
    }
    if (lhs->IsInstance<ArrayNode>()) {
      return EqualArray(static_cast<const ArrayNode*>(lhs), static_cast<const ArrayNode*>(rhs),
                        binding);
    }
    if (lhs->IsInstance<MapNode>()) {
      return EqualMap(static_cast<const MapNode*>(lhs), static_cast<const MapNode*>(rhs), binding);
    }
    if (lhs->IsInstance<NDArrayObj>()) {
      return EqualTensor(static_cast<const NDArrayObj*>(lhs), static_cast<const NDArrayObj*>(rhs));
    }
    const NodeReflection* reflection = lhs->type_info()->reflection;
    if (reflection == nullptr || reflection->collect == nullptr) {
      // Functions, modules and the like: known by identity only.
      return lhs == rhs || Differ("two different objects of type " + lhs->GetTypeKey());
    }
    return EqualFields(lhs, rhs, binding);
  }

  bool EqualFields(const Object* lhs, const Object* rhs, bool binding) {
    for (const FieldInfo& field : lhs->type_info()->reflection->fields()) {
      if (field.role == FieldRole::kIgnore) continue;
      bool bind = binding || field.role == FieldRole::kBind;
      bool equal;
      if (field.is_object) {
        const ObjectRef& a = field.GetRef(lhs);
        const ObjectRef& b = field.GetRef(rhs);
        if (a.defined() && b.defined()) {
          equal = EqualObject(a.get(), b.get(), bind);
        } else {
          equal = a.same_as(b) || Differ(AsRepr(a) + " vs. " + AsRepr(b));
        }
      } else {
        equal = Equal(field.Get(lhs), field.Get(rhs), bind);
      }
      if (!equal) {
        return At([name = field.name](const ObjectPath& path) { return path.Attr(name); });
      }
    }
    return true;
  }

  bool EqualArray(const ArrayNode* lhs, const ArrayNode* rhs, bool binding) {
    for (size_t i = 0; i < std::min(lhs->size(), rhs->size()); ++i) {
      if (!Equal(lhs->at(i), rhs->at(i), binding)) return At(Element(i));
    }
    if (lhs->size() == rhs->size()) return true;
    Differ(std::to_string(lhs->size()) + " vs. " + std::to_string(rhs->size()) + " elements");
    const auto end = static_cast<int64_t>(std::min(lhs->size(), rhs->size()));
    Step missing = [end](const ObjectPath& path) { return path.MissingArrayElement(end); };
    return lhs->size() < rhs->size() ? At(missing, Element(end)) : At(Element(end), missing);
  }

  bool EqualMap(const MapNode* lhs, const MapNode* rhs, bool binding) {
    std::unordered_map<size_t, std::vector<const MapNode::Entry*>> by_hash;
    std::vector<const Any*> matched;
    for (size_t i = 0; i < lhs->size(); ++i) {
      const auto& [key, value] = lhs->entries()[i];
      const Any* other = nullptr;
      const Any* other_key = nullptr;
      if (const MapNode::Entry* entry = FindCounterpart(key, rhs)) {
        other_key = &entry->first;
        other = &entry->second;
      } else if (key.is_object() && !key.as<StringObj>() && IsVariable(key.object())) {
        if (i >= rhs->size()) return OnlyOn(key, true);
        // Variables not seen before correspond in the order of insertion.
        other_key = &rhs->entries()[i].first;
        other = &rhs->entries()[i].second;
      } else if (key.is_object() && !key.as<StringObj>()) {
        if (by_hash.empty()) {
          for (const auto& entry : rhs->entries()) {
            by_hash[StructuralHash()(entry.first)].push_back(&entry);
          }
        }
        for (const MapNode::Entry* entry : by_hash[StructuralHash()(key)]) {
          if (!StructuralEqual()(key, entry->first)) continue;
          other_key = &entry->first;
          other = &entry->second;
          break;
        }
      }
      if (other == nullptr) return OnlyOn(key, true);
      matched.push_back(other_key);
      if ((key.is_object() && !Equal(key, *other_key, binding)) ||
          !EqualSetting(value, *other, binding)) {
        Step left = [key = key](const ObjectPath& path) { return path.MapValue(key); };
        Step right = [key = *other_key](const ObjectPath& path) { return path.MapValue(key); };
        return At(left, right);
      }
    }
    if (lhs->size() == rhs->size()) return true;
    for (const MapNode::Entry& entry : rhs->entries()) {
      if (std::find(matched.begin(), matched.end(), &entry.first) == matched.end()) {
        return OnlyOn(entry.first, false);
      }
    }
    return Differ(std::to_string(lhs->size()) + " vs. " + std::to_string(rhs->size()) + " entries");
  }

  // Numbers among settings are often float32 that came through a text or another width: 1e-5 and
  // the float32 next to it are one epsilon.
  bool EqualSetting(const Any& lhs, const Any& rhs, bool binding) {
    bool floats = lhs.type_code() == kTVMFloat && rhs.type_code() == kTVMFloat;
    if (floats && Float32Bits(lhs.raw().v_float64) == Float32Bits(rhs.raw().v_float64)) return true;
    return Equal(lhs, rhs, binding);
  }

  /*! \brief An entry that one map has and the other does not. */
  bool OnlyOn(const Any& key, bool left) {
    Differ("key " + AsRepr(key) + " is only on the " + (left ? "left" : "right"));
    Step there = [key](const ObjectPath& path) { return path.MapValue(key); };
    Step missing = [](const ObjectPath& path) { return path.MissingMapEntry(); };
    return left ? At(there, missing) : At(missing, there);
  }

  // The entry of `rhs` for the same text or number, or for the variable that corresponds to `key`.
  const MapNode::Entry* FindCounterpart(const Any& key, const MapNode* rhs) {
    if (key.is_object()) {
      if (auto it = to_rhs_.find(key.object()); it != to_rhs_.end()) {
        return rhs->Find(Any(GetRef<ObjectRef>(it->second)));
      }
    }
    return rhs->Find(key);
  }

  bool EqualTensor(const NDArrayObj* lhs, const NDArrayObj* rhs) {
    if (lhs == rhs) return true;
    if (lhs->shape != rhs->shape || DataType(lhs->tensor.dtype) != DataType(rhs->tensor.dtype)) {
      return Differ(Name(lhs) + " vs. " + Name(rhs));
    }
    auto a = GetRef<runtime::NDArray>(lhs).CopyTo(Device{kDLCPU, 0});
    auto b = GetRef<runtime::NDArray>(rhs).CopyTo(Device{kDLCPU, 0});
    return std::memcmp(a.data(), b.data(), a.NumBytes()) == 0 ||
           Differ("contents of two tensors " + Name(lhs));
  }

  bool Differ(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  bool At(Step lhs, Step rhs) {
    steps_.emplace_back(std::move(lhs), std::move(rhs));
    return false;
  }
  bool At(const Step& step) { return At(step, step); }
  static Step Element(int64_t index) {
    return [index](const ObjectPath& path) { return path.ArrayIndex(index); };
  }

  bool map_free_vars_;
  // Pairs found equal. Correspondences of variables only grow, so they stay equal.
  std::unordered_map<const Object*, const Object*> to_rhs_;
  std::unordered_map<const Object*, const Object*> to_lhs_;
  std::vector<std::pair<Step, Step>> steps_;
  std::string reason_;
};

}  // namespace

std::optional<StructuralMismatch> FindStructuralMismatch(const Any& lhs, const Any& rhs,
                                                         bool map_free_vars) {
  auto places = EqualFinder(map_free_vars).Run(lhs, rhs);
  if (!places) return std::nullopt;
  return StructuralMismatch{places->lhs.ToText(), places->reason};
}

bool StructuralEqual::operator()(const Any& lhs, const Any& rhs, bool map_free_vars) const {
  return !FindStructuralMismatch(lhs, rhs, map_free_vars).has_value();
}

TVM_REGISTER_GLOBAL("node.StructuralEqual").set_body_typed([](Any lhs, Any rhs, bool map_free) {
  return StructuralEqual()(lhs, rhs, map_free);
});

/*! \brief None, or the places and the reason of the first difference. */
TVM_REGISTER_GLOBAL("node.GetFirstStructuralMismatch")
    .set_body_typed([](Any lhs, Any rhs, bool map_free) {
      auto places = EqualFinder(map_free).Run(lhs, rhs);
      if (!places) return Array<Any>(nullptr);
      return Array<Any>{Any(places->lhs), Any(places->rhs), Any(String(places->reason))};
    });

}  // namespace tvm
