/*!
 * \file src/tir/transforms/storage_alignment.cc
 * \brief Collects what blocks ask of strides.
 */
#include "storage_alignment.h"

#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>

namespace tvm {
namespace tir {
namespace {

class AlignmentFinder final : public StmtVisitor {
 public:
  StorageAlignmentMap found;

 private:
  void VisitStmt_(const BlockNode* op) final {
    StmtVisitor::VisitStmt_(op);
    auto it = op->annotations.find(kBufferDimAlign);
    if (it == op->annotations.end()) return;
    for (const Array<PrimExpr>& row : Downcast<Array<Array<PrimExpr>>>((*it).second)) {
      const int64_t* index = row.size() == 4 ? as_const_int(row[0]) : nullptr;
      TVM_CHECK(index != nullptr && *index >= 0 &&
                    static_cast<size_t>(*index) < op->writes.size() && as_const_int(row[1]),
                ValueError)
          << "annotation " << kBufferDimAlign << " of block " << op->name_hint
          << " holds rows of (index among its writes, axis, factor, offset), got " << row;
      std::vector<StorageAlignment>& rows = found[op->writes[*index]->buffer.get()];
      // Copies of a block, as in a pipeline, ask for the same.
      bool known = std::any_of(rows.begin(), rows.end(), [&](const StorageAlignment& other) {
        return *as_const_int(other.axis) == *as_const_int(row[1]);
      });
      if (!known) rows.push_back({row[1], row[2], row[3]});
    }
  }
};

}  // namespace

StorageAlignmentMap StorageAlignments(const Stmt& body) {
  AlignmentFinder finder;
  finder(body);
  return finder.found;
}

}  // namespace tir
}  // namespace tvm
