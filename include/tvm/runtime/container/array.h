/*!
 * \file tvm/runtime/container/array.h
 * \brief Array<T>: a sequence shared by reference and copied when a shared one is written.
 */
#ifndef TVM_RUNTIME_CONTAINER_ARRAY_H_
#define TVM_RUNTIME_CONTAINER_ARRAY_H_

#include <tvm/runtime/any.h>
#include <tvm/runtime/container/optional.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace tvm {
namespace runtime {

class TVM_DLL ArrayNode final : public Object {
 public:
  ArrayNode() = default;
  // Made in one place: each file that uses an array would hold code to copy and to free one.
  ArrayNode(const ArrayNode& other);
  ~ArrayNode();
  std::vector<Any> data;
  size_t size() const { return data.size(); }
  const Any& at(size_t i) const { return data[i]; }
  TVM_DECLARE_OBJECT(ArrayNode, Object, "Array");
};

/*! \brief How an element type is read from an Any that is known to hold it. */
template <typename T, typename = void>
struct ElementReader {
  using Result = T;
  static T Read(const Any& value) { return value.cast<T>(); }
  static bool Holds(const Any& value) {
    // An exact representation: reading it back needs no conversion that could fail.
    return AnyTraits<T>::TryConvert(value).has_value();
  }
};
template <>
struct ElementReader<Any> {
  using Result = const Any&;
  static const Any& Read(const Any& value) { return value; }
  static bool Holds(const Any&) { return true; }
};
template <typename T>
struct ElementReader<T, std::enable_if_t<std::is_base_of_v<ObjectRef, T>>> {
  // All references are one pointer, which is also the payload of an Any: no count is touched.
  using Result = const T&;
  static const T& Read(const Any& value) { return reinterpret_cast<const T&>(value.ref()); }
  static bool Holds(const Any& value) {
    if (value.is_null()) return true;
    const Object* node = value.object();
    if (node == nullptr || !node->IsInstance<typename T::ContainerType>()) return false;
    if constexpr (requires { T::HoldsElements(node); }) return T::HoldsElements(node);
    return true;
  }
};

/*! \brief Raise the IndexError of a bad position. */
[[noreturn]] TVM_DLL void ThrowIndexError(int64_t index, size_t size);
/*! \brief Raise the TypeError of a container whose element is not of the expected type. */
[[noreturn]] TVM_DLL void ThrowElementError(const std::string& container, const Object* node);

/*! \brief Puts `value`, as an element type reads it, into `out`; false if it cannot be read so. */
using ElementConverter = bool (*)(const Any& value, Any* out);
/*! \brief A new array of the converted elements of `node`, or null if one is of another type. */
TVM_DLL ObjectPtr<Object> ConvertElements(const ArrayNode* node, ElementConverter convert);

template <typename T>
bool ConvertElement(const Any& value, Any* out) {
  std::optional<T> converted = AnyTraits<T>::TryConvert(value);
  if (converted) *out = Any(*std::move(converted));
  return converted.has_value();
}

template <typename T>
class Array : public ObjectRef {
 public:
  using ContainerType = ArrayNode;
  using value_type = T;
  using Reader = ElementReader<T>;

  Array() : ObjectRef(make_object<ArrayNode>()) {}
  Array(std::nullptr_t) {}
  explicit Array(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  Array(std::initializer_list<T> items) : Array(items.begin(), items.end()) {}
  Array(const std::vector<T>& items) : Array(items.begin(), items.end()) {}
  Array(size_t count, const T& value) : Array() { node()->data.assign(count, Any(value)); }
  template <typename It>
    requires requires(It it) {
      ++it;
      T(*it);
    }
  Array(It first, It last) : Array() {
    if constexpr (std::random_access_iterator<It>) {
      node()->data.reserve(static_cast<size_t>(last - first));
    }
    for (; first != last; ++first) node()->data.emplace_back(T(*first));
  }
  /*! \brief From an array of a more specific type. */
  template <typename U>
    requires(!std::is_same_v<T, U> && std::is_base_of_v<T, U>)
  Array(const Array<U>& other) : ObjectRef(other.object_ptr()) {}

  const ArrayNode* get() const { return static_cast<const ArrayNode*>(data_.get()); }
  size_t size() const { return defined() ? get()->data.size() : 0; }
  bool empty() const { return size() == 0; }

  typename Reader::Result operator[](int64_t i) const {
    if (i < 0 || static_cast<size_t>(i) >= size()) ThrowIndexError(i, size());
    return Reader::Read(get()->data[static_cast<size_t>(i)]);
  }
  typename Reader::Result front() const { return (*this)[0]; }
  typename Reader::Result back() const { return (*this)[static_cast<int64_t>(size()) - 1]; }

  class iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = T;
    using reference = typename Reader::Result;
    using pointer = const T*;

    iterator() = default;
    explicit iterator(const Any* at) : at_(at) {}
    reference operator*() const { return Reader::Read(*at_); }
    pointer operator->() const
      requires std::is_reference_v<reference>
    {
      return &Reader::Read(*at_);
    }
    reference operator[](difference_type n) const { return Reader::Read(at_[n]); }
    iterator& operator++() { return ++at_, *this; }
    iterator& operator--() { return --at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    iterator operator--(int) { return iterator(at_--); }
    iterator& operator+=(difference_type n) { return at_ += n, *this; }
    iterator& operator-=(difference_type n) { return at_ -= n, *this; }
    iterator operator+(difference_type n) const { return iterator(at_ + n); }
    iterator operator-(difference_type n) const { return iterator(at_ - n); }
    difference_type operator-(const iterator& other) const { return at_ - other.at_; }
    friend iterator operator+(difference_type n, const iterator& it) { return it + n; }
    bool operator==(const iterator& other) const { return at_ == other.at_; }
    auto operator<=>(const iterator& other) const { return at_ <=> other.at_; }

   private:
    const Any* at_ = nullptr;
  };
  using const_iterator = iterator;
  using reverse_iterator = std::reverse_iterator<iterator>;
  iterator begin() const { return iterator(defined() ? get()->data.data() : nullptr); }
  iterator end() const { return begin() + static_cast<std::ptrdiff_t>(size()); }
  reverse_iterator rbegin() const { return reverse_iterator(end()); }
  reverse_iterator rend() const { return reverse_iterator(begin()); }

  void push_back(const T& item) { CopyOnWrite()->data.emplace_back(item); }
  template <typename... CtorArgs>
  void emplace_back(CtorArgs&&... args) {
    push_back(T(std::forward<CtorArgs>(args)...));
  }
  void pop_back() {
    if (empty()) ThrowIndexError(-1, 0);
    CopyOnWrite()->data.pop_back();
  }
  void Set(int64_t i, T value) {
    if (i < 0 || static_cast<size_t>(i) >= size()) ThrowIndexError(i, size());
    CopyOnWrite()->data[static_cast<size_t>(i)] = Any(std::move(value));
  }
  void reserve(size_t n) { CopyOnWrite()->data.reserve(n); }
  void resize(size_t n) {
    if constexpr (std::is_base_of_v<ObjectRef, T> || std::is_same_v<T, Any>) {
      CopyOnWrite()->data.resize(n);
    } else {
      CopyOnWrite()->data.resize(n, Any(T()));
    }
  }
  void clear() { data_ = make_object<ArrayNode>(); }
  void insert(iterator position, const T& item) {
    auto offset = position - begin();
    auto& data = CopyOnWrite()->data;
    data.insert(data.begin() + offset, Any(item));
  }
  template <typename It>
  void insert(iterator position, It first, It last) {
    auto offset = position - begin();
    std::vector<Any> added;
    for (; first != last; ++first) added.emplace_back(T(*first));
    auto& data = CopyOnWrite()->data;
    data.insert(data.begin() + offset, added.begin(), added.end());
  }
  void erase(iterator position) {
    auto offset = position - begin();
    auto& data = CopyOnWrite()->data;
    data.erase(data.begin() + offset);
  }
  void erase(iterator first, iterator last) {
    auto from = first - begin(), to = last - begin();
    auto& data = CopyOnWrite()->data;
    data.erase(data.begin() + from, data.begin() + to);
  }

  /*! \brief f of each item; the same array when f returns every item unchanged. */
  template <typename F, typename U = std::decay_t<std::invoke_result_t<F, const T&>>>
  Array<U> Map(F f) const {
    if constexpr (std::is_same_v<T, U> && std::is_base_of_v<ObjectRef, T>) {
      Array<U> out(nullptr);
      for (size_t i = 0; i < size(); ++i) {
        const T& before = Reader::Read(get()->data[i]);
        U after = f(before);
        if (!out.defined()) {
          if (after.same_as(before)) continue;
          out = Array<U>(begin(), end());
        }
        out.Set(static_cast<int64_t>(i), std::move(after));
      }
      return out.defined() ? out : *this;
    } else {
      Array<U> out;
      out.reserve(size());
      for (size_t i = 0; i < size(); ++i) out.push_back(f(Reader::Read(get()->data[i])));
      return out;
    }
  }
  /*! \brief Replace each item by f(item); nothing is copied while f returns items unchanged. */
  template <typename F>
  void MutateByApply(F f) {
    *this = this->Map(f);
  }

  ArrayNode* CopyOnWrite() {
    if (!data_.unique()) {
      data_ = defined() ? make_object<ArrayNode>(*get()) : make_object<ArrayNode>();
    }
    return node();
  }

  /*! \brief True if every element of an ArrayNode can be read as a T in place. */
  static bool HoldsElements(const Object* node) {
    for (const Any& item : static_cast<const ArrayNode*>(node)->data) {
      if (!Reader::Holds(item)) return false;
    }
    return true;
  }
  static void CheckElements(const Object* node) {
    if (!HoldsElements(node)) ThrowElementError("Array", node);
  }

 private:
  ArrayNode* node() { return static_cast<ArrayNode*>(data_.get()); }
};

template <typename T>
struct AnyTraits<Array<T>> {
  static void Store(Any* slot, Array<T> value) {
    slot->SetObject(std::move(value).MoveObjectPtr());
  }
  static std::optional<Array<T>> TryConvert(const Any& value) {
    if (value.is_null()) return Array<T>(nullptr);
    const auto* node = value.as<ArrayNode>();
    if (node == nullptr) return std::nullopt;
    if (Array<T>::HoldsElements(node)) return GetRef<Array<T>>(node);
    if constexpr (!std::is_same_v<T, Any>) {
      // Elements given as literals are converted one by one into a new array.
      if (auto out = ConvertElements(node, ConvertElement<T>); out != nullptr) {
        return Array<T>(std::move(out));
      }
    }
    return std::nullopt;
  }
  static std::string TypeName() { return ContainerTypeName("Array", AnyTraits<T>::TypeName()); }
};

/*! \brief Items of `a`, then items of `b`. */
template <typename T>
Array<T> Concat(Array<T> a, const Array<T>& b) {
  for (const T& item : b) a.push_back(item);
  return a;
}

}  // namespace runtime
using runtime::Array;
using runtime::ArrayNode;
using runtime::Concat;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_ARRAY_H_
