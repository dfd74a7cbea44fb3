/*!
 * \file tensor_core_fragments.cc
 * \brief Which statements are products of matrices, and the fragments that suit them.
 */
#include "tensor_core_fragments.h"

#include <tvm/expr/op.h>
#include <tvm/target/target.h>
#include <tvm/te/schedule.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tvm {
namespace te {

std::vector<size_t> WideAxes(const WarpRegion& region) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < region.extent.size(); ++i) {
    if (region.extent[i] != 1) axes.push_back(i);
  }
  return axes;
}

std::string Text(const WarpRegion& region) {
  std::string text;
  for (int64_t extent : region.extent) {
    text += (text.empty() ? "" : " x ") + std::to_string(extent);
  }
  return text;
}

void RefuseCondition(const std::string& where, const Buffer& buffer, const PrimExpr& condition) {
  TVM_FATAL(ScheduleError) << where << "access of " << buffer->name << " under the condition "
                           << condition
                           << ", but a fragment is loaded, computed and stored as a whole; split "
                           << "by factors that divide the axes, or pad the operands";
  throw;  // unreachable
}

namespace {

/*! \brief Whether the current target may round operands of float32 to the ten bits of a mantissa
 *         that tensor cores have. */
bool AllowsTf32() {
  const Target target = Target::Current(true);
  return target.defined() && target->GetInt("allow_tf32", 0) != 0;
}

/*! \brief Finds the products of marked stages and decides on fragments for their operands. */
class ProductFinder final : public KernelMutator {
 public:
  explicit ProductFinder(const std::vector<Mark>& marks) : marks_(marks) {}

  FragmentMap Run(const Stmt& stmt) {
    VisitStmt(stmt);
    for (const Mark& mark : marks_) {
      TVM_CHECK(found_.count(mark.result.get()), ScheduleError)
          << mark.where << "the stage must add up products of two tensors, as te.sum of a[i, k] * "
          << "b[k, j] does";
    }
    return std::move(found_);
  }

 private:
  bool IsAboutFragments(const tir::BufferStoreNode* store) const override {
    return MarkOf(store) != nullptr;
  }

  const Mark* MarkOf(const tir::BufferStoreNode* store) const {
    for (const Mark& mark : marks_) {
      if (mark.result.same_as(store->buffer)) return &mark;
    }
    return nullptr;
  }

  Stmt VisitStmt_(const tir::IfThenElseNode* op) override {
    // A loop inside of the condition would be taken for the whole nest.
    tir::PostOrderVisit(GetRef<Stmt>(op), [&](const ObjectRef& node) {
      const auto* store = node.as<tir::BufferStoreNode>();
      const Mark* mark = store == nullptr ? nullptr : MarkOf(store);
      if (mark != nullptr) RefuseCondition(mark->where, store->buffer, op->condition);
    });
    return KernelMutator::VisitStmt_(op);
  }

  Stmt Replace(const StoreNest& nest, const Stmt& stmt) override {
    const Mark& mark = *MarkOf(nest.store);
    const auto* sum = nest.store->value.as<tir::AddNode>();
    // Start values are written by a nest of their own.
    if (sum == nullptr) return stmt;
    AddProduct(mark, nest, sum);
    return stmt;
  }

  void AddProduct(const Mark& mark, const StoreNest& nest, const tir::AddNode* sum) {
    const auto* product = sum->b.as<tir::MulNode>();
    const auto* before = sum->a.as<tir::BufferLoadNode>();
    bool adds_up = product != nullptr && before != nullptr && before->buffer.same_as(mark.result);
    TVM_CHECK(adds_up, ScheduleError)
        << mark.where << "the stage must add products of two tensors to its result, but computes "
        << nest.store->value;
    const DataType dtype = mark.result->dtype;
    const tir::BufferLoadNode* factors[2] = {FactorOf(product->a), FactorOf(product->b)};
    for (const tir::BufferLoadNode* factor : factors) {
      TVM_CHECK(factor != nullptr, ScheduleError)
          << mark.where << "the factors must be elements of tensors, cast to " << dtype
          << " if they are of another type, but the stage multiplies " << product->a << " and "
          << product->b << "; compute the operands in stages of their own";
    }
    const DataType operand = factors[0]->dtype;
    bool real = (operand == DataType::Float(16) &&
                 (dtype == DataType::Float(32) || dtype == DataType::Float(16))) ||
                (operand == DataType::BFloat(16) && dtype == DataType::Float(32));
    real = real || (operand == DataType::Float(32) && dtype == operand && AllowsTf32());
    bool integer =
        (operand == DataType::Int(8) || operand == DataType::UInt(8)) && dtype == DataType::Int(32);
    TVM_CHECK(factors[1]->dtype == operand && (real || integer), ScheduleError)
        << mark.where << "operands of types " << operand << " and " << factors[1]->dtype
        << " with a sum of type " << dtype << " do not suit tensor cores; they multiply float16 "
        << "for sums of float32 or float16, bfloat16 for sums of float32, int8 or uint8 for sums "
        << "of int32, and float32 where the target has the option -allow_tf32=1";
    AddRoles(mark, nest, factors);
  }

  static const tir::BufferLoadNode* FactorOf(const PrimExpr& factor) {
    const auto* cast = factor.as<tir::CastNode>();
    return (cast == nullptr ? factor : cast->value).as<tir::BufferLoadNode>();
  }

  /*! \brief Which factor is the left one, and which axes of it are rows and steps. */
  void AddRoles(const Mark& mark, const StoreNest& nest,
                const tir::BufferLoadNode* const factors[2]) {
    WarpRegion result = warp_.RegionOf(nest.store->indices, nest.loops, false, mark.where);
    std::vector<size_t> axes = WideAxes(result);
    TVM_CHECK(axes.size() == 2, ScheduleError) << mark.where << "a warp computes " << Text(result)
                                               << " elements at a time; it must be a matrix";
    WarpRegion regions[2];
    int left = -1;
    size_t outer_axes[2] = {0, 0}, step_axes[2] = {0, 0};
    for (int f = 0; f < 2; ++f) {
      regions[f] = warp_.RegionOf(factors[f]->indices, nest.loops, false, mark.where);
      std::vector<size_t> wide = WideAxes(regions[f]);
      int matches = 0;
      for (size_t a = 0; wide.size() == 2 && a < 2; ++a) {
        for (int side = 0; side < 2; ++side) {
          if (!MoveTogether(nest.store->indices, result, axes[side], factors[f]->indices,
                            regions[f], wide[a])) {
            continue;
          }
          ++matches;
          if (side == 0) left = f;
          outer_axes[f] = wide[a];
          step_axes[f] = wide[1 - a];
        }
      }
      TVM_CHECK(wide.size() == 2 && matches == 1, ScheduleError)
          << mark.where << "while the stage computes " << Text(result) << " elements of "
          << mark.result->name << nest.store->indices << ", it reads " << Text(regions[f]) << " of "
          << factors[f]->buffer->name << factors[f]->indices
          << "; that must be a matrix which shares exactly one axis with the result";
    }
    int right = 1 - left;
    bool product = left >= 0 &&
                   MoveTogether(factors[0]->indices, regions[0], step_axes[0], factors[1]->indices,
                                regions[1], step_axes[1]) &&
                   MoveTogether(nest.store->indices, result, axes[1], factors[right]->indices,
                                regions[right], outer_axes[right]);
    TVM_CHECK(product, ScheduleError)
        << mark.where << factors[0]->buffer->name << factors[0]->indices << " and "
        << factors[1]->buffer->name << factors[1]->indices << " are not multiplied as matrices for "
        << mark.result->name << nest.store->indices;
    TVM_CHECK(!warp_.DependsOnLane(factors[0]->indices[step_axes[0]]), ScheduleError)
        << mark.where << "threads of a warp do different steps of the reduction; all must do all";
    // A loop that moves none of these would add the same product again.
    warp_.RegionOf({nest.store->indices[axes[0]], nest.store->indices[axes[1]],
                    factors[0]->indices[step_axes[0]]},
                   nest.loops, true, mark.where);
    AddFragments(mark, result, axes, factors, left, outer_axes, step_axes,
                 regions[0].extent[step_axes[0]]);
  }

  /*! \brief Whether two indices are the same up to where their regions start. */
  bool MoveTogether(const Array<PrimExpr>& a, const WarpRegion& a_region, size_t a_axis,
                    const Array<PrimExpr>& b, const WarpRegion& b_region, size_t b_axis) {
    return a_region.extent[a_axis] == b_region.extent[b_axis] &&
           warp_.analyzer.CanProveEqual(warp_.ToLanes(a[a_axis]) - a_region.min[a_axis],
                                        warp_.ToLanes(b[b_axis]) - b_region.min[b_axis]);
  }

  void AddFragments(const Mark& mark, const WarpRegion& result, const std::vector<size_t>& axes,
                    const tir::BufferLoadNode* const factors[2], int left,
                    const size_t outer_axes[2], const size_t step_axes[2], int64_t steps) {
    // Square fragments first: their rows are best aligned.
    constexpr int kShapes[3][2] = {{16, 16}, {32, 8}, {8, 32}};
    const bool is_tf32 = factors[0]->buffer->dtype == DataType::Float(32);
    const int depth = is_tf32 ? 8 : 16;
    const auto* end = is_tf32 ? std::begin(kShapes) + 1 : std::end(kShapes);
    int64_t height = result.extent[axes[0]], width = result.extent[axes[1]];
    const auto* shape = std::find_if(std::begin(kShapes), end, [&](const int (&s)[2]) {
      return height % s[0] == 0 && width % s[1] == 0;
    });
    TVM_CHECK(shape != end && steps % depth == 0, ScheduleError)
        << mark.where << "a warp computes " << height << " x " << width << " elements in " << steps
        << " steps at a time; it must be a multiple of "
        << (is_tf32 ? "16 x 16" : "16 x 16, 32 x 8 or 8 x 32") << " elements in multiples of "
        << depth << " steps";
    Fragments common;
    common.where = mark.where;
    common.m = (*shape)[0];
    common.n = (*shape)[1];
    common.k = depth;
    int right = 1 - left;
    Add(mark.result, "wmma.accumulator", common.m, common.n, axes[0], axes[1], common);
    Add(factors[left]->buffer, "wmma.matrix_a", common.m, common.k, outer_axes[left],
        step_axes[left], common);
    Add(factors[right]->buffer, "wmma.matrix_b", common.k, common.n, step_axes[right],
        outer_axes[right], common);
  }

  void Add(const Buffer& buffer, const std::string& scope, int rows, int columns, size_t row_axis,
           size_t column_axis, Fragments fragments) {
    std::string now = buffer.scope();
    TVM_CHECK(now == "local" || now == scope, ScheduleError)
        << fragments.where << "buffer " << buffer->name << " is in "
        << (now.empty() ? "global" : now) << " memory and must be in registers; use "
        << (scope == "wmma.accumulator" ? "cache_write" : "cache_read") << "(..., \"local\")";
    fragments.buffer = tir::decl_buffer(buffer->shape, buffer->dtype, buffer->name, scope);
    fragments.rows = rows;
    fragments.columns = columns;
    fragments.row_axis = row_axis;
    fragments.column_axis = column_axis;
    auto [it, is_new] = found_.emplace(buffer.get(), fragments);
    const Fragments& known = it->second;
    bool same = known.buffer.scope() == scope && known.m == fragments.m && known.n == fragments.n &&
                known.row_axis == row_axis && known.column_axis == column_axis;
    TVM_CHECK(is_new || same, ScheduleError)
        << fragments.where << "buffer " << buffer->name << " is used in two ways, as "
        << known.buffer.scope() << " of " << known.m << " x " << known.n << " and as " << scope
        << " of " << fragments.m << " x " << fragments.n << "; cache_read it for each";
  }

  const std::vector<Mark>& marks_;
  FragmentMap found_;
};

}  // namespace

FragmentMap FindProducts(const Stmt& stmt, const std::vector<Mark>& marks) {
  return ProductFinder(marks).Run(stmt);
}

}  // namespace te
}  // namespace tvm
