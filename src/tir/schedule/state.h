/*!
 * \file state.h
 * \brief References to loops and blocks of a schedule, which stay while the program changes.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_STATE_H_
#define TVM_SRC_TIR_SCHEDULE_STATE_H_

#include <memory>
#include <unordered_map>

#include "tree.h"

namespace tvm {
namespace tir {
namespace sched {

struct SRefTable;

/*! \brief A loop or block of a function, whatever is done around it. */
class StmtSRefNode : public Object {
 public:
  std::shared_ptr<SRefTable> table;
  Id id = kNone;
  ~StmtSRefNode();
  TVM_DECLARE_OBJECT(StmtSRefNode, Object, "tir.StmtSRef");
};
class StmtSRef : public ObjectRef {
 public:
  TVM_DEFINE_REF(StmtSRef, ObjectRef, StmtSRefNode);
};

/*! \brief References that somebody holds, so that there is one for each node. */
struct SRefTable {
  std::shared_ptr<Tree> tree;
  std::unordered_map<Id, StmtSRefNode*> known;

  static StmtSRef At(const std::shared_ptr<SRefTable>& table, Id id);
  /*! \brief The node that a statement is; kNone if it is none of this function's. */
  Id Find(const Stmt& stmt) const;
};

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_STATE_H_
