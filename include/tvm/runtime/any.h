/*!
 * \file tvm/runtime/any.h
 * \brief Any: one value of any kind that crosses the function border, and conversions out of it.
 *
 * An Any is a TVMAny that owns the object it may hold. The layouts agree, so a borrowed argument
 * array of compiled code can be read as `const Any*`. Copying a borrowed string makes it a String
 * object; a borrowed DLTensor* stays borrowed.
 */
#ifndef TVM_RUNTIME_ANY_H_
#define TVM_RUNTIME_ANY_H_

#include <tvm/runtime/data_type.h>
#include <tvm/runtime/object.h>

#include <cstring>
#include <optional>
#include <string>

namespace tvm {
namespace runtime {

class Any;

/*!
 * \brief How a C++ type is stored in and read from an Any.
 *
 * A specialisation has `Store(Any*, T)`, `TryConvert(const Any&) -> std::optional<T>` and
 * `TypeName() -> std::string` for messages.
 */
template <typename T>
struct AnyTraits;

template <typename T>
concept AnyConvertible = requires(const Any& value) { AnyTraits<T>::TryConvert(value); };
template <typename T>
concept AnyStorable = requires(Any* slot, const T& value) { AnyTraits<T>::Store(slot, value); };

/*! \brief Raise the TypeError of a failed conversion. */
[[noreturn]] TVM_DLL void ThrowAnyCastError(const std::string& expected, const Any& actual);

/*! \brief The name of a type made of others: `Array[int]` of `Array` and `int`. */
TVM_DLL std::string ContainerTypeName(const char* container, const std::string& elements);
TVM_DLL std::string ContainerTypeName(const char* container, const std::string& keys,
                                      const std::string& values);
/*! \brief `int`, with its width if it is less than 64 bits. */
TVM_DLL std::string IntTypeName(size_t bits);

class Any {
 public:
  Any() : value_{kTVMNull, 0, {0}} {}
  Any(std::nullptr_t) : Any() {}
  Any(const Any& other) : value_(other.value_) { Own(); }
  Any(Any&& other) noexcept : value_(other.value_) {
    if (value_.type_code == kTVMStr) {
      Own();
    } else {
      other.value_.type_code = kTVMNull;
      other.value_.v_int64 = 0;
    }
  }
  template <typename T>
    requires(!std::is_same_v<std::decay_t<T>, Any> && AnyStorable<std::decay_t<T>>)
  Any(T&& value) : Any() {
    AnyTraits<std::decay_t<T>>::Store(this, std::forward<T>(value));
  }
  ~Any() { Release(); }
  Any& operator=(Any other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  int type_code() const { return value_.type_code; }
  bool is_null() const { return value_.type_code == kTVMNull; }
  bool defined() const { return !is_null(); }
  bool is_object() const { return value_.type_code == kTVMObject; }
  /*! \brief The object held, or null. */
  Object* object() const { return is_object() ? static_cast<Object*>(value_.v_handle) : nullptr; }
  const TVMAny& raw() const { return value_; }
  /*! \brief The object held seen as a reference; Any and reference share the payload. */
  const ObjectRef& ref() const { return *reinterpret_cast<const ObjectRef*>(&value_.v_handle); }

  /*! \brief The node if this holds an object of that type, else null. */
  template <typename T>
    requires std::is_base_of_v<Object, T>
  const T* as() const {
    const Object* ptr = object();
    return ptr != nullptr && ptr->IsInstance<T>() ? static_cast<const T*>(ptr) : nullptr;
  }
  /*! \brief The value as a T if it converts, else nothing. */
  template <AnyConvertible T>
  std::optional<T> TryCast() const {
    return AnyTraits<T>::TryConvert(*this);
  }
  /*! \brief The value as a T; TypeError if it does not convert. */
  template <typename T>
  T cast() const {
    if constexpr (std::is_same_v<T, Any>) {
      return *this;
    } else {
      std::optional<T> out = AnyTraits<T>::TryConvert(*this);
      if (!out) ThrowAnyCastError(AnyTraits<T>::TypeName(), *this);
      return *std::move(out);
    }
  }
  template <typename T>
    requires(!std::is_same_v<T, Any> && AnyConvertible<T>)
  operator T() const {
    return cast<T>();
  }

  /*! \brief Kind of the value for messages: "int", "None" or the type key of the object. */
  TVM_DLL std::string TypeName() const;

  /*! \brief Become a plain value. */
  void SetRaw(const TVMAny& value) {
    Release();
    value_ = value;
  }
  /*! \brief Become the owner of an object (null makes this null). */
  void SetObject(ObjectPtr<Object> object) {
    Release();
    value_.type_code = object ? kTVMObject : kTVMNull;
    value_.v_handle = object.release();
  }
  /*! \brief Give the value up: the caller owns what it refers to. */
  TVMAny MoveToRaw() {
    TVMAny out = value_;
    value_ = TVMAny{kTVMNull, 0, {0}};
    return out;
  }

 private:
  TVM_DLL void OwnString();
  void Own() {
    if (value_.type_code == kTVMObject) {
      static_cast<Object*>(value_.v_handle)->IncRef();
    } else if (value_.type_code == kTVMStr) {
      OwnString();
    }
  }
  void Release() {
    if (value_.type_code == kTVMObject) static_cast<Object*>(value_.v_handle)->DecRef();
    value_.type_code = kTVMNull;
    value_.v_int64 = 0;
  }

  TVMAny value_;
};
static_assert(sizeof(Any) == sizeof(TVMAny) && sizeof(Any) == 16);

/*! \brief Where a function puts its result. */
using RetValue = Any;

/*! \brief Same value: numbers and strings by content, other objects by identity. */
struct AnyEqual {
  TVM_DLL bool operator()(const Any& a, const Any& b) const;
};
struct AnyHash {
  TVM_DLL size_t operator()(const Any& value) const;
};

/*! \brief Number held directly or by a literal object such as IntImm. */
TVM_DLL bool AnyToInt(const Any& value, int64_t* out);
TVM_DLL bool AnyToFloat(const Any& value, double* out);

template <>
struct AnyTraits<Any> {
  static void Store(Any* slot, const Any& value) { *slot = value; }
  static std::optional<Any> TryConvert(const Any& value) {
    return std::optional<Any>(std::in_place, value);
  }
  static std::string TypeName() { return "Any"; }
};

/*!
 * \brief A number as a literal object, where any object is accepted; nothing for other values.
 * The literals belong to the compiler, which says here how to make them.
 */
TVM_DLL std::optional<ObjectRef> BoxNumber(const Any& value);
using NumberBoxer = ObjectRef (*)(const Any& value);
TVM_DLL bool RegisterNumberBoxer(NumberBoxer boxer);

inline TVMAny MakeRaw(int code, int64_t payload) {
  TVMAny raw{code, 0, {0}};
  raw.v_int64 = payload;
  return raw;
}

template <>
struct AnyTraits<bool> {
  static void Store(Any* slot, bool value) { slot->SetRaw(MakeRaw(kTVMBool, value)); }
  static std::optional<bool> TryConvert(const Any& value) {
    int64_t number;
    if (!AnyToInt(value, &number)) return std::nullopt;
    return number != 0;
  }
  static std::string TypeName() { return "bool"; }
};

template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>)
struct AnyTraits<T> {
  static void Store(Any* slot, T value) {
    slot->SetRaw(MakeRaw(kTVMInt, static_cast<int64_t>(value)));
  }
  static std::optional<T> TryConvert(const Any& value) {
    int64_t number;
    if (!AnyToInt(value, &number)) return std::nullopt;
    // A number that does not fit would silently change its value.
    if (static_cast<int64_t>(static_cast<T>(number)) != number) return std::nullopt;
    return static_cast<T>(number);
  }
  static std::string TypeName() { return IntTypeName(sizeof(T) * 8); }
};

template <typename T>
  requires std::is_floating_point_v<T>
struct AnyTraits<T> {
  static void Store(Any* slot, T value) {
    TVMAny raw{kTVMFloat, 0, {0}};
    raw.v_float64 = static_cast<double>(value);
    slot->SetRaw(raw);
  }
  static std::optional<T> TryConvert(const Any& value) {
    double number;
    if (!AnyToFloat(value, &number)) return std::nullopt;
    return static_cast<T>(number);
  }
  static std::string TypeName() { return "float"; }
};

template <>
struct AnyTraits<void*> {
  static void Store(Any* slot, void* value) {
    slot->SetRaw(MakeRaw(kTVMOpaqueHandle, reinterpret_cast<int64_t>(value)));
  }
  static std::optional<void*> TryConvert(const Any& value) {
    if (value.is_null()) return nullptr;
    // Python has no pointer type: an address arrives as a number.
    if (value.type_code() != kTVMOpaqueHandle && value.type_code() != kTVMInt) return std::nullopt;
    return value.raw().v_handle;
  }
  static std::string TypeName() { return "handle"; }
};

template <>
struct AnyTraits<DLDevice> {
  static void Store(Any* slot, DLDevice value) {
    TVMAny raw{kTVMDevice, 0, {0}};
    raw.v_device = value;
    slot->SetRaw(raw);
  }
  static std::optional<DLDevice> TryConvert(const Any& value) {
    if (value.type_code() != kTVMDevice) return std::nullopt;
    return value.raw().v_device;
  }
  static std::string TypeName() { return "Device"; }
};

template <>
struct TVM_DLL AnyTraits<DataType> {
  static void Store(Any* slot, DataType value) {
    TVMAny raw{kTVMDataType, 0, {0}};
    raw.v_dtype = value;
    slot->SetRaw(raw);
  }
  static std::optional<DataType> TryConvert(const Any& value);
  static std::string TypeName() { return "DataType"; }
};

template <>
struct TVM_DLL AnyTraits<std::string> {
  static void Store(Any* slot, const std::string& value);
  static std::optional<std::string> TryConvert(const Any& value);
  static std::string TypeName() { return "str"; }
};
template <>
struct AnyTraits<const char*> {
  static void Store(Any* slot, const char* value) { AnyTraits<std::string>::Store(slot, value); }
};
template <>
struct AnyTraits<char*> : AnyTraits<const char*> {};

/*! \brief A tensor argument of a compiled function: borrowed, or the inside of an NDArray. */
template <>
struct TVM_DLL AnyTraits<DLTensor*> {
  static void Store(Any* slot, DLTensor* value) {
    slot->SetRaw(
        MakeRaw(value == nullptr ? kTVMNull : kTVMDLTensor, reinterpret_cast<int64_t>(value)));
  }
  static std::optional<DLTensor*> TryConvert(const Any& value);
  static std::string TypeName() { return "DLTensor*"; }
};

template <typename T>
struct AnyTraits<std::optional<T>> {
  static void Store(Any* slot, const std::optional<T>& value) {
    if (value) {
      AnyTraits<T>::Store(slot, *value);
    } else {
      slot->SetRaw(MakeRaw(kTVMNull, 0));
    }
  }
  static std::optional<std::optional<T>> TryConvert(const Any& value) {
    if (value.is_null()) return std::optional<T>();
    std::optional<T> inner = AnyTraits<T>::TryConvert(value);
    if (!inner) return std::nullopt;
    return inner;
  }
  static std::string TypeName() { return ContainerTypeName("Optional", AnyTraits<T>::TypeName()); }
};

/*!
 * \brief Object references. A class whose values may be written as literals says how with
 * `static std::optional<Base> FromAny(const Any&)`; it is inherited by its subclasses.
 */
template <typename T>
  requires std::is_base_of_v<ObjectRef, T>
struct AnyTraits<T> {
  using Node = typename T::ContainerType;
  static void Store(Any* slot, T value) { slot->SetObject(std::move(value).MoveObjectPtr()); }
  static std::optional<T> TryConvert(const Any& value) {
    if (value.is_null()) return T(ObjectPtr<Object>());
    if (const Object* object = value.object()) {
      if (object->IsInstance<Node>()) {
        return T(ObjectPtr<Object>(const_cast<Object*>(object)));
      }
    }
    if constexpr (requires { T::FromAny(value); }) {
      if (auto converted = T::FromAny(value)) {
        if (const Object* object = converted->get(); object && object->IsInstance<Node>()) {
          return T(ObjectPtr<Object>(const_cast<Object*>(object)));
        }
      }
    }
    if constexpr (std::is_same_v<T, ObjectRef>) {
      // A borrowed string becomes a String object when copied.
      if (value.type_code() == kTVMStr) return Any(value).ref();
      return BoxNumber(value);
    }
    return std::nullopt;
  }
  static std::string TypeName() { return Node::_type_key; }
};

}  // namespace runtime
using runtime::Any;
using runtime::AnyEqual;
using runtime::AnyHash;
using runtime::RetValue;
}  // namespace tvm

#endif  // TVM_RUNTIME_ANY_H_
