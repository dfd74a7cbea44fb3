/*!
 * \file testing_text.h
 * \brief Programs as text.
 */
#ifndef TVM_TESTS_CPP_TIR_TESTING_TEXT_H_
#define TVM_TESTS_CPP_TIR_TESTING_TEXT_H_

#include <tvm/runtime/object.h>

#include <sstream>
#include <string>

namespace tvm {
namespace tir {

inline std::string Text(const ObjectRef& ref) {
  std::ostringstream os;
  os << ref;
  return os.str();
}

}  // namespace tir
}  // namespace tvm

#endif  // TVM_TESTS_CPP_TIR_TESTING_TEXT_H_
