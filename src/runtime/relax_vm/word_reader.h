/*!
 * \file word_reader.h
 * \brief Takes words off an encoded function, refusing to read past its end.
 */
#ifndef TVM_RUNTIME_RELAX_VM_WORD_READER_H_
#define TVM_RUNTIME_RELAX_VM_WORD_READER_H_

#include <tvm/runtime/logging.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

class WordReader {
 public:
  /*! \brief Both must outlive the reader. */
  WordReader(const std::string& name, const std::vector<int64_t>& words)
      : name_(name), words_(words) {}

  int64_t Next() {
    TVM_CHECK(position_ < words_.size(), ValueError)
        << "relax executable: the program of '" << name_ << "' ends after " << words_.size()
        << " words; the file is damaged, export it again";
    return words_[position_++];
  }
  int64_t NextBelow(int64_t low, int64_t limit, const char* what) {
    const int64_t value = Next();
    TVM_CHECK(value >= low && value < limit, ValueError)
        << "relax executable: the program of '" << name_ << "' names " << what << " " << value
        << " of " << limit << "; the file is damaged, export it again";
    return value;
  }
  /*! \brief A number of items of which each takes at least a word. */
  int64_t NextCount() {
    return NextBelow(0, static_cast<int64_t>(words_.size()), "a list of length");
  }
  std::vector<int64_t> NextList() {
    std::vector<int64_t> items;
    for (int64_t left = NextCount(); left > 0; --left) items.push_back(Next());
    return items;
  }
  std::vector<int64_t> NextTensors(int64_t count) {
    std::vector<int64_t> items = NextList();
    for (int64_t item : items) {
      TVM_CHECK(item >= 0 && item < count, ValueError)
          << "relax executable: the program of '" << name_ << "' names tensor " << item << " of "
          << count << "; the file is damaged, export it again";
    }
    return items;
  }

 private:
  const std::string& name_;
  const std::vector<int64_t>& words_;
  size_t position_ = 0;
};

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_RELAX_VM_WORD_READER_H_
