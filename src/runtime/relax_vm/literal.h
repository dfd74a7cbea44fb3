/*!
 * \file literal.h
 * \brief Literals of programs as bytes.
 */
#ifndef TVM_RUNTIME_RELAX_VM_LITERAL_H_
#define TVM_RUNTIME_RELAX_VM_LITERAL_H_

#include <tvm/runtime/any.h>
#include <tvm/runtime/serializer.h>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*!
 * \brief Write a number, a text, a type, a shape, an array or null; TypeError for another value.
 * \param outlines Whether arrays are written without their elements.
 */
void SaveLiteral(const Any& literal, bool outlines, ByteWriter* writer);
/*! \brief What SaveLiteral wrote; arrays are on the cpu, outlines have no memory. */
Any LoadLiteral(ByteReader* reader);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_RELAX_VM_LITERAL_H_
