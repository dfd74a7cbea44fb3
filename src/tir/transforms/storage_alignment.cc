/*!
 * \file src/tir/transforms/storage_alignment.cc
 * \brief Collects what blocks ask of strides.
 */
#include "storage_alignment.h"

#include <tvm/arith/analyzer.h>
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

std::vector<StorageAlignment> AllocatedAlignment(const AllocateNode* op) {
  std::vector<StorageAlignment> rows;
  auto it = op->annotations.find(kBufferDimAlign);
  if (it == op->annotations.end()) return rows;
  for (const Array<PrimExpr>& row : Downcast<Array<Array<PrimExpr>>>((*it).second)) {
    TVM_CHECK(row.size() == 4 && as_const_int(row[1]), ValueError)
        << "annotation " << kBufferDimAlign << " of the allocation of " << op->buffer_var
        << " holds rows of (-1, axis, factor, offset), got " << row;
    rows.push_back({row[1], row[2], row[3]});
  }
  return rows;
}

ObjectRef AlignmentRows(const std::vector<StorageAlignment>& rows) {
  Array<Array<PrimExpr>> made;
  for (const StorageAlignment& row : rows) {
    made.push_back({make_const(DataType::Int(32), -1), row.axis, row.factor, row.offset});
  }
  return made;
}

Array<PrimExpr> AlignedStrides(const Array<PrimExpr>& shape,
                               const std::vector<StorageAlignment>& rows) {
  arith::Analyzer analyzer;
  std::vector<PrimExpr> strides(shape.size());
  PrimExpr stride = make_const(shape.empty() ? DataType::Int(32) : shape[0].dtype(), 1);
  for (size_t i = strides.size(); i != 0; --i) {
    for (const StorageAlignment& row : rows) {
      if (static_cast<size_t>(*as_const_int(row.axis)) != i - 1) continue;
      stride =
          stride + floormod(row.factor + row.offset - floormod(stride, row.factor), row.factor);
    }
    strides[i - 1] = analyzer.Simplify(stride);
    stride = strides[i - 1] * shape[i - 1];
  }
  return Array<PrimExpr>(strides);
}

Array<PrimExpr> AllocatedExtents(const Buffer& buffer) {
  const Array<PrimExpr>& strides = buffer->strides;
  if (strides.empty() || buffer->shape.empty()) return buffer->shape;
  Array<PrimExpr> extents{buffer->shape[0]};
  arith::Analyzer analyzer;
  for (size_t i = 0; i + 1 < strides.size(); ++i) {
    PrimExpr row = strides[i], element = strides[i + 1];
    extents.push_back(analyzer.Simplify(analyzer.CanProveEqual(floormod(row, element), 0)
                                            ? floordiv(row, element)
                                            : ceildiv(row, element)));
  }
  // Elements of the last axis lie apart, too, where that is the aligned one.
  extents.Set(extents.size() - 1, analyzer.Simplify(extents.back() * strides.back()));
  return extents;
}

}  // namespace tir
}  // namespace tvm
