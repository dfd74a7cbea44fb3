/*!
 * \file constant_data.h
 * \brief Elements of the constants that programs carry, for generators.
 */
#ifndef TVM_CODEGEN_CONSTANT_DATA_H_
#define TVM_CODEGEN_CONSTANT_DATA_H_

#include <tvm/tir/stmt.h>

#include <cstring>
#include <string>

namespace tvm {
namespace codegen {

/*! \brief The contents in memory; ValueError if the constant is only an index into its module. */
inline std::string ConstantBytes(const tir::AllocateConstNode* op) {
  TVM_CHECK(op->data.defined(), ValueError)
      << "constant " << op->buffer_var->name_hint << " is entry " << op->irmod_storage_idx
      << " of its module's constants; generators need it in the function";
  runtime::NDArray host = op->data.value().CopyTo(Device{kDLCPU, 0});
  return std::string(static_cast<const char*>(host.data()), host.NumBytes());
}

/*! \brief Element `i` of such contents as a literal; integers and floats of 32 or 64 bits. */
inline PrimExpr ConstantElement(const tir::AllocateConstNode* op, const std::string& bytes,
                                int64_t i) {
  const DataType dtype = op->dtype;
  const char* at = bytes.data() + i * dtype.bytes();
  if (dtype == DataType::Float(64)) {
    double value;
    std::memcpy(&value, at, sizeof value);
    return FloatImm(dtype, value);
  }
  if (dtype == DataType::Float(32)) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return FloatImm(dtype, value);
  }
  TVM_CHECK((dtype.is_int() || dtype.is_uint()) && dtype.is_scalar() && dtype.bits() >= 8,
            ValueError)
      << "constant " << op->buffer_var->name_hint << " of " << dtype
      << ": this generator writes integers and floats of 32 or 64 bits; use target llvm";
  // Little endian: the low bytes are in place, and the sign is carried to the others.
  uint64_t bits = 0;
  std::memcpy(&bits, at, dtype.bytes());
  const int spare = 64 - dtype.bits();
  int64_t value = static_cast<int64_t>(bits << spare);
  value =
      dtype.is_int() ? value >> spare : static_cast<int64_t>(static_cast<uint64_t>(value) >> spare);
  return IntImm(dtype, value);
}

}  // namespace codegen
}  // namespace tvm
#endif  // TVM_CODEGEN_CONSTANT_DATA_H_
