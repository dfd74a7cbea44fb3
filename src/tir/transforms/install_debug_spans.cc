/*!
 * \file src/tir/transforms/install_debug_spans.cc
 * \brief Statements of a function named by their lines in its text.
 */
#include <tvm/ir/span.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/debug_spans.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_set>

#include "pass_common.h"
#include "tir/ir/printer.h"

namespace tvm {
namespace tir {
namespace transform {
namespace {

PrimFunc InstallSpans(PrimFunc func) {
  auto name = func->GetAttr<String>(attr::kGlobalSymbol);
  TVM_CHECK(name.has_value(), ValueError)
      << "InstallDebugSpans: a function has no global_symbol, and so no file of its own; name it";
  std::ostringstream stream;
  TIRPrinter printer(stream);
  printer.Print(func.get());
  const std::string text = stream.str() + "\n";
  const String file(std::string(*name) + ".tir");

  size_t at = 0;
  int line = 1;
  size_t line_begin = 0;
  std::unordered_set<const StmtNode*> seen;
  for (const auto& [stmt, offset] : printer.places) {
    // Places are in the order of the text; a statement that occurs twice keeps its first one.
    for (; at < static_cast<size_t>(offset); ++at) {
      if (text[at] != '\n') continue;
      ++line;
      line_begin = at + 1;
    }
    if (!seen.insert(stmt).second) continue;
    const int column = static_cast<int>(offset - line_begin) + 1;
    const size_t line_end = std::min(text.find('\n', line_begin), text.size());
    Span span(file, line, line, column, static_cast<int>(line_end - line_begin));
    stmt->span = span;
  }
  std::ofstream out(file);
  out << text;
  out.close();
  TVM_CHECK(out.good(), ValueError)
      << "InstallDebugSpans: cannot write " << file << " in the current folder, where debuggers "
      << "look for the text of " << *name;
  return WithAttr(std::move(func), kDebugSource, file);
}

}  // namespace

Pass InstallDebugSpans() {
  return CreatePrimFuncPass(
      [](PrimFunc func, IRModule, PassContext) { return InstallSpans(std::move(func)); }, 0,
      "tir.InstallDebugSpans");
}

TVM_REGISTER_GLOBAL("tir.transform.InstallDebugSpans").set_body_typed(InstallDebugSpans);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
