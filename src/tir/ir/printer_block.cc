/*!
 * \file src/tir/ir/printer_block.cc
 * \brief Text of blocks and regions.
 */
#include <tvm/expr/op.h>
#include <tvm/ir/script_printer.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>

#include <algorithm>

#include "printer.h"

namespace tvm {
namespace tir {

namespace {

/*! \brief How T.axis calls a type of axis, and its letter in T.axis.remap; null if it has none. */
const char* AxisName(IterVarType type) {
  switch (type) {
    case kDataPar:
      return "spatial";
    case kCommReduce:
      return "reduce";
    case kOrdered:
      return "scan";
    case kOpaque:
      return "opaque";
    default:
      return nullptr;
  }
}

/*! \brief The block of a whole function, which stands at its top and takes no values. */
bool IsRoot(const BlockRealizeNode* op) {
  const Block& block = op->block;
  return block->name_hint == "root" && block->iter_vars.empty() && block->annotations.empty() &&
         block->reads.empty() && block->writes.empty() && !block->init.defined() &&
         is_one(op->predicate);
}

}  // namespace

Block TIRPrinter::RootOf(const PrimFuncNode* func) {
  const auto* realize = func->body.as<BlockRealizeNode>();
  return realize != nullptr && IsRoot(realize) ? realize->block : Block();
}

std::vector<const ForNode*> TIRPrinter::LoopsOfBlock(const ForNode* op) const {
  std::vector<const ForNode*> nest;
  if (!ScriptScope::Style().sugar) return nest;
  auto uses_nest = [&](const PrimExpr& extent) {
    bool found = false;
    PostOrderVisit(extent, [&](const ObjectRef& node) {
      for (const ForNode* loop : nest) found = found || node.same_as(loop->loop_var);
    });
    return found;
  };
  for (const ForNode* loop = op; loop != nullptr; loop = loop->body.as<ForNode>()) {
    bool plain = loop->kind == ForKind::kSerial && loop->annotations.empty() && is_zero(loop->min);
    if (!plain || uses_nest(loop->extent)) return {};
    nest.push_back(loop);
  }
  if (nest.empty() || nest.back()->body.as<BlockRealizeNode>() == nullptr) return {};
  return nest;
}

void TIRPrinter::PrintRegions(const char* name, const Array<BufferRegion>& regions) {
  // Regions that are not written are worked out by the reader, so none is written as none.
  if (regions.empty() && !IsFull()) return;
  os_ << name << '(';
  for (size_t i = 0; i < regions.size(); ++i) {
    os_ << (i != 0 ? ", " : "");
    PrintRegion(regions[i].get());
  }
  os_ << ')';
  NewLine();
}

void TIRPrinter::Print(const BufferRegionNode* region) {
  PrintPart(false, [&](TIRPrinter* printer) { printer->PrintRegion(region); });
}

void TIRPrinter::PrintRegion(const BufferRegionNode* region) {
  os_ << NameOf(region->buffer.get()) << '[';
  for (size_t i = 0; i < region->region.size(); ++i) {
    const Range& range = region->region[i];
    os_ << (i != 0 ? ", " : "");
    if (is_one(range->extent)) {
      PrintAt(range->min, 0);
    } else {
      PrintInterval(range->min, range->extent, ":");
    }
  }
  os_ << (region->region.empty() ? "()]" : "]");
}

void TIRPrinter::Print(const MatchBufferRegionNode* match) {
  PrintPart(true, [&](TIRPrinter* printer) { printer->PrintMatch(match); });
}

void TIRPrinter::PrintMatch(const MatchBufferRegionNode* match) {
  os_ << NameOf(match->buffer.get()) << " = T.match_buffer(";
  PrintRegion(match->source.get());
  os_ << ", ";
  PrintBufferArguments(match->buffer.get(), false);
  os_ << ')';
  ShowBuffer(match->buffer.get());
}

void TIRPrinter::PrintBlockAxes(const BlockRealizeNode* op) {
  const Array<IterVar>& axes = op->block->iter_vars;
  // One line for axes that are loops of the same domain.
  bool remap = axes.size() > 1 && !op->iter_values.empty() && ScriptScope::Style().sugar;
  for (size_t i = 0; i < axes.size() && remap; ++i) {
    auto loop = loops_.find(op->iter_values[i].as<VarNode>());
    remap = loop != loops_.end() && AxisName(axes[i]->iter_type) != nullptr &&
            StructuralEqual()(loop->second->min, axes[i]->dom->min) &&
            StructuralEqual()(loop->second->extent, axes[i]->dom->extent);
  }
  if (remap) {
    std::string letters;
    for (size_t i = 0; i < axes.size(); ++i) {
      os_ << (i != 0 ? ", " : "") << NameOf(axes[i]->var.get());
      letters += static_cast<char>(std::toupper(AxisName(axes[i]->iter_type)[0]));
    }
    // Scans are ordered, and S is taken.
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i]->iter_type == kOrdered) letters[i] = 'C';
    }
    os_ << " = T.axis.remap(\"" << letters << "\", [";
    PrintList(op->iter_values);
    os_ << "])";
    NewLine();
    return;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const IterVar& iv = axes[i];
    const char* name = AxisName(iv->iter_type);
    os_ << NameOf(iv->var.get()) << " = T.axis."
        << (name != nullptr ? name : IterVarTypeToString(iv->iter_type)) << '(';
    if (!is_zero(iv->dom->min)) {
      os_ << '(';
      PrintInterval(iv->dom->min, iv->dom->extent, ", ");
      os_ << ')';
    } else {
      PrintAt(iv->dom->extent, 0);
    }
    if (!op->iter_values.empty()) {
      os_ << ", ";
      PrintAt(op->iter_values[i], 0);
    }
    os_ << ')';
    NewLine();
  }
}

void TIRPrinter::PrintBlockContents(const BlockRealizeNode* op) {
  const Block& block = op->block;
  PrintBlockAxes(op);
  for (const IterVar& iv : block->iter_vars) Show(iv->var.get());
  if (!is_one(op->predicate)) {
    os_ << "T.where(";
    PrintAt(op->predicate, 0);
    os_ << ')';
    NewLine();
  }
  if (op->block.get() != root_) {
    PrintRegions("T.reads", block->reads);
    PrintRegions("T.writes", block->writes);
  }
  if (!block->annotations.empty()) {
    os_ << "T.block_attr(";
    PrintAnnotations(block->annotations);
    os_ << ')';
    NewLine();
  }
  for (const Buffer& buffer : block->alloc_buffers) {
    os_ << NameOf(buffer.get()) << " = T.alloc_buffer(";
    PrintBufferArguments(buffer.get(), false);
    os_ << ')';
    ShowBuffer(buffer.get());
    NewLine();
  }
  for (const MatchBufferRegion& match : block->match_buffers) {
    PrintMatch(match.get());
    NewLine();
  }
  PrintReadyBuffers();
  if (block->init.defined()) {
    os_ << "with T.init():";
    PrintBody(block->init);
    NewLine();
  }
  VisitStmt(block->body);
}

void TIRPrinter::VisitStmt_(const BlockRealizeNode* op) {
  if (script_ == nullptr ? IsRoot(op) : op->block.get() == root_) {
    os_ << "# with T.block(\"root\"):";
    NewLine();
    PrintBlockContents(op);
    return;
  }
  PrintBlock(op, "");
}

void TIRPrinter::PrintBlock(const BlockRealizeNode* op, const char* options) {
  os_ << "with T.block(";
  PrintScriptText(os_, op->block->name_hint);
  os_ << options << "):";
  bool outer = tail_;
  tail_ = true;
  indent_ += 4;
  NewLine();
  PrintBlockContents(op);
  indent_ -= 4;
  tail_ = outer;
}

void TIRPrinter::VisitStmt_(const BlockNode* op) {
  // A block by itself: its variables have names but no values yet.
  auto realize = make_object<BlockRealizeNode>();
  realize->predicate = const_true();
  realize->block = GetRef<Block>(op);
  PrintBlock(realize.get(), ", no_realize=True");
}

TVM_REGISTER_REPR(BufferRegionNode, [](const BufferRegionNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});
TVM_REGISTER_REPR(MatchBufferRegionNode, [](const MatchBufferRegionNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});

}  // namespace tir
}  // namespace tvm
