/*!
 * \file tvm/ir/script_printer.h
 * \brief What the printers of all kinds of functions share when they write a script.
 */
#ifndef TVM_IR_SCRIPT_PRINTER_H_
#define TVM_IR_SCRIPT_PRINTER_H_

#include <tvm/ir/global_info.h>
#include <tvm/node/repr_printer.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tvm {

/*! \brief How a script is written. */
struct ScriptStyle {
  /*! \brief Whether short forms such as T.grid may stand for several lines. */
  bool sugar = true;
  /*! \brief Declare the variables that an expression names, in front of it. */
  bool verbose = false;
  /*! \brief Annotate every variable of a graph, or only those whose value does not say as much. */
  bool all_struct_info = true;
  /*! \brief Tell variables apart by their addresses. */
  bool addresses = false;
  /*!
   * \brief Expressions as keys of workloads have had them from the start: products without spaces,
   *        and literals of float32 and bool without their types.
   */
  bool compact = false;
  /*! \brief Name of the program, where it has none of its own. */
  std::string name;
  /*! \brief What a function calls its module; empty for the module's own name. */
  std::string module_alias = "cls";
  /*! \brief Types whose literals are plain numbers. */
  DataType int_dtype = DataType::Int(32), float_dtype = DataType::Void();
  /*! \brief Element type that buffers of parameters need not name. */
  DataType buffer_dtype = DataType::Float(32);
};

/*!
 * \brief The script being written on this thread.
 *
 * The printer of a module or function opens one; inside of an open one that only joins it.
 */
class ScriptScope {
 public:
  ScriptScope();
  ~ScriptScope();
  ScriptScope(const ScriptScope&) = delete;
  ScriptScope& operator=(const ScriptScope&) = delete;

  /*! \brief Name that the module has for the function printed next; empty outside of modules. */
  std::string& function_name() { return root_->function_name_; }
  /*! \brief What the module being printed says beside its functions. */
  Map<String, Array<GlobalInfo>>& global_infos() { return root_->global_infos_; }
  /*!
   * \brief A device as the scripts of graphs name it: kind of target, number and memory.
   *
   * The number is the device's among those of the module whose target is of the same kind, or its
   * own where no module with that device is being printed.
   */
  static std::string DeviceName(const VDevice& device);
  /*!
   * \brief A piece of global information as the scripts of graphs name it: the text "mesh[0]" where
   * it is the first of the module's list "mesh", its own text where no module with it is printed.
   */
  static std::string GlobalInfoName(const GlobalInfo& info);
  /*!
   * \brief Keep an object whose contents are no text in the script's metadata.
   * \return The expression that refers to it.
   */
  std::string Refer(const ObjectRef& object);
  /*! \brief Write a line about metadata that the text lacks, if this scope is the outermost. */
  void PrintFooter(std::ostream& os) const;
  /*! \brief Leave the footer away: the text will have the metadata. */
  void ShowMetadata() { root_->show_metadata_ = true; }
  /*! \brief Begin a script in a style. */
  void SetStyle(ScriptStyle style) {
    root_->style_ = std::move(style);
    root_->is_at_start_ = true;
  }
  /*! \brief Style of the script being written on this thread. */
  static const ScriptStyle& Style();
  /*! \brief Whether a script is being written on this thread. */
  static bool IsOpen();
  /*!
   * \brief Whether the part printed now is the whole script and shall declare its variables; only
   *        the first one to ask hears so.
   * \param always Whether it declares them in any style, as statements do.
   */
  static bool TakeWhole(bool always = false);
  /*! \brief What the module is called in front of names of its functions. */
  static std::string ModuleAlias();
  static std::string ModuleName();
  /*! \brief `hint`, with the object's address if the style wants that. */
  static std::string Addressed(const std::string& hint, const Object* object);
  /*! \brief Objects referred to so far, by type key. */
  const std::map<std::string, std::vector<ObjectRef>>& metadata() const { return root_->metadata_; }

 private:
  ScriptScope* root_;
  std::string function_name_;
  bool show_metadata_ = false;
  /*! \brief Whether nothing of a script with a style of its own has been printed so far. */
  bool is_at_start_ = false;
  Map<String, Array<GlobalInfo>> global_infos_;
  ScriptStyle style_;
  std::map<std::string, std::vector<ObjectRef>> metadata_;
};

/*! \brief `hint` with what Python does not allow in a name replaced. */
std::string PythonName(const std::string& hint);

/*! \brief Text as a Python literal. */
void PrintScriptText(std::ostream& os, const std::string& text);

/*!
 * \brief A value of an attribute, such that the same value can be read back.
 * \param objects Whether the value's container holds objects only, so that a plain number is a
 * literal of the tensor program; elsewhere plain numbers are plain and literals have their type.
 */
void PrintScriptValue(std::ostream& os, const Any& value, bool objects);

}  // namespace tvm
#endif  // TVM_IR_SCRIPT_PRINTER_H_
