#include <tvm/ir/adt.h>
#include <tvm/node/repr_printer.h>

namespace tvm {

TVM_REGISTER_NODE(GlobalTypeVarNode, "ir.GlobalTypeVar");
TVM_REGISTER_NODE(TypeCallNode, "ir.TypeCall");
TVM_REGISTER_NODE(ConstructorNode, "ir.Constructor");
TVM_REGISTER_NODE(TypeDataNode, "ir.TypeData");

}  // namespace tvm
