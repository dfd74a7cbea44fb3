/*!
 * \file params.h
 * \brief Arrays as bytes.
 */
#ifndef TVM_RUNTIME_PARAMS_H_
#define TVM_RUNTIME_PARAMS_H_

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/serializer.h>

namespace tvm {
namespace runtime {

/*! \brief Whether programs compute with elements of a type that was read from a file. */
bool IsElementType(const DLDataType& type);
/*! \brief Write type, shape and elements; the array may be on any device. */
void SaveNDArray(const NDArray& array, ByteWriter* writer);
/*! \brief What SaveNDArray wrote, on the cpu. */
NDArray LoadNDArray(ByteReader* reader);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_PARAMS_H_
