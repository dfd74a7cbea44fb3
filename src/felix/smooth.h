/*!
 * \file smooth.h
 * \brief From expressions over integer knobs to smooth ones over real exponents of primes.
 *
 * The result equals the original wherever the exponents are integers. In between, a condition rises
 * from 0 to 1 within the step that decides it, floors are interpolated, and the
 * rest is the function itself.
 */
#ifndef TVM_FELIX_SMOOTH_H_
#define TVM_FELIX_SMOOTH_H_

#include <tvm/arith/var_context.h>
#include <tvm/felix/tape.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tape_builder.h"

namespace tvm {
namespace felix {

/*! \brief One exponent: knob `knob` has the factor prime^exponent. */
struct Exponent {
  std::string name;
  std::string knob;
  int64_t prime;
  int upper;  // power of the prime in the extent
};

/*! \brief The knobs of a context as exponents of the primes of their extents. */
class ExponentSpace {
 public:
  explicit ExponentSpace(const arith::VarContext& context);

  struct Knob {
    std::string name;
    std::vector<int> exponents;  // indices into `exponents()`
    bool is_quotient = false;
    int64_t scale = 1;  // value = scale * prod prime^(sign * exponent), sign -1 for quotients
  };
  struct Group {
    int64_t extent;
    int quotient;            // index into `knobs()`
    std::vector<int> tiles;  // indices into `knobs()`
  };

  const std::vector<Exponent>& exponents() const { return exponents_; }
  const std::vector<Knob>& knobs() const { return knobs_; }
  const std::vector<Group>& groups() const { return groups_; }
  /*! \brief Index of a knob by name, -1 if there is none. */
  int FindKnob(const std::string& name) const;
  /*! \brief Number that a group's extent variable stands for. */
  std::optional<int64_t> FindExtent(const std::string& name) const;

 private:
  std::vector<Exponent> exponents_;
  std::vector<Knob> knobs_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, int> knob_ids_;
  std::unordered_map<std::string, int64_t> extents_;
};

/*! \brief Product of integer powers of knobs: pairs (knob, power), sorted, without zero powers. */
using KnobProduct = std::vector<std::pair<int, int>>;

/*! \brief Sum of numbers times products of knobs. */
using KnobSum = std::map<KnobProduct, double>;

/*! \brief Translates the entries of a tape over knobs into a tape over exponents. */
class Smoother {
 public:
  Smoother(const ExponentSpace& space, TapeBuilder* out);

  /*! \brief A value: a short sum of products, or whatever entry of the tape computes it. */
  struct Smooth {
    std::optional<KnobSum> sum;
    TapeBuilder::Index index = -1;
  };

  /*! \brief Values of all entries of a tape over knobs. */
  std::vector<Smooth> Translate(const TapeData& tape);
  TapeBuilder::Index Emit(Smooth* value);
  /*! \brief ln(1 + value). */
  TapeBuilder::Index EmitLogSize(Smooth* value);
  /*! \brief ln(value). */
  TapeBuilder::Index EmitLog(Smooth* value);
  /*! \brief Coefficients of the exponents and constant of ln(value), if value is one product. */
  std::optional<std::pair<std::vector<double>, double>> LogLinear(const Smooth& value) const;

 private:
  using Index = TapeBuilder::Index;

  Smooth FromSum(KnobSum sum) const;
  Smooth FromIndex(Index index) const;
  Smooth Number(double value) const;
  KnobProduct Normalize(KnobProduct product, double* coef) const;
  std::optional<KnobSum> MulSums(const KnobSum& a, const KnobSum& b) const;
  Smooth Add(Smooth* a, Smooth* b, double sign);
  Smooth Mul(Smooth* a, Smooth* b);
  Smooth Div(Smooth* a, Smooth* b);
  Smooth FloorDiv(Smooth* a, Smooth* b);
  Smooth Less(Smooth* a, Smooth* b, bool or_equal);
  Smooth Equal(Smooth* a, Smooth* b);
  /*! \brief Quotient b / a if it is an integer at every valid point. */
  std::optional<KnobSum> IntegerRatio(const Smooth& a, const Smooth& b) const;
  /*! \brief Coefficients of the exponents and constant of ln(product). */
  std::pair<std::vector<double>, double> LogOf(const KnobProduct& product) const;
  Index EmitProduct(const KnobProduct& product);
  /*! \brief ln of a product without its coefficient. */
  Index EmitLogProduct(const KnobProduct& product);
  Index Complement(Index a) { return out_->Op(TapeOp::kSub, out_->Int(1), a); }

  const ExponentSpace& space_;
  TapeBuilder* out_;
};

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_SMOOTH_H_
