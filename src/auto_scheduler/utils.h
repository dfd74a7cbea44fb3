/*!
 * \file utils.h
 * \brief Names of loops, and small array operations shared by states and steps.
 */
#ifndef TVM_AUTO_SCHEDULER_UTILS_H_
#define TVM_AUTO_SCHEDULER_UTILS_H_

#include <tvm/auto_scheduler/loop_state.h>

#include <algorithm>
#include <string>

namespace tvm {
namespace auto_scheduler {

/*! \brief Loop name of an axis: "." and "@" separate parts of loop names, so they give way. */
inline String CleanName(const String& axis_name) {
  std::string name = axis_name;
  for (char& c : name) {
    if (c == '.' || c == '@') c = '_';
  }
  auto replace_all = [&name](const std::string& from, const std::string& to) {
    for (size_t at = name.find(from); at != std::string::npos; at = name.find(from, at)) {
      name.replace(at, from.size(), to);
    }
  };
  replace_all("outer", "o");
  replace_all("inner", "i");
  return name;
}

/*! \brief Position of the loop `it` (the same object) in `iters`. */
inline int IndexOf(const Array<Iterator>& iters, const Iterator& it) {
  for (size_t i = 0; i < iters.size(); ++i) {
    if (iters[i].same_as(it)) return static_cast<int>(i);
  }
  std::string names;
  for (const Iterator& other : iters) names += " " + std::string(other->name);
  TVM_FATAL(ValueError) << "State: loop " << it->name
                        << " is not a loop of this stage any more; its loops are now:" << names
                        << ". Take the loops that the last primitive returned";
}

/*! \brief `count` elements of `array` from `begin` on. */
template <typename T>
inline Array<T> Slice(const Array<T>& array, size_t begin, size_t count) {
  Array<T> result;
  for (size_t i = begin; i < begin + count; ++i) result.push_back(array[i]);
  return result;
}

/*! \brief `array` with `count` elements from `begin` on replaced by `with`. */
template <typename T>
inline Array<T> Replace(const Array<T>& array, size_t begin, size_t count, const Array<T>& with) {
  Array<T> result;
  for (size_t i = 0; i < begin; ++i) result.push_back(array[i]);
  for (const T& element : with) result.push_back(element);
  for (size_t i = begin + count; i < array.size(); ++i) result.push_back(array[i]);
  return result;
}

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_UTILS_H_
