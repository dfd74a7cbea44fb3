/*!
 * \file tape_eval.cc
 * \brief Structure-of-arrays evaluation of tapes: each entry is a row of kBlock points, and the
 *        loop over the points of a row is the one the compiler vectorises.
 */
#include "tape_eval.h"

#include <tvm/runtime/logging.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "tape_formula.h"

// The library is built for the baseline of the architecture; these loops are worth a second copy
// for wide vectors, chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TVM_FELIX_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TVM_FELIX_VECTOR_CLONES
#endif

namespace tvm {
namespace felix {

namespace {

/*! \brief Points per row: long enough to hide the dispatch on the operation, short enough that
 *         the rows of a few thousand entries stay in the cache. */
constexpr int kBlock = 32;

/*! \brief Whether the table gives a derivative by operand k. */
bool HasDerivative(TapeOp op, int k) {
  return std::string_view(FindTapeOp(static_cast<uint8_t>(op))->derivatives[k]) != "0.0";
}

/*! \brief One entry forward. Booleans are 0.0 and 1.0. */
TVM_FELIX_VECTOR_CLONES
void EvaluateRow(TapeOp op, const double* __restrict a, const double* __restrict b,
                 const double* __restrict c, double* __restrict out) {
  switch (op) {
#define TVM_TAPE_LEAF(code, Name) case TapeOp::k##Name:
#include <tvm/felix/tape_ops.def>
    return;  // leaves are filled in by the caller
#define TVM_TAPE_OP(code, Name, ...)                                  \
  case TapeOp::k##Name:                                               \
    for (int i = 0; i < kBlock; ++i) {                                \
      out[i] = TapeFormula<TapeOp::k##Name>::Value(a[i], b[i], c[i]); \
    }                                                                 \
    return;
#include <tvm/felix/tape_ops.def>
  }
}

// A result without weight adds nothing, even where its derivative is infinite.
#define TVM_FELIX_PROPAGATE(Name, target, text, D)                                    \
  if constexpr (std::string_view(text) != "0.0") {                                    \
    if (target != nullptr) {                                                          \
      for (int i = 0; i < kBlock; ++i) {                                              \
        const double slope = TapeFormula<TapeOp::k##Name>::D(a[i], b[i], c[i], y[i]); \
        target[i] += weight[i] == 0.0 ? 0.0 : weight[i] * slope;                      \
      }                                                                               \
    }                                                                                 \
  }

/*!
 * \brief One entry backward: add weight * d(value)/d(operand) to the rows `da`, `db`, `dc`. A null
 *        row is an operand that no variable reaches. Rows may coincide, as in x * x.
 */
TVM_FELIX_VECTOR_CLONES
void PropagateRow(TapeOp op, const double* a, const double* b, const double* c, const double* y,
                  const double* weight, double* da, double* db, double* dc) {
  switch (op) {
#define TVM_TAPE_LEAF(code, Name) case TapeOp::k##Name:
#include <tvm/felix/tape_ops.def>
    return;
#define TVM_TAPE_OP(code, Name, spelling, arity, commutes, cost, value, by_a, by_b, by_c) \
  case TapeOp::k##Name:                                                                   \
    TVM_FELIX_PROPAGATE(Name, da, #by_a, Da)                                              \
    TVM_FELIX_PROPAGATE(Name, db, #by_b, Db)                                              \
    TVM_FELIX_PROPAGATE(Name, dc, #by_c, Dc)                                              \
    return;
#include <tvm/felix/tape_ops.def>
  }
}

#undef TVM_FELIX_PROPAGATE

}  // namespace

TapeProgram::TapeProgram(const TapeData& tape) {
  auto node = make_object<TapeProgramNode>();
  node->num_vars_ = static_cast<int64_t>(tape.vars.size());
  node->steps_.reserve(tape.size());
  for (int32_t i = 0; i < tape.size(); ++i) {
    const auto op = static_cast<TapeOp>(tape.ops[i]);
    const int arity = TapeArity(op);
    TapeProgramNode::Step step{op, op == TapeOp::kVar, {i, i, i}, tape.payload[i]};
    for (int k = 0; k < 3 && arity > 0; ++k) {
      step.args[k] = tape.args[3 * i + (k < arity ? k : 0)];
      step.active |= k < arity && HasDerivative(op, k) && node->steps_[step.args[k]].active;
    }
    node->steps_.push_back(step);
  }
  node->roots_ = tape.roots;
  data_ = std::move(node);
}

namespace {

/*! \brief Rows of one block, and the points that lie in it. */
class Block {
 public:
  explicit Block(size_t rows) : values_(rows * kBlock) {}

  double* row(int32_t entry) { return values_.data() + static_cast<size_t>(entry) * kBlock; }
  void Clear() { std::fill(values_.begin(), values_.end(), 0.0); }

 private:
  std::vector<double> values_;
};

/*! \brief Number of points of the block that starts at `begin`. */
int PointsIn(int64_t begin, int64_t batch) {
  return static_cast<int>(std::min<int64_t>(kBlock, batch - begin));
}

/*!
 * \brief Visit (root, point) of a block so that both a row of a root, along points, and a line of
 *        the caller's matrix, along roots, are used up while they are in the cache.
 */
template <typename Visit>
void ForRootTiles(int64_t num_roots, int count, Visit visit) {
  constexpr int64_t kTile = 8;  // doubles of a cache line
  for (int64_t begin = 0; begin < num_roots; begin += kTile) {
    const int64_t end = std::min(begin + kTile, num_roots);
    for (int p = 0; p < count; ++p) {
      for (int64_t k = begin; k < end; ++k) visit(k, p);
    }
  }
}

/*! \brief The rows of constants, which are the same for every block. */
template <typename Steps>
void FillConstants(const Steps& steps, Block* block) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].op != TapeOp::kIntConst && steps[i].op != TapeOp::kRealConst) continue;
    const double value = steps[i].op == TapeOp::kIntConst ? static_cast<double>(steps[i].payload)
                                                          : std::bit_cast<double>(steps[i].payload);
    std::fill_n(block->row(static_cast<int32_t>(i)), kBlock, value);
  }
}

template <typename Steps>
void EvaluateBlock(const Steps& steps, const double* points, int64_t num_vars, int count,
                   Block* block) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    double* out = block->row(static_cast<int32_t>(i));
    if (step.op == TapeOp::kVar) {
      // The last block repeats its last point, so that its unused lanes hold ordinary numbers.
      for (int p = 0; p < kBlock; ++p) {
        out[p] = points[std::min(p, count - 1) * num_vars + step.payload];
      }
      continue;
    }
    auto arg = [&](int k) { return block->row(step.args[k]); };
    EvaluateRow(step.op, arg(0), arg(1), arg(2), out);
  }
}

}  // namespace

void TapeProgramNode::Forward(const double* points, int64_t batch, double* roots) const {
  Block values(steps_.size());
  FillConstants(steps_, &values);
  for (int64_t begin = 0; begin < batch; begin += kBlock) {
    const int count = PointsIn(begin, batch);
    EvaluateBlock(steps_, points + begin * num_vars_, num_vars_, count, &values);
    ForRootTiles(num_roots(), count, [&](int64_t k, int p) {
      roots[(begin + p) * num_roots() + k] = values.row(roots_[k])[p];
    });
  }
}

void TapeProgramNode::Backward(const double* points, const double* cotangents, int64_t batch,
                               double* gradients) const {
  Block values(steps_.size());
  Block weights(steps_.size());
  FillConstants(steps_, &values);
  std::memset(gradients, 0, sizeof(double) * batch * num_vars_);
  for (int64_t begin = 0; begin < batch; begin += kBlock) {
    const int count = PointsIn(begin, batch);
    EvaluateBlock(steps_, points + begin * num_vars_, num_vars_, count, &values);
    weights.Clear();
    ForRootTiles(num_roots(), count, [&](int64_t k, int p) {
      weights.row(roots_[k])[p] += cotangents[(begin + p) * num_roots() + k];
    });
    for (int32_t i = static_cast<int32_t>(steps_.size()) - 1; i >= 0; --i) {
      const Step& step = steps_[i];
      if (!step.active) continue;
      const double* weight = weights.row(i);
      if (step.op == TapeOp::kVar) {
        for (int p = 0; p < count; ++p) {
          gradients[(begin + p) * num_vars_ + step.payload] += weight[p];
        }
        continue;
      }
      auto value = [&](int k) { return values.row(step.args[k]); };
      auto target = [&](int k) {
        return steps_[step.args[k]].active ? weights.row(step.args[k]) : nullptr;
      };
      PropagateRow(step.op, value(0), value(1), value(2), values.row(i), weight, target(0),
                   target(1), target(2));
    }
  }
}

namespace {

const double* Doubles(const char* where, const char* what, const runtime::NDArray& array,
                      int64_t rows, int64_t columns) {
  const std::vector<int64_t>& shape = array.Shape();
  TVM_CHECK(shape.size() == 2 && (rows < 0 || shape[0] == rows) && shape[1] == columns, ValueError)
      << where << ": " << what << " must have shape ("
      << (rows < 0 ? "batch" : std::to_string(rows)) << ", " << columns << "), got " << shape.size()
      << " dimensions"
      << (shape.size() == 2
              ? " (" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ")"
              : "");
  TVM_CHECK(array.dtype() == DataType::Float(64), TypeError)
      << where << ": " << what << " must be float64, got " << array.dtype();
  TVM_CHECK(array.IsContiguous(), ValueError) << where << ": " << what << " must be contiguous";
  return static_cast<const double*>(array.data());
}

runtime::NDArray Result(int64_t rows, int64_t columns) {
  return runtime::NDArray::Empty({rows, columns}, DataType::Float(64), Device{kDLCPU, 0});
}

}  // namespace

TVM_REGISTER_GLOBAL("felix.TapeProgram").set_body_typed([](Tape tape) {
  return TapeProgram(tape.Data());
});

TVM_REGISTER_GLOBAL("felix.TapeForward")
    .set_body_typed([](TapeProgram tape, runtime::NDArray points) {
      const double* x = Doubles("TapeForward", "points", points, -1, tape->num_vars());
      const int64_t batch = points.Shape()[0];
      runtime::NDArray roots = Result(batch, tape->num_roots());
      tape->Forward(x, batch, static_cast<double*>(roots.data()));
      return roots;
    });

TVM_REGISTER_GLOBAL("felix.TapeBackward")
    .set_body_typed([](TapeProgram tape, runtime::NDArray points, runtime::NDArray cotangents) {
      const double* x = Doubles("TapeBackward", "points", points, -1, tape->num_vars());
      const int64_t batch = points.Shape()[0];
      const double* weights =
          Doubles("TapeBackward", "cotangents", cotangents, batch, tape->num_roots());
      runtime::NDArray gradients = Result(batch, tape->num_vars());
      tape->Backward(x, weights, batch, static_cast<double*>(gradients.data()));
      return gradients;
    });

}  // namespace felix
}  // namespace tvm
