/*!
 * \file tvm/node/functor.h
 * \brief NodeFunctor: a function chosen by the dynamic type of its first argument.
 */
#ifndef TVM_NODE_FUNCTOR_H_
#define TVM_NODE_FUNCTOR_H_

#include <tvm/node/node.h>

#include <vector>

namespace tvm {

template <typename Signature>
class NodeFunctor;

/*! \brief A table indexed by type; one load and an indirect call per dispatch. */
template <typename R, typename... A>
class NodeFunctor<R(const ObjectRef& node, A...)> {
 public:
  using Function = R (*)(const ObjectRef& node, A...);

  bool can_dispatch(const ObjectRef& node) const {
    return node.defined() && node->type_index() < table_.size() &&
           table_[node->type_index()] != nullptr;
  }
  R operator()(const ObjectRef& node, A... args) const {
    ICHECK(can_dispatch(node)) << "NodeFunctor has no case for "
                               << (node.defined() ? node->GetTypeKey() : "None");
    return table_[node->type_index()](node, std::forward<A>(args)...);
  }
  /*! \brief The case for exactly the type Node. */
  template <typename Node>
  NodeFunctor& set_dispatch(Function f) {
    uint32_t index = Node::RuntimeTypeIndex();
    if (table_.size() <= index) table_.resize(index + 1, nullptr);
    ICHECK(table_[index] == nullptr) << "NodeFunctor: two cases for " << Node::_type_key;
    table_[index] = f;
    return *this;
  }

 private:
  std::vector<Function> table_;
};

}  // namespace tvm

#endif  // TVM_NODE_FUNCTOR_H_
