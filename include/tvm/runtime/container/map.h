/*!
 * \file tvm/runtime/container/map.h
 * \brief Map<K, V>: a hash map that keeps the order of insertion, copied when a shared one is
 * written. Keys compare by content for numbers and strings and by identity for other objects.
 */
#ifndef TVM_RUNTIME_CONTAINER_MAP_H_
#define TVM_RUNTIME_CONTAINER_MAP_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/string.h>

#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {

/*! \brief Insertion order makes everything derived from a map the same on every run. */
class TVM_DLL MapNode final : public Object {
 public:
  using Entry = std::pair<Any, Any>;

  MapNode() = default;
  MapNode(const MapNode& other);
  ~MapNode();
  size_t size() const { return entries_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }
  /*! \brief The entry with this key, or null. */
  const Entry* Find(const Any& key) const;
  /*! \brief Add an entry or replace the value of an existing one. */
  void Set(Any key, Any value);
  /*! \brief Remove the entry if there is one. Linear in the size of the map. */
  bool Erase(const Any& key);
  void reserve(size_t n) { entries_.reserve(n); }

  TVM_DECLARE_OBJECT(MapNode, Object, "Map");

 private:
  // Small maps are searched linearly; above this size slots_ indexes entries_ by open addressing.
  static constexpr size_t kLinearLimit = 8;
  static constexpr uint32_t kFree = ~0u;
  int64_t IndexOf(const Any& key, size_t hash) const;
  void Rehash();

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;
};

template <typename K, typename V>
class Map : public ObjectRef {
 public:
  using ContainerType = MapNode;
  using key_type = K;
  using mapped_type = V;
  using KeyReader = ElementReader<K>;
  using ValueReader = ElementReader<V>;

  Map() : ObjectRef(make_object<MapNode>()) {}
  Map(std::nullptr_t) {}
  explicit Map(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  Map(std::initializer_list<std::pair<K, V>> items) : Map(items.begin(), items.end()) {}
  template <typename It>
    requires requires(It it) {
      ++it;
      it->first;
      it->second;
    }
  Map(It first, It last) : Map() {
    for (; first != last; ++first) node()->Set(Any(K(first->first)), Any(V(first->second)));
  }
  template <typename Hash, typename Equal>
  Map(const std::unordered_map<K, V, Hash, Equal>& items) : Map(items.begin(), items.end()) {}
  /*! \brief From a map of more specific types. */
  template <typename K2, typename V2>
    requires(!(std::is_same_v<K, K2> && std::is_same_v<V, V2>) && std::is_base_of_v<K, K2> &&
             std::is_base_of_v<V, V2>)
  Map(const Map<K2, V2>& other) : ObjectRef(other.object_ptr()) {}

  const MapNode* get() const { return static_cast<const MapNode*>(data_.get()); }
  size_t size() const { return defined() ? get()->size() : 0; }
  bool empty() const { return size() == 0; }
  size_t count(const K& key) const { return FindEntry(key) != nullptr; }
  bool contains(const K& key) const { return FindEntry(key) != nullptr; }

  /*! \brief The value of `key`; KeyError when there is none. */
  typename ValueReader::Result at(const K& key) const {
    const MapNode::Entry* entry = FindEntry(key);
    TVM_CHECK(entry != nullptr, KeyError) << "Map: no such key among " << size() << " entries";
    return ValueReader::Read(entry->second);
  }
  typename ValueReader::Result operator[](const K& key) const { return at(key); }
  /*! \brief The value of `key`, or nothing. */
  auto Get(const K& key) const {
    const MapNode::Entry* entry = FindEntry(key);
    if constexpr (std::is_base_of_v<ObjectRef, V>) {
      return entry == nullptr ? Optional<V>() : Optional<V>(ValueReader::Read(entry->second));
    } else {
      return entry == nullptr ? std::optional<V>()
                              : std::optional<V>(std::in_place, ValueReader::Read(entry->second));
    }
  }

  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = std::pair<K, V>;
    using reference = std::pair<K, V>;
    struct pointer {
      value_type item;
      const value_type* operator->() const { return &item; }
    };

    iterator() = default;
    explicit iterator(const MapNode::Entry* at) : at_(at) {}
    reference operator*() const {
      return {KeyReader::Read(at_->first), ValueReader::Read(at_->second)};
    }
    pointer operator->() const { return {**this}; }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    bool operator==(const iterator& other) const { return at_ == other.at_; }

   private:
    const MapNode::Entry* at_ = nullptr;
  };
  using const_iterator = iterator;
  iterator begin() const { return iterator(defined() ? get()->entries().data() : nullptr); }
  iterator end() const { return iterator(defined() ? get()->entries().data() + size() : nullptr); }
  iterator find(const K& key) const {
    const MapNode::Entry* entry = FindEntry(key);
    return entry == nullptr ? end() : iterator(entry);
  }

  void Set(const K& key, const V& value) { CopyOnWrite()->Set(Any(key), Any(value)); }
  void erase(const K& key) { CopyOnWrite()->Erase(Any(key)); }
  void clear() { data_ = make_object<MapNode>(); }

  MapNode* CopyOnWrite() {
    if (!data_.unique()) {
      data_ = defined() ? make_object<MapNode>(*get()) : make_object<MapNode>();
    }
    return node();
  }

  static bool HoldsElements(const Object* node) {
    for (const auto& [key, value] : static_cast<const MapNode*>(node)->entries()) {
      if (!KeyReader::Holds(key) || !ValueReader::Holds(value)) return false;
    }
    return true;
  }
  static void CheckElements(const Object* node) {
    if (!HoldsElements(node)) ThrowElementError("Map", node);
  }

 private:
  const MapNode::Entry* FindEntry(const K& key) const {
    return defined() ? get()->Find(Any(key)) : nullptr;
  }
  MapNode* node() { return static_cast<MapNode*>(data_.get()); }
};

/*! \brief A new map of the converted entries of `node`, or null if one is of another type. */
TVM_DLL ObjectPtr<Object> ConvertEntries(const MapNode* node, ElementConverter convert_key,
                                         ElementConverter convert_value);

template <typename K, typename V>
struct AnyTraits<Map<K, V>> {
  static void Store(Any* slot, Map<K, V> value) {
    slot->SetObject(std::move(value).MoveObjectPtr());
  }
  static std::optional<Map<K, V>> TryConvert(const Any& value) {
    if (value.is_null()) return Map<K, V>(nullptr);
    const auto* node = value.as<MapNode>();
    if (node == nullptr) return std::nullopt;
    if (Map<K, V>::HoldsElements(node)) return GetRef<Map<K, V>>(node);
    auto out = ConvertEntries(node, ConvertElement<K>, ConvertElement<V>);
    if (out == nullptr) return std::nullopt;
    return Map<K, V>(std::move(out));
  }
  static std::string TypeName() {
    return ContainerTypeName("Map", AnyTraits<K>::TypeName(), AnyTraits<V>::TypeName());
  }
};

/*! \brief Entries of `a`, overridden and extended by those of `b`. */
template <typename K, typename V>
Map<K, V> Merge(Map<K, V> a, const Map<K, V>& b) {
  for (const auto& [key, value] : b) a.Set(key, value);
  return a;
}

}  // namespace runtime
using runtime::Map;
using runtime::MapNode;
using runtime::Merge;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_MAP_H_
