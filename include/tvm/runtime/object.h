/*!
 * \file tvm/runtime/object.h
 * \brief Reference-counted objects with a registered type tree.
 *
 * `XNode : Object` holds the data, `X : ObjectRef` is the pointer users pass around. Types form a
 * tree; each knows all its ancestors, so a subtype test is two loads and a comparison.
 */
#ifndef TVM_RUNTIME_OBJECT_H_
#define TVM_RUNTIME_OBJECT_H_

#include <tvm/runtime/logging.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
/*! \brief What is known about a node type's fields; defined in tvm/node/reflection.h. */
struct NodeReflection;

namespace runtime {

class Object;

/*! \brief One type of the tree. Created when first mentioned, never destroyed. */
struct TypeInfo {
  std::string key;
  uint32_t index = 0;
  uint32_t depth = 0;
  const TypeInfo* parent = nullptr;
  /*! \brief ancestors[d] is the ancestor at depth d; the last entry is the type itself. */
  std::vector<const TypeInfo*> ancestors;
  /*! \brief Fields and how to build one; null until TVM_REGISTER_NODE ran. */
  mutable const NodeReflection* reflection = nullptr;
  /*! \brief Reads a literal object as a number, so that it can stand where a number is expected. */
  mutable bool (*as_int)(const Object*, int64_t* out) = nullptr;
  mutable bool (*as_float)(const Object*, double* out) = nullptr;

  bool IsDerivedFrom(const TypeInfo* other) const {
    return depth >= other->depth && ancestors[other->depth] == other;
  }

  /*! \brief The type called `key`, made a child of `parent` if it is new. */
  TVM_DLL static const TypeInfo* GetOrAlloc(const char* key, const TypeInfo* parent);
  /*! \brief The type called `key`, or null. */
  TVM_DLL static const TypeInfo* Find(std::string_view key);
  /*! \brief The type with this index. */
  TVM_DLL static const TypeInfo* FromIndex(uint32_t index);
  /*! \brief Number of types so far; indices are below it. */
  TVM_DLL static uint32_t Count();
};

/*!
 * \brief Names a class in the type tree. Every class below Object says this once.
 * Nodes with reflected fields say TVM_DECLARE_NODE (tvm/node/node.h), which includes it.
 */
#define TVM_DECLARE_OBJECT(TypeName, ParentType, Key)                         \
  static constexpr const char* _type_key = Key;                               \
  using _Self = TypeName;                                                     \
  using _Parent = ParentType;                                                 \
  static const ::tvm::runtime::TypeInfo* StaticTypeInfo() {                   \
    static const ::tvm::runtime::TypeInfo* const info =                       \
        ::tvm::runtime::TypeInfo::GetOrAlloc(Key, _Parent::StaticTypeInfo()); \
    return info;                                                              \
  }                                                                           \
  static uint32_t RuntimeTypeIndex() { return StaticTypeInfo()->index; }

/*! \brief Base of everything reference counted. */
class TVM_DLL Object {
 public:
  static constexpr const char* _type_key = "runtime.Object";
  using _Self = Object;
  static const TypeInfo* StaticTypeInfo();
  static uint32_t RuntimeTypeIndex() { return StaticTypeInfo()->index; }
  /*! \brief The root has no fields; see TVM_DECLARE_NODE. */
  template <typename Self, typename Visitor>
  static void VisitFields(Self*, Visitor&&) {}

  Object() = default;
  // A copy is a new object: it starts with its own count.
  Object(const Object& other) : type_info_(other.type_info_) {}
  Object& operator=(const Object&) { return *this; }
  virtual ~Object() = default;

  const TypeInfo* type_info() const { return type_info_; }
  uint32_t type_index() const { return type_info_->index; }
  const std::string& GetTypeKey() const { return type_info_->key; }

  template <typename T>
  bool IsInstance() const {
    if constexpr (std::is_same_v<T, Object>) {
      return true;
    } else {
      return type_info_->IsDerivedFrom(T::StaticTypeInfo());
    }
  }
  int use_count() const { return ref_count_.load(std::memory_order_relaxed); }
  bool unique() const { return use_count() == 1; }

  void IncRef() const { ref_count_.fetch_add(1, std::memory_order_relaxed); }
  void DecRef() const {
    if (ref_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }

 private:
  // Deletes this object, or puts it off when many deletions are already nested.
  void Destroy() const;
  template <typename T, typename... CtorArgs>
  friend auto make_object(CtorArgs&&... args);

  const TypeInfo* type_info_ = nullptr;
  mutable std::atomic<int32_t> ref_count_{0};
};

/*! \brief Owning pointer to an object, with intrusive count. */
template <typename T>
class ObjectPtr {
 public:
  ObjectPtr() = default;
  ObjectPtr(std::nullptr_t) {}
  explicit ObjectPtr(T* ptr) : ptr_(const_cast<std::remove_const_t<T>*>(ptr)) {
    if (ptr_ != nullptr) ptr_->IncRef();
  }
  ObjectPtr(const ObjectPtr& other) : ObjectPtr(other.ptr_) {}
  ObjectPtr(ObjectPtr&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  template <typename U>
    requires(std::is_base_of_v<T, U> && !std::is_same_v<T, U>)
  ObjectPtr(const ObjectPtr<U>& other) : ObjectPtr(static_cast<T*>(other.get())) {}
  template <typename U>
    requires(std::is_base_of_v<T, U> && !std::is_same_v<T, U>)
  ObjectPtr(ObjectPtr<U>&& other) noexcept : ptr_(other.release()) {}
  ~ObjectPtr() { reset(); }

  ObjectPtr& operator=(ObjectPtr other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }
  T* get() const { return ptr_; }
  T* operator->() const { return ptr_; }
  T& operator*() const { return *ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }
  void reset() {
    if (T* old = std::exchange(ptr_, nullptr)) old->DecRef();
  }
  /*! \brief Give the reference up without dropping it. */
  T* release() { return std::exchange(ptr_, nullptr); }
  int use_count() const { return ptr_ == nullptr ? 0 : ptr_->use_count(); }
  bool unique() const { return ptr_ != nullptr && ptr_->unique(); }
  bool operator==(const ObjectPtr& other) const { return ptr_ == other.ptr_; }
  bool operator==(std::nullptr_t) const { return ptr_ == nullptr; }

 private:
  T* ptr_ = nullptr;
};

/*! \brief Allocate a T; the only way objects come to life. */
template <typename T, typename... CtorArgs>
auto make_object(CtorArgs&&... args) {
  static_assert(std::is_same_v<T, typename T::_Self>,
                "make_object: the class does not name itself with TVM_DECLARE_OBJECT or _NODE");
  T* ptr = new T(std::forward<CtorArgs>(args)...);
  static_cast<Object*>(ptr)->type_info_ = T::StaticTypeInfo();
  return ObjectPtr<T>(ptr);
}

/*! \brief Raise the ValueError of a member access through a null reference. */
[[noreturn]] TVM_DLL void ThrowNullReference(const char* type_key);

/*! \brief `node`, which must be there: Python's None and data read from text reach every field. */
template <typename Node>
Node* NotNull(Node* node) {
  if (__builtin_expect(node == nullptr, 0)) ThrowNullReference(Node::_type_key);
  return node;
}

/*! \brief Nullable reference to an object; all references have the size of a pointer. */
class ObjectRef {
 public:
  using ContainerType = Object;

  ObjectRef() = default;
  ObjectRef(std::nullptr_t) {}
  explicit ObjectRef(ObjectPtr<Object> data) : data_(std::move(data)) {}

  bool defined() const { return data_.get() != nullptr; }
  bool same_as(const ObjectRef& other) const { return data_ == other.data_; }
  bool operator==(const ObjectRef& other) const { return data_ == other.data_; }
  bool operator!=(const ObjectRef& other) const { return !(data_ == other.data_); }
  bool operator<(const ObjectRef& other) const { return data_.get() < other.data_.get(); }
  const Object* get() const { return data_.get(); }
  const Object* operator->() const { return NotNull(get()); }
  int use_count() const { return data_.use_count(); }
  bool unique() const { return data_.unique(); }

  /*! \brief The node if it is a T, else null. */
  template <typename T>
    requires std::is_base_of_v<Object, T>
  const T* as() const {
    const Object* ptr = data_.get();
    return ptr != nullptr && ptr->IsInstance<T>() ? static_cast<const T*>(ptr) : nullptr;
  }

  const ObjectPtr<Object>& object_ptr() const { return data_; }
  ObjectPtr<Object> MoveObjectPtr() && { return std::move(data_); }

 protected:
  Object* get_mutable() const { return data_.get(); }
  ObjectPtr<Object> data_;
};

#define TVM_DEFINE_REF_COMMON_(TypeName, ParentType, NodeType)              \
  TypeName() = default;                                                     \
  TypeName(std::nullptr_t) {}                                               \
  explicit TypeName(::tvm::runtime::ObjectPtr<::tvm::runtime::Object> data) \
      : ParentType(std::move(data)) {}                                      \
  TypeName(const TypeName&) = default;                                      \
  TypeName(TypeName&&) = default;                                           \
  TypeName& operator=(const TypeName&) = default;                           \
  TypeName& operator=(TypeName&&) = default;                                \
  using ContainerType = NodeType;

/*! \brief Members of a reference class whose node is read-only. */
#define TVM_DEFINE_REF(TypeName, ParentType, NodeType)                                    \
  TVM_DEFINE_REF_COMMON_(TypeName, ParentType, NodeType)                                  \
  const NodeType* get() const { return static_cast<const NodeType*>(this->data_.get()); } \
  const NodeType* operator->() const { return ::tvm::runtime::NotNull(get()); }

/*! \brief Members of a reference class whose node may be changed in place. */
#define TVM_DEFINE_MUTABLE_REF(TypeName, ParentType, NodeType)                \
  TVM_DEFINE_REF_COMMON_(TypeName, ParentType, NodeType)                      \
  NodeType* get() const { return static_cast<NodeType*>(this->data_.get()); } \
  NodeType* operator->() const { return ::tvm::runtime::NotNull(get()); }

/*! \brief As TVM_DEFINE_REF, with CopyOnWrite(): a node to write, copied first if shared. */
#define TVM_DEFINE_REF_COW(TypeName, ParentType, NodeType)         \
  TVM_DEFINE_REF(TypeName, ParentType, NodeType)                   \
  NodeType* CopyOnWrite() {                                        \
    if (!this->data_.unique()) {                                   \
      ICHECK(this->data_.get() != nullptr);                        \
      this->data_ = ::tvm::runtime::make_object<NodeType>(*get()); \
    }                                                              \
    return static_cast<NodeType*>(this->data_.get());              \
  }

/*! \brief A reference to an object one has a plain pointer to. */
template <typename Ref, typename Node>
Ref GetRef(const Node* node) {
  static_assert(std::is_base_of_v<typename Ref::ContainerType, Node>,
                "GetRef: the node is not of the reference's type");
  return Ref(ObjectPtr<Object>(const_cast<Object*>(static_cast<const Object*>(node))));
}

/*! \brief Raise the TypeError of a failed Downcast. */
[[noreturn]] TVM_DLL void ThrowDowncastError(const char* expected, const Object* actual);

/*! \brief `ref` as the more specific type; null stays null. Containers check their elements. */
template <typename Ref, typename Base>
  requires std::is_base_of_v<ObjectRef, Base>
Ref Downcast(Base ref) {
  using Node = typename Ref::ContainerType;
  ObjectRef base(std::move(ref));
  if (const Object* node = base.get()) {
    if (!node->IsInstance<Node>()) ThrowDowncastError(Node::_type_key, node);
    if constexpr (requires { Ref::CheckElements(node); }) Ref::CheckElements(node);
  }
  return Ref(std::move(base).MoveObjectPtr());
}

/*! \brief Hash and equality by identity. */
struct ObjectPtrHash {
  size_t operator()(const ObjectRef& ref) const { return std::hash<const void*>()(ref.get()); }
  template <typename T>
  size_t operator()(const ObjectPtr<T>& ptr) const {
    return std::hash<const void*>()(ptr.get());
  }
};
struct ObjectPtrEqual {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const { return a.same_as(b); }
  template <typename T>
  bool operator()(const ObjectPtr<T>& a, const ObjectPtr<T>& b) const {
    return a == b;
  }
};

}  // namespace runtime

using runtime::Downcast;
using runtime::GetRef;
using runtime::make_object;
using runtime::Object;
using runtime::ObjectPtr;
using runtime::ObjectPtrEqual;
using runtime::ObjectPtrHash;
using runtime::ObjectRef;
}  // namespace tvm

#endif  // TVM_RUNTIME_OBJECT_H_
