// Mistakes in a JSON text. A reader that takes a Mistakes goes on after each of them, so that whoever wrote the text
// hears of all of them at once.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

struct Mistake {
  std::string path;    // JSON path of the value, "ops[2].heads"; of one that is missing, where it would stand
  Status status;       // not ok; its sentence begins with the path
  bool named = false;  // the name is wrong, not the value behind it
};

class Mistakes {
 public:
  // The first ones are kept and reported; of any others only the number is.
  static constexpr size_t kReported = 20;

  void add(Mistake mistake);
  // Appends the mistakes of another reader.
  void add(Mistakes&& others);
  // Adds what failed; whether nothing did.
  bool check(const std::string& path, const Status& status);

  // A value of this path is missing only because another name stands for it, which is reported: it is not missed too.
  void expect_at(const std::string& path) { expected_.insert(path); }
  bool expects(const std::string& path) const { return expected_.contains(path); }
  void miss(const std::string& path, std::string_view allowed);

  // Whether any further one is only counted: its sentence need not be made.
  bool full() const { return kept_.size() >= kReported; }
  void count_one() { ++more_; }

  bool empty() const { return kept_.empty(); }
  size_t count() const { return kept_.size() + more_; }
  std::vector<Mistake>& kept() { return kept_; }

  // For those whom one sentence serves better. ok when there is none.
  Status first() const { return empty() ? Status() : kept_.front().status; }
  // kInvalidConfig with a line for each, then how many there are beyond the kept ones. ok when there is none.
  Status status() const;
  // The same in the order of the text, each line beginning with "origin:line:column: " of the value or name it is
  // about.
  Status status(std::string_view text, const std::string& origin) const;

 private:
  Status joined(std::vector<std::string> lines, const std::string& rest) const;

  std::vector<Mistake> kept_;
  size_t more_ = 0;
  std::set<std::string> expected_;
};

}  // namespace hstujit
