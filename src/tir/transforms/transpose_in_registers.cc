/*!
 * \file src/tir/transforms/transpose_in_registers.cc
 * \brief Columns that a loop reads one after the other are read as rows and transposed in
 * registers.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Bits of the parts of a register in which x86 interleaves elements at no extra cost. */
constexpr int kSegmentBits = 128;
/*! \brief Trips of a block, and vectors held at a time; a register file has 16 or 32. */
constexpr int kMaxVectors = 16;
/*! \brief Vectors of one store above which spilling them costs more than is saved. */
constexpr int kMaxOfOneStore = 32;
/*! \brief Stores of a body above which its copies cost more to compile than they save. */
constexpr int kMaxTransposedStores = 16;

/*! \brief Some lanes of two vectors, those of the second one counted on from the first's. */
PrimExpr Pick(const PrimExpr& first, const PrimExpr& second, const std::vector<int>& lanes) {
  Array<PrimExpr> indices;
  for (int lane : lanes) indices.push_back(make_const(DataType::Int(32), lane));
  return Shuffle({first, second}, indices);
}

/*! \brief Rows of a square tile to its columns, by shuffles of two vectors each. */
class TileTransposer {
 public:
  /*! \param lets Where the intermediate vectors are defined, first to last. */
  TileTransposer(std::vector<std::pair<Var, PrimExpr>>* lets, std::string name)
      : lets_(lets), name_(std::move(name)) {}

  std::vector<PrimExpr> operator()(std::vector<PrimExpr> rows) {
    const int size = static_cast<int>(rows.size());
    const int segment = std::min(size, kSegmentBits / rows[0].dtype().bits());
    // Within each segment, runs of 1, 2, ... elements of two rows take turns.
    for (int run = 1; run < segment; run *= 2) {
      rows = Combine(rows, run, [&](bool upper) {
        std::vector<int> lanes;
        for (int start = 0; start < size; start += segment) {
          for (int i = 0; i < segment; i += 2 * run) {
            int from = start + i / 2 + (upper ? segment / 2 : 0);
            for (int side = 0; side < 2; ++side) {
              for (int e = 0; e < run; ++e) lanes.push_back(from + e + side * size);
            }
          }
        }
        return lanes;
      });
    }
    // Every second segment of two vectors, until each vector has one of all of them.
    for (int distance = segment; distance < size; distance *= 2) {
      rows = Combine(rows, distance, [&](bool odd) {
        std::vector<int> lanes;
        for (int start = odd ? segment : 0; start < 2 * size; start += 2 * segment) {
          for (int e = 0; e < segment; ++e) lanes.push_back(start + e);
        }
        return lanes;
      });
    }
    // Interleaving leaves the columns of a segment in the order of their reversed bits.
    std::vector<PrimExpr> columns(rows.size());
    for (int i = 0; i < size; ++i) {
      int column = i - i % segment;
      for (int bit = 1, mirror = segment / 2; bit < segment; bit *= 2, mirror /= 2) {
        if (i & bit) column += mirror;
      }
      columns[column] = rows[i];
    }
    return columns;
  }

 private:
  /*! \brief Each pair of vectors `distance` apart, as two vectors in their places. */
  template <typename Lanes>
  std::vector<PrimExpr> Combine(const std::vector<PrimExpr>& rows, int distance, Lanes lanes) {
    std::vector<PrimExpr> out(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if ((i / distance) % 2 == 1) continue;
      out[i] = Name(Pick(rows[i], rows[i + distance], lanes(false)));
      out[i + distance] = Name(Pick(rows[i], rows[i + distance], lanes(true)));
    }
    return out;
  }
  PrimExpr Name(const PrimExpr& value) {
    lets_->emplace_back(Var(name_, value.dtype()), value);
    return lets_->back().first;
  }

  std::vector<std::pair<Var, PrimExpr>>* lets_;
  std::string name_;
};

/*! \brief `buffer[base + variable + lane * stride]`: lanes lie in one column, trips make a row. */
struct Columns {
  const BufferLoadNode* load;
  /*! \brief The base where the loop's variable is zero. */
  PrimExpr base;
  PrimExpr stride;
  int lanes;
};

/*! \brief What the innermost loop reads column by column, and whether its body may be unrolled. */
class BodyInspector final : public StmtExprVisitor {
 public:
  explicit BodyInspector(const Var& loop_var) : loop_var_(loop_var) {}

  std::vector<const BufferStoreNode*> stores;
  std::vector<Columns> columns;
  /*! \brief Something other than stores of what is computed each time. */
  bool refused = false;

 private:
  void VisitStmt(const Stmt& stmt) final {
    if (stmt.as<SeqStmtNode>() == nullptr && stmt.as<BufferStoreNode>() == nullptr) {
      refused = true;
      return;
    }
    StmtExprVisitor::VisitStmt(stmt);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    stores.push_back(op);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    // Rows are read as a whole, whatever is chosen later.
    if (op->op.same_as(builtin::if_then_else()) || op->op.same_as(builtin::address_of()) ||
        SideEffect(GetRef<PrimExpr>(op)) > CallEffectKind::kReadState) {
      refused = true;
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const SelectNode* op) final {
    refused = true;
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const LetNode* op) final { refused = true; }
  void VisitExpr_(const BufferLoadNode* op) final {
    if (std::optional<Columns> found = Match(op)) columns.push_back(*found);
    StmtExprVisitor::VisitExpr_(op);
  }

  std::optional<Columns> Match(const BufferLoadNode* op) {
    DataType dtype = op->buffer->dtype;
    bool plain = dtype.is_scalar() && !dtype.is_handle() && dtype.bits() % 8 == 0;
    if (!plain || op->indices.size() != 1) return std::nullopt;
    const auto* ramp = op->indices[0].as<RampNode>();
    if (ramp == nullptr || ramp->dtype.is_scalable_vector()) return std::nullopt;
    // Rows that overlap are few loads to begin with, and most vectors are such.
    const int64_t* stride = as_const_int(ramp->stride);
    if (stride != nullptr && *stride * dtype.bits() < kSegmentBits) return std::nullopt;
    if (UsesVar(ramp->stride, [&](const VarNode* var) { return var == loop_var_.get(); })) {
      return std::nullopt;
    }
    // A place that is read from memory may be written between two trips.
    if (SideEffect(ramp->base) > CallEffectKind::kPure ||
        SideEffect(ramp->stride) > CallEffectKind::kPure) {
      return std::nullopt;
    }
    Array<PrimExpr> linear = arith::DetectLinearEquation(ramp->base, {loop_var_});
    if (linear.size() != 2 || !is_one(linear[0])) return std::nullopt;
    return Columns{op, linear[1], ramp->stride, ramp->lanes};
  }

  Var loop_var_;
};

class RegisterTransposer final : public StmtExprMutator {
 public:
  explicit RegisterTransposer(bool no_alias) : no_alias_(no_alias) {}

 private:
  using Stores = std::vector<const BufferStoreNode*>;
  using Tiles = std::unordered_map<PrimExpr, std::vector<PrimExpr>, ExprDeepHash, ExprDeepEqual>;

  Stmt VisitStmt_(const ForNode* op) final {
    Stmt rewritten = TryTranspose(op);
    return rewritten.defined() ? rewritten : StmtExprMutator::VisitStmt_(op);
  }

  /*! \brief The loop, blocks of trips at a time, or undefined where nothing is gained. */
  Stmt TryTranspose(const ForNode* op) {
    if (op->kind != ForKind::kSerial) return Stmt();
    BodyInspector body(op->loop_var);
    body(op->body);
    if (body.refused || body.columns.empty() || body.stores.size() > kMaxTransposedStores)
      return Stmt();
    const int block = BlockSize(op, body.columns);
    if (block == 0 || !MayReadAhead(body)) return Stmt();

    std::vector<Stores> groups;
    if (body.stores.size() == 1 || CountVectors(body.stores, body, block) <= kMaxVectors) {
      groups.push_back(body.stores);
    } else if (AreIndependent(op, body.stores)) {
      for (const BufferStoreNode* store : body.stores) groups.push_back({store});
    } else {
      return Stmt();
    }
    for (const Stores& group : groups) {
      if (CountVectors(group, body, block) > kMaxOfOneStore) return Stmt();
    }
    PrimExpr size = make_const(op->extent.dtype(), block);
    PrimExpr blocks = analyzer_.Simplify(floordiv(op->extent, size));
    Var outer(op->loop_var->name_hint + "_block", op->loop_var->dtype);
    PrimExpr start = op->min + outer * size;
    Array<Stmt> parts;
    for (const Stores& group : groups) parts.push_back(Block(op, group, body, start, block));
    Stmt main =
        For(outer, make_zero(blocks.dtype()), blocks, ForKind::kSerial, SeqStmt::Flatten(parts));
    PrimExpr rest = analyzer_.Simplify(op->extent - blocks * size);
    if (is_zero(rest)) return main;
    Var late(op->loop_var->name_hint, op->loop_var->dtype);
    Stmt tail = For(late, analyzer_.Simplify(op->min + blocks * size), rest, ForKind::kSerial,
                    Substitute(op->body, {{op->loop_var, late}}));
    return SeqStmt::Flatten(Array<Stmt>{main, tail});
  }

  /*! \brief Trips of a block, so that a row fills a segment at least; zero if there are none. */
  static int BlockSize(const ForNode* op, const std::vector<Columns>& columns) {
    int block = kMaxVectors;
    int least = 2;
    for (const Columns& column : columns) {
      if (column.lanes <= 0 || (column.lanes & (column.lanes - 1)) != 0) return 0;
      block = std::min(block, column.lanes);
      least = std::max(least, kSegmentBits / column.load->buffer->dtype.bits());
    }
    if (const int64_t* extent = as_const_int(op->extent)) {
      while (block > *extent) block /= 2;
    }
    for (const Columns& column : columns) {
      const int64_t* stride = as_const_int(column.stride);
      if (stride != nullptr && *stride < block) return 0;
    }
    return block < least ? 0 : block;
  }

  /*! \brief Whether nothing that the loop stores can be something that it reads as rows. */
  bool MayReadAhead(const BodyInspector& body) const {
    for (const BufferStoreNode* store : body.stores) {
      for (const Columns& column : body.columns) {
        if (!no_alias_ || store->buffer->data.same_as(column.load->buffer->data)) return false;
      }
    }
    return true;
  }

  /*! \brief What some stores read column by column, equal loads once. */
  static std::vector<Columns> ReadBy(const Stores& stores, const BodyInspector& body) {
    std::unordered_set<const Object*> read;
    for (const BufferStoreNode* store : stores) {
      PostOrderVisit(GetRef<Stmt>(store), [&](const ObjectRef& node) { read.insert(node.get()); });
    }
    std::unordered_set<PrimExpr, ExprDeepHash, ExprDeepEqual> seen;
    std::vector<Columns> found;
    for (const Columns& column : body.columns) {
      if (read.count(column.load) && seen.insert(GetRef<PrimExpr>(column.load)).second) {
        found.push_back(column);
      }
    }
    return found;
  }

  /*! \brief Vectors of all tiles that some stores need at a time: a row for each lane. */
  static int CountVectors(const Stores& stores, const BodyInspector& body, int block) {
    int count = 0;
    for (const Columns& column : ReadBy(stores, body)) count += std::max(block, column.lanes);
    return count;
  }

  /*! \brief Whether stores write apart from each other in all trips, and read nothing of it. */
  bool AreIndependent(const ForNode* op, const Stores& stores) {
    struct Written {
      const VarNode* data;
      PrimExpr base;
      PrimExpr step;
      int lanes;
    };
    std::vector<Written> written;
    for (const BufferStoreNode* store : stores) {
      if (store->indices.size() != 1) return false;
      const auto* ramp = store->indices[0].as<RampNode>();
      if (ramp == nullptr || !is_one(ramp->stride) || ramp->dtype.is_scalable_vector())
        return false;
      Array<PrimExpr> linear = arith::DetectLinearEquation(ramp->base, {op->loop_var});
      if (linear.size() != 2) return false;
      written.push_back({store->buffer->data.get(), linear[1], linear[0], ramp->lanes});
    }
    for (const BufferStoreNode* store : stores) {
      bool reads = false;
      PostOrderVisit(store->value, [&](const ObjectRef& node) {
        const auto* load = node.as<BufferLoadNode>();
        if (load == nullptr) return;
        for (const Written& other : written) reads |= load->buffer->data.get() == other.data;
      });
      if (reads) return false;
    }
    for (size_t i = 0; i < written.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (written[i].data != written[j].data) continue;
        // Within one trip's step of memory neither reaches into the other, nor round into the next.
        const int64_t* step = as_const_int(written[i].step);
        const int64_t* other = as_const_int(written[j].step);
        PrimExpr apart = analyzer_.Simplify(written[i].base - written[j].base);
        const int64_t* distance = as_const_int(apart);
        if (step == nullptr || other == nullptr || distance == nullptr || *step != *other ||
            *step <= 0) {
          return false;
        }
        int64_t within = ((*distance % *step) + *step) % *step;
        if (within < written[j].lanes || within + written[i].lanes > *step) return false;
      }
    }
    return true;
  }

  /*! \brief The trips `start` to `start + block` of some stores, with rows read before. */
  Stmt Block(const ForNode* op, const Stores& stores, const BodyInspector& body,
             const PrimExpr& start, int block) {
    std::vector<std::pair<Var, PrimExpr>> lets;
    Tiles tiles;
    for (const Columns& column : ReadBy(stores, body)) {
      tiles[GetRef<PrimExpr>(column.load)] = ReadTile(column, start, block, &lets);
    }
    Array<Stmt> out;
    for (int trip = 0; trip < block; ++trip) {
      PrimExpr at = start + make_const(start.dtype(), trip);
      for (const BufferStoreNode* store : stores) {
        Stmt copy = ReplaceLoads(GetRef<Stmt>(store), tiles, trip);
        out.push_back(Substitute(copy, {{op->loop_var, at}}));
      }
    }
    Stmt result = SeqStmt::Flatten(out);
    for (auto it = lets.rbegin(); it != lets.rend(); ++it) {
      result = LetStmt(it->first, it->second, result);
    }
    return result;
  }

  /*! \brief What one load gives in each trip of a block. */
  std::vector<PrimExpr> ReadTile(const Columns& column, const PrimExpr& start, int block,
                                 std::vector<std::pair<Var, PrimExpr>>* lets) {
    const Buffer& buffer = column.load->buffer;
    TileTransposer transpose(lets, buffer->name + "_column");
    std::vector<PrimExpr> values(block);
    for (int first = 0; first < column.lanes; first += block) {
      std::vector<PrimExpr> rows;
      for (int i = 0; i < block; ++i) {
        PrimExpr lane = make_const(column.stride.dtype(), first + i);
        PrimExpr base = analyzer_.Simplify(column.base + start + lane * column.stride);
        PrimExpr row = BufferLoad(buffer, {Ramp(base, make_const(base.dtype(), 1), block)});
        lets->emplace_back(Var(buffer->name + "_row", row.dtype()), row);
        rows.push_back(lets->back().first);
      }
      std::vector<PrimExpr> part = transpose(rows);
      for (int trip = 0; trip < block; ++trip) {
        values[trip] = first == 0 ? part[trip] : Shuffle::Concat({values[trip], part[trip]});
      }
    }
    return values;
  }

  static Stmt ReplaceLoads(const Stmt& stmt, const Tiles& tiles, int trip) {
    struct Replacer final : public StmtExprMutator {
      const Tiles& tiles;
      int trip;
      Replacer(const Tiles& tiles, int trip) : tiles(tiles), trip(trip) {}
      PrimExpr VisitExpr_(const BufferLoadNode* op) final {
        auto it = tiles.find(GetRef<PrimExpr>(op));
        if (it != tiles.end()) return it->second[trip];
        return StmtExprMutator::VisitExpr_(op);
      }
    };
    return Replacer(tiles, trip)(stmt);
  }

  bool no_alias_;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass TransposeInRegisters() {
  return BodyPass("tir.TransposeInRegisters", [](const PrimFunc& func, const PassContext&) {
    return RegisterTransposer(func->GetAttr<bool>(attr::kNoAlias, true))(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.TransposeInRegisters").set_body_typed(TransposeInRegisters);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
