/*!
 * \file egg_bridge.cc
 * \brief The text entry points of the expression simplifier as global functions.
 */
#include <tvm/arith/egg_simpl.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <memory>
#include <string>

namespace tvm {
namespace arith {

namespace {

/*! \brief Take over a text of the simplifier. */
std::string TakeText(char* text) {
  std::unique_ptr<char, void (*)(char*)> owner(text, free_str);
  return text == nullptr ? std::string() : std::string(text);
}

void CheckStatus(int32_t status, const char* where, const std::string& message) {
  TVM_CHECK(status != kEggInvalidInput, ValueError) << where << ": " << message;
  TVM_CHECK(status != kEggNoMemory, MemoryError) << where << ": " << message;
  ICHECK(status == kEggOk) << where << ": " << message;
}

}  // namespace

TVM_REGISTER_GLOBAL("arith.SimplifyExprStr")
    .set_body_typed([](String text, int iterations, int node_limit, bool at_least_one) {
      char* result = nullptr;
      const int32_t status =
          simplify_expr(text.c_str(), iterations, node_limit, at_least_one ? 1 : 0, &result);
      const std::string answer = TakeText(result);
      CheckStatus(status, "SimplifyExprStr", answer);
      return String(answer);
    });

TVM_REGISTER_GLOBAL("arith.IsExprStrEquivalent")
    .set_body_typed([](String left, String right, int iterations, int node_limit,
                       bool at_least_one) {
      char* message = nullptr;
      uint8_t equal = 0;
      const int32_t status = is_equivalent(left.c_str(), right.c_str(), iterations, node_limit,
                                           at_least_one ? 1 : 0, &equal, &message);
      CheckStatus(status, "IsExprStrEquivalent", TakeText(message));
      return equal != 0;
    });

}  // namespace arith
}  // namespace tvm
