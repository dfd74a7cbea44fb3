/*!
 * \file module_tree.cc
 * \brief A module and its imports as bytes, the form in which they travel inside a library.
 */
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <functional>

#include "runtime/module_loader.h"

namespace tvm {
namespace runtime {
namespace {

constexpr std::string_view kModuleTreeMagic = "TVMMOD01";
/*! \brief Stands for all modules whose code is linked into the library. */
constexpr const char* kLibraryEntry = "";

/*! \brief One entry of the saved list; imports are positions in it. */
struct Entry {
  std::string type_key;
  std::string bytes;
  std::vector<int64_t> imports;
};

class TreeWriter {
 public:
  std::string Write(const Module& root) {
    Visit(root.get());
    CheckAcyclic();
    ByteWriter writer;
    writer.Raw(kModuleTreeMagic.data(), kModuleTreeMagic.size());
    writer.Word(static_cast<int64_t>(entries_.size()));
    for (const Entry& entry : entries_) {
      writer.Text(entry.type_key);
      writer.Text(entry.bytes);
      writer.Words(entry.imports);
    }
    return std::move(writer.bytes);
  }

 private:
  int64_t Visit(ModuleNode* module) {
    auto [known, is_new] = positions_.emplace(module, 0);
    if (!is_new) return known->second;
    const bool linked = module->IsDSOExportable();
    // The linker merges all modules with object code into one, imports included.
    const int64_t position = linked && library_ >= 0 ? library_ : NewEntry(module, linked);
    positions_[module] = position;
    for (const Module& import : module->imports()) {
      const int64_t target = Visit(import.get());
      if (target != position) entries_[static_cast<size_t>(position)].imports.push_back(target);
    }
    return position;
  }
  int64_t NewEntry(ModuleNode* module, bool linked) {
    const auto position = static_cast<int64_t>(entries_.size());
    entries_.emplace_back();
    if (linked) {
      library_ = position;
      entries_.back().type_key = kLibraryEntry;
    } else {
      ByteWriter writer;
      module->SaveToBinary(&writer);
      entries_.back().type_key = module->type_key();
      entries_.back().bytes = std::move(writer.bytes);
    }
    return position;
  }

  // Merging what is linked can close a circle: a network imported by one kernel's module brings
  // its own kernels.
  void CheckAcyclic() const {
    std::vector<char> state(entries_.size(), 0);
    std::function<void(size_t)> visit = [&](size_t at) {
      state[at] = 1;
      for (int64_t import : entries_[at].imports) {
        const auto next = static_cast<size_t>(import);
        TVM_CHECK(state[next] != 1, ValueError)
            << "export_library: a module of kind \"" << entries_[at].type_key
            << "\" is imported by compiled code and imports compiled code, which one library "
            << "cannot hold; export it as a library of its own";
        if (state[next] == 0) visit(next);
      }
      state[at] = 2;
    };
    visit(0);
  }

  std::vector<Entry> entries_;
  std::unordered_map<const ModuleNode*, int64_t> positions_;
  int64_t library_ = -1;
};

Module LoadEntry(const Entry& entry, const Module& library) {
  if (entry.type_key == kLibraryEntry) return library;
  constexpr const char* kPrefix = "runtime.module.loadbinary_";
  const PackedFunc* loader = FindModuleLoader(kPrefix, entry.type_key);
  TVM_CHECK(loader != nullptr, ValueError)
      << "load_module: the library holds a module of kind \"" << entry.type_key
      << "\", but nothing here can load it; register a function \"" << kPrefix << entry.type_key
      << "\" that takes its bytes, or put libtvm_" << entry.type_key
      << ".so, if there is one, beside libtvm_runtime.so";
  return (*loader)(String(entry.bytes)).cast<Module>();
}

}  // namespace

void ModuleNode::SaveToBinary(ByteWriter* writer) {
  TVM_FATAL(ValueError) << "Module: a module of kind \"" << type_key()
                        << "\" cannot be saved inside a library";
}

std::string SerializeModuleTree(const Module& root) {
  TVM_CHECK(root.defined(), ValueError) << "Module: got None";
  return TreeWriter().Write(root);
}

Module DeserializeModuleTree(std::string_view bytes, const Module& library) {
  ByteReader reader("load_module", bytes);
  reader.Expect(kModuleTreeMagic);
  std::vector<Entry> entries(reader.Count(3 * sizeof(int64_t)));
  const auto count = static_cast<int64_t>(entries.size());
  TVM_CHECK(count > 0, ValueError) << "load_module: the library lists no modules";
  std::vector<Module> modules;
  for (Entry& entry : entries) {
    entry.type_key = reader.Text();
    entry.bytes = reader.Text();
    entry.imports = reader.Words();
    modules.push_back(LoadEntry(entry, library));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    for (int64_t import : entries[i].imports) {
      TVM_CHECK(import >= 0 && import < count, ValueError)
          << "load_module: a module imports number " << import << " of " << count
          << "; the file is damaged, export it again";
      modules[i].Import(modules[static_cast<size_t>(import)]);
    }
  }
  return modules[0];
}

}  // namespace runtime
}  // namespace tvm
