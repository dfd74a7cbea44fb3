/*!
 * \file weights_file.h
 * \brief The arrays of an executable in a file of their own, which is mapped into memory.
 */
#ifndef TVM_RUNTIME_RELAX_VM_WEIGHTS_FILE_H_
#define TVM_RUNTIME_RELAX_VM_WEIGHTS_FILE_H_

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/serializer.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*! \brief Write arrays; returns a number that tells this file from others. OSError as RuntimeError.
 */
int64_t WriteWeights(const std::string& path, const std::vector<NDArray>& arrays);
/*!
 * \brief The arrays of a file, read only and shared with other processes that map it.
 *
 * ValueError unless it is the file of this number with arrays of these types and shapes.
 */
std::vector<NDArray> MapWeights(const std::string& path, int64_t id,
                                const std::vector<NDArray>& expected);
/*! \brief An array of a type and shape whose memory comes later. */
NDArray WithoutMemory(std::vector<int64_t> shape, DataType type);
/*! \brief Type and shape of an array, and the other way round. */
void SaveOutline(const NDArray& array, ByteWriter* writer);
NDArray LoadOutline(ByteReader* reader);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_RELAX_VM_WEIGHTS_FILE_H_
