#include "compiler/support/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

// The table of rows [wrong, names, meant], to which the Python package is held, too.
TEST(Suggest, FindsWhatIsMeant) {
  const auto text = whole_file(source_path("/tests/support/suggestions.json"));
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto table = nlohmann::json::parse(*text);
  for (const auto& [group, rows] : table.items()) {
    for (const auto& row : rows) {
      const auto names = row[1].get<std::vector<std::string>>();
      const std::string wrong = row[0];
      EXPECT_EQ(closest(wrong, {names.begin(), names.end()}), row[2].get<std::string>()) << group << ": " << wrong;
    }
  }
}

TEST(Suggest, ANameOfAMegabyteIsNone) { EXPECT_EQ(closest(std::string(1 << 20, '_'), {"hidden_dim", "op"}), ""); }

TEST(Suggest, TheEndOfASentence) {
  EXPECT_EQ(did_you_mean("heads"), ", did you mean \"heads\"?");
  EXPECT_EQ(did_you_mean(std::vector<std::string_view>{"attn_dim", "hidden_dim"}),
            ", did you mean \"attn_dim\" and \"hidden_dim\"?");
  EXPECT_EQ(did_you_mean(""), "");
  EXPECT_EQ(did_you_mean(std::vector<std::string_view>()), "");
}

}  // namespace
}  // namespace hstujit
