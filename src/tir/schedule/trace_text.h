/*!
 * \file trace_text.h
 * \brief Arguments of instructions as Python expressions, and back.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_TRACE_TEXT_H_
#define TVM_SRC_TIR_SCHEDULE_TRACE_TEXT_H_

#include <tvm/tir/schedule/trace.h>

#include <functional>
#include <string>
#include <unordered_map>

namespace tvm {
namespace tir {
namespace sched {

/*! \brief Names of random variables. */
using Names = std::unordered_map<const Object*, std::string>;
/*! \brief Random variables by name. */
using NamedRVs = std::unordered_map<std::string, ObjectRef>;

/*! \brief The random variable that a value is, or null. */
const Object* AsRV(const Any& value);
/*! \brief A value with each random variable in it exchanged. */
Any MapRVs(const Any& value, const std::function<Any(const Any&)>& exchange);
/*! \brief Text as a literal of Python and of JSON. */
std::string Quoted(const std::string& text);
/*! \brief An argument as a Python expression; ValueError or TypeError if it has none. */
std::string ToText(const Any& value, const Names& names);
/*! \brief The value that ToText wrote; ValueError if there is none or it names the unknown. */
Any FromText(const std::string& text, const NamedRVs& known);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_TRACE_TEXT_H_
