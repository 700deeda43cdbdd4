#include "compiler/spec/mistakes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "compiler/spec/json_place.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

void Mistakes::add(Mistake mistake) {
  if (kept_.size() < kReported) {
    kept_.push_back(std::move(mistake));
  } else {
    ++more_;
  }
}

void Mistakes::add(Mistakes&& others) {
  for (Mistake& mistake : others.kept_) add(std::move(mistake));
  more_ += others.more_;
}

bool Mistakes::check(const std::string& path, const Status& status) {
  if (!status.ok()) add({path, status});
  return status.ok();
}

void Mistakes::miss(const std::string& path, std::string_view allowed) {
  if (expects(path)) return;
  add({path, Status(Code::kInvalidConfig, fmt::format("{} is missing; allowed: {}", path, allowed))});
}

namespace {

constexpr size_t kLongestNumber = 60;  // digits that a message shows

// The sentence with the number that stands at `byte` as it is written there: the value has lost the digits of one
// beyond the range of integers, and how it was written.
std::string with_number_as_written(std::string_view text, size_t byte, const Mistake& mistake) {
  const std::string& sentence = mistake.status.message();
  if (byte >= text.size() || (text[byte] != '-' && (text[byte] < '0' || text[byte] > '9'))) return sentence;
  const std::string_view number = text.substr(byte, text.find_first_not_of("0123456789+-.eE", byte) - byte);
  const Result<Json> value = parse_json(number);
  const std::string shown = mistake.path + " is " + (value.ok() ? brief_json(*value) : "");
  if (!value.ok() || !sentence.starts_with(shown)) return sentence;
  return fmt::format("{} is {}{}", mistake.path, printable(number, kLongestNumber), sentence.substr(shown.size()));
}

// The sentences with the fields of the first mistake.
Status with_fields(const Status& sentences, const Mistake& first) {
  ErrorFields fields = first.status.fields() == nullptr ? ErrorFields{} : *first.status.fields();
  fields.argument = first.path;
  return Status(sentences.code(), sentences.message(), std::move(fields));
}

}  // namespace

Status Mistakes::joined(std::vector<std::string> lines, const std::string& rest) const {
  if (empty()) return {};
  constexpr size_t kLongestLine = 2000;
  for (std::string& line : lines) line = printable(line, kLongestLine);  // a name of a file may hold anything
  if (more_ > 0) lines.push_back(rest + fmt::format("and {} more", more_));
  return Status(Code::kInvalidConfig, fmt::format("{}", fmt::join(lines, "\n")));
}

Status Mistakes::status() const {
  std::vector<std::string> lines;
  for (const Mistake& mistake : kept_) lines.push_back(mistake.status.message());
  return empty() ? Status() : with_fields(joined(std::move(lines), ""), kept_.front());
}

Status Mistakes::status(std::string_view text, const std::string& origin) const {
  std::set<std::string> paths;
  for (const Mistake& mistake : kept_) paths.insert(mistake.path);
  const JsonPlaces places(text, paths);
  std::vector<std::pair<size_t, const Mistake*>> sorted;
  for (const Mistake& mistake : kept_) {
    const JsonPlace place = places.of(mistake.path);
    sorted.emplace_back(mistake.named ? place.name : place.value, &mistake);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> lines;
  for (const auto& [byte, mistake] : sorted) {
    lines.push_back(
        fmt::format("{}:{}: {}", origin, line_and_column(text, byte), with_number_as_written(text, byte, *mistake)));
  }
  return empty() ? Status() : with_fields(joined(std::move(lines), origin + ": "), *sorted.front().second);
}

}  // namespace hstujit
