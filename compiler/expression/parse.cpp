#include "compiler/expression/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr size_t kLongestPart = 40;   // of a part of the text, in a sentence
constexpr double kLeakySlope = 0.01;  // as PyTorch's
constexpr int64_t kMaxLiteral = std::numeric_limits<int32_t>::max();
constexpr std::string_view kMaskFunctions[] = {"abs", "clamp", "max", "min", "where"};
constexpr std::string_view kWords[] = {"and", "or", "not", "true", "false"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Token {
  enum class Kind : uint8_t { kEnd, kNumber, kName, kSign };
  Kind kind = Kind::kEnd;
  std::string_view text;
  size_t column = 1;
};

// The kind of a text: conditions of integers, or real numbers.
enum class Grammar : uint8_t { kConditions, kReals };

// By recursive descent. The first mistake ends it: every function then returns a term of no meaning.
class Parser {
 public:
  // Symbols are in the order of the names, whatever the text has first.
  Parser(std::string_view text, std::span<const ExpressionName> names, Grammar grammar)
      : text_(text), names_(names), reals_(grammar == Grammar::kReals) {
    for (const ExpressionName& name : names) term_of(name, {});
  }

  Result<Expression> run() && {
    if (text_.size() > kMaxExpressionLength) {
      return Status(Code::kInvalidConfig,
                    fmt::format("it has {} bytes; allowed: up to {}", text_.size(), kMaxExpressionLength));
    }
    advance();
    const Value root = alternatives();
    if (!mistake_ && token_.kind != Token::Kind::kEnd) fail(token_.column, unexpected("an operator or the end"));
    if (!mistake_ && root.boolean == reals_) {
      fail(1, reals_ ? "the expression is a condition; allowed: a number, such as where(row - col < 64, silu(x), 0)"
                     : "the expression is a number; allowed: a condition, such as col <= row");
    }
    if (mistake_) return std::move(*mistake_);
    const Term term = reals_ ? as_real(root) : root.term;
    Expression expression = std::move(builder_).finish(term);
    if (reals_) expression = expression.pruned();
    if (written_out(expression) > kMaxExpressionParts) {
      return Status(Code::kInvalidConfig,
                    fmt::format("it has too many parts; allowed: up to {} numbers, names, operators "
                                "and functions, where those in the midst of a < b < c count twice",
                                kMaxExpressionParts));
    }
    return expression;
  }

 private:
  struct Value {
    Term term;
    bool boolean = false;
    size_t column = 1;             // where it begins
    std::optional<int64_t> fixed;  // the value of a literal that is an integer
    bool real = false;
  };

  // Nodes of the expression as a tree.
  static int64_t written_out(const Expression& expression) {
    std::vector<int64_t> sizes;
    for (const Expression::Node& node : expression.nodes()) {
      int64_t size = 1;
      for (const int operand : node.operands) {
        if (operand >= 0) size = std::min(size + sizes[static_cast<size_t>(operand)], kMaxExpressionParts + 1);
      }
      sizes.push_back(size);
    }
    return sizes[static_cast<size_t>(expression.root())];
  }

  // Text

  void advance() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
    token_ = {Token::Kind::kEnd, {}, at_ + 1};
    if (at_ == text_.size()) return;
    const char c = text_[at_];
    size_t end = at_ + 1;
    if (is_letter(c) || is_digit(c)) {
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
      if (reals_ && is_digit(c)) end = end_of_number();
      token_.kind = is_letter(c) ? Token::Kind::kName : Token::Kind::kNumber;
    } else {
      const std::string_view two = text_.substr(at_, 2);
      if (two == "<=" || two == ">=" || two == "==" || two == "!=" || two == "//") ++end;
      token_.kind = Token::Kind::kSign;
    }
    token_.text = text_.substr(at_, end - at_);
    at_ = end;
  }

  // Behind 1, 1.5, 1e-3, and what is like a number but is none.
  size_t end_of_number() const {
    size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end], before = end > at_ ? text_[end - 1] : '\0';
      const bool exponent = (c == '+' || c == '-') && (before == 'e' || before == 'E');
      if (!is_letter(c) && !is_digit(c) && c != '.' && !exponent) break;
      ++end;
    }
    return end;
  }

  bool is(std::string_view text) const { return token_.kind != Token::Kind::kEnd && token_.text == text; }
  bool take(std::string_view text) {
    if (mistake_ || !is(text)) return false;
    advance();
    return true;
  }
  void expect(std::string_view text) {
    if (!mistake_ && !take(text)) fail(token_.column, unexpected(fmt::format("\"{}\"", text)));
  }

  std::string unexpected(std::string_view wanted) const {
    if (token_.kind == Token::Kind::kEnd) return fmt::format("the expression ends; expected: {}", wanted);
    const unsigned char first = static_cast<unsigned char>(token_.text[0]);
    if (first < 32 || first > 126) return fmt::format("there is a byte {}; expected: {}", first, wanted);
    return fmt::format("there is \"{}\"; expected: {}", printable(token_.text, kLongestPart), wanted);
  }

  Value fail(size_t column, const std::string& sentence) {
    if (!mistake_) mistake_ = Status(Code::kInvalidConfig, fmt::format("column {}: {}", column, sentence));
    return {};
  }

  // Counts what stands within one another.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser.depth_ > kMaxExpressionDepth) {
        parser.fail(parser.token_.column,
                    fmt::format("more than {} parts are within one another", kMaxExpressionDepth));
      }
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // Types

  bool condition(const Value& value, std::string_view of) {
    if (mistake_ || value.boolean) return !mistake_;
    fail(value.column, fmt::format("\"{}\" is of conditions, and this is a number", of));
    return false;
  }
  bool number(const Value& value, std::string_view of) {
    if (mistake_ || !value.boolean) return !mistake_;
    fail(value.column, fmt::format("\"{}\" is of numbers, and this is a condition", of));
    return false;
  }
  Value numeric(Term term, const Value& first) {
    return {term, false, first.column, {}, !mistake_ && builder_.node(term).real};
  }
  Term term_of(const ExpressionName& name, Term index) {
    if (name.reads != Reads::kValue) return builder_.read(name.symbol, name.real, index);
    return name.real ? builder_.real_symbol(name.symbol) : builder_.number(name.symbol);
  }
  Term as_real(const Value& value) {
    if (value.real) return value.term;
    const Expression::Node& node = builder_.node(value.term);
    if (node.op == Operator::kConstant) return builder_.real(static_cast<double>(node.value));
    return builder_.call(Function::kReal, value.term);
  }
  // Both are real where one is.
  void make_alike(Value& a, Value& b) {
    if (a.real == b.real) return;
    Value& integer = a.real ? b : a;
    integer = {as_real(integer), false, integer.column, {}, true};
  }
  Value truth(Term term, const Value& first) { return {term, true, first.column, {}}; }

  // Grammar

  Value alternatives() {
    const Level level(*this);
    Value left = conjunction();
    while (take("or")) {
      const Value right = conjunction();
      if (!condition(left, "or") || !condition(right, "or")) return {};
      left = truth(builder_.either(left.term, right.term), left);
    }
    return left;
  }

  Value conjunction() {
    Value left = negation();
    while (take("and")) {
      const Value right = negation();
      if (!condition(left, "and") || !condition(right, "and")) return {};
      left = truth(builder_.both(left.term, right.term), left);
    }
    return left;
  }

  Value negation() {
    const size_t column = token_.column;
    if (mistake_ || !take("not")) return comparison();
    const Level level(*this);
    const Value of = negation();
    if (!condition(of, "not")) return {};
    return {builder_.negate(of.term), true, column, {}};
  }

  // a < b <= c is a < b and b <= c.
  Value comparison() {
    Value left = sum();
    std::optional<Value> all;
    while (!mistake_) {
      const std::string_view sign = token_.text;
      if (token_.kind != Token::Kind::kSign ||
          !(sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "==" || sign == "!=")) {
        break;
      }
      advance();
      const Value right = sum();
      if (!number(left, sign) || !number(right, sign)) return {};
      Value low = left, high = right;
      make_alike(low, high);
      const Value one = truth(compare(sign, low.term, high.term), left);
      all = all ? truth(builder_.both(all->term, one.term), *all) : one;
      left = right;
    }
    return all ? *all : left;
  }

  Term compare(std::string_view sign, Term a, Term b) {
    if (sign == "<") return builder_.lt(a, b);
    if (sign == "<=") return builder_.le(a, b);
    if (sign == ">") return builder_.gt(a, b);
    if (sign == ">=") return builder_.ge(a, b);
    const Term equal = builder_.eq(a, b);
    return sign == "==" ? equal : builder_.negate(equal);
  }

  Value sum() {
    Value left = product();
    while (!mistake_ && (is("+") || is("-"))) {
      const std::string_view sign = token_.text;
      advance();
      Value right = product();
      if (!number(left, sign) || !number(right, sign)) return {};
      make_alike(left, right);
      left = numeric(sign == "+" ? builder_.add(left.term, right.term) : builder_.sub(left.term, right.term), left);
    }
    return left;
  }

  Value product() {
    Value left = sign();
    while (!mistake_ && (is("*") || is("//") || is("%") || is("/"))) {
      const std::string_view sign_text = token_.text;
      const size_t column = token_.column;
      if (sign_text == "/" && !reals_) return fail(column, "a mask has integers alone; allowed: //, which rounds down");
      advance();
      Value right = sign();
      if (!number(left, sign_text) || !number(right, sign_text)) return {};
      if (sign_text == "/") {
        const Term divided = as_real(left);
        left = numeric(builder_.call(Function::kDivide, divided, as_real(right)), left);
        continue;
      }
      if (sign_text == "*") {
        make_alike(left, right);
        if (!reals_ && !left.fixed && !right.fixed) {
          return fail(column,
                      "a mask is solved for its rows and columns; allowed: a product with a number, such as 2 * row");
        }
        left = numeric(builder_.mul(left.term, right.term), left);
        continue;
      }
      if (left.real) {
        return fail(column,
                    fmt::format("{} is of integers, and what it divides is real; allowed: /, floor, int", sign_text));
      }
      if (!right.fixed || *right.fixed < 1) {
        return fail(right.column,
                    fmt::format("the divisor after {} must be a number from 1, as in row {} 64", sign_text, sign_text));
      }
      left = numeric(
          sign_text == "//" ? builder_.floor_div(left.term, right.term) : builder_.mod(left.term, right.term), left);
    }
    return left;
  }

  Value sign() {
    const size_t column = token_.column;
    if (!take("-")) return atom();
    const Level level(*this);
    const Value of = sign();
    if (!number(of, "-")) return {};
    if (of.real) {
      const Expression::Node node = builder_.node(of.term);
      const Term term =
          node.op == Operator::kConstant ? builder_.real(-node.number) : builder_.call(Function::kNegate, of.term);
      return {term, false, column, {}, true};
    }
    Value negative = {builder_.sub(builder_.integer(0), of.term), false, column, {}};
    if (of.fixed) negative = {builder_.integer(-*of.fixed), false, column, -*of.fixed};
    return negative;
  }

  Value atom() {
    if (mistake_) return {};
    const Token token = token_;
    if (token.kind == Token::Kind::kNumber) return literal();
    if (take("(")) {
      Value inner = alternatives();
      expect(")");
      inner.column = token.column;
      return inner;
    }
    if (token.kind != Token::Kind::kName) return fail(token.column, unexpected("a number, a name or \"(\""));
    advance();
    if (token.text == "true" || token.text == "True") return {builder_.truth(true), true, token.column, {}};
    if (token.text == "false" || token.text == "False") return {builder_.truth(false), true, token.column, {}};
    if (std::find(std::begin(kMaskFunctions), std::end(kMaskFunctions), token.text) != std::end(kMaskFunctions)) {
      return function(token);
    }
    if (const FunctionInfo* info = reals_ ? find_function(token.text) : nullptr) return function(token, *info);
    for (const ExpressionName& name : names_) {
      if (name.name == token.text) return named(token, name);
    }
    return unknown(token);
  }

  Value named(const Token& token, const ExpressionName& name) {
    Term index;
    if (name.reads == Reads::kAtIndex) {
      if (!is("[")) {
        return fail(token.column,
                    fmt::format("{} is read at an index; allowed: such as {}[row - col]", name.name, name.name));
      }
      advance();
      const Level level(*this);
      const Value at = alternatives();
      expect("]");
      if (!number(at, name.name)) return {};
      if (at.real)
        return fail(at.column,
                    fmt::format("the index of {} is a real number; allowed: an integer, or int(a)", name.name));
      index = at.term;
    } else if (name.reads == Reads::kAtPair) {
      for (const std::string_view part : {"[", "row", ",", "col", "]"}) {
        if (!take(part)) {
          return fail(token_.column, unexpected(fmt::format("{}[row, col], the element of the pair", name.name)));
        }
      }
    } else if (name.reads == Reads::kAtRowOrColumn) {
      const std::string wanted = fmt::format("{0}[row] or {0}[col]", name.name);
      if (!take("[")) return fail(token_.column, unexpected(wanted));
      const auto place = std::ranges::find(names_, token_.text, &ExpressionName::name);
      if (!is("row") && !is("col")) return fail(token_.column, unexpected(wanted));
      index = term_of(*place, {});
      advance();
      if (!take("]")) return fail(token_.column, unexpected(wanted));
    } else if (is("[")) {
      return fail(token_.column, fmt::format("{} has no index; allowed: {} alone", name.name, name.name));
    }
    return {term_of(name, index), false, token.column, {}, name.real};
  }

  Value literal() {
    if (reals_ && token_.text.find_first_not_of("0123456789") != std::string_view::npos) return real_literal();
    int64_t value = 0;
    for (const char c : token_.text) {
      if (!is_digit(c))
        return fail(token_.column, fmt::format("\"{}\" is no integer", printable(token_.text, kLongestPart)));
      value = std::min(value * 10 + (c - '0'), kMaxLiteral + 1);
    }
    if (value > kMaxLiteral) {
      return fail(token_.column,
                  fmt::format("{} is too large; allowed: up to {}", printable(token_.text, kLongestPart), kMaxLiteral));
    }
    const Value result = {builder_.integer(value), false, token_.column, value};
    advance();
    return result;
  }

  // Numbers that fp32 has, far from its ends.
  Value real_literal() {
    constexpr double kLeast = 1e-30, kMost = 1e30;
    const std::string_view text = token_.text;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument)
      return fail(token_.column, fmt::format("\"{}\" is not a number", printable(text, kLongestPart)));
    if (error != std::errc() || (value != 0 && (value < kLeast || value > kMost))) {
      return fail(token_.column, fmt::format("{} is too large or too small; allowed: 0, or {} to {}",
                                             printable(text, kLongestPart), kLeast, kMost));
    }
    const Value result = {builder_.real(value), false, token_.column, {}, true};
    advance();
    return result;
  }

  Value unknown(const Token& token) {
    std::vector<std::string_view> known;
    for (const ExpressionName& name : names_) known.push_back(name.name);
    const std::string numbers = fmt::format("{}", fmt::join(known, ", "));
    std::vector<std::string_view> functions(std::begin(kMaskFunctions), std::end(kMaskFunctions));
    for (const FunctionInfo& info : function_table()) {
      if (reals_ && !info.name.empty()) functions.push_back(info.name);
    }
    known.insert(known.end(), functions.begin(), functions.end());
    known.insert(known.end(), std::begin(kWords), std::end(kWords));
    return fail(token.column,
                fmt::format("there is no \"{}\"{}; numbers are {}, functions {}", printable(token.text, kLongestPart),
                            did_you_mean(closest(token.text, known)), numbers, fmt::join(functions, ", ")));
  }

  std::vector<Value> arguments_of_call() {
    const Level level(*this);
    expect("(");
    std::vector<Value> arguments;
    do {
      arguments.push_back(alternatives());
    } while (take(","));
    expect(")");
    return arguments;
  }

  // One of functions.h.
  Value function(const Token& name, const FunctionInfo& info) {
    const std::vector<Value> arguments = arguments_of_call();
    const bool leaky = info.function == Function::kLeakyRelu;  // its slope may be left out
    if (mistake_) return {};
    if (arguments.size() != static_cast<size_t>(info.operands) && !(leaky && arguments.size() == 1)) {
      return fail(name.column,
                  fmt::format("{} has {} arguments; allowed: {}({})", name.text, arguments.size(), name.text,
                              leaky                ? "a), or leaky_relu(a, slope"
                              : info.operands == 1 ? "a"
                                                   : "a, b"));
    }
    for (const Value& argument : arguments) {
      if (!number(argument, name.text)) return {};
    }
    const bool whole = info.function == Function::kInt || info.function == Function::kFloor;
    if (whole && !arguments[0].real) {
      const bool narrows = info.function == Function::kInt && builder_.node(arguments[0].term).wide;
      return {narrows ? builder_.call(Function::kInt, arguments[0].term) : arguments[0].term, false, name.column, {}};
    }
    const Term first = as_real(arguments[0]);
    Term second;
    if (info.operands == 2) second = arguments.size() == 2 ? as_real(arguments[1]) : builder_.real(kLeakySlope);
    if (leaky && builder_.node(second).op != Operator::kConstant)
      return fail(arguments[1].column, "the slope of leaky_relu is not a number; allowed: such as leaky_relu(x, 0.2)");
    return {builder_.call(info.function, first, second), false, name.column, {}, info.function != Function::kInt};
  }

  Value function(const Token& name) {
    std::vector<Value> arguments = arguments_of_call();
    if (mistake_) return {};
    const auto wants = [&](size_t least, size_t most, std::string_view how) {
      if (arguments.size() >= least && arguments.size() <= most) return true;
      fail(name.column, fmt::format("{} has {} arguments; allowed: {}", name.text, arguments.size(), how));
      return false;
    };
    if (name.text == "where") return wants(3, 3, "where(condition, a, b)") ? choice(name, arguments) : Value();
    for (const Value& argument : arguments) {
      if (!number(argument, name.text)) return {};
    }
    if (name.text == "abs") {
      if (!wants(1, 1, "abs(a)")) return {};
      return extreme(name, builder_.abs(arguments[0].term));
    }
    if (name.text == "clamp") {
      if (!wants(3, 3, "clamp(a, least, most)")) return {};
      make_alike(arguments[0], arguments[1]);
      Value bounded = extreme(name, builder_.max(arguments[0].term, arguments[1].term));
      make_alike(bounded, arguments[2]);
      return extreme(name, builder_.min(bounded.term, arguments[2].term));
    }
    if (!wants(2, kMaxExpressionLength, fmt::format("{}(a, b), or more", name.text))) return {};
    Value value = arguments[0];
    for (size_t i = 1; i < arguments.size(); ++i) {
      make_alike(value, arguments[i]);
      value = extreme(name, name.text == "max" ? builder_.max(value.term, arguments[i].term)
                                               : builder_.min(value.term, arguments[i].term));
    }
    return value;
  }

  Value extreme(const Token& name, Term term) { return {term, false, name.column, {}, builder_.node(term).real}; }

  Value choice(const Token& name, std::vector<Value>& arguments) {
    if (!condition(arguments[0], "where")) return {};
    if (arguments[1].boolean != arguments[2].boolean) {
      return fail(arguments[2].column,
                  "where chooses between two numbers or two conditions, and these are one of each");
    }
    make_alike(arguments[1], arguments[2]);
    const Term term = builder_.select(arguments[0].term, arguments[1].term, arguments[2].term);
    return {term, arguments[1].boolean, name.column, {}, arguments[1].real};
  }

  std::string_view text_;
  std::span<const ExpressionName> names_;
  bool reals_;
  size_t at_ = 0;
  Token token_;
  int depth_ = 0;
  std::optional<Status> mistake_;
  ExpressionBuilder builder_;
};

}  // namespace

bool is_expression_word(std::string_view word) {
  constexpr std::string_view kTruths[] = {"True", "False"};
  const auto is_among = [&](const auto& words) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
  };
  return is_among(kMaskFunctions) || is_among(kWords) || is_among(kTruths) || find_function(word) != nullptr;
}

namespace {

// Parses a text whose canonical form can be read, too: that has min of min in place of min(a, b, c), and min of max in
// place of clamp.
Result<Expression> parse(std::string_view text, std::span<const ExpressionName> names, Grammar grammar) {
  Result<Expression> expression = Parser(text, names, grammar).run();
  if (!expression.ok()) return expression;
  const std::string canonical = to_text(*expression, names);
  if (canonical.size() > kMaxExpressionLength) {
    return Status(Code::kInvalidConfig,
                  fmt::format("it has more than {} bytes where its numbers are written out", kMaxExpressionLength));
  }
  if (canonical == text || Parser(canonical, names, grammar).run().ok()) return expression;
  return Status(Code::kInvalidConfig,
                fmt::format("column 1: with max, min and clamp as functions of two numbers, more than {} parts are "
                            "within one another",
                            kMaxExpressionDepth));
}

}  // namespace

Result<Expression> parse_condition(std::string_view text, std::span<const ExpressionName> names) {
  return parse(text, names, Grammar::kConditions);
}

Result<Expression> parse_real(std::string_view text, std::span<const ExpressionName> names) {
  return parse(text, names, Grammar::kReals);
}

}  // namespace hstujit
