/*!
 * \file tvm/runtime/registry.h
 * \brief The table of global functions, shared by C++, Python and compiled code.
 */
#ifndef TVM_RUNTIME_REGISTRY_H_
#define TVM_RUNTIME_REGISTRY_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <string_view>
#include <vector>

namespace tvm {
namespace runtime {

/*! \brief One global function. Entries live as long as the process. */
class TVM_DLL Registry {
 public:
  /*! \brief Set the body: a PackedFunc or a callable `void(Args, RetValue*)`. */
  Registry& set_body(PackedFunc func);

  /*! \brief Set the body to a typed callable; arguments are converted and checked. */
  template <typename F>
  Registry& set_body_typed(F f) {
    return set_body(MakeTypedPacked(std::move(f), name_));
  }

  /*! \brief Call a const member function of a node; the reference is the first argument. */
  template <typename Ref, typename Node, typename R, typename... A>
  Registry& set_body_method(R (Node::*method)(A...) const) {
    return set_body_typed([method](Ref ref, A... args) -> R {
      TVM_CHECK(ref.defined(), ValueError) << "method called on None";
      return (ref.get()->*method)(std::forward<A>(args)...);
    });
  }
  template <typename Ref, typename Node, typename R, typename... A>
  Registry& set_body_method(R (Node::*method)(A...)) {
    return set_body_typed([method](Ref ref, A... args) -> R {
      TVM_CHECK(ref.defined(), ValueError) << "method called on None";
      return (const_cast<Node*>(static_cast<const Node*>(ref.get()))->*method)(
          std::forward<A>(args)...);
    });
  }

  const std::string& name() const { return name_; }

  /*! \brief A new entry; ValueError if the name is taken and `override` is false. */
  static Registry& Register(const std::string& name, bool override = false);
  /*!
   * \brief Enter a function that a declaration implies: one registered under the name by Register,
   * before or afterwards, takes its place.
   */
  static void RegisterImplied(const std::string& name, PackedFunc func);
  /*! \brief Forget a function; false if there was none. */
  static bool Remove(const std::string& name);
  /*! \brief The function, or null. Stays valid; its body may be replaced by an override. */
  static const PackedFunc* Get(std::string_view name);
  /*! \brief The function; ValueError with similar names if there is none. */
  static const PackedFunc& Require(std::string_view name);
  /*! \brief All names, sorted. */
  static std::vector<std::string> ListNames();

 private:
  explicit Registry(std::string name) : name_(std::move(name)) {}
  std::string name_;
  PackedFunc func_;
  bool implied_ = false;
};

}  // namespace runtime
using runtime::Registry;
}  // namespace tvm

#define TVM_CONCAT_(a, b) a##b
#define TVM_CONCAT(a, b) TVM_CONCAT_(a, b)

/*! \brief TVM_REGISTER_GLOBAL("room.Name").set_body_typed([](...) { ... }); */
#define TVM_REGISTER_GLOBAL(Name)                                                          \
  [[maybe_unused]] static ::tvm::runtime::Registry& TVM_CONCAT(tvm_global_, __COUNTER__) = \
      ::tvm::runtime::Registry::Register(Name)

#endif  // TVM_RUNTIME_REGISTRY_H_
