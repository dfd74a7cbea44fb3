/*!
 * \file tvm/target/target.h
 * \brief What a program is compiled for: a kind, its options, and the facts known about the
 * machine.
 */
#ifndef TVM_TARGET_TARGET_H_
#define TVM_TARGET_TARGET_H_

#include <tvm/node/node.h>
#include <tvm/runtime/container.h>
#include <tvm/target/target_kind.h>

#include <string>

namespace tvm {

class Target;

/*!
 * \brief A compilation target.
 *
 * `attrs` is what the user wrote. `features` is what follows from it on this machine (processor
 * name, vector width in bits, cache sizes in bytes, ...), so two targets written alike are equal
 * wherever they are compared, and neither the text form nor equality mentions `features`.
 */
class TargetNode : public Object {
 public:
  TargetKind kind;
  /*! \brief Families of schedules and operator strategies that apply, most specific first. */
  Array<String> keys;
  Map<String, Any> attrs;
  /*! \brief Target of the code that launches this one's kernels. */
  Optional<ObjectRef> host;
  Map<String, Any> features;

  /*!
   * \brief Look an attribute up, first among the user's options, then among the features.
   * \param key Its name; '-' and '_' are the same letter here.
   * \return The value, null when neither has it.
   */
  Any Find(const std::string& key) const;

  /*! \brief The attribute as an integer, or `otherwise` when there is none. */
  int64_t GetInt(const std::string& key, int64_t otherwise) const;
  /*! \brief The attribute as text, or `otherwise` when there is none. */
  std::string GetStr(const std::string& key, const std::string& otherwise) const;

  /*! \brief The host target; undefined reference when none was given. */
  Target GetHost() const;
  /*! \brief Device type (a DLDeviceType number) the compiled code runs on. */
  int GetTargetDeviceType() const { return kind->device_type; }
  /*! \brief Canonical text, for instance `llvm -keys=cpu -num-cores=2`; parses back to itself. */
  std::string str() const;

  TVM_DECLARE_NODE(TargetNode, Object, "Target", Value(kind), Value(keys), Value(attrs),
                   Value(host), Ignore(features));
  TVM_NODE_ARGS();
};

/*! \brief Reference to a TargetNode. */
class Target : public ObjectRef {
 public:
  /*!
   * \brief Parse the text form, `<kind> [-option=value]...`.
   * \throws ValueError for an unknown kind, an unknown option or a malformed value.
   */
  explicit Target(const String& text);
  /*!
   * \brief Build from a table with entry "kind" and optional "keys", "host" and options.
   * \throws ValueError as for the text form.
   */
  explicit Target(const Map<String, Any>& config);
  /*! \brief The same target with another host. */
  Target(const Target& target, const Target& host);

  /*!
   * \brief The innermost target entered on this thread.
   * \param allow_none Whether no target gives an undefined reference instead of a ValueError.
   */
  static Target Current(bool allow_none = true);

  /*! \brief Make this the current target of the calling thread, until ExitScope. */
  void EnterScope() const;
  /*! \brief Leave the scope entered last, which must be this target's. */
  void ExitScope() const;

  TVM_DEFINE_REF(Target, ObjectRef, TargetNode);
};

/*! \brief `llvm` when its generator is registered, else `stackvm`: what runs the host side. */
Target DefaultTargetHost(const Target& target);

}  // namespace tvm

#endif  // TVM_TARGET_TARGET_H_
