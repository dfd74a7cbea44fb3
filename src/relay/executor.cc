/*!
 * \file src/relay/executor.cc
 * \brief How a program is run: attributes of modules, and arguments of builds.
 */
#include <tvm/node/node.h>

namespace tvm {
namespace relay {

/*! \brief The kind of executor, and its options. */
class ExecutorNode : public Object {
 public:
  String name;
  Map<String, Any> attrs;
  TVM_DECLARE_NODE(ExecutorNode, Object, "Executor", Value(name), Value(attrs));
};
TVM_REGISTER_NODE(ExecutorNode, "relay.Executor");

/*! \brief The kind of runtime that libraries are linked with, and its options. */
class RuntimeNode : public Object {
 public:
  String name;
  Map<String, Any> attrs;
  TVM_DECLARE_NODE(RuntimeNode, Object, "Runtime", Value(name), Value(attrs));
};
TVM_REGISTER_NODE(RuntimeNode, "relay.Runtime");

}  // namespace relay
}  // namespace tvm
