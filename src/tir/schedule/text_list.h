/*!
 * \file text_list.h
 * \brief Lists in messages and in traces.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_TEXT_LIST_H_
#define TVM_SRC_TIR_SCHEDULE_TEXT_LIST_H_

#include <string>

namespace tvm {
namespace tir {
namespace sched {

/*! \brief Add an item to a text that lists items with commas between them. */
inline void AddItem(std::string* list, const std::string& item) {
  if (!list->empty()) *list += ", ";
  *list += item;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_TEXT_LIST_H_
