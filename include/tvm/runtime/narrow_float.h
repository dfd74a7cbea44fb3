/*!
 * \file tvm/runtime/narrow_float.h
 * \brief Floating point formats of 8 bits, and bfloat16, that programs compute with.
 */
#ifndef TVM_RUNTIME_NARROW_FLOAT_H_
#define TVM_RUNTIME_NARROW_FLOAT_H_

#include <tvm/runtime/data_type.h>

namespace tvm {
namespace runtime {

/*! \brief A format of a sign, an exponent and a mantissa, from the highest bit to the lowest. */
struct NarrowFloatFormat {
  /*! \brief What codes stand for that are no finite numbers. */
  enum Specials {
    kIEEE,          ///< the largest exponent is infinity (mantissa zero) and NaN
    kOnlyNaN,       ///< no infinity; all ones is NaN
    kUnsignedZero,  ///< no infinity; NaN takes the place of -0
  };
  int bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  /*! \brief The largest finite number. */
  double Largest() const;
};

/*!
 * \brief The format of one lane; null for types that are not among them.
 *
 * That is bfloat16 and the types of 8 bits with a sign and a mantissa.
 */
TVM_DLL const NarrowFloatFormat* NarrowFloatFormatOf(DataType dtype);

inline bool IsFloat8(DataType dtype) {
  return dtype.bits() == 8 && NarrowFloatFormatOf(dtype) != nullptr;
}

/*! \brief Whether users defined the type; DLPack's codes end below. */
inline bool IsCustom(DataType dtype) {
  constexpr int kFirstCustomCode = 129;
  return dtype.code() >= kFirstCustomCode;
}

/*! \brief Whether numbers of the type are real: those that programs compute with, and users'. */
inline bool IsFloating(DataType dtype) {
  return dtype.is_float() || NarrowFloatFormatOf(dtype) != nullptr || IsCustom(dtype);
}

}  // namespace runtime
using runtime::IsFloat8;
using runtime::IsFloating;
using runtime::NarrowFloatFormat;
using runtime::NarrowFloatFormatOf;
}  // namespace tvm

#endif  // TVM_RUNTIME_NARROW_FLOAT_H_
