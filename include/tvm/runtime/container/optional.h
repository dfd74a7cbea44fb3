/*!
 * \file tvm/runtime/container/optional.h
 * \brief Optional<T>: a reference that may be absent, said in the type.
 */
#ifndef TVM_RUNTIME_CONTAINER_OPTIONAL_H_
#define TVM_RUNTIME_CONTAINER_OPTIONAL_H_

#include <tvm/runtime/any.h>

namespace tvm {
namespace runtime {

/*! \brief "Nothing", for any Optional. */
struct NullOptType {};
inline constexpr NullOptType NullOpt;

template <typename T>
class Optional : public ObjectRef {
 public:
  static_assert(std::is_base_of_v<ObjectRef, T>, "Optional holds object references");
  using ContainerType = typename T::ContainerType;

  Optional() = default;
  Optional(NullOptType) {}
  Optional(std::nullptr_t) {}
  explicit Optional(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  Optional(T value) : ObjectRef(std::move(value)) {}
  template <typename U>
    requires(std::is_convertible_v<U&&, T> && !std::is_base_of_v<Optional, std::decay_t<U>> &&
             !std::is_same_v<std::decay_t<U>, T> && !std::is_same_v<std::decay_t<U>, Any> &&
             !std::is_same_v<std::decay_t<U>, NullOptType> &&
             !std::is_same_v<std::decay_t<U>, std::nullptr_t>)
  Optional(U&& value) : ObjectRef(T(std::forward<U>(value))) {}

  bool has_value() const { return defined(); }
  explicit operator bool() const { return defined(); }
  /*! \brief The value; InternalError when absent. */
  T value() const {
    ICHECK(defined()) << "value() of an absent Optional";
    return T(data_);
  }
  T value_or(T otherwise) const { return defined() ? T(data_) : std::move(otherwise); }
  T operator*() const { return value(); }
  const ContainerType* get() const { return static_cast<const ContainerType*>(data_.get()); }
  const ContainerType* operator->() const {
    ICHECK(defined()) << "member access of an absent Optional";
    return get();
  }
  static void CheckElements(const Object* node) {
    if constexpr (requires { T::CheckElements(node); }) T::CheckElements(node);
  }
};

template <typename T>
struct AnyTraits<Optional<T>> {
  static void Store(Any* slot, Optional<T> value) {
    slot->SetObject(std::move(value).MoveObjectPtr());
  }
  static std::optional<Optional<T>> TryConvert(const Any& value) {
    if (value.is_null()) return Optional<T>();
    std::optional<T> inner = AnyTraits<T>::TryConvert(value);
    if (!inner) return std::nullopt;
    return Optional<T>(*std::move(inner));
  }
  static std::string TypeName() { return ContainerTypeName("Optional", AnyTraits<T>::TypeName()); }
};

}  // namespace runtime
using runtime::NullOpt;
using runtime::NullOptType;
using runtime::Optional;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_OPTIONAL_H_
