/*!
 * \file tvm/ir/type_repr.h
 * \brief Printed forms of the types of graphs, as TVMScript names them.
 */
#ifndef TVM_IR_TYPE_REPR_H_
#define TVM_IR_TYPE_REPR_H_

#include <tvm/ir/type.h>
#include <tvm/node/repr_printer.h>

namespace tvm {

/*!
 * \brief Print a type as an argument of another one's text.
 *
 * There a tensor's is `I.TensorType([2, 3], "float32")`; by itself it is
 * `TensorType([2, 3], float32)`.
 */
TVM_DLL void PrintInnerType(const Type& type, ReprPrinter* printer);

/*! \brief The same for a list of types, in brackets. */
TVM_DLL void PrintInnerTypes(const Array<Type>& types, ReprPrinter* printer);

}  // namespace tvm

#endif  // TVM_IR_TYPE_REPR_H_
