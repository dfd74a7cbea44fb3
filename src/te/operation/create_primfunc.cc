/*!
 * \file create_primfunc.cc
 * \brief A function of blocks from tensors.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/create_primfunc.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "../schedule/graph.h"
#include "placeholder_binder.h"

namespace tvm {
namespace te {

namespace {

/*!
 * \brief Reads of tensors become reads of buffers.
 *
 * Comparisons are written with < and <=, so that a computation is one block whichever way round its
 * author put the operands.
 */
class TensorReader final : public tir::ExprMutator {
 public:
  explicit TensorReader(const TensorMap<Buffer>& buffers) : buffers_(buffers) {}

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) override {
    Array<PrimExpr> indices = op->indices.Map([this](const PrimExpr& e) { return VisitExpr(e); });
    Tensor tensor = Downcast<Tensor>(op->producer);
    return tir::BufferLoad(buffers_.at(tensor), indices);
  }
  PrimExpr VisitExpr_(const tir::GTNode* op) override {
    return tir::LT(VisitExpr(op->b), VisitExpr(op->a));
  }
  PrimExpr VisitExpr_(const tir::GENode* op) override {
    return tir::LE(VisitExpr(op->b), VisitExpr(op->a));
  }
  PrimExpr VisitExpr_(const tir::DivNode* op) override {
    // A product takes a fraction of a quotient's time, and errs by half a unit in the last place
    // more. That unit is too much of a number of 16 bits.
    const auto* divisor = op->b.as<tir::FloatImmNode>();
    if (divisor == nullptr || op->dtype.bits() < 32 || divisor->value == 0) {
      return ExprMutator::VisitExpr_(op);
    }
    return VisitExpr(op->a) * FloatImm(op->dtype, 1 / divisor->value);
  }
  const TensorMap<Buffer>& buffers_;
};

class PrimFuncCreator {
 public:
  explicit PrimFuncCreator(const Array<Tensor>& args) {
    for (const Tensor& arg : args) {
      TVM_CHECK(is_arg_.insert({arg, true}).second, ValueError)
          << "create_prim_func: tensor " << arg->GetNameHint() << " is an argument twice";
    }
  }

  tir::PrimFunc Run(const Array<Tensor>& args) {
    Array<Operation> outputs;
    for (const Tensor& arg : args) outputs.push_back(arg->op);
    for (const Operation& op : OperationsInOrder(outputs)) Add(op);
    Array<Var> params;
    Map<Var, Buffer> buffer_map;
    Array<Any> layout_free;
    for (size_t i = 0; i < args.size(); ++i) {
      const Buffer& buffer = buffers_.at(args[i]);
      Var param("var_" + std::string(buffer->name), DataType::Handle());
      params.push_back(param);
      buffer_map.Set(param, buffer);
      if (layout_free_.count(args[i])) layout_free.push_back(static_cast<int64_t>(i));
    }
    tir::Block root({}, {}, {}, "root", tir::SeqStmt::Flatten(stmts_), Stmt(), allocated_);
    Map<String, Any> attrs{{tvm::attr::kGlobalSymbol, String("main")}, {tvm::attr::kNoAlias, true}};
    if (!layout_free.empty()) attrs.Set(tir::attr::kLayoutFreeBuffers, layout_free);
    return tir::PrimFunc(params, tir::BlockRealize({}, tir::const_true(), root), VoidType(),
                         buffer_map, DictAttrs(attrs));
  }

 private:
  void Add(const Operation& op) {
    for (int i = 0; i < op->num_outputs(); ++i) {
      Tensor tensor = op.output(i);
      Buffer buffer = tir::decl_buffer(tensor->shape, tensor->dtype, tensor->GetNameHint());
      buffers_.emplace(tensor, buffer);
      bool is_input = op->IsInstance<PlaceholderOpNode>();
      TVM_CHECK(!is_input || is_arg_.count(tensor), ValueError)
          << "create_prim_func: the input " << op->name << " is read but is no argument; add it";
      if (!is_arg_.count(tensor)) allocated_.push_back(buffer);
    }
    if (auto free = op->attrs.find(kLayoutFreePlaceholders); free != op->attrs.end()) {
      for (const Tensor& tensor : Downcast<Array<Tensor>>((*free).second)) {
        layout_free_.emplace(tensor, true);
      }
    }
    if (const auto* compute = op.as<ComputeOpNode>()) {
      AddCompute(op, compute);
    } else if (const auto* external = op.as<ExternOpNode>()) {
      AddExtern(op, external);
    } else {
      TVM_CHECK(op->IsInstance<PlaceholderOpNode>(), ValueError)
          << "create_prim_func: " << op->name << " is a " << op->GetTypeKey()
          << "; only compute and extern operations have blocks. Lower it with a schedule instead";
    }
  }

  /*! \brief A name no block has yet, from that of the operation. */
  String BlockName(const std::string& name) {
    std::string unique = name;
    for (int i = 1; !block_names_.insert(unique).second; ++i) {
      unique = name + "_" + std::to_string(i);
    }
    return unique;
  }

  /*! \brief A domain whose extent is as short as it gets. */
  Range Simple(const Range& dom) {
    return Range::FromMinExtent(dom->min, analyzer_.Simplify(dom->extent));
  }

  void AddCompute(const Operation& op, const ComputeOpNode* compute) {
    Array<IterVar> axes;
    Array<Var> loops;
    Array<PrimExpr> loop_values, indices;
    Map<Var, PrimExpr> vmap;
    for (const IterVar& iv : op->root_iter_vars()) {
      Var inner("v_" + std::string(iv->var->name_hint), iv->var->dtype);
      axes.push_back(IterVar(Simple(iv->dom), inner, iv->iter_type));
      loops.push_back(iv->var.copy_with_suffix(""));
      loop_values.push_back(loops.back());
      vmap.Set(iv->var, inner);
      if (indices.size() < compute->axis.size()) indices.push_back(inner);
    }
    if (axes.empty()) {
      // One element is an axis of one step, since a block of no axes is no place for a loop.
      axes.push_back(IterVar(Range(0, 1), Var("vi"), tir::kDataPar));
      loop_values.push_back(IntImm(DataType::Int(32), 0));
    }
    TensorReader reader(buffers_);
    auto value = [&](const PrimExpr& expr) { return reader(tir::Substitute(expr, vmap)); };
    Stmt body, init;
    const auto* reduce = compute->body[0].as<tir::ReduceNode>();
    if (reduce == nullptr) {
      body = Store(op, compute->body.Map(value), indices);
    } else {
      Array<PrimExpr> start =
          reduce->init.empty() ? reduce->combiner->identity_element : reduce->init;
      init = Store(op, start.Map(value), indices);
      body = Update(op, reduce, value, indices);
    }
    tir::AccessRegions regions = tir::DetectAccessRegions(body, init);
    Map<String, ObjectRef> annotations;
    for (const auto& [key, attr] : op->attrs) {
      if (key != kLayoutFreePlaceholders) annotations.Set(key, attr);
    }
    tir::Block block(axes, regions.reads, regions.writes, BlockName(op->name), body, init, {}, {},
                     annotations);
    Stmt nest = tir::BlockRealize(loop_values, tir::const_true(), block);
    for (size_t i = loops.size(); i != 0; --i) {
      const Range& dom = axes[i - 1]->dom;
      nest = tir::For(loops[i - 1], dom->min, dom->extent, tir::ForKind::kSerial, nest);
    }
    stmts_.push_back(nest);
  }

  Stmt Store(const Operation& op, const Array<PrimExpr>& values, const Array<PrimExpr>& indices) {
    Array<Stmt> stores;
    for (size_t i = 0; i < values.size(); ++i) {
      stores.push_back(tir::BufferStore(buffers_.at(op.output(i)), values[i], indices));
    }
    return tir::SeqStmt::Flatten(stores);
  }

  template <typename F>
  Stmt Update(const Operation& op, const tir::ReduceNode* reduce, F value,
              const Array<PrimExpr>& indices) {
    Array<PrimExpr> so_far;
    for (int i = 0; i < op->num_outputs(); ++i) {
      so_far.push_back(tir::BufferLoad(buffers_.at(op.output(i)), indices));
    }
    Array<PrimExpr> combined = (*reduce->combiner.get())(so_far, reduce->source.Map(value));
    Stmt update;
    if (combined.size() == 1) {
      update = Store(op, combined, indices);
    } else {
      // Every new value depends on all old ones, so all are computed before the first store.
      Array<PrimExpr> names;
      for (size_t i = 0; i < combined.size(); ++i) {
        String name = "v_" + std::string(op.output(i)->GetNameHint());
        names.push_back(Var(name, PrimExpr(combined[i]).dtype()));
      }
      update = Store(op, names, indices);
      for (size_t i = combined.size(); i != 0; --i) {
        update = tir::LetStmt(Downcast<Var>(PrimExpr(names[i - 1])), combined[i - 1], update);
      }
    }
    PrimExpr condition = value(reduce->condition);
    return tir::is_one(condition) ? update : tir::IfThenElse(condition, update);
  }

  void AddExtern(const Operation& op, const ExternOpNode* external) {
    for (const Array<Buffer>& buffers :
         {external->input_placeholders, external->output_placeholders}) {
      for (const Buffer& buffer : buffers) {
        TVM_CHECK(!DescribesLayout(buffer), ValueError)
            << "create_prim_func: buffer " << buffer->name << " of extern " << op->name
            << " declares strides or an offset, and tensors of a function are without gaps; "
               "declare the buffer without";
      }
    }
    Array<tir::BufferRegion> reads, writes;
    for (const Tensor& input : external->inputs) {
      reads.push_back(tir::BufferRegion::FullRegion(buffers_.at(input)));
    }
    for (int i = 0; i < op->num_outputs(); ++i) {
      writes.push_back(tir::BufferRegion::FullRegion(buffers_.at(op.output(i))));
    }
    Stmt body = BindPlaceholders(op, buffers_, external->inputs, external->input_placeholders,
                                 external->output_placeholders, external->body);
    tir::Block block({}, reads, writes, BlockName(op->name), body);
    stmts_.push_back(tir::BlockRealize({}, tir::const_true(), block));
  }

  arith::Analyzer analyzer_;
  TensorMap<bool> is_arg_, layout_free_;
  TensorMap<Buffer> buffers_;
  Array<Buffer> allocated_;
  Array<Stmt> stmts_;
  std::unordered_set<std::string> block_names_{"root"};
};

}  // namespace

tir::PrimFunc CreatePrimFunc(const Array<Tensor>& args) { return PrimFuncCreator(args).Run(args); }

TVM_REGISTER_GLOBAL("te.CreatePrimFunc").set_body_typed(CreatePrimFunc);

}  // namespace te
}  // namespace tvm
