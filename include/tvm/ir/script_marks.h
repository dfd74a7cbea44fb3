/*!
 * \file tvm/ir/script_marks.h
 * \brief Finding the parts of a script that show given objects, to underline or annotate them.
 */
#ifndef TVM_IR_SCRIPT_MARKS_H_
#define TVM_IR_SCRIPT_MARKS_H_

#include <tvm/node/object_path.h>

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace tvm {

/*!
 * \brief What is looked for while this thread prints, from construction to destruction.
 *
 * A place in a graph is known by the objects on the way to it. Printers open a ScriptMark around
 * each object; the text of the last object of the way that has a text of its own is the one meant.
 * Marks are control characters in the text, so they survive its being moved and indented.
 */
class ScriptMarks {
 public:
  ScriptMarks();
  ~ScriptMarks();
  ScriptMarks(const ScriptMarks&) = delete;
  ScriptMarks& operator=(const ScriptMarks&) = delete;

  /*! \brief Look for a place in `root`; with a note it is annotated, otherwise underlined. */
  void Watch(const Any& root, const ObjectPath& place, std::optional<std::string> note);
  /*! \brief Look for an object wherever it is. */
  void Watch(const ObjectRef& object, std::optional<std::string> note);
  /*! \brief The text without marks, with lines of `^` below and notes behind the lines meant. */
  std::string Draw(const std::string& text) const;

 private:
  friend class ScriptMark;
  struct Entry {
    std::vector<ObjectRef> way;
    std::optional<std::string> note;
    /*! \brief Objects of the way that are being printed now. */
    size_t depth = 0;
    /*! \brief The most there were at a time. */
    size_t deepest = 0;
  };
  struct Mark {
    size_t entry;
    size_t depth;
  };
  std::vector<Entry> entries_;
  std::vector<Mark> marks_;
  ScriptMarks* outer_;
};

/*! \brief What is written to `os` in its lifetime is the text of `node`. */
class ScriptMark {
 public:
  ScriptMark(std::ostream& os, const Object* node);
  ~ScriptMark();
  ScriptMark(const ScriptMark&) = delete;
  ScriptMark& operator=(const ScriptMark&) = delete;

 private:
  std::ostream& os_;
  /*! \brief Marks that begin here, with the depth to go back to. */
  std::vector<std::pair<size_t, size_t>> open_;
};

}  // namespace tvm
#endif  // TVM_IR_SCRIPT_MARKS_H_
