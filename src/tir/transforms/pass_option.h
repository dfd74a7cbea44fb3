/*!
 * \file pass_option.h
 * \brief Reading the entries of a pass's options.
 */
#ifndef TVM_TIR_TRANSFORMS_PASS_OPTION_H_
#define TVM_TIR_TRANSFORMS_PASS_OPTION_H_

#include <tvm/runtime/any.h>
#include <tvm/runtime/container/string.h>

namespace tvm {
namespace tir {

/*! \brief The value of entry `key` of `option`; TypeError naming both for one of another type. */
template <typename T>
T OptionEntry(const char* option, const String& key, const Any& value) {
  auto typed = value.TryCast<T>();
  TVM_CHECK(typed.has_value(), TypeError)
      << option << ": " << key << " must be of type " << runtime::AnyTraits<T>::TypeName()
      << ", got " << value.TypeName();
  return *typed;
}

}  // namespace tir
}  // namespace tvm

#endif  // TVM_TIR_TRANSFORMS_PASS_OPTION_H_
