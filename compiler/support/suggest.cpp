#include "compiler/support/suggest.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr size_t kLeastBegun = 4;        // letters of a name; of fewer many names go on
constexpr size_t kLongestOfWords = 200;  // letters of a name whose words are compared; a longer one is no name

char folded(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

// Number of single-character insertions, removals, replacements and swaps of neighbours that make `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = row[j - 1] + (folded(a[i - 1]) != folded(b[j - 1]));
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

// Mistakes that a name of so many letters may have: of a short one, more make another word.
size_t mistakes_of(size_t letters) {
  constexpr size_t kShort = 4;
  return letters <= kShort ? 1 : std::max<size_t>(2, letters / 3);
}

// The parts of a name between its dashes.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (folded(c) == '_') {
      words.emplace_back();
    } else {
      words.back() += folded(c);
    }
  }
  return words;
}

// "dim" and "dimension".
bool is_shortened(const std::string& a, const std::string& b) {
  constexpr size_t kLeastOfWord = 3;
  return std::min(a.size(), b.size()) >= kLeastOfWord && (a.starts_with(b) || b.starts_with(a));
}

// Whether the words of two names are the same ones in order, some written out in one and not in the other. Of four and
// more, one may be another word.
bool have_same_words(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  constexpr size_t kMany = 4;
  if (a.size() != b.size() || a.size() < 2) return false;
  size_t others = 0;
  for (size_t i = 0; i < a.size(); ++i) others += a[i] != b[i] && !is_shortened(a[i], b[i]) ? 1 : 0;
  return others == 0 || (others == 1 && a.size() >= kMany);
}

// How many words a name has besides those of another one, which stand in it in their order; none where they do not.
std::optional<size_t> left_out(const std::vector<std::string>& words, const std::vector<std::string>& name) {
  size_t found = 0;
  for (const std::string& word : name) found += found < words.size() && word == words[found] ? 1 : 0;
  if (found < words.size()) return std::nullopt;
  return name.size() - words.size();
}

}  // namespace

std::string_view closest(std::string_view wrong, const std::vector<std::string_view>& names) {
  const auto alike = [](char a, char b) { return folded(a) == folded(b); };
  const auto written_otherwise = std::find_if(names.begin(), names.end(), [&](std::string_view name) {
    return std::equal(wrong.begin(), wrong.end(), name.begin(), name.end(), alike);
  });
  if (written_otherwise != names.end()) return *written_otherwise;
  std::string_view best;
  // One that was begun: the shortest of those that go on with more.
  for (const std::string_view name : names) {
    const bool begun = wrong.size() >= kLeastBegun && wrong.size() < name.size() &&
                       std::equal(wrong.begin(), wrong.end(), name.begin(), alike);
    if (begun && (best.empty() || name.size() < best.size())) best = name;
  }
  if (!best.empty()) return best;
  size_t bound = mistakes_of(wrong.size()) + 1;
  for (const std::string_view name : names) {
    // No less than the difference in length: a name of a megabyte is compared with none.
    if (std::max(name.size(), wrong.size()) - std::min(name.size(), wrong.size()) >= bound) continue;
    const size_t distance = edit_distance(wrong, name);
    if (distance < bound && distance < name.size()) {
      best = name;
      bound = distance;
    }
  }
  if (!best.empty() || wrong.size() > kLongestOfWords) return best;
  const std::vector<std::string> words = words_of(wrong);
  const auto same = std::find_if(names.begin(), names.end(),
                                 [&](std::string_view name) { return have_same_words(words, words_of(name)); });
  if (same != names.end()) return *same;
  if (wrong.size() < kLeastBegun) return best;
  std::optional<size_t> fewest;
  for (const std::string_view name : names) {
    const std::optional<size_t> more = left_out(words, words_of(name));
    if (!more || (fewest && *more >= *fewest)) continue;
    fewest = more;
    best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view name) {
  return name.empty() ? std::string() : did_you_mean(std::vector<std::string_view>{name});
}

std::string did_you_mean(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? ", did you mean " : " and ") + quote(name);
  return text.empty() ? text : text + "?";
}

}  // namespace hstujit
