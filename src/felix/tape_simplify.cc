/*!
 * \file tape_simplify.cc
 */
#include "tape_simplify.h"

#include <tvm/arith/egg_simpl.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <memory>
#include <string>

namespace tvm {
namespace felix {

namespace {

/*! \brief A tape owned by the simplifier. */
struct OwnedEggTape : EggTape {
  OwnedEggTape() : EggTape{} {}
  OwnedEggTape(const OwnedEggTape&) = delete;
  OwnedEggTape& operator=(const OwnedEggTape&) = delete;
  ~OwnedEggTape() { egg_free_tape(this); }
};

}  // namespace

TapeData SimplifyTape(const TapeData& tape, const TapeSimplifyOptions& options,
                      TapeSimplifyReport* report) {
  std::vector<EggVariable> variables;
  variables.reserve(tape.vars.size());
  for (const TapeVar& var : tape.vars) {
    variables.push_back({var.lower, var.upper, static_cast<uint8_t>(var.is_integer ? 1 : 0)});
  }
  const EggTape input{tape.size(),
                      tape.ops.data(),
                      tape.args.data(),
                      tape.payload.data(),
                      static_cast<int64_t>(tape.roots.size()),
                      tape.roots.data()};
  const EggOptions limits{options.iterations, options.node_limit, 1};
  OwnedEggTape output;
  EggReport outcome{kEggSaturated, 0};
  char* message = nullptr;
  const int32_t status =
      egg_simplify_tape(&input, variables.data(), static_cast<int64_t>(variables.size()), &limits,
                        &output, &outcome, &message);
  std::unique_ptr<char, void (*)(char*)> text(message, free_str);
  TVM_CHECK(status != kEggInvalidInput, ValueError) << "SimplifyTape: " << text.get();
  TVM_CHECK(status != kEggNoMemory, MemoryError) << "SimplifyTape: " << text.get();
  ICHECK(status == kEggOk) << "SimplifyTape: " << text.get();
  if (report) {
    static const char* const kReasons[] = {"saturated", "iteration limit", "node limit"};
    *report = {kReasons[outcome.stop_reason], outcome.nodes};
  }
  TapeData result;
  result.ops.assign(output.ops, output.ops + output.size);
  result.args.assign(output.args, output.args + 3 * output.size);
  result.payload.assign(output.payload, output.payload + output.size);
  result.roots.assign(output.roots, output.roots + output.num_roots);
  result.vars = tape.vars;
  return result;
}

/* A tape and limits: [simplified tape, why saturation stopped, largest number of e-graph nodes]. */
TVM_REGISTER_GLOBAL("felix.SimplifyTape")
    .set_body_typed([](Tape tape, int iterations, int node_limit) {
      TapeSimplifyReport report;
      const TapeData result = SimplifyTape(tape.Data(), {iterations, node_limit}, &report);
      return Array<Any>{Tape(result), String(report.stop_reason), report.nodes};
    });

}  // namespace felix
}  // namespace tvm
