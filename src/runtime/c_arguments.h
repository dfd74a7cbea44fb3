/*!
 * \file c_arguments.h
 * \brief Arguments and results in the form that compiled functions take and give.
 */
#ifndef TVM_RUNTIME_C_ARGUMENTS_H_
#define TVM_RUNTIME_C_ARGUMENTS_H_

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

#include <vector>

namespace tvm {
namespace runtime {

/*! \brief Borrowed arguments with arrays as DLTensor* and strings as text, as compiled code reads
 * them. */
class CArguments {
 public:
  explicit CArguments(Args args) {
    if (args.size() > kOnStack) {
      on_heap_.resize(static_cast<size_t>(args.size()));
      values_ = on_heap_.data();
    }
    for (int i = 0; i < args.size(); ++i) {
      values_[i] = args[i].raw();
      if (values_[i].type_code != kTVMObject) continue;
      const Object* object = args[i].object();
      if (const auto* array = args[i].as<NDArrayObj>()) {
        values_[i].type_code = kTVMDLTensor;
        values_[i].v_handle = const_cast<DLTensor*>(&array->tensor);
      } else if (object->IsInstance<StringObj>()) {
        values_[i].type_code = kTVMStr;
        values_[i].v_str = static_cast<const StringObj*>(object)->data.c_str();
      }
    }
  }
  CArguments(const CArguments&) = delete;
  CArguments& operator=(const CArguments&) = delete;
  const TVMAny* data() const { return values_; }

 private:
  static constexpr int kOnStack = 24;
  TVMAny on_stack_[kOnStack];
  std::vector<TVMAny> on_heap_;
  TVMAny* values_ = on_stack_;
};

/*! \brief Take over what a compiled function returned. */
inline void SetResult(const TVMAny& result, RetValue* ret) {
  if (result.type_code == kTVMStr) {
    *ret = Any(String(result.v_str));
  } else {
    ret->SetRaw(result);
  }
}

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_C_ARGUMENTS_H_
