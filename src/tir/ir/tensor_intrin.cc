/*!
 * \file src/tir/ir/tensor_intrin.cc
 * \brief The registry of tensor intrinsics.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/block.h>
#include <tvm/tir/tensor_intrin.h>

#include <map>
#include <mutex>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(TensorIntrinNode);

void TensorIntrinNode::Init() {
  TVM_CHECK(desc->params.size() == impl->params.size(), ValueError)
      << "TensorIntrin: the description takes " << desc->params.size()
      << " buffers and the implementation " << impl->params.size();
  for (size_t i = 0; i < desc->params.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    auto wanted = desc->buffer_map.Get(desc->params[at]);
    auto given = impl->buffer_map.Get(impl->params[at]);
    TVM_CHECK(wanted && given, ValueError)
        << "TensorIntrin: parameter " << i << " is no buffer; use T.match_buffer or T.Buffer";
    TVM_CHECK(wanted.value()->dtype == given.value()->dtype &&
                  wanted.value()->shape.size() == given.value()->shape.size(),
              ValueError)
        << "TensorIntrin: parameter " << i << " is " << wanted.value()->dtype << " of shape "
        << wanted.value()->shape << " in the description and " << given.value()->dtype
        << " of shape " << given.value()->shape << " in the implementation";
  }
  for (const PrimFunc* func : {&desc, &impl}) {
    TVM_CHECK((*func)->body.as<BlockRealizeNode>(), ValueError)
        << "TensorIntrin: a description and an implementation are one block each, with what they "
           "read and write declared; got a "
        << (*func)->body->GetTypeKey();
  }
}

namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, TensorIntrin> rows;
};

Table* Known() {
  static Table table;
  return &table;
}

}  // namespace

void TensorIntrin::Register(const String& name, const TensorIntrin& intrin, bool override) {
  Table* table = Known();
  std::lock_guard<std::mutex> lock(table->mutex);
  TVM_CHECK(override || !table->rows.count(name), ValueError)
      << "TensorIntrin '" << name << "' is registered already; give another name or override=True";
  table->rows.insert_or_assign(name, intrin);
}

Optional<TensorIntrin> TensorIntrin::Get(const String& name, bool allow_missing) {
  Table* table = Known();
  std::lock_guard<std::mutex> lock(table->mutex);
  auto row = table->rows.find(name);
  if (row != table->rows.end()) return row->second;
  if (allow_missing) return NullOpt;
  std::string names;
  for (const auto& [known, intrin] : table->rows) names += (names.empty() ? "" : ", ") + known;
  TVM_FATAL(ValueError) << "TensorIntrin '" << name << "' is not registered; there are "
                        << (names.empty() ? "none" : names)
                        << ". Import the module of tvm.tir.tensor_intrin that registers it";
}

TVM_REGISTER_GLOBAL("tir.TensorIntrinRegister")
    .set_body_typed([](String name, TensorIntrin intrin, bool override) {
      TensorIntrin::Register(name, intrin, override);
    });
TVM_REGISTER_GLOBAL("tir.TensorIntrinGet").set_body_typed([](String name, bool allow_missing) {
  return TensorIntrin::Get(name, allow_missing);
});

}  // namespace tir
}  // namespace tvm
