// Conditions as text: what is read, what is refused and where, and that texts are printed as they are read.
#include "compiler/expression/parse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "compiler/expression/evaluate.h"
#include "compiler/expression/magnitude.h"

namespace hstujit {
namespace {

constexpr ExpressionName kNames[] = {{"row", "row"}, {"col", "column"}, {"n", "n"}};

int64_t value_of(std::string_view text, int64_t row, int64_t col, int64_t n = 100) {
  const Result<Expression> expression = parse_condition(text, kNames);
  EXPECT_TRUE(expression.ok()) << text << ": " << expression.status().message();
  if (!expression.ok()) return -1;
  const int64_t values[] = {row, col, n};
  return ExpressionEvaluator(*expression).at(values);
}

std::string refusal_of(std::string_view text) {
  const Result<Expression> expression = parse_condition(text, kNames);
  EXPECT_FALSE(expression.ok()) << text;
  EXPECT_EQ(expression.status().code(), Code::kInvalidConfig);
  return expression.status().message();
}

TEST(Parse, ReadsConditions) {
  EXPECT_EQ(value_of("col <= row", 3, 3), 1);
  EXPECT_EQ(value_of("col <= row", 3, 4), 0);
  EXPECT_EQ(value_of("col<=row and(row-col<4 or col<2)", 9, 1), 1);
  EXPECT_EQ(value_of("col <= row and row - col < 4 or col < 2", 9, 5), 0);
  EXPECT_EQ(value_of("not col <= row", 3, 4), 1);
  EXPECT_EQ(value_of("0 <= row - col < 4", 9, 6), 1);
  EXPECT_EQ(value_of("0 <= row - col < 4", 9, 5), 0);
  EXPECT_EQ(value_of("row != col", 9, 9), 0);
  EXPECT_EQ(value_of("where(row < 5, col < 5, col == row)", 9, 9), 1);
  EXPECT_EQ(value_of("col < where(row < 5, 5, n)", 9, 99), 1);
  EXPECT_EQ(value_of("abs(row - col) <= max(2, 3, 1) and min(row, col) >= 0", 4, 7), 1);
  EXPECT_EQ(value_of("clamp(col, 2, 6) == 6", 0, 9), 1);
  EXPECT_EQ(value_of("true", 0, 0), 1);
  EXPECT_EQ(value_of("False or n == 100", 0, 0), 1);
}

// As Python has them: * and // before + and -, from left to right; // rounds down, % is what it leaves.
TEST(Parse, OperatorsBindAsInPython) {
  EXPECT_EQ(value_of("1 + 2 * 3 - 4 == 3", 0, 0), 1);
  EXPECT_EQ(value_of("10 - 2 - 3 == 5", 0, 0), 1);
  EXPECT_EQ(value_of("-row // 4 == -3", 9, 0), 1);
  EXPECT_EQ(value_of("-row % 4 == 3", 9, 0), 1);
  EXPECT_EQ(value_of("row % 4 * 2 == 2", 9, 0), 1);
  EXPECT_EQ(value_of("- - row == 9", 9, 0), 1);
  EXPECT_EQ(value_of("-2 * -3 == 6", 0, 0), 1);
}

TEST(Parse, AMistakeHasItsColumn) {
  EXPECT_EQ(refusal_of("col <= rwo"),
            "column 8: there is no \"rwo\", did you mean \"row\"?; numbers are row, col, n, functions abs, clamp, max, "
            "min, where");
  EXPECT_EQ(refusal_of("col <= "), "column 8: the expression ends; expected: a number, a name or \"(\"");
  EXPECT_EQ(refusal_of("(col <= row"), "column 12: the expression ends; expected: \")\"");
  EXPECT_EQ(refusal_of("col <= row)"), "column 11: there is \")\"; expected: an operator or the end");
  EXPECT_EQ(refusal_of("col <= row && n"), "column 12: there is \"&\"; expected: an operator or the end");
  EXPECT_EQ(refusal_of("row and col <= 3"), "column 1: \"and\" is of conditions, and this is a number");
  EXPECT_EQ(refusal_of("3 + (col < 4) < 5"), "column 5: \"+\" is of numbers, and this is a condition");
  EXPECT_EQ(refusal_of("row - col"), "column 1: the expression is a number; allowed: a condition, such as col <= row");
  EXPECT_EQ(refusal_of("row * col < 3"),
            "column 5: a mask is solved for its rows and columns; allowed: a product with a number, such as 2 * row");
  EXPECT_EQ(refusal_of("row // col < 3"), "column 8: the divisor after // must be a number from 1, as in row // 64");
  EXPECT_EQ(refusal_of("row % 0 < 3"), "column 7: the divisor after % must be a number from 1, as in row % 64");
  EXPECT_EQ(refusal_of("row / 2 < 3"), "column 5: a mask has integers alone; allowed: //, which rounds down");
  EXPECT_EQ(refusal_of("row < 2147483648"), "column 7: 2147483648 is too large; allowed: up to 2147483647");
  EXPECT_EQ(refusal_of("row < 3.5"), "column 8: there is \".\"; expected: an operator or the end");
  EXPECT_EQ(refusal_of("row < 3x"), "column 7: \"3x\" is no integer");
  EXPECT_EQ(refusal_of("abs(row, col) < 3"), "column 1: abs has 2 arguments; allowed: abs(a)");
  EXPECT_EQ(refusal_of("max(row) < 3"), "column 1: max has 1 arguments; allowed: max(a, b), or more");
  EXPECT_EQ(refusal_of("where(row < 3, col, col < 3)"),
            "column 21: where chooses between two numbers or two conditions, and these are one of each");
  EXPECT_EQ(refusal_of("row < \xc3\xa9"), "column 7: there is a byte 195; expected: a number, a name or \"(\"");
  EXPECT_EQ(refusal_of(""), "column 1: the expression ends; expected: a number, a name or \"(\"");
}

TEST(Parse, SizeAndDepthAreBounded) {
  const auto repeated = [](std::string_view text, size_t times) {
    std::string result;
    for (size_t i = 0; i < times; ++i) result += text;
    return result;
  };
  EXPECT_EQ(refusal_of(repeated(" ", 4097)), "it has 4097 bytes; allowed: up to 4096");
  for (const std::string_view opens : {"(", "not ", "-", "abs(", "where(true,"}) {
    EXPECT_NE(refusal_of(repeated(opens, 300)).find("more than 64 parts are within one another"), std::string::npos);
  }
  EXPECT_NE(refusal_of("0 < row" + repeated("+1", 600)).find("it has too many parts; allowed: up to 512"),
            std::string::npos);
  // The canonical text has min of min, and min of max of each clamp.
  const std::string_view with_two = "column 1: with max, min and clamp as functions of two numbers, more than 64 parts";
  std::string clamped = "row";
  for (int i = 0; i < 20; ++i) clamped = "clamp(" + clamped + ", 0, 9)";
  for (const std::string& text :
       {"min(row" + repeated(", col", 33) + ")", "max(row" + repeated(", n", 80) + ")", clamped})
    EXPECT_THAT(refusal_of(text + " < 3"), testing::StartsWith(with_two));
  EXPECT_TRUE(parse_condition("min(row" + repeated(", col", 20) + ") < 3", kNames).ok());
  // Each chain has what stands in its midst twice.
  std::string nested = "row";
  for (int i = 0; i < 15; ++i) nested = "where(0 < " + nested + " < 9, 1, 2)";
  EXPECT_NE(refusal_of(nested + " < 3").find("those in the midst of a < b < c count twice"), std::string::npos);
}

// A condition of random operators as text, and what it says of a pair, computed beside it.
class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_(seed) {}

  struct Number {
    std::string text;
    std::function<int64_t(int64_t, int64_t)> value;
  };
  struct Condition {
    std::string text;
    std::function<bool(int64_t, int64_t)> value;
  };

  Number number(int depth) {
    switch (pick(depth > 0 ? 9 : 3)) {
      case 0:
        return {"row", [](int64_t row, int64_t) { return row; }};
      case 1:
        return {"col", [](int64_t, int64_t col) { return col; }};
      case 2: {
        const auto literal = static_cast<int64_t>(pick(20));
        return {fmt::format("{}", literal), [=](int64_t, int64_t) { return literal; }};
      }
      case 3:
        return infix("+", number(depth - 1), number(depth - 1), [](int64_t a, int64_t b) { return a + b; });
      case 4:
        return infix("-", number(depth - 1), number(depth - 1), [](int64_t a, int64_t b) { return a - b; });
      case 5: {
        const auto factor = static_cast<int64_t>(pick(4));
        const Number a = number(depth - 1);
        return {fmt::format("{} * ({})", factor, a.text),
                [=](int64_t row, int64_t col) { return factor * a.value(row, col); }};
      }
      case 6: {
        const auto divisor = static_cast<int64_t>(1 + pick(5));
        const Number a = number(depth - 1);
        const bool rest = pick(2) == 0;
        return {fmt::format("({}) {} {}", a.text, rest ? "%" : "//", divisor), [=](int64_t row, int64_t col) {
                  int64_t left = a.value(row, col) % divisor;
                  if (left < 0) left += divisor;
                  return rest ? left : (a.value(row, col) - left) / divisor;
                }};
      }
      case 7: {
        const Number a = number(depth - 1), b = number(depth - 1);
        const bool most = pick(2) == 0;
        return {fmt::format("{}({}, {})", most ? "max" : "min", a.text, b.text), [=](int64_t row, int64_t col) {
                  const int64_t x = a.value(row, col), y = b.value(row, col);
                  return most ? std::max(x, y) : std::min(x, y);
                }};
      }
      default: {
        const Condition c = condition(depth - 1);
        const Number a = number(depth - 1), b = number(depth - 1);
        return {fmt::format("where({}, {}, abs({}))", c.text, a.text, b.text), [=](int64_t row, int64_t col) {
                  return c.value(row, col) ? a.value(row, col) : std::abs(b.value(row, col));
                }};
      }
    }
  }

  Condition condition(int depth) {
    switch (pick(depth > 0 ? 5 : 1)) {
      case 0: {
        const Number a = number(depth - 1), b = number(depth - 1);
        static constexpr std::string_view kSigns[] = {"<", "<=", ">", ">=", "==", "!="};
        const size_t sign = pick(6);
        return {fmt::format("{} {} {}", a.text, kSigns[sign], b.text), [=](int64_t row, int64_t col) {
                  const int64_t x = a.value(row, col), y = b.value(row, col);
                  const bool holds[] = {x<y, x <= y, x> y, x >= y, x == y, x != y};
                  return holds[sign];
                }};
      }
      case 1: {
        const Condition a = condition(depth - 1), b = condition(depth - 1);
        return {fmt::format("({}) and ({})", a.text, b.text),
                [=](int64_t row, int64_t col) { return a.value(row, col) && b.value(row, col); }};
      }
      case 2: {
        const Condition a = condition(depth - 1), b = condition(depth - 1);
        return {fmt::format("({}) or ({})", a.text, b.text),
                [=](int64_t row, int64_t col) { return a.value(row, col) || b.value(row, col); }};
      }
      case 3: {
        const Condition a = condition(depth - 1);
        return {fmt::format("not ({})", a.text), [=](int64_t row, int64_t col) { return !a.value(row, col); }};
      }
      default: {
        const Condition a = condition(depth - 1), b = condition(depth - 1), c = condition(depth - 1);
        return {fmt::format("where({}, {}, {})", a.text, b.text, c.text),
                [=](int64_t row, int64_t col) { return a.value(row, col) ? b.value(row, col) : c.value(row, col); }};
      }
    }
  }

 private:
  size_t pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  static Number infix(std::string_view sign, const Number& a, const Number& b, int64_t (*of)(int64_t, int64_t)) {
    return {fmt::format("({}) {} ({})", a.text, sign, b.text),
            [=](int64_t row, int64_t col) { return of(a.value(row, col), b.value(row, col)); }};
  }

  std::mt19937_64 random_;
};

TEST(Parse, RandomTextsMeanWhatTheySay) {
  int read = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomText::Condition condition = RandomText(seed).condition(4);
    const Result<Expression> expression = parse_condition(condition.text, kNames);
    if (!expression.ok()) {
      EXPECT_NE(expression.status().message().find("allowed: up to"), std::string::npos) << condition.text;
      continue;
    }
    ++read;
    const std::string printed = to_text(*expression, kNames);
    const Result<Expression> again = parse_condition(printed, kNames);
    ASSERT_TRUE(again.ok()) << printed;
    ASSERT_EQ(to_text(*again, kNames), printed) << condition.text;
    ExpressionEvaluator first(*expression), second(*again);
    for (const auto& [row, col] : {std::pair<int64_t, int64_t>(0, 0), {7, 3}, {3, 7}, {18, 19}, {64, 1}}) {
      const int64_t values[] = {row, col, 100};
      ASSERT_EQ(first.at(values), condition.value(row, col)) << condition.text;
      ASSERT_EQ(second.at(values), condition.value(row, col)) << printed;
    }
  }
  EXPECT_GT(read, 1800);
}

TEST(Magnitude, BoundsValuesAndWhatFollowsFromThem) {
  const auto largest = [](std::string_view text) {
    const Interval values[] = {{0, 1000}, {0, 1000}, {0, 1000}};
    return largest_magnitude(parse_condition(text, kNames).value(), values);
  };
  EXPECT_EQ(largest("col <= row"), 1000);
  EXPECT_EQ(largest("row - col < 256"), 2000);
  EXPECT_EQ(largest("row // 64 == col // 64"), 64000);
  EXPECT_EQ(largest("3 * row < col"), 3000);
  EXPECT_GT(largest("row * 2000000000 * 2000000000 * 2000000000 < col"), int64_t{1} << 60);
}

}  // namespace
}  // namespace hstujit
