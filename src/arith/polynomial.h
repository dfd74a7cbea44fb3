/*!
 * \file arith/polynomial.h
 * \brief Polynomials with int64 coefficients over numbered atoms.
 *
 * Monomials are interned: a product of atoms is one number, so a polynomial is a short sorted list
 * of pairs of integers, and equal polynomials are equal lists.
 */
#ifndef TVM_SRC_ARITH_POLYNOMIAL_H_
#define TVM_SRC_ARITH_POLYNOMIAL_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace arith {

using AtomId = int32_t;
using MonoId = int32_t;

/*! \brief The empty product. */
inline constexpr MonoId kUnitMono = 0;

/*! \brief Thrown where a coefficient leaves int64 or a product grows out of hand. */
struct PolyOverflow final : std::exception {
  const char* what() const noexcept override {
    return "arith: numbers of an index exceed its type";
  }
};

int64_t CheckedAdd(int64_t a, int64_t b);
int64_t CheckedMul(int64_t a, int64_t b);
int64_t FloorDivInt(int64_t a, int64_t b);
inline int64_t FloorModInt(int64_t a, int64_t b) { return a - b * FloorDivInt(a, b); }

/*! \brief coef * mono. */
struct Term {
  MonoId mono;
  int64_t coef;
  bool operator==(const Term& other) const = default;
};

/*! \brief Sum of terms, sorted by monomial, without zero coefficients. */
struct Poly {
  std::vector<Term> terms;

  bool IsZero() const { return terms.empty(); }
  bool IsConst() const {
    return terms.empty() || (terms.size() == 1 && terms[0].mono == kUnitMono);
  }
  /*! \brief Coefficient of the empty product. */
  int64_t ConstTerm() const {
    return !terms.empty() && terms[0].mono == kUnitMono ? terms[0].coef : 0;
  }
  bool operator==(const Poly& other) const = default;
};

struct PolyHash {
  size_t operator()(const Poly& p) const {
    size_t h = p.terms.size();
    for (const Term& t : p.terms) {
      h = (h ^ static_cast<size_t>(t.mono)) * 0x9e3779b97f4a7c15ull;
      h = (h ^ static_cast<size_t>(t.coef)) * 0xc2b2ae3d27d4eb4full;
      h ^= h >> 29;
    }
    return h;
  }
};

/*! \brief Table of monomials and the arithmetic on polynomials over it. */
class PolyRing {
 public:
  PolyRing();

  /*! \brief Atoms of a monomial in ascending order, repeated by their power. */
  const std::vector<AtomId>& Atoms(MonoId mono) const { return monos_[mono]; }
  /*! \brief The same in the order of the product that the monomial came from first. */
  const std::vector<AtomId>& AtomsAsMet(MonoId mono) const { return as_met_[mono]; }
  MonoId MonoOf(AtomId atom) { return Intern({atom}); }
  MonoId Intern(std::vector<AtomId> sorted_atoms);
  MonoId MulMono(MonoId a, MonoId b);
  /*! \brief Quotient of an exact division; false if `b` does not divide `a`. */
  bool DivMono(MonoId a, MonoId b, MonoId* quotient);
  MonoId GcdMono(MonoId a, MonoId b);
  int CountAtom(MonoId mono, AtomId atom) const;

  static Poly Const(int64_t value);
  Poly FromAtom(AtomId atom) { return Poly{{{MonoOf(atom), 1}}}; }
  static Poly FromTerm(Term term);

  static Poly Add(const Poly& a, const Poly& b) { return AddScaled(a, b, 1); }
  static Poly Sub(const Poly& a, const Poly& b) { return AddScaled(a, b, -1); }
  static Poly AddConst(const Poly& a, int64_t value) { return AddScaled(a, Const(value), 1); }
  /*! \brief a + scale * b. */
  static Poly AddScaled(const Poly& a, const Poly& b, int64_t scale);
  static Poly Scale(const Poly& a, int64_t scale);
  static Poly Negate(const Poly& a) { return Scale(a, -1); }
  Poly MulTerm(const Poly& a, Term term) { return MulTerm(a, term, false); }
  Poly Mul(const Poly& a, const Poly& b);

  /*! \brief Quotient by one term if it divides every term. */
  bool DivideByTerm(const Poly& a, Term term, Poly* quotient);
  /*! \brief Greatest integer that divides all coefficients; 0 for the zero polynomial. */
  static int64_t Content(const Poly& a, bool with_const = true);
  /*!
   * \brief Write p as coef * atom + rest, neither part mentioning the atom.
   * \return False if the atom occurs with a power above one.
   */
  bool SplitLinear(const Poly& p, AtomId atom, Poly* coef, Poly* rest);
  bool Mentions(const Poly& p, AtomId atom) const;
  /*! \brief p with every power of the atom replaced by that power of `value`. */
  Poly Substitute(const Poly& p, AtomId atom, const Poly& value);

 private:
  struct VectorHash {
    size_t operator()(const std::vector<AtomId>& v) const {
      size_t h = v.size();
      for (AtomId a : v) h = (h ^ static_cast<size_t>(a)) * 0x9e3779b97f4a7c15ull, h ^= h >> 31;
      return h;
    }
  };
  /*! \brief `x * term`, or `term * x` if the term was in front. */
  Poly MulTerm(const Poly& a, Term term, bool in_front);

  std::vector<std::vector<AtomId>> monos_, as_met_;
  std::unordered_map<std::vector<AtomId>, MonoId, VectorHash> mono_ids_;
  std::unordered_map<uint64_t, MonoId> products_;
};

}  // namespace arith
}  // namespace tvm
#endif  // TVM_SRC_ARITH_POLYNOMIAL_H_
