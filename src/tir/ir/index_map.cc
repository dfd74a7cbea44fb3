/*!
 * \file src/tir/ir/index_map.cc
 * \brief Applying maps of indices, and undoing them.
 */
#include <tvm/arith/int_set.h>
#include <tvm/arith/iter_map_inverse.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/index_map.h>

#include <algorithm>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(IndexMapNode);

namespace {

class Retyper final : public ExprMutator {
 public:
  Retyper(const std::unordered_map<const VarNode*, PrimExpr>& values, DataType dtype)
      : values_(values), dtype_(dtype) {}

 private:
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto value = values_.find(op);
    if (value != values_.end()) return value->second;
    return op->dtype == dtype_ || !op->dtype.is_int() ? GetRef<PrimExpr>(op)
                                                      : cast(dtype_, GetRef<PrimExpr>(op));
  }
  PrimExpr VisitExpr_(const SizeVarNode* op) final {
    return VisitExpr_(static_cast<const VarNode*>(op));
  }
  PrimExpr VisitExpr_(const IntImmNode* op) final {
    return op->dtype.is_bool() ? GetRef<PrimExpr>(op) : make_const(dtype_, op->value);
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    return op->dtype.is_int() && value.dtype() == dtype_ ? value : cast(op->dtype, value);
  }
  // What is loaded has its own type, and indices of their own.
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    PrimExpr load = Substitute(GetRef<PrimExpr>(op), values_);
    return op->dtype.is_int() && op->dtype != dtype_ ? cast(dtype_, load) : load;
  }

  const std::unordered_map<const VarNode*, PrimExpr>& values_;
  DataType dtype_;
};

DataType WidestOf(const Array<PrimExpr>& indices, DataType otherwise) {
  DataType widest = indices.empty() ? otherwise : indices[0].dtype();
  for (const PrimExpr& index : indices) {
    if (index.dtype().bits() > widest.bits()) widest = index.dtype();
  }
  return widest;
}

DataType DTypeOf(const IndexMapNode* map) {
  return map->initial_indices.empty() ? DataType::Int(32) : map->initial_indices[0].dtype();
}

void CheckRank(const IndexMapNode* map, size_t given) {
  TVM_CHECK(given == map->initial_indices.size(), ValueError)
      << "IndexMap: the map takes " << map->initial_indices.size() << " indices, got " << given;
}

std::string TextOf(const IndexMapNode* map) {
  std::ostringstream os;
  os << "lambda ";
  for (size_t i = 0; i < map->initial_indices.size(); ++i) {
    os << (i == 0 ? "" : ", ") << map->initial_indices[static_cast<int64_t>(i)]->name_hint;
  }
  os << ": " << map->final_indices;
  return os.str();
}

/*! \brief Ranges with the type of the map's indices. */
Map<Var, Range> RangesOf(const IndexMapNode* map, const Array<Range>& ranges) {
  CheckRank(map, ranges.size());
  Map<Var, Range> found;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Var& var = map->initial_indices[static_cast<int64_t>(i)];
    const Range& range = ranges[static_cast<int64_t>(i)];
    found.Set(var, Range::FromMinExtent(SubstituteAs(range->min, {}, var.dtype()),
                                        SubstituteAs(range->extent, {}, var.dtype())));
  }
  return found;
}

Array<Range> FromZero(const Array<PrimExpr>& shape) {
  return shape.Map([](const PrimExpr& extent) {
    return Range::FromMinExtent(make_zero(extent.dtype()), extent);
  });
}

/*! \brief The map back over iterators whose digits are all used. */
IndexMap Undo(const IndexMap& map, const Array<PrimExpr>& indices, const Map<Var, Range>& iters,
              const std::vector<arith::PaddedIters::Pad>& pads, const Map<Var, Range>& ranges,
              Map<Var, PrimExpr>* padded_values, arith::Analyzer* analyzer) {
  arith::IterMapResult found =
      arith::DetectIterMap(indices, iters, arith::IterMapLevel::kBijective);
  TVM_CHECK(found->errors.empty(), ValueError)
      << "IndexMap: " << TextOf(map.get()) << " over " << ranges
      << " cannot be undone: " << found->errors[0];
  Array<Var> outputs;
  Array<PrimExpr> values;
  for (size_t i = 0; i < indices.size(); ++i) {
    const PrimExpr& index = map->final_indices[static_cast<int64_t>(i)];
    const auto* var = index.as<VarNode>();
    outputs.push_back(Var(var ? var->name_hint.str() : "axis" + std::to_string(i), index.dtype()));
    values.push_back(outputs.back());
    Range range = Range::FromMinExtent(make_zero(index.dtype()), make_const(index.dtype(), 1));
    const arith::IterSumExpr& sum = found->indices[static_cast<int64_t>(i)];
    if (!sum->args.empty()) {
      range = Range::FromMinExtent(sum->base, sum->args[0]->extent * sum->args[0]->scale);
    } else {
      range = Range::FromMinExtent(sum->base, make_const(index.dtype(), 1));
    }
    analyzer->Bind(outputs.back(), range, true);
  }
  Map<Var, PrimExpr> origins = arith::InverseAffineIterMap(found->indices, values);
  Array<PrimExpr> finals;
  for (const Var& var : map->initial_indices) {
    auto pad = std::find_if(pads.begin(), pads.end(), [&](const arith::PaddedIters::Pad& other) {
      return other.original.same_as(var);
    });
    const Var& own = pad == pads.end() ? var : pad->padded;
    PrimExpr value;
    if (auto origin = origins.Get(own)) {
      value = analyzer->Simplify(origin.value());
    } else {
      value = pad == pads.end() ? ranges[var]->min : make_zero(own.dtype());
    }
    if (pad != pads.end()) value = analyzer->Simplify(value + pad->begin);
    padded_values->Set(var, value);
    finals.push_back(value);
  }
  return IndexMap(outputs, finals);
}

/*!
 * \brief `value < limit` (below) or `value >= limit`, of a sum of digits.
 *
 * Where only trips of the highest digit are concerned that are at its end, the digit is told apart,
 * so that a loop over it can be cut: `i == 3 && 4 * j + k >= 20`.
 */
PrimExpr Besides(const IndexMap& back, const PrimExpr& value, const PrimExpr& limit, bool below,
                 arith::Analyzer* analyzer) {
  PrimExpr whole = analyzer->Simplify(below ? value < limit : value >= limit);
  Array<PrimExpr> parts = arith::DetectLinearEquation(value, back->initial_indices);
  Var highest;
  int64_t most = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const int64_t* factor = as_const_int(parts[static_cast<int64_t>(i)]);
    if (factor == nullptr || *factor < 0) return whole;
    if (*factor > most) {
      most = *factor;
      highest = back->initial_indices[static_cast<int64_t>(i)];
    }
  }
  if (most <= 1 || is_const_int(whole)) return whole;
  const arith::ConstIntBound digit = analyzer->const_int_bound(highest);
  const int64_t end = below ? digit->min_value : digit->max_value;
  const DataType dtype = value.dtype();
  // What is left for the lower digits when the highest is at its end.
  PrimExpr rest = analyzer->Simplify(value - highest * make_const(dtype, most));
  PrimExpr bound = analyzer->Simplify(limit - make_const(dtype, end) * make_const(dtype, most));
  PrimExpr step = make_const(dtype, most);
  const bool only_end =
      below ? analyzer->CanProve(rest + step >= bound) : analyzer->CanProve(rest - step < bound);
  if (!only_end) return whole;
  PrimExpr lower = below ? rest < bound : rest >= bound;
  if (!below && analyzer->CanProve(rest <= bound)) lower = rest == bound;
  lower = analyzer->Simplify(lower);
  return digit->min_value == digit->max_value ? lower : highest == make_const(dtype, end) && lower;
}

}  // namespace

PrimExpr SubstituteAs(const PrimExpr& expr,
                      const std::unordered_map<const VarNode*, PrimExpr>& values, DataType dtype) {
  return Retyper(values, dtype)(expr);
}

Array<PrimExpr> IndexMapNode::MapIndices(const Array<PrimExpr>& indices,
                                         arith::Analyzer* analyzer) const {
  CheckRank(this, indices.size());
  DataType dtype = WidestOf(indices, DTypeOf(this));
  std::unordered_map<const VarNode*, PrimExpr> values;
  for (size_t i = 0; i < indices.size(); ++i) {
    const PrimExpr& index = indices[static_cast<int64_t>(i)];
    values[initial_indices[static_cast<int64_t>(i)].get()] =
        index.dtype() == dtype ? index : cast(dtype, index);
  }
  return final_indices.Map([&](const PrimExpr& index) {
    return analyzer->Simplify(SubstituteAs(index, values, dtype));
  });
}

Array<Range> IndexMapNode::MapRanges(const Array<Range>& ranges, arith::Analyzer* analyzer) const {
  CheckRank(this, ranges.size());
  Array<PrimExpr> mins;
  bool point = true;
  for (const Range& range : ranges) {
    mins.push_back(range->min);
    point &= is_const_int(range->extent, 1);
  }
  Array<Range> mapped;
  if (point) {
    for (const PrimExpr& index : MapIndices(mins, analyzer)) {
      mapped.push_back(Range::FromMinExtent(index, make_const(index.dtype(), 1)));
    }
    return mapped;
  }
  DataType dtype = WidestOf(mins, DTypeOf(this));
  Map<Var, arith::IntSet> sets;
  Array<PrimExpr> moving;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[static_cast<int64_t>(i)];
    Var var(initial_indices[static_cast<int64_t>(i)]->name_hint, dtype);
    sets.Set(var, arith::IntSet::FromRange(range));
    moving.push_back(var);
  }
  for (const PrimExpr& index : MapIndices(moving, analyzer)) {
    arith::IntSet set = arith::EvalSet(index, sets, analyzer);
    TVM_CHECK(set.HasLowerBound() && set.HasUpperBound(), ValueError)
        << "IndexMap: the values of " << index << " over " << ranges << " have no bounds";
    mapped.push_back(
        Range::FromMinExtent(analyzer->Simplify(set.min()),
                             analyzer->Simplify(set.max() - set.min() + make_const(dtype, 1))));
  }
  return mapped;
}

Array<PrimExpr> IndexMapNode::MapShape(const Array<PrimExpr>& shape,
                                       arith::Analyzer* analyzer) const {
  CheckRank(this, shape.size());
  DataType dtype = WidestOf(shape, DTypeOf(this));
  Map<Var, Range> iters;
  std::unordered_map<const VarNode*, PrimExpr> values;
  bool constant = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    Var var(initial_indices[static_cast<int64_t>(i)]->name_hint, dtype);
    values[initial_indices[static_cast<int64_t>(i)].get()] = var;
    PrimExpr extent = SubstituteAs(shape[static_cast<int64_t>(i)], {}, dtype);
    constant &= as_const_int(extent) != nullptr && *as_const_int(extent) > 0;
    iters.Set(var, Range::FromMinExtent(make_zero(dtype), extent));
  }
  Array<PrimExpr> indices =
      final_indices.Map([&](const PrimExpr& index) { return SubstituteAs(index, values, dtype); });
  arith::PaddedIters padded = arith::PadIters(indices, iters, analyzer);
  if (constant) {
    arith::IterMapResult found =
        arith::DetectIterMap(padded.indices, padded.ranges, arith::IterMapLevel::kNoCheck);
    if (found->errors.empty()) {
      return found->indices.Map([&](const arith::IterSumExpr& sum) -> PrimExpr {
        const PrimExpr one = make_const(dtype, 1);
        PrimExpr extent = one;
        for (const arith::IterSplitExpr& split : sum->args) {
          extent = extent + (split->extent - one) * max(split->scale, make_const(dtype, 0));
        }
        return analyzer->Simplify(sum->base + extent);
      });
    }
  }
  Map<Var, arith::IntSet> sets;
  for (const auto& [var, range] : padded.ranges) sets.Set(var, arith::IntSet::FromRange(range));
  return padded.indices.Map([&](const PrimExpr& index) -> PrimExpr {
    arith::IntSet set = arith::EvalSet(index, sets, analyzer);
    TVM_CHECK(set.HasUpperBound(), ValueError)
        << "IndexMap: the values of " << index << " over " << shape << " have no bound";
    return analyzer->Simplify(set.max() + make_const(dtype, 1));
  });
}

IndexMap IndexMap::Inverse(const Array<Range>& ranges, arith::Analyzer* analyzer) const {
  const IndexMapNode* self = get();
  if (self->inverse_index_map.defined()) return Downcast<IndexMap>(self->inverse_index_map);
  Map<Var, Range> iters = RangesOf(self, ranges);
  Map<Var, PrimExpr> values;
  return Undo(*this, self->final_indices, iters, {}, iters, &values, analyzer);
}

std::pair<IndexMap, PrimExpr> IndexMap::NonSurjectiveInverse(const Array<Range>& ranges,
                                                             arith::Analyzer* analyzer) const {
  const IndexMapNode* self = get();
  Map<Var, Range> iters = RangesOf(self, ranges);
  PrimExpr outside = const_false();
  if (self->inverse_index_map.defined()) {
    return {Downcast<IndexMap>(self->inverse_index_map), outside};
  }
  arith::PaddedIters padded = arith::PadIters(self->final_indices, iters, analyzer);
  Map<Var, PrimExpr> values;
  IndexMap back = Undo(*this, padded.indices, padded.ranges, padded.pads, iters, &values, analyzer);
  for (const Var& var : self->initial_indices) {
    bool is_padded =
        std::any_of(padded.pads.begin(), padded.pads.end(),
                    [&](const arith::PaddedIters::Pad& pad) { return pad.original.same_as(var); });
    if (!is_padded) continue;
    Range range = iters[var];
    PrimExpr below = Besides(back, values[var], range->min, /*below=*/true, analyzer);
    PrimExpr above =
        Besides(back, values[var], range->min + range->extent, /*below=*/false, analyzer);
    outside = outside || (below || above);
  }
  return {back, analyzer->Simplify(outside)};
}

IndexMap IndexMap::WithDType(DataType dtype) const {
  if (DTypeOf(get()) == dtype) return *this;
  std::unordered_map<const VarNode*, PrimExpr> values;
  Array<Var> vars;
  for (const Var& var : get()->initial_indices) {
    vars.push_back(Var(var->name_hint, dtype));
    values[var.get()] = vars.back();
  }
  return IndexMap(vars, get()->final_indices.Map([&](const PrimExpr& index) {
    return index.dtype().is_int() ? SubstituteAs(index, values, dtype) : Substitute(index, values);
  }),
                  get()->inverse_index_map);
}

TVM_REGISTER_GLOBAL("tir.IndexMapMapIndices")
    .set_body_typed([](IndexMap map, Array<PrimExpr> indices) {
      arith::Analyzer analyzer;
      return map->MapIndices(indices, &analyzer);
    });
TVM_REGISTER_GLOBAL("tir.IndexMapMapShape").set_body_typed([](IndexMap map, Array<PrimExpr> shape) {
  arith::Analyzer analyzer;
  return map->MapShape(shape, &analyzer);
});
TVM_REGISTER_GLOBAL("tir.IndexMapInverse").set_body_typed([](IndexMap map, Array<PrimExpr> shape) {
  arith::Analyzer analyzer;
  return map.Inverse(FromZero(shape), &analyzer);
});
TVM_REGISTER_GLOBAL("tir.IndexMapNonSurjectiveInverse")
    .set_body_typed([](IndexMap map, Array<PrimExpr> shape) {
      arith::Analyzer analyzer;
      auto [back, outside] = map.NonSurjectiveInverse(FromZero(shape), &analyzer);
      return Array<ObjectRef>{back, outside};
    });
TVM_REGISTER_GLOBAL("tir.IndexMapWithDType").set_body_typed([](IndexMap map, DataType dtype) {
  return map.WithDType(dtype);
});

}  // namespace tir
}  // namespace tvm
