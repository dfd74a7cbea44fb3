/*!
 * \file stackvm_module.h
 * \brief Runtime module over a program of the stackvm.
 */
#ifndef TVM_RUNTIME_STACKVM_STACKVM_MODULE_H_
#define TVM_RUNTIME_STACKVM_STACKVM_MODULE_H_

#include <tvm/runtime/module.h>

#include "runtime/stackvm/bytecode.h"

namespace tvm {
namespace runtime {
namespace stackvm {

/*! \brief A module that interprets `program`; ValueError when the program is not consistent. */
TVM_DLL Module CreateModule(Program program);

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACKVM_STACKVM_MODULE_H_
