#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "compiler/expression/parse.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr size_t kLongestPart = 40;  // of a part of the text, in a sentence
constexpr std::string_view kDoc = "what the score reads", kGradientDoc = "gradient of what the score reads",
                           kBeforeDoc = "what the gradient is added to";
constexpr std::string_view kKinds[] = {"row", "table", "head", "scalar", "sequence", "pair"};

// Arguments of the operators that attend, and parameters that attention has not, in alphabetical order: a call has each
// name once.
constexpr std::string_view kTaken =
    "adds_gradients alpha attn backward_head_groups bias concat_u concat_x dattn dattn_scale_before dbias "
    "dinput_norm_bias dinput_norm_weight dk dout doutput_norm_bias doutput_norm_weight doutput_weight dq drab_before "
    "dropout dropout_ratio du duvqk_bias duvqk_weight dv dweight dx eps full_k full_k_rows full_v group_norm "
    "hidden_states input_norm_bias input_norm_weight jagged_queries k k_cache kv_caching_offsets layers max_delta_len "
    "max_seq_len mul_u_activation n norm normed_x offset op operand_tensors out output_norm_bias output_norm_weight "
    "output_weight q rab recompute_attn recompute_normed_x recompute_uvqk recompute_y residual row_numbers "
    "scaling_seqlen seed seed_tensor seq_offsets seq_offsets_q silu_columns silu_u silu_uvqk targets_only training "
    "typical_rows u uvqk uvqk_bias uvqk_weight v v_cache weight weight_dtype width y";

// The launcher that `hstujit emit` writes names its parameters as the operands.
constexpr std::string_view kWordsOfCpp =
    "NULL alignas alignof and and_eq asm auto bitand bitor bool break case catch char class concept const consteval "
    "constexpr constinit continue "
    "co_await co_return co_yield compl decltype default delete do double dynamic_cast else enum explicit export extern "
    "float for friend goto if inline "
    "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast "
    "requires return short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq";

// Ends of the names that launches have for strides of tensors.
constexpr std::string_view kStrideEnds[] = {"_row_stride", "_head_stride", "_batch_stride"};

bool is_taken(std::string_view name) {
  const auto fields = field_names<HstuAttentionParams>();
  return std::ranges::find(fields, name) != fields.end() || is_among(name, split(kTaken, ' '));
}

const OperandKind* kind_of(std::string_view name) {
  for (const OperandKind* const kind :
       {&row_kind(), &table_kind(), &head_kind(), &scalar_kind(), &sequence_kind(), &pair_kind()}) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class OperandParser {
 public:
  OperandParser(std::string_view text, int64_t heads) : text_(text), heads_(heads) {}

  Result<std::vector<Operand>> run() && {
    if (text_.size() > kMaxExpressionLength) {
      return Status(Code::kInvalidConfig,
                    fmt::format("it has {} bytes; allowed: up to {}", text_.size(), kMaxExpressionLength));
    }
    skip_spaces();
    do {
      declaration();
    } while (!mistake_ && take(','));
    if (!mistake_ && at_ < text_.size()) expected("\",\" or the end");
    if (!mistake_) check_tables();
    if (mistake_) return std::move(*mistake_);
    return std::move(operands_);
  }

 private:
  void fail(size_t column, const std::string& sentence) {
    if (!mistake_) mistake_ = Status(Code::kInvalidConfig, fmt::format("column {}: {}", column, sentence));
  }
  void expected(std::string_view what) {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()), 1);
    fail(at_ + 1, rest.empty() ? fmt::format("the declarations end; expected: {}", what)
                               : fmt::format("there is \"{}\"; expected: {}", printable(rest, kLongestPart), what));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char sign) {
    if (at_ >= text_.size() || text_[at_] != sign) return false;
    ++at_;
    skip_spaces();
    return true;
  }
  // Empty, with a mistake, where there is none.
  std::string_view word(std::string_view what) {
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_) expected(what);
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    skip_spaces();
    return found;
  }

  void declaration() {
    const size_t column = at_ + 1;
    const std::string_view name = word("the name of an operand, as in \"ts: row(int64)\"");
    if (mistake_) return;
    check_name(name, column);
    if (!mistake_ && !take(':')) expected("\":\" and the kind of the operand");
    if (mistake_) return;
    const size_t kind_column = at_ + 1;
    const std::string_view kind_name = word("a kind");
    if (mistake_) return;
    const OperandKind* const kind = kind_of(kind_name);
    if (kind == nullptr) {
      const std::vector<std::string_view> kinds(std::begin(kKinds), std::end(kKinds));
      return fail(kind_column, fmt::format("there is no kind \"{}\"{}; allowed: {}", printable(kind_name, kLongestPart),
                                           did_you_mean(closest(kind_name, kinds)), fmt::join(kinds, ", ")));
    }
    Operand& operand = operands_.emplace_back();
    operand.name = std::string(name);
    operand.kind = kind;
    operand.use = OperandUse::kScore;
    if (kind == &head_kind()) operand.heads = heads_;
    if (kind == &pair_kind()) operand.heads = 1;
    operand.doc = kDoc;
    operand.gradient_doc = kGradientDoc;
    operand.before_doc = kBeforeDoc;
    operand.field = "operands";
    said_.clear();
    if (take('(')) {
      do {
        property(operand);
      } while (!mistake_ && take(','));
      if (!mistake_ && !take(')')) expected("\")\"");
    }
    if (mistake_) return;
    if (kind == &table_kind() && operand.entries == 0)
      return fail(kind_column, "a table has a number of entries; allowed: such as table(129)");
    if (operand.gradient && is_integer(operand.dtype)) {
      fail(column, fmt::format("{} has a gradient and the type {}; allowed: of bf16, fp16, fp32", operand.name,
                               to_string(operand.dtype)));
    }
  }

  void check_name(std::string_view name, size_t column) {
    constexpr size_t kLongest = 40;
    const std::string shown = printable(name, kLongestPart);
    if (is_digit(name[0]) || name.size() > kLongest) {
      return fail(column, fmt::format("\"{}\" is no name; allowed: up to {} letters, digits and _, a digit not first",
                                      shown, kLongest));
    }
    if (operands_.size() == kMaxOwnOperands)
      return fail(column, fmt::format("{} is one operand too many; allowed: up to {}", shown, kMaxOwnOperands));
    const bool of_expressions = is_score_word(name), of_cpp = is_among(name, split(kWordsOfCpp, ' '));
    const bool of_stride = std::ranges::any_of(kStrideEnds, [&](std::string_view end) { return name.ends_with(end); });
    if (of_expressions || of_cpp || of_stride || is_taken(name)) {
      return fail(column, fmt::format("\"{}\" is {}; allowed: another name", shown,
                                      of_expressions ? "a word of expressions"
                                      : of_cpp       ? "a word of C++"
                                      : of_stride    ? "a name of a stride"
                                                     : "a parameter of operators that attend"));
    }
    for (const Operand& other : operands_) {
      const std::string mine = "d" + std::string(name);
      const bool of_other = name == other.gradient_name() || name == other.before_name();
      if (of_other || name == other.name || other.name == mine || other.name == mine + "_before") {
        return fail(column, fmt::format("\"{}\" is also {}{}; allowed: another name", shown,
                                        of_other || name == other.name ? "" : "what a gradient is called like, of ",
                                        other.name));
      }
    }
  }

  // A type, grad, heads, or the number of entries.
  void property(Operand& operand) {
    const size_t column = at_ + 1;
    const std::string_view name = word("a type, grad, heads or a number of entries");
    if (mistake_) return;
    const bool table = operand.kind == &table_kind(), pair = operand.kind == &pair_kind();
    auto type = parse_data_type(name);
    if (pair && type && is_integer(*type)) type.reset();
    const std::string_view what = type ? "a type" : name;
    if (std::ranges::find(said_, what) != said_.end())
      return fail(column, fmt::format("{} is said twice; allowed: once", type ? "the type" : what));
    said_.push_back(what);
    if (type) {
      operand.dtype = *type;
    } else if (name == "grad") {
      operand.gradient = true;
    } else if (name == "heads" && (table || pair || operand.kind == &row_kind())) {
      operand.heads = heads_;
      if ((table || pair) && take('=')) operand.heads = number(1, heads_);
      if (!mistake_ && heads_ % operand.heads != 0) {
        fail(column, fmt::format("heads is {}, and heads share a {}'s evenly; allowed: divisors of {}", operand.heads,
                                 operand.kind->name, heads_));
      }
    } else if (table && is_digit(name[0]) && operand.entries == 0) {
      at_ = column - 1;
      operand.entries = number(1, kMaxTableEntries);
    } else {
      fail(column,
           fmt::format("there is \"{}\"; allowed for a {}: {}bf16, fp16, fp32, {}grad{}", printable(name, kLongestPart),
                       operand.kind->name, table ? "a number of entries, " : "", pair ? "" : "int32, int64, ",
                       table || pair                 ? ", heads, heads=2"
                       : operand.kind == &row_kind() ? ", heads"
                                                     : ""));
    }
  }

  int64_t number(int64_t least, int64_t most) {
    const size_t column = at_ + 1;
    const std::string_view digits = word("a number");
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (mistake_) return least;
    if (error != std::errc() || end != digits.data() + digits.size() || value < least || value > most) {
      fail(column, fmt::format("there is \"{}\"; allowed: a number from {} to {}", printable(digits, kLongestPart),
                               least, most));
      return least;
    }
    return value;
  }

  void check_tables() {
    int64_t all = 0, summed = 0;
    const auto sums = static_cast<size_t>(std::ranges::count_if(operands_, &Operand::has_sites));
    if (sums > kMaxSums) {
      mistake_ = Status(Code::kInvalidConfig,
                        fmt::format("{} tables, heads and scalars have gradients; allowed: up to {}", sums, kMaxSums));
      return;
    }
    for (const Operand& operand : operands_) {
      const int64_t elements = operand.entries * std::max<int64_t>(operand.heads, 1);
      if (operand.kind == &table_kind()) all += elements;
      if (operand.kind == &table_kind() && operand.gradient) summed += elements;
    }
    const auto refuse = [&](int64_t count, std::string_view which, int64_t most) {
      mistake_ = Status(Code::kInvalidConfig,
                        fmt::format("tables{} have {} entries, over all heads; allowed: up to {}", which, count, most));
    };
    if (summed > kMaxSummedEntries) return refuse(summed, " with gradients", kMaxSummedEntries);
    if (all > kMaxTableEntries) refuse(all, "", kMaxTableEntries);
  }

  std::string_view text_;
  int64_t heads_;
  size_t at_ = 0;
  std::vector<Operand> operands_;
  std::vector<std::string_view> said_;  // of the operand that is read
  std::optional<Status> mistake_;
};

std::string declaration_of(const Operand& operand, int64_t heads) {
  std::vector<std::string> properties;
  if (operand.kind == &table_kind()) properties.push_back(std::to_string(operand.entries));
  if (operand.dtype != DataType::kFp32) properties.emplace_back(to_string(operand.dtype));
  const bool by_head = operand.kind == &pair_kind() ? operand.heads > 1 : operand.heads > 0;
  if (by_head && operand.kind != &head_kind())
    properties.push_back(operand.heads == heads ? "heads" : fmt::format("heads={}", operand.heads));
  if (operand.gradient) properties.emplace_back("grad");
  std::string text = fmt::format("{}: {}", operand.name, operand.kind->name);
  if (!properties.empty()) text += fmt::format("({})", fmt::join(properties, ", "));
  return text;
}

}  // namespace

Result<std::vector<Operand>> parse_own_operands(std::string_view text, int64_t heads) {
  if (text.empty()) return std::vector<Operand>();
  return OperandParser(text, heads).run();
}

std::vector<Operand> own_operands(std::string_view text, int64_t heads) {
  return parse_own_operands(text, heads).value();
}

std::string canonical_own_operands(std::string_view text, int64_t heads) {
  std::vector<std::string> declarations;
  for (const Operand& operand : own_operands(text, heads)) declarations.push_back(declaration_of(operand, heads));
  return fmt::format("{}", fmt::join(declarations, ", "));
}

}  // namespace hstujit
