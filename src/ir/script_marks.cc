/*!
 * \file src/ir/script_marks.cc
 * \brief Marks in texts under way, and what is drawn for them.
 */
#include <tvm/ir/script_marks.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace tvm {
namespace {

thread_local ScriptMarks* current_marks = nullptr;

// Texts in scripts are escaped, so these do not occur otherwise.
constexpr char kBegin = '\x01';
constexpr char kEnd = '\x03';
constexpr char kStop = '\x02';

/*! \brief Characters of a line from `begin` up to `end`. */
using Extent = std::pair<size_t, size_t>;

}  // namespace

ScriptMarks::ScriptMarks() : outer_(current_marks) { current_marks = this; }
ScriptMarks::~ScriptMarks() { current_marks = outer_; }

void ScriptMarks::Watch(const Any& root, const ObjectPath& place, std::optional<std::string> note) {
  Entry entry;
  entry.note = std::move(note);
  Any at = root;
  for (int length = 1; length <= place->length; ++length) {
    if (length != 1) at = place.Prefix(length)->Step(at);
    if (at.is_object()) entry.way.push_back(at.cast<ObjectRef>());
  }
  entries_.push_back(std::move(entry));
}

void ScriptMarks::Watch(const ObjectRef& object, std::optional<std::string> note) {
  entries_.push_back(Entry{{object}, std::move(note), 0, 0});
}

ScriptMark::ScriptMark(std::ostream& os, const Object* node) : os_(os) {
  if (current_marks == nullptr) return;
  for (size_t i = 0; i < current_marks->entries_.size(); ++i) {
    ScriptMarks::Entry& entry = current_marks->entries_[i];
    // The last one first: an object on the way may stand there twice.
    for (size_t next = entry.way.size(); next > entry.depth; --next) {
      if (entry.way[next - 1].get() != node) continue;
      const size_t mark = current_marks->marks_.size();
      current_marks->marks_.push_back({i, next});
      open_.emplace_back(mark, entry.depth);
      entry.depth = next;
      entry.deepest = std::max(entry.deepest, next);
      os_ << kBegin << mark << kStop;
      break;
    }
  }
}

ScriptMark::~ScriptMark() {
  for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
    os_ << kEnd << it->first << kStop;
    current_marks->entries_[current_marks->marks_[it->first].entry].depth = it->second;
  }
}

std::string ScriptMarks::Draw(const std::string& text) const {
  std::string plain;
  std::map<size_t, Extent> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kBegin && text[i] != kEnd) {
      plain += text[i];
      continue;
    }
    const bool begins = text[i] == kBegin;
    const size_t stop = text.find(kStop, i);
    Extent& extent = found[std::stoul(text.substr(i + 1, stop - i - 1))];
    (begins ? extent.first : extent.second) = plain.size();
    i = stop;
  }
  std::string drawn;
  for (size_t begin = 0; begin <= plain.size();) {
    const size_t end = std::min(plain.find('\n', begin), plain.size());
    std::string_view line(plain.data() + begin, end - begin);
    std::string below(line.size(), ' ');
    std::string notes;
    for (const auto& [mark, extent] : found) {
      const Entry& entry = entries_[marks_[mark].entry];
      if (marks_[mark].depth != entry.deepest) continue;
      const size_t from = std::max(extent.first, begin), to = std::min(extent.second, end);
      if (entry.note) {
        if (extent.first >= begin && extent.first <= end) notes += "  # " + *entry.note;
        continue;
      }
      if (from >= to) continue;
      // The margin belongs to the lines around.
      const size_t margin = std::min(line.find_first_not_of(' '), line.size());
      for (size_t i = std::max(from - begin, margin); i < to - begin; ++i) below[i] = '^';
    }
    drawn.append(line).append(notes);
    if (size_t last = below.find_last_of('^'); last != std::string::npos) {
      drawn += "\n" + below.substr(0, last + 1);
    }
    if (end == plain.size()) break;
    drawn += '\n';
    begin = end + 1;
  }
  return drawn;
}

}  // namespace tvm
