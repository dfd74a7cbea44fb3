#include <tvm/ir/transform.h>
#include <tvm/node/repr_printer.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace tvm {
namespace transform {

TVM_REGISTER_NODE(PassContextNode);
TVM_REGISTER_NODE(PassInfoNode);
TVM_REGISTER_NODE(PassNode);
TVM_REGISTER_NODE(SequentialNode);

namespace {

struct ConfigOption {
  std::string type_name;
  Any (*convert)(const Any&);
  /*! \brief What a context has that does not say; null for nothing. */
  Any otherwise;
};

struct ConfigTable {
  std::mutex mutex;
  std::map<std::string, ConfigOption> options;
  static ConfigTable& Global() {
    static auto* table = new ConfigTable();
    return *table;
  }
};

std::vector<PassContext>& ContextStack() {
  thread_local std::vector<PassContext> stack;
  return stack;
}

// Characters to insert, delete or replace to turn one text into the other.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/*! \brief Whether functions are looked at after each pass; the error names the pass. */
constexpr const char* kVerify = "ir.verify";

bool Contains(const Array<String>& names, const String& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool PassEnabled(const PassInfo& info, const PassContext& ctx) {
  if (Contains(ctx->disabled_pass, info->name)) return false;
  if (Contains(ctx->required_pass, info->name)) return true;
  return ctx->opt_level >= info->opt_level;
}

/*! \brief A pass whose body is a function from module and context to module. */
class ModulePassNode final : public PassNode {
 public:
  TypedPackedFunc<IRModule(IRModule, PassContext)> func;
  PassInfo pass_info;

  PassInfo Info() const override { return pass_info; }
  IRModule Run(IRModule mod, const PassContext& ctx) const override {
    IRModule out = func(std::move(mod), ctx);
    TVM_CHECK(out.defined(), TypeError)
        << "pass " << pass_info->name << " returned None; a pass returns an IRModule";
    return out;
  }
  // Not a node with fields: saved without its function it would be another pass.
  TVM_DECLARE_OBJECT(ModulePassNode, PassNode, "transform.ModulePass");
};

}  // namespace

PassContext PassContext::Create() {
  auto node = make_object<PassContextNode>();
  node->config = CheckConfig({});
  return PassContext(ObjectPtr<Object>(node));
}

PassContext PassContext::Current() {
  if (!ContextStack().empty()) return ContextStack().back();
  thread_local PassContext default_context = Create();
  return default_context;
}

void PassContext::SetDefault(const String& key, const Any& value) {
  Any converted = *CheckConfig({{key, value}}).Get(key);
  {
    ConfigTable& table = ConfigTable::Global();
    std::lock_guard lock(table.mutex);
    table.options[key].otherwise = converted;
  }
  Current()->config.Set(key, converted);
}

bool PassContext::RegisterConfigOption(const char* key, std::string type_name,
                                       Any (*convert)(const Any&)) {
  ConfigTable& table = ConfigTable::Global();
  std::lock_guard lock(table.mutex);
  // Every pass that reads an option may declare it, as long as they agree.
  auto [it, added] = table.options.try_emplace(key, ConfigOption{type_name, convert, Any()});
  ICHECK(added || it->second.type_name == type_name)
      << "the pass option \"" << key << "\" is declared as " << it->second.type_name << " and as "
      << type_name;
  return true;
}

Map<String, String> PassContext::ListConfigs() {
  ConfigTable& table = ConfigTable::Global();
  std::lock_guard lock(table.mutex);
  Map<String, String> out;
  for (const auto& [key, option] : table.options) out.Set(key, option.type_name);
  return out;
}

Map<String, Any> PassContext::CheckConfig(const Map<String, Any>& config) {
  Map<String, Any> out;
  ConfigTable& table = ConfigTable::Global();
  {
    std::lock_guard lock(table.mutex);
    for (const auto& [key, option] : table.options) {
      if (!option.otherwise.is_null()) out.Set(key, option.otherwise);
    }
  }
  for (const auto& [key, value] : config) {
    ConfigOption option;
    {
      std::lock_guard lock(table.mutex);
      auto it = table.options.find(key);
      if (it == table.options.end()) {
        std::ostringstream known;
        std::string nearest;
        size_t distance = std::max<size_t>(key.size() / 2, 2);
        for (const auto& item : table.options) {
          known << (known.tellp() > 0 ? ", " : "") << item.first;
          if (size_t d = EditDistance(key, item.first); d < distance) {
            distance = d;
            nearest = "; did you mean \"" + item.first + '"';
          }
        }
        TVM_FATAL(ValueError) << "PassContext: unknown option \"" << key << '"' << nearest
                              << "; the options are: " << known.str();
      }
      option = it->second;
    }
    try {
      out.Set(key, option.convert(value));
    } catch (const Error&) {
      TVM_FATAL(TypeError) << "PassContext: option \"" << key << "\": expected " << option.type_name
                           << ", got " << value.TypeName();
    }
  }
  return out;
}

namespace {

// Instruments that were entered are left again when a later one fails to enter; after a failure the
// context has no instruments, because their states no longer fit together.
void EnterInstruments(PassContextNode* ctx) {
  size_t entered = 0;
  try {
    for (const auto& instrument : ctx->instruments) {
      instrument->EnterPassContext();
      ++entered;
    }
  } catch (const Error&) {
    auto instruments = std::exchange(ctx->instruments, {});
    for (size_t i = 0; i < entered; ++i) instruments[i]->ExitPassContext();
    throw;
  }
}

void ExitInstruments(PassContextNode* ctx) {
  try {
    for (const auto& instrument : ctx->instruments) instrument->ExitPassContext();
  } catch (const Error&) {
    ctx->instruments = {};
    throw;
  }
}

}  // namespace

void PassContext::EnterWithScope() const {
  EnterInstruments(get());
  ContextStack().push_back(*this);
}

void PassContext::ExitWithScope() const {
  // Taken off first: an instrument that fails must not leave the context in place.
  ICHECK(!ContextStack().empty() && ContextStack().back().same_as(*this))
      << "PassContext scopes were left in another order than they were entered";
  ContextStack().pop_back();
  ExitInstruments(get());
}

TVM_REGISTER_PASS_CONFIG_OPTION(kVerify, bool);

namespace {

/*! \brief Asks the rooms above, which know what functions are, about a pass's input and output. */
void VerifyAfter(const PassInfo& info, const IRModule& before, const IRModule& after) {
  for (const char* room : {"tir", "relax"}) {
    const PackedFunc* verify = Registry::Get(std::string(room) + ".analysis.verify_after_pass");
    if (verify != nullptr) (*verify)(info->name, before, after);
  }
}

}  // namespace

IRModule Pass::operator()(IRModule mod, const PassContext& ctx) const {
  TVM_CHECK(defined(), ValueError) << "call of a pass that is None";
  PassInfo info = get()->Info();
  TVM_CHECK(mod.defined(), ValueError) << "pass " << info->name << ": the module is None";
  for (const auto& instrument : ctx->instruments) {
    if (!instrument->ShouldRun(mod, info)) return mod;
  }
  for (const auto& instrument : ctx->instruments) instrument->RunBeforePass(mod, info);
  IRModule out = get()->Run(mod, ctx);
  // What passes of a sequence left was looked at after each of them.
  if (ctx->GetConfig<bool>(kVerify, false) && !get()->IsInstance<SequentialNode>()) {
    VerifyAfter(info, mod, out);
  }
  for (const auto& instrument : ctx->instruments) instrument->RunAfterPass(out, info);
  return out;
}

IRModule SequentialNode::Run(IRModule mod, const PassContext& ctx) const {
  for (const Pass& pass : passes) {
    PassInfo info = pass->Info();
    if (!PassEnabled(info, ctx)) continue;
    for (const String& name : info->required) {
      const runtime::PackedFunc* make = Registry::Get("transform.pass." + name);
      TVM_CHECK(make != nullptr, ValueError)
          << "pass " << info->name << " requires pass \"" << name
          << "\", which is not registered as transform.pass." << name;
      mod = (*make)().cast<Pass>()(std::move(mod), ctx);
    }
    mod = pass(std::move(mod), ctx);
  }
  return mod;
}

Pass CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)> func, int opt_level,
                      String name, Array<String> required) {
  auto node = make_object<ModulePassNode>();
  node->func = std::move(func);
  node->pass_info = PassInfo(opt_level, std::move(name), std::move(required));
  return Pass(ObjectPtr<Object>(node));
}

Pass PrintIR(String header) {
  auto print = [header](IRModule mod, PassContext ctx) {
    LOG(INFO) << "PrintIR(" << header << ")\n" << mod;
    return mod;
  };
  return CreateModulePass(print, 0, "PrintIR");
}

TVM_REGISTER_GLOBAL("transform.Info").set_body_typed([](Pass pass) { return pass->Info(); });

TVM_REGISTER_GLOBAL("transform.RunPass").set_body_typed([](Pass pass, IRModule mod) {
  return pass(std::move(mod));
});

TVM_REGISTER_GLOBAL("transform.MakeModulePass")
    .set_body_typed([](TypedPackedFunc<IRModule(IRModule, PassContext)> func, PassInfo info) {
      return CreateModulePass(func, info->opt_level, info->name, info->required);
    });

TVM_REGISTER_GLOBAL("transform.Sequential").set_body_typed([](Array<Pass> passes, PassInfo info) {
  return Sequential(passes, info);
});

TVM_REGISTER_GLOBAL("transform.PrintIR").set_body_typed([](String header) {
  return PrintIR(header);
});

TVM_REGISTER_GLOBAL("transform.PassContext")
    .set_body_typed([](int opt_level, Array<String> required, Array<String> disabled,
                       Array<instrument::PassInstrument> instruments, Map<String, Any> config) {
      PassContext ctx = PassContext::Create();
      ctx->opt_level = opt_level;
      ctx->required_pass = required;
      ctx->disabled_pass = disabled;
      ctx->instruments = instruments;
      ctx->config = PassContext::CheckConfig(config);
      return ctx;
    });

TVM_REGISTER_GLOBAL("transform.EnterPassContext").set_body_typed([](PassContext ctx) {
  ctx.EnterWithScope();
});

TVM_REGISTER_GLOBAL("transform.ExitPassContext").set_body_typed([](PassContext ctx) {
  ctx.ExitWithScope();
});

TVM_REGISTER_GLOBAL("transform.GetCurrentPassContext").set_body_typed([]() {
  return PassContext::Current();
});

TVM_REGISTER_GLOBAL("transform.OverrideInstruments")
    .set_body_typed([](PassContext ctx, Array<instrument::PassInstrument> instruments) {
      ExitInstruments(ctx.get());
      ctx->instruments = instruments;
      EnterInstruments(ctx.get());
    });

TVM_REGISTER_GLOBAL("transform.SetDefaultConfig").set_body_typed(PassContext::SetDefault);

TVM_REGISTER_GLOBAL("transform.ListConfigs").set_body_typed([]() {
  return PassContext::ListConfigs();
});

}  // namespace transform
}  // namespace tvm
