/*!
 * \file codegen_cuda_wmma.cc
 * \brief Matrix fragments of tensor cores, through the nvcuda::wmma interface.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/launch.h>

#include "codegen/source/codegen_cuda.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

const VarNode* DataOf(const PrimExpr& arg) {
  const auto* var = arg.as<VarNode>();
  TVM_CHECK(var != nullptr, ValueError)
      << "cuda code generator: a fragment must be named by its buffer's data variable, got " << arg;
  return var;
}

/*! \brief Type of a fragment's elements; those of one bit and of four have none outside of
 * fragments.
 */
std::string FragmentElement(DataType dtype, const std::string& type, bool is_operand) {
  const std::string precision = "nvcuda::wmma::experimental::precision::";
  if (is_operand && dtype == DataType::Float(32)) return "nvcuda::wmma::precision::tf32";
  if (dtype.is_bool() || (!dtype.is_int() && !dtype.is_uint())) return type;
  if (dtype.bits() == 1) return precision + "b1";
  if (dtype.bits() == 4) return precision + (dtype.is_int() ? "s4" : "u4");
  return type;
}

}  // namespace

void CodeGenCUDA::CollectFragments(const PrimFunc& func) {
  fragments_.clear();
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    const auto* call = node.as<CallNode>();
    if (call == nullptr) return;
    bool loads = call->op.same_as(builtin::tvm_load_matrix_sync());
    bool touches = loads || call->op.same_as(builtin::tvm_fill_fragment()) ||
                   call->op.same_as(builtin::tvm_store_matrix_sync());
    if (!touches) return;
    const VarNode* data = DataOf(call->args[0]);
    int64_t shape[3];
    for (size_t i = 0; i < 3; ++i) {
      const int64_t* extent = as_const_int(call->args[i + 1]);
      if (extent == nullptr) {
        Unsupported("a fragment of variable shape, " + std::string(data->name_hint) + ",",
                    "fragments have constant shapes such as 16, 16, 16");
      }
      shape[i] = *extent;
    }
    std::string layout;
    if (loads) {
      layout = Downcast<StringImm>(call->args[7])->value;
    }
    Fragment found{shape[0], shape[1], shape[2], layout};
    auto [it, is_new] = fragments_.emplace(data, found);
    if (is_new) return;
    Fragment& known = it->second;
    bool same = known.m == found.m && known.n == found.n && known.k == found.k &&
                (known.layout.empty() || layout.empty() || known.layout == layout);
    if (!same) {
      Unsupported("fragments of different shapes or layouts in one buffer, " +
                      std::string(data->name_hint) + ",",
                  "use a buffer for each");
    }
    if (known.layout.empty()) known.layout = layout;
  });
}

void CodeGenCUDA::AllocateFragments(const std::string& scope, const AllocateNode* op,
                                    const std::string& name) {
  auto it = fragments_.find(op->buffer_var.get());
  if (it == fragments_.end()) {
    Unsupported("memory of scope \"" + scope + "\" that no fragment is loaded to, filled in or " +
                    "stored from, " + std::string(op->buffer_var->name_hint) + ",",
                "tensorize the stage with the functions of tvm.topi.cuda.tensor_intrin");
  }
  const Fragment& shape = it->second;
  uses_wmma_ = true;
  bool is_a = scope == "wmma.matrix_a", is_b = scope == "wmma.matrix_b";
  int64_t elements = is_a ? shape.m * shape.k : is_b ? shape.k * shape.n : shape.m * shape.n;
  int64_t total = op->ConstantAllocationSize() * op->dtype.lanes();
  if (total % elements != 0) {
    Unsupported("memory of scope \"" + scope + "\" with " + std::to_string(total) + " elements, " +
                    std::string(op->buffer_var->name_hint) + ",",
                "it must hold whole fragments of " + std::to_string(elements) + " elements");
  }
  std::string type = "nvcuda::wmma::fragment<nvcuda::" + scope.substr(0, 4) +
                     "::" + scope.substr(5) + ", " + std::to_string(shape.m) + ", " +
                     std::to_string(shape.n) + ", " + std::to_string(shape.k) + ", " +
                     FragmentElement(op->dtype, Type(op->dtype.element_of()), is_a || is_b);
  if (is_a || is_b) {
    type += ", nvcuda::wmma::" + (shape.layout.empty() ? std::string("row_major") : shape.layout);
  }
  Line(type + "> " + name + "[" + std::to_string(total / elements) + "];");
}

std::string CodeGenCUDA::FragmentText(const PrimExpr& data, const PrimExpr& index) {
  return NameOf(DataOf(data)) + "[" + Print(index) + "]";
}

bool CodeGenCUDA::CallFragment(const std::string& name, const CallNode* op) {
  const std::string space = "nvcuda::wmma::";
  const auto& args = op->args;
  auto memory_layout = [&](const PrimExpr& layout) {
    return space +
           (Downcast<StringImm>(layout)->value == "row_major" ? "mem_row_major" : "mem_col_major");
  };
  if (name == "tvm_fill_fragment") {
    Line(space + "fill_fragment(" + FragmentText(args[0], args[4]) + ", " + Print(args[5]) + ");");
  } else if (name == "tvm_load_matrix_sync") {
    bool accumulates = ScopeOf(Downcast<Var>(args[0])) == "wmma.accumulator";
    const std::string fragment = FragmentText(args[0], args[4]);
    Line(space + "load_matrix_sync(" + fragment + ", " + Print(args[5]) + ", " + Print(args[6]) +
         (accumulates ? ", " + memory_layout(args[7]) : "") + ");");
    // Tensor cores cut the bits off that tf32 lacks; operands are to be rounded.
    const auto* pointer = DataOf(args[0])->type_annotation.as<PointerTypeNode>();
    const auto* element = pointer->element_type.as<PrimTypeNode>();
    if (!accumulates && element != nullptr && element->dtype == DataType::Float(32)) {
      Line("for (int i = 0; i < " + fragment + ".num_elements; ++i) " + fragment +
           ".x[i] = " + space + "__float_to_tf32(" + fragment + ".x[i]);");
    }
  } else if (name == "tvm_store_matrix_sync") {
    Line(space + "store_matrix_sync(" + Print(args[5]) + ", " + FragmentText(args[0], args[4]) +
         ", " + Print(args[6]) + ", " + memory_layout(args[7]) + ");");
  } else if (name == "tvm_mma_sync" || name == "tvm_bmma_sync") {
    std::string operands;
    for (size_t i = 0; i < 8; i += 2) {
      operands += (i == 0 ? "" : ", ") + FragmentText(args[i], args[i + 1]);
    }
    Line(space + (name == "tvm_bmma_sync" ? "bmma_sync(" : "mma_sync(") + operands + ");");
  } else {
    return false;
  }
  return true;
}

}  // namespace codegen
}  // namespace tvm
