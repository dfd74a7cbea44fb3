/*!
 * \file tvm/runtime/data_type.h
 * \brief Scalar and vector element types and their text form, such as "float32x8".
 */
#ifndef TVM_RUNTIME_DATA_TYPE_H_
#define TVM_RUNTIME_DATA_TYPE_H_

#include <tvm/runtime/logging.h>

#include <functional>
#include <string>

namespace tvm {
namespace runtime {

/*! \brief `lanes` values of `bits` bits each. A boolean is an unsigned integer of one bit. */
class DataType {
 public:
  enum TypeCode {
    kInt = kDLInt,
    kUInt = kDLUInt,
    kFloat = kDLFloat,
    kHandle = kDLOpaqueHandle,
    kBFloat = kDLBfloat,
  };

  /*! \brief The type of nothing: void. */
  DataType() : DataType(kHandle, 0, 0) {}
  DataType(int code, int bits, int lanes)
      : data_{static_cast<uint8_t>(code), static_cast<uint8_t>(bits),
              static_cast<uint16_t>(lanes)} {}
  explicit DataType(DLDataType dtype) : data_(dtype) {}

  int code() const { return data_.code; }
  int bits() const { return data_.bits; }
  /*! \brief Bytes one lane occupies in memory; a boolean takes a whole byte. */
  int bytes() const { return (bits() + 7) / 8; }
  /*!
   * \brief Elements of a vector. Of a scalable vector, which holds `vscale` times as many as a
   * number that only the machine knows says, minus the factor, as DLPack's users write it.
   */
  int lanes() const { return static_cast<int16_t>(data_.lanes); }
  bool is_scalar() const { return lanes() == 1; }
  bool is_vector() const { return lanes() > 1 || is_scalable_vector(); }
  bool is_scalable_vector() const { return lanes() < 0; }
  bool is_bool() const { return code() == kUInt && bits() == 1; }
  bool is_float() const { return code() == kFloat; }
  bool is_float16() const { return is_float() && bits() == 16; }
  bool is_bfloat16() const { return code() == kBFloat && bits() == 16; }
  bool is_int() const { return code() == kInt; }
  bool is_uint() const { return code() == kUInt; }
  bool is_handle() const { return code() == kHandle && !is_void(); }
  bool is_void() const { return code() == kHandle && bits() == 0 && lanes() == 0; }

  DataType with_lanes(int lanes) const { return DataType(code(), bits(), lanes); }
  DataType with_bits(int bits) const { return DataType(code(), bits, lanes()); }
  DataType element_of() const { return with_lanes(1); }

  bool operator==(const DataType& other) const {
    return code() == other.code() && bits() == other.bits() && lanes() == other.lanes();
  }
  bool operator!=(const DataType& other) const { return !(*this == other); }
  operator DLDataType() const { return data_; }

  static DataType Int(int bits, int lanes = 1) { return DataType(kInt, bits, lanes); }
  static DataType UInt(int bits, int lanes = 1) { return DataType(kUInt, bits, lanes); }
  static DataType Float(int bits, int lanes = 1) { return DataType(kFloat, bits, lanes); }
  static DataType BFloat(int bits, int lanes = 1) { return DataType(kBFloat, bits, lanes); }
  static DataType Bool(int lanes = 1) { return DataType(kUInt, 1, lanes); }
  static DataType Handle(int bits = 64, int lanes = 1) { return DataType(kHandle, bits, lanes); }
  static DataType Void() { return DataType(); }

  /*! \brief Parse "int32", "float16x4", "bool", "handle", "bfloat16" or "void" (also ""). */
  TVM_DLL static DataType FromString(const std::string& text);
  TVM_DLL std::string ToString() const;

 private:
  DLDataType data_;
};

/*! \brief Bytes of one element, all lanes, in a tensor. */
inline size_t GetElementBytes(DLDataType dtype) {
  return (static_cast<size_t>(dtype.bits) * dtype.lanes + 7) / 8;
}

TVM_DLL std::ostream& operator<<(std::ostream& os, DataType dtype);

using Device = DLDevice;

/*! \brief "cpu", "cuda", ...; ValueError for a device type no one has named. */
TVM_DLL const char* DeviceName(int device_type);

}  // namespace runtime
using runtime::DataType;
using runtime::Device;
}  // namespace tvm

inline bool operator==(const DLDevice& a, const DLDevice& b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

template <>
struct std::hash<tvm::runtime::DataType> {
  size_t operator()(tvm::runtime::DataType t) const {
    return static_cast<size_t>(t.code()) | static_cast<size_t>(t.bits()) << 8 |
           static_cast<size_t>(t.lanes()) << 16;
  }
};

#endif  // TVM_RUNTIME_DATA_TYPE_H_
