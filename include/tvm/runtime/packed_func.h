/*!
 * \file tvm/runtime/packed_func.h
 * \brief PackedFunc: a function of any arguments, callable from C++, Python and compiled code.
 */
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_

#include <tvm/runtime/any.h>
#include <tvm/runtime/container/string.h>

#include <tuple>

namespace tvm {
namespace runtime {

/*! \brief Raise the TypeError of an argument that the call does not have. */
[[noreturn]] TVM_DLL void ThrowMissingArgument(int position, int num_args);

/*! \brief Borrowed arguments of one call. */
class Args {
 public:
  Args(const Any* values, int32_t num_args) : values_(values), num_args_(num_args) {}
  int size() const { return num_args_; }
  const Any& operator[](int i) const {
    if (i < 0 || i >= num_args_) ThrowMissingArgument(i, num_args_);
    return values_[i];
  }
  const Any* begin() const { return values_; }
  const Any* end() const { return values_ + num_args_; }
  Args slice(int first) const { return Args(values_ + first, num_args_ - first); }

 private:
  const Any* values_;
  int32_t num_args_;
};

// What functions written for TVM call the two arguments of their body.
using TVMArgs [[deprecated("use tvm::runtime::Args")]] = Args;
using TVMRetValue [[deprecated("use tvm::runtime::RetValue")]] = RetValue;

class PackedFuncObj : public Object {
 public:
  virtual void CallPacked(Args args, RetValue* ret) const = 0;
  TVM_DECLARE_OBJECT(PackedFuncObj, Object, "runtime.PackedFunc");
};

/*! \brief Wraps a C++ callable `void(Args, RetValue*)`. */
template <typename F>
class CallableObj final : public PackedFuncObj {
 public:
  explicit CallableObj(F f) : f_(std::move(f)) {}
  void CallPacked(Args args, RetValue* ret) const override { f_(args, ret); }
  using _Self = CallableObj;

 private:
  mutable F f_;
};

class PackedFunc : public ObjectRef {
 public:
  TVM_DEFINE_REF(PackedFunc, ObjectRef, PackedFuncObj);
  template <typename F>
    requires(std::is_invocable_v<F&, Args, RetValue*>)
  PackedFunc(F f) : ObjectRef(make_object<CallableObj<F>>(std::move(f))) {}

  void CallPacked(Args args, RetValue* ret) const {
    TVM_CHECK(defined(), ValueError) << "call of a null PackedFunc";
    get()->CallPacked(args, ret);
  }
  template <typename... A>
  Any operator()(A&&... args) const {
    Any ret;
    if constexpr (sizeof...(A) == 0) {
      CallPacked(Args(nullptr, 0), &ret);
    } else {
      const Any values[] = {Any(std::forward<A>(args))...};
      CallPacked(Args(values, sizeof...(A)), &ret);
    }
    return ret;
  }
};

[[noreturn]] TVM_DLL void ThrowArgCountError(const char* name, int expected, int actual);
[[noreturn]] TVM_DLL void ThrowArgTypeError(const char* name, int position,
                                            const std::string& expected, const Any& actual);

/*! \brief Reads argument `i` of function `name` as a T, or says what was expected there. */
template <typename T>
T ReadArg(const char* name, Args args, int i) {
  std::optional<T> value = AnyTraits<T>::TryConvert(args[i]);
  if (!value) ThrowArgTypeError(name, i, AnyTraits<T>::TypeName(), args[i]);
  return *std::move(value);
}

/*! \brief Result and argument types of a callable. */
template <typename F>
struct FunctionTraits : FunctionTraits<decltype(&F::operator())> {};
template <typename C, typename R, typename... A>
struct FunctionTraits<R (C::*)(A...) const> {
  using Signature = R(A...);
};
template <typename C, typename R, typename... A>
struct FunctionTraits<R (C::*)(A...)> {
  using Signature = R(A...);
};
template <typename R, typename... A>
struct FunctionTraits<R (*)(A...)> {
  using Signature = R(A...);
};
template <typename R, typename... A>
struct FunctionTraits<R(A...)> {
  using Signature = R(A...);
};

template <typename Signature>
struct TypedInvoker;
template <typename R, typename... A>
struct TypedInvoker<R(A...)> {
  template <typename F>
  static void Invoke(const char* name, F& f, Args args, RetValue* ret) {
    if (args.size() != static_cast<int>(sizeof...(A))) {
      ThrowArgCountError(name, static_cast<int>(sizeof...(A)), args.size());
    }
    InvokeIndexed(name, f, args, ret, std::index_sequence_for<A...>());
  }

 private:
  template <typename F, size_t... I>
  static void InvokeIndexed(const char* name, F& f, Args args, RetValue* ret,
                            std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      f(ReadArg<std::decay_t<A>>(name, args, static_cast<int>(I))...);
    } else {
      *ret = Any(f(ReadArg<std::decay_t<A>>(name, args, static_cast<int>(I))...));
    }
  }
};

template <typename Signature>
class TypedPackedFunc;

/*! \brief A PackedFunc whose argument and result types are known. */
template <typename R, typename... A>
class TypedPackedFunc<R(A...)> {
 public:
  TypedPackedFunc() = default;
  TypedPackedFunc(std::nullptr_t) {}
  TypedPackedFunc(PackedFunc packed) : packed_(std::move(packed)) {}
  template <typename F>
    requires(std::is_invocable_r_v<R, F&, A...> && !std::is_base_of_v<ObjectRef, std::decay_t<F>> &&
             !std::is_same_v<std::decay_t<F>, TypedPackedFunc>)
  TypedPackedFunc(F f, std::string name = "function")
      : packed_([f = std::move(f), name = std::move(name)](Args args, RetValue* ret) mutable {
          TypedInvoker<R(A...)>::Invoke(name.c_str(), f, args, ret);
        }) {}

  R operator()(A... args) const {
    if constexpr (std::is_void_v<R>) {
      packed_(std::move(args)...);
    } else {
      return packed_(std::move(args)...).template cast<R>();
    }
  }
  const PackedFunc& packed() const { return packed_; }
  operator PackedFunc() const { return packed_; }
  bool defined() const { return packed_.defined(); }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }

 private:
  PackedFunc packed_;
};

template <typename Signature>
struct AnyTraits<TypedPackedFunc<Signature>> {
  static void Store(Any* slot, const TypedPackedFunc<Signature>& value) {
    AnyTraits<PackedFunc>::Store(slot, value.packed());
  }
  static std::optional<TypedPackedFunc<Signature>> TryConvert(const Any& value) {
    std::optional<PackedFunc> packed = AnyTraits<PackedFunc>::TryConvert(value);
    if (!packed) return std::nullopt;
    return TypedPackedFunc<Signature>(*std::move(packed));
  }
  static std::string TypeName() { return AnyTraits<PackedFunc>::TypeName(); }
};

/*! \brief Wrap any C++ callable; conversions of arguments and result follow its signature. */
template <typename F>
PackedFunc MakeTypedPacked(F f, std::string name = "function") {
  using Signature = typename FunctionTraits<std::remove_pointer_t<std::decay_t<F>>>::Signature;
  return PackedFunc([f = std::move(f), name = std::move(name)](Args args, RetValue* ret) mutable {
    TypedInvoker<Signature>::Invoke(name.c_str(), f, args, ret);
  });
}

}  // namespace runtime
using runtime::Args;
using runtime::PackedFunc;
using runtime::TypedPackedFunc;
}  // namespace tvm

#endif  // TVM_RUNTIME_PACKED_FUNC_H_
