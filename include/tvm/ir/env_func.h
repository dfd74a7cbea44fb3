/*!
 * \file tvm/ir/env_func.h
 * \brief A global function as a part of a program, known by its name.
 */
#ifndef TVM_IR_ENV_FUNC_H_
#define TVM_IR_ENV_FUNC_H_

#include <tvm/node/node.h>
#include <tvm/runtime/container/string.h>

namespace tvm {

/*!
 * \brief A function of the registry that may stand in attributes of programs.
 *
 * Equality, hash and JSON are those of the name; where the program is read again, a function of
 * this name must be registered.
 */
class EnvFuncNode : public Object {
 public:
  String name;
  /*! \brief ValueError if no function of this name is registered. */
  void Init();
  TVM_DECLARE_NODE(EnvFuncNode, Object, "EnvFunc", Value(name));
};

/*! \brief Reference to EnvFuncNode. */
class EnvFunc : public FromFields<ObjectRef, EnvFuncNode> {
 public:
  TVM_DEFINE_NODE_REF(EnvFunc, EnvFuncNode);
};

}  // namespace tvm
#endif  // TVM_IR_ENV_FUNC_H_
