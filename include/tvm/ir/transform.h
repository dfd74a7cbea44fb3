/*!
 * \file tvm/ir/transform.h
 * \brief Passes over modules, their context and their composition.
 *
 * \code
 *   auto ctx = transform::PassContext::Create();
 *   ctx->config.Set("tir.UnrollLoop", options);
 *   With<transform::PassContext> scope(ctx);
 *   mod = transform::Sequential({tir::transform::Simplify(), ...})(mod);
 * \endcode
 */
#ifndef TVM_IR_TRANSFORM_H_
#define TVM_IR_TRANSFORM_H_

#include <tvm/ir/instrument.h>
#include <tvm/ir/module.h>

#include <string>

namespace tvm {

/*! \brief Enters `context` for the lifetime of this object; ExitWithScope runs on every way out. */
template <typename Context>
class With {
 public:
  template <typename... A>
  explicit With(A&&... args) : context_(std::forward<A>(args)...) {
    context_.EnterWithScope();
  }
  ~With() noexcept(false) { context_.ExitWithScope(); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;
  const Context& context() const { return context_; }

 private:
  Context context_;
};

namespace transform {

class PassContextNode : public Object {
 public:
  /*! \brief Passes of a higher level are skipped by Sequential unless required. */
  int opt_level = 2;
  Array<String> required_pass;
  Array<String> disabled_pass;
  /*! \brief Options by registered name. */
  Map<String, Any> config;
  Array<instrument::PassInstrument> instruments;

  template <typename T>
  std::optional<T> GetConfig(const String& key) const {
    std::optional<Any> value = config.Get(key);
    if (!value || value->is_null()) return std::nullopt;
    return value->cast<T>();
  }
  template <typename T>
  T GetConfig(const String& key, T otherwise) const {
    std::optional<T> value = GetConfig<T>(key);
    return value ? *std::move(value) : std::move(otherwise);
  }

  TVM_DECLARE_NODE(PassContextNode, Object, "transform.PassContext", Value(opt_level),
                   Value(required_pass), Value(disabled_pass), Value(config), Value(instruments));
  TVM_NODE_ARGS();
};

/*! \brief Options of the passes run in its scope. Scopes nest, per thread. */
class PassContext : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(PassContext, ObjectRef, PassContextNode);
  /*! \brief A context with default options. */
  TVM_DLL static PassContext Create();
  /*! \brief The innermost entered context of this thread, or the default one. */
  TVM_DLL static PassContext Current();
  /*! \brief Declare an option; values given for it are converted to T. */
  template <typename T>
  static bool RegisterConfigOption(const char* key) {
    return RegisterConfigOption(key, runtime::AnyTraits<T>::TypeName(),
                                [](const Any& value) { return Any(value.cast<T>()); });
  }
  TVM_DLL static bool RegisterConfigOption(const char* key, std::string type_name,
                                           Any (*convert)(const Any&));
  /*! \brief The value of an option in contexts made from now on that do not say, and in this one.
   */
  TVM_DLL static void SetDefault(const String& key, const Any& value);
  /*! \brief Names and types of the options there are. */
  TVM_DLL static Map<String, String> ListConfigs();
  /*!
   * \brief `config` with values converted to their declared types, and defaults that were set for
   * options it leaves out; ValueError for an unknown option (listing the known ones), TypeError for
   * a value of the wrong type.
   */
  TVM_DLL static Map<String, Any> CheckConfig(const Map<String, Any>& config);

  TVM_DLL void EnterWithScope() const;
  TVM_DLL void ExitWithScope() const;
};

class PassInfoNode : public Object {
 public:
  int opt_level = 0;
  String name;
  Array<String> required;
  TVM_DECLARE_NODE(PassInfoNode, Object, "transform.PassInfo", Value(opt_level), Value(name),
                   Default(required));
};
class PassInfo : public FromFields<ObjectRef, PassInfoNode> {
 public:
  TVM_DEFINE_NODE_REF(PassInfo, PassInfoNode);
};

class PassNode : public Object {
 public:
  virtual ~PassNode() = default;
  virtual PassInfo Info() const = 0;
  /*! \brief The work itself, without instruments. */
  virtual IRModule Run(IRModule mod, const PassContext& ctx) const = 0;
  TVM_DECLARE_ABSTRACT_NODE(PassNode, Object, "transform.Pass");
};

/*! \brief A function from module to module, with a name. */
class Pass : public ObjectRef {
 public:
  IRModule operator()(IRModule mod) const {
    return (*this)(std::move(mod), PassContext::Current());
  }
  /*! \brief Run in a context, with its instruments. The module given is not changed. */
  TVM_DLL IRModule operator()(IRModule mod, const PassContext& ctx) const;
  TVM_DEFINE_REF(Pass, ObjectRef, PassNode);
};

/*! \brief Passes in order; those the context disables or whose level is too high are left out. */
class SequentialNode : public PassNode {
 public:
  Array<Pass> passes;
  PassInfo pass_info;
  PassInfo Info() const override { return pass_info; }
  TVM_DLL IRModule Run(IRModule mod, const PassContext& ctx) const override;
  TVM_DECLARE_NODE(SequentialNode, PassNode, "transform.Sequential", Value(passes),
                   Value(pass_info));
};
class Sequential : public FromFields<Pass, SequentialNode> {
 public:
  explicit Sequential(Array<Pass> passes, String name = "sequential")
      : Sequential(std::move(passes), PassInfo(0, std::move(name))) {}
  TVM_DEFINE_NODE_REF(Sequential, SequentialNode);
};

/*! \brief A pass from a function over whole modules. */
TVM_DLL Pass CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)> func, int opt_level,
                              String name, Array<String> required = {});

/*! \brief A pass that prints the module to stderr under a heading and returns it unchanged. */
TVM_DLL Pass PrintIR(String header = "");

}  // namespace transform
}  // namespace tvm

/*! \brief TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_vectorize", bool); in a source file. */
#define TVM_REGISTER_PASS_CONFIG_OPTION(Key, Type)                          \
  [[maybe_unused]] static const bool TVM_CONCAT(tvm_config_, __COUNTER__) = \
      ::tvm::transform::PassContext::RegisterConfigOption<Type>(Key)

#endif  // TVM_IR_TRANSFORM_H_
