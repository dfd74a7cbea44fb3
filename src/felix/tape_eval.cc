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

using Row = double[kBlock];

bool HasDerivative(TapeOp op) {
  switch (op) {
    case TapeOp::kIntConst:
    case TapeOp::kRealConst:
    case TapeOp::kFloorDiv:
    case TapeOp::kLt:
    case TapeOp::kLe:
    case TapeOp::kEq:
    case TapeOp::kNe:
    case TapeOp::kAnd:
    case TapeOp::kOr:
    case TapeOp::kNot:
    case TapeOp::kCeil:
    case TapeOp::kFloor:
      return false;
    default:
      return true;
  }
}

#define TVM_FELIX_ROW(Expr) \
  for (int i = 0; i < kBlock; ++i) out[i] = (Expr)

/*! \brief One entry forward. Booleans are 0.0 and 1.0. */
TVM_FELIX_VECTOR_CLONES
void EvaluateRow(TapeOp op, const double* __restrict a, const double* __restrict b,
                 const double* __restrict c, double* __restrict out) {
  switch (op) {
    case TapeOp::kAdd:
      TVM_FELIX_ROW(a[i] + b[i]);
      return;
    case TapeOp::kSub:
      TVM_FELIX_ROW(a[i] - b[i]);
      return;
    case TapeOp::kMul:
      TVM_FELIX_ROW(a[i] * b[i]);
      return;
    case TapeOp::kDiv:
      TVM_FELIX_ROW(a[i] / b[i]);
      return;
    case TapeOp::kFloorDiv:
      TVM_FELIX_ROW(std::floor(a[i] / b[i]));
      return;
    case TapeOp::kFloorMod:
      TVM_FELIX_ROW(a[i] - std::floor(a[i] / b[i]) * b[i]);
      return;
    case TapeOp::kMin:
      TVM_FELIX_ROW(a[i] < b[i] ? a[i] : b[i]);
      return;
    case TapeOp::kMax:
      TVM_FELIX_ROW(a[i] > b[i] ? a[i] : b[i]);
      return;
    case TapeOp::kPow:
      TVM_FELIX_ROW(std::pow(a[i], b[i]));
      return;
    case TapeOp::kLog:
      TVM_FELIX_ROW(std::log(a[i]));
      return;
    case TapeOp::kExp:
      TVM_FELIX_ROW(std::exp(a[i]));
      return;
    case TapeOp::kSqrt:
      TVM_FELIX_ROW(std::sqrt(a[i]));
      return;
    case TapeOp::kLt:
      TVM_FELIX_ROW(a[i] < b[i] ? 1.0 : 0.0);
      return;
    case TapeOp::kLe:
      TVM_FELIX_ROW(a[i] <= b[i] ? 1.0 : 0.0);
      return;
    case TapeOp::kEq:
      TVM_FELIX_ROW(a[i] == b[i] ? 1.0 : 0.0);
      return;
    case TapeOp::kNe:
      TVM_FELIX_ROW(a[i] != b[i] ? 1.0 : 0.0);
      return;
    case TapeOp::kAnd:
      TVM_FELIX_ROW((a[i] != 0.0) & (b[i] != 0.0) ? 1.0 : 0.0);
      return;
    case TapeOp::kOr:
      TVM_FELIX_ROW((a[i] != 0.0) | (b[i] != 0.0) ? 1.0 : 0.0);
      return;
    case TapeOp::kNot:
      TVM_FELIX_ROW(a[i] == 0.0 ? 1.0 : 0.0);
      return;
    case TapeOp::kSelect:
      TVM_FELIX_ROW(a[i] != 0.0 ? b[i] : c[i]);
      return;
    case TapeOp::kSigmoid:
      TVM_FELIX_ROW(0.5 + 0.5 * a[i] / std::sqrt(1.0 + a[i] * a[i]));
      return;
    case TapeOp::kHump:
      TVM_FELIX_ROW(1.0 / std::sqrt(1.0 + a[i] * a[i]));
      return;
    case TapeOp::kAbs:
      TVM_FELIX_ROW(std::fabs(a[i]));
      return;
    case TapeOp::kCeil:
      TVM_FELIX_ROW(std::ceil(a[i]));
      return;
    case TapeOp::kFloor:
      TVM_FELIX_ROW(std::floor(a[i]));
      return;
    case TapeOp::kIntConst:
    case TapeOp::kRealConst:
    case TapeOp::kVar:
      return;  // leaves are filled in by the caller
  }
}

#undef TVM_FELIX_ROW

// A result without weight adds nothing, even where its derivative is infinite.
#define TVM_FELIX_ADD(Target, Derivative)                             \
  if (Target != nullptr) {                                            \
    for (int i = 0; i < kBlock; ++i) {                                \
      Target[i] += weight[i] == 0.0 ? 0.0 : weight[i] * (Derivative); \
    }                                                                 \
  }

/*!
 * \brief One entry backward: add weight * d(value)/d(operand) to the rows `da`, `db`, `dc`. A null
 *        row is an operand that no variable reaches. Rows may coincide, as in x * x.
 */
TVM_FELIX_VECTOR_CLONES
void PropagateRow(TapeOp op, const double* a, const double* b, const double* value,
                  const double* weight, double* da, double* db, double* dc) {
  switch (op) {
    case TapeOp::kAdd:
      TVM_FELIX_ADD(da, 1.0);
      TVM_FELIX_ADD(db, 1.0);
      return;
    case TapeOp::kSub:
      TVM_FELIX_ADD(da, 1.0);
      TVM_FELIX_ADD(db, -1.0);
      return;
    case TapeOp::kMul:
      TVM_FELIX_ADD(da, b[i]);
      TVM_FELIX_ADD(db, a[i]);
      return;
    case TapeOp::kDiv:
      TVM_FELIX_ADD(da, 1.0 / b[i]);
      TVM_FELIX_ADD(db, -value[i] / b[i]);
      return;
    case TapeOp::kFloorMod:
      TVM_FELIX_ADD(da, 1.0);
      TVM_FELIX_ADD(db, -std::floor(a[i] / b[i]));
      return;
    case TapeOp::kMin:
      TVM_FELIX_ADD(da, a[i] < b[i] ? 1.0 : (a[i] == b[i] ? 0.5 : 0.0));
      TVM_FELIX_ADD(db, b[i] < a[i] ? 1.0 : (a[i] == b[i] ? 0.5 : 0.0));
      return;
    case TapeOp::kMax:
      TVM_FELIX_ADD(da, a[i] > b[i] ? 1.0 : (a[i] == b[i] ? 0.5 : 0.0));
      TVM_FELIX_ADD(db, b[i] > a[i] ? 1.0 : (a[i] == b[i] ? 0.5 : 0.0));
      return;
    case TapeOp::kPow:
      TVM_FELIX_ADD(da, a[i] != 0.0 ? b[i] * value[i] / a[i] : b[i] * std::pow(a[i], b[i] - 1.0));
      // Of 0^b only b > 0 is defined, and there the value stays 0.
      TVM_FELIX_ADD(db, a[i] > 0.0 ? value[i] * std::log(a[i]) : 0.0);
      return;
    case TapeOp::kLog:
      TVM_FELIX_ADD(da, 1.0 / a[i]);
      return;
    case TapeOp::kExp:
      TVM_FELIX_ADD(da, value[i]);
      return;
    case TapeOp::kSqrt:
      TVM_FELIX_ADD(da, 0.5 / value[i]);
      return;
    case TapeOp::kSelect:
      TVM_FELIX_ADD(db, a[i] != 0.0 ? 1.0 : 0.0);
      TVM_FELIX_ADD(dc, a[i] != 0.0 ? 0.0 : 1.0);
      return;
    case TapeOp::kSigmoid: {
      TVM_FELIX_ADD(da, 0.5 / ((1.0 + a[i] * a[i]) * std::sqrt(1.0 + a[i] * a[i])));
      return;
    }
    case TapeOp::kHump:
      TVM_FELIX_ADD(da, -a[i] * value[i] * value[i] * value[i]);
      return;
    case TapeOp::kAbs:
      TVM_FELIX_ADD(da, a[i] > 0.0 ? 1.0 : (a[i] < 0.0 ? -1.0 : 0.0));
      return;
    default:
      return;  // no derivative
  }
}

#undef TVM_FELIX_ADD

}  // namespace

TapeProgram::TapeProgram(const TapeData& tape)
    : TapeProgram(tape.ops.data(), tape.args.data(), tape.payload.data(), tape.size(),
                  tape.roots.data(), static_cast<int64_t>(tape.roots.size()),
                  static_cast<int64_t>(tape.vars.size())) {}

TapeProgram::TapeProgram(const uint8_t* ops, const int32_t* args, const int64_t* payload,
                         int64_t size, const int32_t* roots, int64_t num_roots, int64_t num_vars) {
  auto node = make_object<TapeProgramNode>();
  node->num_vars_ = num_vars;
  node->steps_.reserve(size);
  for (int64_t i = 0; i < size; ++i) {
    TVM_CHECK(ops[i] < kNumTapeOps, ValueError)
        << "Tape: entry " << i << " has operation code " << static_cast<int>(ops[i])
        << "; valid codes are 0 to " << kNumTapeOps - 1;
    TapeProgramNode::Step step{static_cast<TapeOp>(ops[i]), false, {-1, -1, -1}, payload[i]};
    const int arity = TapeArity(step.op);
    for (int k = 0; k < arity; ++k) {
      const int32_t arg = args[3 * i + k];
      TVM_CHECK(arg >= 0 && arg < i, ValueError)
          << "Tape: entry " << i << " (code " << static_cast<int>(ops[i]) << ") has argument "
          << arg << "; an argument must be an earlier entry";
      step.args[k] = arg;
      // The condition of a select is compared with zero only.
      const bool matters = !(step.op == TapeOp::kSelect && k == 0);
      step.active |= matters && node->steps_[arg].active;
    }
    if (step.op == TapeOp::kVar) {
      TVM_CHECK(payload[i] >= 0 && payload[i] < num_vars, ValueError)
          << "Tape: entry " << i << " reads variable " << payload[i] << " of " << num_vars;
      step.active = true;
    }
    step.active &= HasDerivative(step.op);
    node->steps_.push_back(step);
  }
  node->roots_.assign(roots, roots + num_roots);
  for (int64_t k = 0; k < num_roots; ++k) {
    TVM_CHECK(roots[k] >= 0 && roots[k] < size, ValueError)
        << "Tape: root " << k << " is entry " << roots[k] << " of " << size;
  }
  data_ = std::move(node);
}

namespace {

/*! \brief Rows of one block, and the points that lie in it. */
class Block {
 public:
  explicit Block(size_t rows) : values_(rows * kBlock) {}

  double* row(int32_t entry) { return values_.data() + static_cast<size_t>(entry) * kBlock; }
  double* row_or_null(int32_t entry, bool wanted) { return wanted ? row(entry) : nullptr; }
  void Clear() { std::fill(values_.begin(), values_.end(), 0.0); }

 private:
  std::vector<double> values_;
};

/*! \brief Number of points of the block that starts at `begin`. */
int PointsIn(int64_t begin, int64_t batch) {
  return static_cast<int>(std::min<int64_t>(kBlock, batch - begin));
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
    auto arg = [&](int k) { return step.args[k] < 0 ? nullptr : block->row(step.args[k]); };
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
    for (int64_t k = 0; k < num_roots(); ++k) {
      const double* row = values.row(roots_[k]);
      for (int p = 0; p < count; ++p) roots[(begin + p) * num_roots() + k] = row[p];
    }
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
    for (int64_t k = 0; k < num_roots(); ++k) {
      double* row = weights.row(roots_[k]);
      for (int p = 0; p < count; ++p) row[p] += cotangents[(begin + p) * num_roots() + k];
    }
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
      auto value = [&](int k) { return step.args[k] < 0 ? nullptr : values.row(step.args[k]); };
      auto target = [&](int k) {
        const int32_t arg = step.args[k];
        return arg >= 0 && steps_[arg].active ? weights.row(arg) : nullptr;
      };
      PropagateRow(step.op, value(0), value(1), values.row(i), weight, target(0), target(1),
                   target(2));
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

TVM_REGISTER_GLOBAL("felix.TapeProgram")
    .set_body_typed([](runtime::NDArray ops, runtime::NDArray args, runtime::NDArray payload,
                       runtime::NDArray roots, int64_t num_vars) {
      const int64_t size = ops.NumElements();
      TVM_CHECK(ops.dtype() == DataType::UInt(8) && args.dtype() == DataType::Int(32) &&
                    payload.dtype() == DataType::Int(64) && roots.dtype() == DataType::Int(32),
                TypeError)
          << "Tape: ops, args, payload, roots must be uint8, int32, int64, int32; got "
          << ops.dtype() << ", " << args.dtype() << ", " << payload.dtype() << ", "
          << roots.dtype();
      TVM_CHECK(args.NumElements() == 3 * size && payload.NumElements() == size, ValueError)
          << "Tape: " << size << " operations need " << 3 * size << " arguments and " << size
          << " payloads, got " << args.NumElements() << " and " << payload.NumElements();
      return TapeProgram(static_cast<const uint8_t*>(ops.data()),
                         static_cast<const int32_t*>(args.data()),
                         static_cast<const int64_t*>(payload.data()), size,
                         static_cast<const int32_t*>(roots.data()), roots.NumElements(), num_vars);
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
