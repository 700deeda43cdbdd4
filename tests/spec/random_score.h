// Scores of random operators and functions as text, and what they are worth, computed beside the text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>

namespace hstujit::test {

struct ScorePoint {
  double x = 0;
  int64_t row = 0, col = 0, n = 0, targets = 0, head = 0;
  double alpha = 1;
  // An element of an operand, at an index of the text.
  std::function<double(std::string_view operand, int64_t index)> read = {};
};

// Operands that a text reads: integers, tables with and without heads, and one element for each row, head or call.
inline constexpr std::string_view kRandomOperands =
    "ts: row(int64), a: row(grad), age: table(37, grad), w: table(12, heads, grad), slope: head(grad), gain: "
    "scalar(grad), own: sequence(grad), rel: pair(grad)";

// Numbers stay moderate where positions are below a few hundred, and what is rounded down is far from an integer.
class RandomScore {
 public:
  using Value = std::function<double(const ScorePoint&)>;
  struct Part {
    std::string text;
    Value value;
  };

  explicit RandomScore(uint64_t seed, bool with_bends = true, bool with_operands = false)
      : random_(seed), bends_(with_bends), operands_(with_operands) {}

  Part real(int depth) {
    if (depth <= 0 || pick(5) == 0) return leaf(depth);
    switch (pick(bends_ ? 10 : 7)) {
      case 0:
        return infix("+", real(depth - 1), real(depth - 1), [](double a, double b) { return a + b; });
      case 1:
        return infix("-", real(depth - 1), real(depth - 1), [](double a, double b) { return a - b; });
      case 2: {
        const Part a = real(depth - 1), b = real(depth - 1);
        return {fmt::format("({}) * tanh({})", a.text, b.text),
                [=](const ScorePoint& p) { return a.value(p) * std::tanh(b.value(p)); }};
      }
      case 3: {
        const Part a = real(depth - 1), b = real(depth - 1);
        return {fmt::format("({}) / (1.5 + abs({}))", a.text, b.text),
                [=](const ScorePoint& p) { return a.value(p) / (1.5 + std::abs(b.value(p))); }};
      }
      case 4:
      case 5:
        return smooth(real(depth - 1));
      case 6: {
        const Part c = condition(depth - 1), a = real(depth - 1), b = real(depth - 1);
        return {fmt::format("where({}, {}, -({}))", c.text, a.text, b.text),
                [=](const ScorePoint& p) { return c.value(p) != 0 ? a.value(p) : -b.value(p); }};
      }
      case 7: {
        const Part a = real(depth - 1), b = real(depth - 1);
        const bool most = pick(2) == 0;
        return {fmt::format("{}({}, {})", most ? "max" : "min", a.text, b.text), [=](const ScorePoint& p) {
                  return most ? std::max(a.value(p), b.value(p)) : std::min(a.value(p), b.value(p));
                }};
      }
      default:
        return bent(real(depth - 1));
    }
  }

  Part integer(int depth) {
    switch (pick(depth > 0 ? 10 : 6)) {
      case 0:
        return {"row", [](const ScorePoint& p) { return static_cast<double>(p.row); }};
      case 1:
        return {"col", [](const ScorePoint& p) { return static_cast<double>(p.col); }};
      case 2:
        return {"n", [](const ScorePoint& p) { return static_cast<double>(p.n); }};
      case 3:
        return {"targets", [](const ScorePoint& p) { return static_cast<double>(p.targets); }};
      case 4:
        return {"head", [](const ScorePoint& p) { return static_cast<double>(p.head); }};
      case 5: {
        const auto literal = static_cast<double>(pick(20));
        return {fmt::format("{}", literal), [=](const ScorePoint&) { return literal; }};
      }
      case 6:
        return infix(pick(2) == 0 ? "-" : "+", integer(depth - 1), integer(depth - 1));
      case 7: {
        const auto divisor = static_cast<double>(2 + pick(7));
        const bool rest = pick(2) == 0;
        const Part a = integer(depth - 1);
        return {fmt::format("({}) {} {}", a.text, rest ? "%" : "//", divisor), [=](const ScorePoint& p) {
                  const double quotient = std::floor(a.value(p) / divisor);
                  return rest ? a.value(p) - quotient * divisor : quotient;
                }};
      }
      case 8: {
        const Part a = integer(depth - 1);
        return {fmt::format("int(0.25 * ({}) + 0.125)", a.text),
                [=](const ScorePoint& p) { return std::trunc(0.25 * a.value(p) + 0.125); }};
      }
      default: {
        const Part a = integer(depth - 1), b = integer(depth - 1);
        return {fmt::format("abs(max({}, {}))", a.text, b.text),
                [=](const ScorePoint& p) { return std::abs(std::max(a.value(p), b.value(p))); }};
      }
    }
  }

  Part condition(int depth) {
    if (depth > 0 && pick(4) == 0) {
      const Part a = condition(depth - 1), b = condition(depth - 1);
      const bool both = pick(2) == 0;
      return {fmt::format("({}) {} not ({})", a.text, both ? "and" : "or", b.text), [=](const ScorePoint& p) {
                const bool x = a.value(p) != 0, y = b.value(p) == 0;
                return both ? x && y : x || y;
              }};
    }
    const Part a = integer(depth), b = integer(depth);
    static constexpr std::string_view kSigns[] = {"<", "<=", ">", ">=", "==", "!="};
    const size_t sign = pick(6);
    return {fmt::format("{} {} {}", a.text, kSigns[sign], b.text), [=](const ScorePoint& p) {
              const double x = a.value(p), y = b.value(p);
              const bool holds[] = {x<y, x <= y, x> y, x >= y, x == y, x != y};
              return holds[sign] ? 1.0 : 0.0;
            }};
  }

  // A difference of the integers of rows.
  Part age() {
    const int64_t next = static_cast<int64_t>(pick(3)) - 1;
    return {fmt::format("int(log2(1.5 + abs(ts[row + {}] - ts[col])) * 2.3)", next), [=](const ScorePoint& p) {
              const double between = std::abs(p.read("ts", p.row + next) - p.read("ts", p.col));
              return std::trunc(std::log2(1.5 + between) * 2.3);
            }};
  }

 private:
  size_t pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }

  // An element of kRandomOperands.
  Part element() {
    static constexpr std::string_view kPlain[] = {"slope", "gain", "own", "rel"}, kTables[] = {"age", "w"};
    const auto read = [](std::string_view name, const Part& index) -> Part {
      return {fmt::format("{}[{}]", name, index.text),
              [=](const ScorePoint& p) { return p.read(name, static_cast<int64_t>(index.value(p))); }};
    };
    switch (pick(3)) {
      case 0: {
        const std::string_view name = kPlain[pick(4)];
        return {fmt::format("{}{}", name, name == "rel" ? "[row, col]" : ""),
                [=](const ScorePoint& p) { return p.read(name, 0); }};
      }
      case 1:
        return pick(2) == 0 ? read("a", {"row", [](const ScorePoint& p) { return static_cast<double>(p.row); }})
                            : read("a", {"col", [](const ScorePoint& p) { return static_cast<double>(p.col); }});
      default:
        return read(kTables[pick(2)], pick(3) == 0 ? age() : integer(1));
    }
  }

  Part leaf(int depth) {
    if (operands_ && pick(2) == 0) return element();
    switch (pick(7)) {
      case 0: {
        const double literal = static_cast<double>(1 + pick(15)) / 8;
        return {fmt::format("{}", literal), [=](const ScorePoint&) { return literal; }};
      }
      case 1: {
        const Part a = integer(depth);
        return {fmt::format("0.03125 * ({})", a.text), [=](const ScorePoint& p) { return 0.03125 * a.value(p); }};
      }
      case 2:
        return {"alpha", [](const ScorePoint& p) { return p.alpha; }};
      case 3:
        return {"x / alpha * 0.125", [](const ScorePoint& p) { return p.x / p.alpha * 0.125; }};
      default:
        return {"x", [](const ScorePoint& p) { return p.x; }};
    }
  }

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  struct Known {
    std::string_view before, behind;
    double (*value)(double);
  };
  static Part apply(const Known& known, const Part& a) {
    return {fmt::format("{}{}{}", known.before, a.text, known.behind),
            [=](const ScorePoint& p) { return known.value(a.value(p)); }};
  }

  Part smooth(const Part& a) {
    static constexpr Known kKnown[] = {
        {"silu(", ")", [](double x) { return x * sigmoid(x); }},
        {"sigmoid(", ")", sigmoid},
        {"tanh(", ")", [](double x) { return std::tanh(x); }},
        {"gelu(", ")", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
        {"sin(", ")", [](double x) { return std::sin(x); }},
        {"cos(", ")", [](double x) { return std::cos(x); }},
        {"exp(-abs(", "))", [](double x) { return std::exp(-std::abs(x)); }},
        {"log(1.25 + abs(", "))", [](double x) { return std::log(1.25 + std::abs(x)); }},
        {"log2(2.5 + abs(", "))", [](double x) { return std::log2(2.5 + std::abs(x)); }},
        {"sqrt(0.5 + abs(", "))", [](double x) { return std::sqrt(0.5 + std::abs(x)); }},
        {"pow(0.75 + abs(", "), 1.5)", [](double x) { return std::pow(0.75 + std::abs(x), 1.5); }},
        {"pow(tanh(", "), 3)", [](double x) { return std::pow(std::tanh(x), 3); }},
        {"0.5 * pow(2.0, tanh(", "))", [](double x) { return 0.5 * std::pow(2.0, std::tanh(x)); }},
    };
    return apply(kKnown[pick(std::size(kKnown))], a);
  }

  Part bent(const Part& a) {
    static constexpr Known kKnown[] = {
        {"relu(", ")", [](double x) { return x > 0 ? x : 0.0; }},
        {"leaky_relu(", ")", [](double x) { return x > 0 ? x : 0.01 * x; }},
        {"leaky_relu(", ", 0.25)", [](double x) { return x > 0 ? x : 0.25 * x; }},
        {"hardswish(", ")", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
        {"clamp(", ", -1, 2)", [](double x) { return std::clamp(x, -1.0, 2.0); }},
        {"abs(", ")", [](double x) { return std::abs(x); }},
    };
    return apply(kKnown[pick(std::size(kKnown))], a);
  }

  static Part infix(std::string_view sign, const Part& a, const Part& b, double (*of)(double, double)) {
    return {fmt::format("({}) {} ({})", a.text, sign, b.text),
            [=](const ScorePoint& p) { return of(a.value(p), b.value(p)); }};
  }
  static Part infix(std::string_view sign, const Part& a, const Part& b) {
    if (sign == "+") return infix(sign, a, b, [](double x, double y) { return x + y; });
    return infix(sign, a, b, [](double x, double y) { return x - y; });
  }

  std::mt19937_64 random_;
  bool bends_, operands_;
};

// A score of those that a seed stands for.
inline RandomScore::Part random_score(uint64_t seed, bool with_bends = true) {
  return RandomScore(seed, with_bends).real(4);
}

// The same of those that read all of kRandomOperands.
inline RandomScore::Part random_score_of_operands(uint64_t seed, bool with_bends = true) {
  RandomScore random(seed, with_bends, true);
  const RandomScore::Part score = random.real(3), age = random.age();
  return {fmt::format("{} + tanh(0.25 * a[row] * a[col] + age[{}] + w[row - col] * slope + own - rel[row, col]) * gain",
                      score.text, age.text),
          [=](const ScorePoint& p) {
            const double by_row = 0.25 * p.read("a", p.row) * p.read("a", p.col);
            const double tables =
                p.read("age", static_cast<int64_t>(age.value(p))) + p.read("w", p.row - p.col) * p.read("slope", 0);
            return score.value(p) +
                   std::tanh(by_row + tables + p.read("own", 0) - p.read("rel", 0)) * p.read("gain", 0);
          }};
}

}  // namespace hstujit::test
