/*!
 * \file tvm/arith/egg_simpl.h
 * \brief C interface of the expression simplifier, the Rust crate rust/egg_simpl.
 *
 * The simplifier receives a tape (the format of tvm/felix/tape.h, here as plain arrays), brings it
 * to a polynomial normal form in exact arithmetic, runs equality saturation on what that form does
 * not decide, and returns a tape whose roots have the same values at every point inside the ranges
 * of the variables, to a relative error of 1e-9. Equal input gives equal output: work is bounded by
 * counts, never by a clock.
 *
 * No call throws or aborts. A call reports a status; when that is not kOk, `*message` receives a
 * text to be released with `free_str`.
 */
#ifndef TVM_ARITH_EGG_SIMPL_H_
#define TVM_ARITH_EGG_SIMPL_H_

#include <cstdint>

extern "C" {

/*! \brief What a call of the simplifier reports. */
enum EggStatus : int32_t {
  kEggOk = 0,
  kEggInvalidInput = 1,   // the caller's tape, text or option is malformed
  kEggInternalError = 2,  // a defect of the simplifier; nothing was changed
  kEggNoMemory = 3,       // there is no room for the e-graph that the limits allow
};

/*! \brief Why simplification ended; of several rounds, the largest. */
enum EggStopReason : int32_t {
  kEggSaturated = 0,       // no rule had anything left to add
  kEggIterationLimit = 1,  // out of iterations
  kEggNodeLimit = 2,       // out of e-graph nodes
};

/*! \brief How simplification went. */
struct EggReport {
  int32_t stop_reason;  // an EggStopReason
  int64_t nodes;        // of the e-graph, at its largest
};

/*! \brief Domain of one variable; the range is closed and an end may be infinite. */
struct EggVariable {
  double lower;
  double upper;
  uint8_t is_integer;
};

/*!
 * \brief A tape as plain arrays: `ops` and `payload` hold `size` entries, `args` three per entry,
 *        `roots` holds `num_roots` entries.
 */
struct EggTape {
  int64_t size;
  const uint8_t* ops;
  const int32_t* args;
  const int64_t* payload;
  int64_t num_roots;
  const int32_t* roots;
};

/*! \brief Limits of one call. */
struct EggOptions {
  int32_t iterations;    // of equality saturation; 0 stops after the normal form
  int32_t node_limit;    // e-graph nodes
  uint8_t at_least_one;  // also use the rules that hold only for quantities >= 1, where proven
};

/*!
 * \brief Simplify a tape.
 * \param tape Input, only read.
 * \param variables Table that the payloads of variable entries index.
 * \param num_variables Length of that table.
 * \param options Limits.
 * \param result Receives a tape owned by the simplifier; release it with `egg_free_tape`.
 * \param report Receives how it went.
 * \param message Receives a text when the status is not kEggOk, else null.
 * \return An EggStatus.
 */
int32_t egg_simplify_tape(const EggTape* tape, const EggVariable* variables, int64_t num_variables,
                          const EggOptions* options, EggTape* result, EggReport* report,
                          char** message);

/*! \brief Release the arrays of a tape made by `egg_simplify_tape` and empty it. */
void egg_free_tape(EggTape* tape);

/*!
 * \brief Simplify an expression in prefix text, such as `(+ (* 2 x:k) 0)`.
 *
 * A name ends in `:s` (shape), `:k` (knob), `:v` (shorthand), `:b` (boolean) or nothing.
 * \param text The expression.
 * \param iterations, node_limit, at_least_one As in EggOptions.
 * \param result Receives the simplified text when the status is kEggOk, else the error message.
 *        Release it with `free_str`.
 * \return An EggStatus.
 */
int32_t simplify_expr(const char* text, int32_t iterations, int32_t node_limit,
                      uint8_t at_least_one, char** result);

/*!
 * \brief Whether two expressions in prefix text are provably equal.
 * \param equal Receives 1 when a proof was found within the limits, else 0.
 * \param message Receives a text when the status is not kEggOk, else null.
 * \return An EggStatus.
 */
int32_t is_equivalent(const char* left, const char* right, int32_t iterations, int32_t node_limit,
                      uint8_t at_least_one, uint8_t* equal, char** message);

/*! \brief Release a text handed out by the simplifier; null is allowed. */
void free_str(char* text);

}  // extern "C"

#endif  // TVM_ARITH_EGG_SIMPL_H_
