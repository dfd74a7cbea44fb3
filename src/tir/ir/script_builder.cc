/*!
 * \file src/tir/ir/script_builder.cc
 * \brief What the builder of scripts does to nodes that Python cannot.
 */
#include <tvm/expr/expr.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace tir {

namespace {

void NameVar(const Var& var, const String& name) {
  if (var->name_hint.empty()) const_cast<VarNode*>(var.get())->name_hint = name;
}

/*!
 * \brief Give a name to what was just made without one; an object that has a name keeps it.
 *
 * The object is new and only its maker knows it, and names are no part of what a program is.
 */
void NameFresh(const ObjectRef& object, const String& name) {
  if (object.as<VarNode>()) {
    NameVar(Downcast<Var>(object), name);
  } else if (const auto* buffer = object.as<BufferNode>()) {
    if (buffer->name.empty()) const_cast<BufferNode*>(buffer)->name = name;
    NameVar(buffer->data, name);
    // Offsets and strides that buffers make for themselves are named after them.
    if (buffer->elem_offset.as<VarNode>()) {
      NameVar(Downcast<Var>(buffer->elem_offset), name + "_elem_offset");
    }
    for (size_t i = 0; i < buffer->strides.size(); ++i) {
      if (buffer->strides[i].as<VarNode>()) {
        NameVar(Downcast<Var>(buffer->strides[i]), name + "_s" + std::to_string(i));
      }
    }
  } else if (const auto* axis = object.as<IterVarNode>()) {
    NameVar(axis->var, name);
  }
}

}  // namespace

TVM_REGISTER_GLOBAL("script.ir_builder.Name").set_body_typed(NameFresh);

}  // namespace tir
}  // namespace tvm
