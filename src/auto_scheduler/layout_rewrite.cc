/*!
 * \file layout_rewrite.cc
 * \brief New layouts for constant inputs, so that the inner loop reads them as one stream.
 *
 * A compute op names the inputs it may lay out anew in its attribute `layout_free_placeholders`.
 * The new layout has one dimension for each loop that indexes the input, in loop order.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/create_primfunc.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "schedule_replay.h"
#include "sketch_utils.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(LayoutTransformNode);

namespace {

bool IsLayoutFree(const Array<te::Operation>& ops, const te::Operation& placeholder) {
  for (const te::Operation& op : ops) {
    if (op->attrs.count(te::kLayoutFreePlaceholders) == 0) continue;
    for (const te::Tensor& tensor :
         Downcast<Array<te::Tensor>>(op->attrs.at(te::kLayoutFreePlaceholders))) {
      if (tensor->op.same_as(placeholder)) return true;
    }
  }
  return false;
}

/*!
 * \brief For each axis of the op, the dimension of the input that it indexes, else -1.
 * \return Empty unless every dimension is indexed by one axis of its own, from end to end.
 */
std::vector<int> DimOfAxis(const te::ComputeOpNode* compute, const Array<PrimExpr>& indices,
                           const Array<PrimExpr>& shape) {
  Array<te::IterVar> axes = compute->axis;
  for (const te::IterVar& axis : compute->reduce_axis) axes.push_back(axis);
  std::vector<int> dim_of_axis(axes.size(), -1);
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    if (tir::is_one(shape[dim])) continue;
    bool found = false;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i]->var.same_as(indices[dim])) continue;
      bool whole = tir::is_zero(axes[i]->dom->min) &&
                   arith::Analyzer().CanProveEqual(axes[i]->dom->extent, shape[dim]);
      if (!whole || dim_of_axis[i] != -1) return {};
      dim_of_axis[i] = static_cast<int>(dim);
      found = true;
    }
    if (!found) return {};
  }
  return dim_of_axis;
}

/*! \brief Whether the parts of a dimension leave nothing over; symbolic ones never do. */
bool PartsTile(const PrimExpr& size, int64_t dim, const Array<int64_t>& dims,
               const Array<PrimExpr>& extents) {
  const int64_t* whole = tir::as_const_int(size);
  int64_t product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != dim) continue;
    const int64_t* extent = tir::as_const_int(extents[i]);
    if (extent == nullptr) return true;
    product *= *extent;
  }
  return whole == nullptr || product == *whole;
}

/*! \brief The layout that the loops of one reading stage suggest; undefined if it has to stay. */
Optional<LayoutTransform> TransformFor(const Stage& reader, const te::Operation& placeholder,
                                       int tensor_index) {
  std::vector<Array<PrimExpr>> reads = ReadsOf(reader->op, placeholder);
  if (reads.size() != 1) return NullOpt;
  Array<PrimExpr> shape = placeholder->output_shape(0);
  std::vector<int> dim_of_axis = DimOfAxis(reader->op.as<te::ComputeOpNode>(), reads[0], shape);
  if (dim_of_axis.empty()) return NullOpt;

  Array<int64_t> dims;
  Array<PrimExpr> extents, strides;
  std::vector<bool> covered(shape.size(), false);
  for (const Iterator& iter : reader->iters) {
    // Without knowing which slice a loop walks, the order of elements cannot be told.
    if (iter->parts.empty()) {
      if (iter.ConstExtent() == 1) continue;
      return NullOpt;
    }
    for (const LoopPart& part : iter->parts) {
      int dim = dim_of_axis[part->axis];
      // Loops of one iteration have a dimension as well: programs tell what an axis of the layout
      // is from its position, whatever the tile sizes are.
      if (dim == -1) continue;
      covered[dim] = true;
      dims.push_back(dim);
      extents.push_back(part->extent);
      strides.push_back(part->stride);
    }
  }
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (!covered[dim] && !tir::is_one(shape[dim])) return NullOpt;
    if (!PartsTile(shape[dim], static_cast<int64_t>(dim), dims, extents)) return NullOpt;
  }
  // The input has this layout already if each dimension comes whole, in order.
  bool unchanged = true;
  int64_t last = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (tir::is_one(extents[i])) continue;
    unchanged = unchanged && tir::is_one(strides[i]) && dims[i] > last;
    last = dims[i];
  }
  if (unchanged) return NullOpt;
  return LayoutTransform(placeholder->name, tensor_index, shape, dims, extents, strides);
}

/*! \brief Whether a part reaches to the end of its dimension, so that no remainder is needed. */
bool IsOutermostPart(const LayoutTransform& transform, size_t part) {
  const PrimExpr& whole = transform->original_shape[transform->dims[part]];
  if (arith::Analyzer().CanProveEqual(transform->extents[part] * transform->strides[part], whole)) {
    return true;
  }
  // A symbolic quotient such as 256 // (sp_0 * sp_1) is what all other parts leave over.
  const auto* quotient = transform->extents[part].as<tir::FloorDivNode>();
  return quotient != nullptr && arith::Analyzer().CanProveEqual(quotient->a, whole);
}

/*! \brief Indices into the new layout for indices into the original one. */
Array<PrimExpr> NewIndices(const LayoutTransform& transform, const Array<PrimExpr>& original) {
  Array<PrimExpr> indices;
  for (size_t i = 0; i < transform->dims.size(); ++i) {
    if (tir::is_one(transform->extents[i])) {
      indices.push_back(tir::make_zero(original[transform->dims[i]].dtype()));
      continue;
    }
    PrimExpr index = original[transform->dims[i]];
    if (!tir::is_one(transform->strides[i])) index = floordiv(index, transform->strides[i]);
    if (!IsOutermostPart(transform, i)) index = floormod(index, transform->extents[i]);
    indices.push_back(index);
  }
  return indices;
}

/*! \brief Dimensions of a layout written as text, outermost first. */
struct LayoutText {
  std::vector<int64_t> extents;
  std::vector<std::string> axes;

  /*! \brief ValueError unless `text` is extents and names in turn, as in "8i32k4i". */
  explicit LayoutText(const std::string& text) {
    size_t at = 0;
    auto take = [&](auto belongs) {
      const size_t begin = at;
      while (at < text.size() && belongs(static_cast<unsigned char>(text[at]))) ++at;
      return text.substr(begin, at - begin);
    };
    constexpr size_t kMostDigits = 9;
    while (at < text.size()) {
      const std::string digits = take([](int c) { return std::isdigit(c) != 0; });
      const std::string name = take([](int c) { return std::isalpha(c) != 0 || c == '_'; });
      const int64_t extent = digits.empty() || digits.size() > kMostDigits ? 0 : std::stoll(digits);
      TVM_CHECK(extent > 0 && !name.empty(), ValueError)
          << "layout \"" << text << "\": expected an extent and the name of an axis for each "
          << "dimension, such as \"8i32k4i\"";
      extents.push_back(extent);
      axes.push_back(name);
    }
  }

  /*! \brief Product of the extents of one axis. */
  int64_t Extent(const std::string& axis) const {
    int64_t extent = 1;
    for (size_t i = 0; i < axes.size(); ++i) extent *= axes[i] == axis ? extents[i] : 1;
    return extent;
  }
};

/*! \brief The transform to a layout in whose text the dimensions of the input have these names. */
LayoutTransform TransformTo(const LayoutText& layout, const te::Operation& placeholder,
                            const std::vector<std::string>& dim_names) {
  Array<PrimExpr> shape;
  for (const std::string& name : dim_names) shape.push_back(Integer(layout.Extent(name)));
  const size_t n = layout.axes.size();
  Array<int64_t> dims(n, 0);
  Array<PrimExpr> extents(n, PrimExpr(0)), strides(n, PrimExpr(0));
  std::vector<int64_t> inner(dim_names.size(), 1);
  for (size_t i = n; i-- > 0;) {
    auto found = std::find(dim_names.begin(), dim_names.end(), layout.axes[i]);
    TVM_CHECK(found != dim_names.end(), ValueError)
        << "layout of " << placeholder->name << ": there is no axis " << layout.axes[i];
    const size_t dim = found - dim_names.begin();
    dims.Set(i, static_cast<int64_t>(dim));
    extents.Set(i, Integer(layout.extents[i]));
    strides.Set(i, Integer(inner[dim]));
    inner[dim] *= layout.extents[i];
  }
  return LayoutTransform(placeholder->name, 0, shape, dims, extents, strides);
}

/*! \brief Indices into the original layout for indices into the new one. */
Array<PrimExpr> OriginalIndices(const LayoutTransform& transform, const Array<tir::Var>& vars) {
  Array<PrimExpr> indices;
  for (size_t dim = 0; dim < transform->original_shape.size(); ++dim) {
    PrimExpr index = Integer(0);
    for (size_t i = 0; i < transform->dims.size(); ++i) {
      if (transform->dims[i] == static_cast<int64_t>(dim)) {
        index = index + vars[i] * transform->strides[i];
      }
    }
    indices.push_back(index);
  }
  return indices;
}

/*! \brief Replaces reads of tensors: by another tensor, and for some by another layout. */
class ReadRewriter : public tir::ExprMutator {
 public:
  te::TensorMap<te::Tensor> replaced;
  te::TensorMap<LayoutTransform> transformed;

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
    PrimExpr load = ExprMutator::VisitExpr_(op);
    op = load.as<tir::ProducerLoadNode>();
    te::Tensor tensor = Downcast<te::Tensor>(op->producer);
    auto found = replaced.find(tensor);
    if (found == replaced.end()) return load;
    auto transform = transformed.find(tensor);
    return found->second(
        transform == transformed.end() ? op->indices : NewIndices(transform->second, op->indices));
  }
};

/*!
 * \brief `dag` with the inputs of `transforms` in their new layouts.
 * \param insert_stage Keep the inputs, and add an operation that transforms each.
 * \param added Receives these operations.
 */
ComputeDAG Rewrite(const ComputeDAG& dag, const Array<LayoutTransform>& transforms,
                   bool insert_stage, Array<te::Operation>* added) {
  ReadRewriter rewriter;
  Array<te::Tensor> tensors = dag->tensors;
  for (const LayoutTransform& transform : transforms) {
    te::Tensor original = tensors[transform->tensor_index];
    te::Tensor rewritten;
    if (insert_stage) {
      auto element = [&](const Array<tir::Var>& vars) {
        return original(OriginalIndices(transform, vars));
      };
      rewritten = te::compute(transform->extents, element, "auto_scheduler_layout_transform",
                              "auto_scheduler_layout_transform");
      added->push_back(rewritten->op);
    } else {
      rewritten = te::placeholder(transform->extents, original->dtype, original->op->name);
      tensors.Set(transform->tensor_index, rewritten);
    }
    rewriter.replaced.emplace(original, rewritten);
    rewriter.transformed.emplace(original, transform);
  }

  Array<te::Operation> ops;
  for (const te::Operation& op : dag->ops) {
    const auto* compute = op.as<te::ComputeOpNode>();
    if (compute == nullptr) {
      auto found = rewriter.replaced.find(op.output(0));
      ops.push_back(insert_stage || found == rewriter.replaced.end() ? op : found->second->op);
      continue;
    }
    Array<PrimExpr> body;
    bool changed = false;
    if (!compute->body.empty() && compute->body[0]->IsInstance<tir::ReduceNode>()) {
      // te wants the bodies of a reduction to share their sources, so they are rebuilt from one.
      const auto* reduce = compute->body[0].as<tir::ReduceNode>();
      Array<PrimExpr> source, init;
      for (const PrimExpr& value : reduce->source) source.push_back(rewriter(value));
      for (const PrimExpr& value : reduce->init) init.push_back(rewriter(value));
      PrimExpr condition = rewriter(reduce->condition);
      for (size_t i = 0; i < source.size(); ++i) {
        changed = changed || !source[i].same_as(reduce->source[i]);
      }
      for (size_t i = 0; i < compute->body.size(); ++i) {
        body.push_back(tir::Reduce(reduce->combiner, source, reduce->axis, condition,
                                   static_cast<int>(i), init));
      }
    } else {
      for (const PrimExpr& value : compute->body) {
        body.push_back(rewriter(value));
        changed = changed || !body.back().same_as(value);
      }
    }
    if (!changed) {
      ops.push_back(op);
      continue;
    }
    Map<String, ObjectRef> attrs;
    for (const auto& [key, value] : compute->attrs) {
      if (std::string(key) != te::kLayoutFreePlaceholders) attrs.Set(key, value);
    }
    te::Operation rewritten =
        te::ComputeOp(compute->name, compute->tag, attrs, compute->axis, body);
    for (int i = 0; i < op->num_outputs(); ++i) {
      rewriter.replaced.emplace(op.output(i), rewritten.output(i));
    }
    ops.push_back(rewritten);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto found = rewriter.replaced.find(tensors[i]);
    if (found != rewriter.replaced.end() && found->second->op->IsInstance<te::ComputeOpNode>() &&
        !tensors[i]->op->IsInstance<te::PlaceholderOpNode>()) {
      tensors.Set(i, found->second);
    }
  }
  return ComputeDAG(tensors, ops);
}

}  // namespace

Array<LayoutTransform> ComputeDAG::LayoutTransforms(const State& state) const {
  Array<LayoutTransform> transforms;
  for (size_t i = 0; i < get()->tensors.size(); ++i) {
    const te::Operation& placeholder = get()->tensors[i]->op;
    if (!placeholder->IsInstance<te::PlaceholderOpNode>()) continue;
    if (!IsLayoutFree(get()->ops, placeholder)) continue;
    std::vector<Stage> readers;
    for (const Stage& stage : state->stages) {
      if (!ReadsOf(stage->op, placeholder).empty()) readers.push_back(stage);
    }
    if (readers.size() != 1 || readers[0]->compute_at == ComputeAtKind::kInlined) continue;
    Optional<LayoutTransform> transform =
        TransformFor(readers[0], placeholder, static_cast<int>(i));
    if (transform.defined()) transforms.push_back(transform.value());
  }
  return transforms;
}

void CheckLayoutRewrite(LayoutRewriteOption option) {
  const int number = static_cast<int>(option);
  TVM_CHECK(
      number >= 0 && number <= static_cast<int>(LayoutRewriteOption::kRewriteForPreTransformed),
      ValueError)
      << "layout rewrite option " << number << ": it must be 0 (no rewrite), 1 (insert a transform "
      << "stage) or 2 (rewrite for pre-transformed inputs)";
}

ComputeDAG ComputeDAG::RewriteLayout(const Array<LayoutTransform>& transforms) const {
  return Rewrite(*this, transforms, false, nullptr);
}

std::pair<te::Schedule, Array<te::Tensor>> ComputeDAG::ApplySteps(
    const Array<Step>& steps, LayoutRewriteOption layout_rewrite,
    const arith::VarContext* context) const {
  CheckLayoutRewrite(layout_rewrite);
  ComputeDAG dag = *this;
  Array<te::Operation> layout_stages;
  if (layout_rewrite != LayoutRewriteOption::kNoRewrite) {
    State state = get()->init_state;
    for (const Step& step : steps) state.AppendStep(step, *this);
    Array<LayoutTransform> transforms = LayoutTransforms(state);
    if (!transforms.empty()) {
      bool insert = layout_rewrite == LayoutRewriteOption::kInsertTransformStage;
      dag = Rewrite(*this, transforms, insert, &layout_stages);
    }
  }
  // The added stages are not among the ops, so the ids in the steps stay what they are.
  ScheduleReplay replay(dag->ops, dag.OutputOps(), steps, context);
  replay.Run();
  for (const te::Operation& op : layout_stages) {
    te::Stage stage = replay.schedule[op];
    Array<te::IterVar> loops = op.as<te::ComputeOpNode>()->axis;
    // Enough iterations to feed all cores, and long contiguous copies inside.
    size_t count = loops.size() >= 5 ? 3 : (loops.size() >= 3 ? 2 : 1);
    te::IterVar fused;
    stage.fuse(Array<te::IterVar>(loops.begin(), loops.begin() + count), &fused);
    stage.parallel(fused);
  }
  return {replay.schedule, dag->tensors};
}

/*!
 * \brief `body` with its reads of `placeholder`, whose indices name one axis each, in the layout.
 *
 * They are reads of a placeholder of the same name in the layout's shape.
 */
PrimExpr RewriteIndexForNewLayout(const te::Operation& placeholder, const String& new_layout,
                                  const PrimExpr& body) {
  std::vector<std::string> dim_names;
  tir::PostOrderVisit(body, [&](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    if (load == nullptr || !Downcast<te::Tensor>(load->producer)->op.same_as(placeholder)) return;
    std::vector<std::string> names;
    for (const PrimExpr& index : load->indices) {
      const auto* axis = index.as<tir::VarNode>();
      names.push_back(axis == nullptr ? "" : std::string(axis->name_hint));
    }
    bool simple = std::find(names.begin(), names.end(), "") == names.end();
    TVM_CHECK(simple && (dim_names.empty() || names == dim_names), ValueError)
        << "layout of " << placeholder->name << ": it is read at " << load->indices
        << "; only what is read along the same axes everywhere can be laid out anew";
    dim_names = std::move(names);
  });
  if (dim_names.empty()) return body;
  LayoutTransform transform =
      TransformTo(LayoutText(std::string(new_layout)), placeholder, dim_names);
  te::Tensor original = placeholder.output(0);
  ReadRewriter rewriter;
  rewriter.replaced.emplace(
      original, te::placeholder(transform->extents, original->dtype, placeholder->name));
  rewriter.transformed.emplace(original, transform);
  return rewriter(body);
}

TVM_REGISTER_GLOBAL("auto_scheduler.RewriteIndexForNewLayout")
    .set_body_typed(RewriteIndexForNewLayout);
TVM_REGISTER_GLOBAL("auto_scheduler.GetShapeFromRewrittenLayout")
    .set_body_typed([](String rewritten_layout, Array<String> axis_names) {
      const LayoutText layout{std::string(rewritten_layout)};
      Array<PrimExpr> shape;
      for (const String& name : axis_names) {
        TVM_CHECK(std::count(layout.axes.begin(), layout.axes.end(), std::string(name)) > 0,
                  ValueError)
            << "layout \"" << rewritten_layout << "\": it has no axis " << name;
        shape.push_back(Integer(layout.Extent(name)));
      }
      return shape;
    });

}  // namespace auto_scheduler
}  // namespace tvm
