/*!
 * \file tvm/target/target_kind.h
 * \brief The open registry of target kinds: any library, or a Python user, may add one.
 */
#ifndef TVM_TARGET_TARGET_KIND_H_
#define TVM_TARGET_TARGET_KIND_H_

#include <tvm/node/node.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>

#include <string>

namespace tvm {

/*! \brief A family of targets that share one code generator, `target.build.<name>`. */
class TargetKindNode : public Object {
 public:
  String name;
  /*! \brief DLDeviceType number of the devices the generated code runs on. */
  int device_type = 0;
  Array<String> default_keys;
  /*!
   * \brief Option name to its type: "str", "int", "bool", "array" (of strings, by comma) or
   * "targets" (an array, in text by comma or, where they have options, by semicolon).
   */
  Map<String, String> option_types;
  /*! \brief Facts that hold for every target of the kind unless an option says otherwise. */
  Map<String, Any> default_features;

  TVM_DECLARE_NODE(TargetKindNode, Object, "TargetKind", Value(name), Ignore(device_type),
                   Ignore(default_keys), Ignore(option_types), Ignore(default_features));
  TVM_NODE_ARGS();
};

/*! \brief Reference to a TargetKindNode. */
class TargetKind : public ObjectRef {
 public:
  /*!
   * \brief Find a registered kind.
   * \throws ValueError naming the registered kinds when there is none of this name.
   */
  static TargetKind Get(const String& name);
  /*! \brief Names of all kinds, sorted. */
  static Array<String> List();

  TVM_DEFINE_REF(TargetKind, ObjectRef, TargetKindNode);
};

/*! \brief Fills in one kind at registration. */
class TargetKindEntry {
 public:
  /*!
   * \brief Register a kind with the options all kinds share (model, device, tag, libs, ...).
   * \throws ValueError when the name is taken.
   */
  static TargetKindEntry Register(const String& name, int device_type);

  TargetKindEntry& set_default_keys(Array<String> keys);
  /*! \brief Declare an option; `type` is one of the names listed at TargetKindNode::option_types.
   */
  TargetKindEntry& add_option(const String& name, const String& type);
  TargetKindEntry& add_feature(const String& name, int64_t value);

 private:
  explicit TargetKindEntry(ObjectPtr<TargetKindNode> node) : node_(std::move(node)) {}
  ObjectPtr<TargetKindNode> node_;
};

/*! \brief At namespace scope of a .cc: `TVM_REGISTER_TARGET_KIND("dpu", kDLExtDev).add_option(..);`
 */
#define TVM_REGISTER_TARGET_KIND(Name, DeviceType)                           \
  [[maybe_unused]] static auto TVM_CONCAT(target_kind_entry_, __COUNTER__) = \
      ::tvm::TargetKindEntry::Register(Name, DeviceType)

}  // namespace tvm

#endif  // TVM_TARGET_TARGET_KIND_H_
