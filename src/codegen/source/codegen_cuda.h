/*!
 * \file codegen_cuda.h
 * \brief CUDA C++ for kernels.
 */
#ifndef TVM_CODEGEN_SOURCE_CODEGEN_CUDA_H_
#define TVM_CODEGEN_SOURCE_CODEGEN_CUDA_H_

#include <tvm/codegen/codegen_c.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace codegen {

/*!
 * \brief The language of NVIDIA's compilers, as text that needs no header but theirs.
 *
 * Neighbouring elements of global and shared memory are moved by the widest access that their type
 * and place allow. The place within the buffer is proved to be aligned; the buffer itself is taken
 * to be, as our allocator aligns to 256 bytes, so a view that starts in the middle of an array must
 * start at a multiple of the vector.
 *
 * In loops with the pragma "async_copy", wide copies from global to shared memory bypass registers
 * and end at the next barrier, so that work between the two hides their latency.
 */
class CodeGenCUDA final : public CodeGenC {
 public:
  using CodeGenC::CodeGenC;

 private:
  std::string LanguageName() const final { return "cuda"; }
  std::string Type(DataType dtype) const final;
  bool IsStorageOnly(DataType dtype) const final { return false; }
  std::string FloatLiteral(DataType dtype, double value) final;
  std::string CastText(const std::string& value, DataType from, DataType to) final;
  std::string FunctionPrefix(const tir::PrimFunc& func, bool exported) final;
  std::string Prelude() const final;
  std::string HelperPrefix() const final { return "static __device__ __forceinline__ "; }
  std::string RestrictKeyword() const final { return "__restrict__ "; }
  std::string UnrollLine(int64_t extent) const final { return "#pragma unroll"; }
  std::string ThreadIndex(const std::string& tag) final;
  void BeginFunction(const tir::PrimFunc& func) final;
  void StorageSync(const std::string& scope) final;
  void AllocateIn(const std::string& scope, const tir::AllocateNode* op,
                  const std::string& name) final;
  bool CallIntrinsic(const std::string& name, const tir::CallNode* op, std::string* text) final;
  std::string MathCall(const std::string& name, DataType dtype,
                       const std::vector<std::string>& args) final;
  void PrepareVector(const PrimExpr& value) final;
  bool Attribute(const tir::AttrStmtNode* op) final;
  void VisitStmt_(const tir::BufferStoreNode* op) final;
  using CodeGenC::VisitStmt_;
  bool StoreWide(const tir::BufferStoreNode* op, const tir::RampNode* place) final;

  /*! \brief Position, in scalars, of neighbours that one access may move; undefined if none may. */
  PrimExpr WidePlace(const tir::Buffer& buffer, const Array<PrimExpr>& indices, DataType dtype);
  /*! \brief Type that moves `bytes` bytes of elements of a type at once; "" if there is none. */
  static std::string WideType(DataType element, int bytes);
  /*! \brief Lines that copy `count` scalars between two addresses in the widest steps. */
  void CopyWide(const std::string& to, const std::string& from, DataType element, int count);

  // Tensor cores (codegen_cuda_wmma.cc).
  /*! \brief Shape and layout of the fragments a buffer of a wmma scope holds. */
  struct Fragment {
    int64_t m, n, k;
    std::string layout;
  };
  void CollectFragments(const tir::PrimFunc& func);
  void AllocateFragments(const std::string& scope, const tir::AllocateNode* op,
                         const std::string& name);
  bool CallFragment(const std::string& name, const tir::CallNode* op);
  std::string FragmentText(const PrimExpr& data, const PrimExpr& index);

  // Instructions by their names (codegen_cuda_ptx.cc).
  bool CallPtx(const std::string& name, const tir::CallNode* op);
  bool CallBarrier(const std::string& name, const tir::CallNode* op);
  /*! \brief `pointer + index`; elements are those of the pointer, or else of type `dtype`. */
  std::string ElementAddress(const PrimExpr& data, const PrimExpr& index, DataType dtype);
  void PtxProduct(const tir::CallNode* op, bool sparse);
  void PtxLoadMatrix(const tir::CallNode* op);
  void PtxCopy(const tir::CallNode* op);
  void PtxCopyBulk(const tir::CallNode* op);
  void PtxLoadGuarded(const tir::CallNode* op);
  void StoreSums(const tir::CallNode* op);
  void FillSums(const tir::CallNode* op);
  /*! \brief Address in shared memory of the barrier whose number is argument `i`. */
  std::string Barrier(const tir::CallNode* op, size_t i);

  std::unordered_map<const tir::VarNode*, Fragment> fragments_;
  /*! \brief Arrays of the function's barriers, and of the phase in which each will be awaited. */
  std::string barriers_, barrier_phases_;
  /*! \brief Whether instructions take elements of local arrays as whole registers. */
  bool uses_registers_ = false;
  /*! \brief Bytes of dynamic shared memory given away in the present function. */
  int64_t dynamic_shared_bytes_ = 0;
  bool has_dynamic_shared_ = false;
  mutable bool uses_half_ = false;
  mutable bool uses_bfloat16_ = false;
  bool uses_wmma_ = false;
  bool uses_pipeline_ = false;
  /*! \brief Whether copies from global to shared memory need not wait for their end. */
  bool async_copies_ = false;
  /*! \brief Whether such copies were started in the present function. */
  bool has_async_copies_ = false;
};

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_SOURCE_CODEGEN_CUDA_H_
