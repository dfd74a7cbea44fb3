/*!
 * \file dlpack/dlpack.h
 * \brief DLPack's types under the name that programs include them by.
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <tvm/runtime/dlpack.h>

#endif  // DLPACK_DLPACK_H_
