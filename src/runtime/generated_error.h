/*!
 * \file generated_error.h
 * \brief Messages of compiled functions, whose values arrive as numbers.
 */
#ifndef TVM_RUNTIME_GENERATED_ERROR_H_
#define TVM_RUNTIME_GENERATED_ERROR_H_

#include <string>

namespace tvm {
namespace runtime {

/*!
 * \brief `message` with the numbers of types and devices written as names.
 *
 * Generated code can put integers into its messages but has no names for them. It writes
 * "<dtype CODE BITS LANES>", "<device TYPE>" and "<kind TYPECODE>".
 */
std::string SpellNumbers(const std::string& message);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_GENERATED_ERROR_H_
