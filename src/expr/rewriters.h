/*!
 * \file src/expr/rewriters.h
 * \brief Traversals that work alike over expressions alone and over programs that contain them.
 *
 * `Base` is a visitor or mutator of expressions, or one of statements and expressions.
 */
#ifndef TVM_SRC_EXPR_REWRITERS_H_
#define TVM_SRC_EXPR_REWRITERS_H_

#include <tvm/expr/expr_functor.h>

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tvm {
namespace tir {

/*! \brief Visits every node once, also when it is shared. */
template <typename Base>
class OnceVisitor : public Base {
 public:
  using Before = std::function<bool(const ObjectRef&)>;
  using After = std::function<void(const ObjectRef&)>;
  OnceVisitor(Before before, After after) : before_(std::move(before)), after_(std::move(after)) {}

  void VisitExpr(const PrimExpr& expr) override {
    Once(expr, [&] { Base::VisitExpr(expr); });
  }

 protected:
  template <typename F>
  void Once(const ObjectRef& node, F visit_parts) {
    if (!visited_.insert(node.get()).second) return;
    if (before_ && !before_(node)) return;
    visit_parts();
    if (after_) after_(node);
  }

 private:
  Before before_;
  After after_;
  std::unordered_set<const Object*> visited_;
};

/*!
 * \brief Mutates, and asks `VisitBuffer` for every buffer that an expression loads from.
 *
 * `VisitBuffer` has to give the same buffer at all uses of one: it keeps what it made.
 */
template <typename Base>
class LoadMutator : public Base {
 protected:
  using Base::VisitExpr_;
  virtual Buffer VisitBuffer(const Buffer& buffer) = 0;

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> indices =
        op->indices.Map([this](const PrimExpr& index) { return this->VisitExpr(index); });
    Buffer buffer = VisitBuffer(op->buffer);
    if (indices.same_as(op->indices) && buffer.same_as(op->buffer)) return GetRef<PrimExpr>(op);
    return BufferLoad(buffer, indices);
  }
};

/*! \brief Replaces variables; `Base` is a LoadMutator. */
template <typename Base>
class VarReplacer : public Base {
 public:
  explicit VarReplacer(const std::function<PrimExpr(const Var&)>& vmap) : vmap_(vmap) {}

 protected:
  using Base::VisitExpr_;

  PrimExpr VisitExpr_(const VarNode* op) final {
    Var var = GetRef<Var>(op);
    PrimExpr value = vmap_(var);
    if (!value.defined()) return var;
    TVM_CHECK(value.dtype() == op->dtype, TypeError)
        << "substitute: " << var << " is " << op->dtype << ", its replacement " << value << " is "
        << value.dtype();
    return value;
  }

  Buffer VisitBuffer(const Buffer& buffer) final {
    auto it = buffers_.find(buffer.get());
    if (it != buffers_.end()) return it->second;
    auto visit = [this](const PrimExpr& e) { return this->VisitExpr(e); };
    Array<PrimExpr> shape = buffer->shape.Map(visit);
    Array<PrimExpr> strides = buffer->strides.Map(visit);
    PrimExpr elem_offset = visit(buffer->elem_offset);
    PrimExpr data = visit(buffer->data);
    TVM_CHECK(data.as<VarNode>() != nullptr, TypeError)
        << "substitute: the data pointer of buffer " << buffer->name
        << " can only become a variable, got " << data;
    Buffer result = buffer;
    if (!shape.same_as(buffer->shape) || !strides.same_as(buffer->strides) ||
        !elem_offset.same_as(buffer->elem_offset) || !data.same_as(buffer->data)) {
      BufferNode* node = result.CopyOnWrite();
      node->shape = shape;
      node->strides = strides;
      node->elem_offset = elem_offset;
      node->data = Downcast<Var>(data);
    }
    buffers_.emplace(buffer.get(), result);
    return result;
  }

 private:
  const std::function<PrimExpr(const Var&)>& vmap_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

/*! \brief The callback of a table; both have to outlive the call they are made for. */
inline std::function<PrimExpr(const Var&)> Lookup(const Map<Var, PrimExpr>& vmap) {
  return [&vmap](const Var& var) -> PrimExpr {
    auto it = vmap.find(var);
    return it == vmap.end() ? PrimExpr() : (*it).second;
  };
}

inline std::function<PrimExpr(const Var&)> Lookup(
    const std::unordered_map<const VarNode*, PrimExpr>& vmap) {
  return [&vmap](const Var& var) -> PrimExpr {
    auto it = vmap.find(var.get());
    return it == vmap.end() ? PrimExpr() : it->second;
  };
}

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_EXPR_REWRITERS_H_
