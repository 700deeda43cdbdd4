#include "compiler/emit/row_printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/emit/expression.h"
#include "compiler/emit/sequences_printer.h"
#include "compiler/ir/region_functions.h"

namespace hstujit {

namespace {

using Function = mlir::func::FuncOp;

class RowPrinter {
 public:
  RowPrinter(const RowFunctions& functions, const RowInterface& interface, Activation activation)
      : functions_(functions), interface_(interface), activation_(activation), statistics_(functions.statistics()) {
    for (const RowOperandKind kind :
         {RowOperandKind::kRow, RowOperandKind::kVector, RowOperandKind::kGroupVector, RowOperandKind::kTable}) {
      for (const RowOperand& input : interface.inputs) {
        if (input.kind == kind) elements_.push_back(input.name);
      }
    }
    for (const RowRandom& random : functions.randoms) elements_.push_back(random.name);
    for (const RowOperand& input : interface.inputs) {
      if (input.kind == RowOperandKind::kScalar) scalars_.push_back(input.name);
    }
    for (const RowOperandKind kind :
         {RowOperandKind::kRow, RowOperandKind::kColumnSum, RowOperandKind::kGroupSum, RowOperandKind::kTableSum}) {
      for (const RowOperand& output : interface.outputs) {
        if (output.kind == kind) outputs_.push_back(output.name);
      }
    }
    std::vector<std::string> sums;
    for (const RowOperand& output : interface.outputs) {
      if (output.is_sum()) sums.push_back(output.name);
    }
    summed_ = operations_of(functions, sums);
  }

  Result<std::string> print() {
    std::string text;
    for (unsigned round = 0; round < functions_.rounds.size(); ++round) {
      HSTUJIT_RETURN_IF_ERROR(add(fmt::format("What round {} sums over a row: the summands of an element.", round),
                                  functions_.rounds[round].summands, text));
      HSTUJIT_RETURN_IF_ERROR(
          add("What follows from the sums, once a row.", functions_.rounds[round].statistics, text));
    }
    HSTUJIT_RETURN_IF_ERROR(add("An element of each output.", functions_.outputs, text));
    HSTUJIT_ASSIGN_OR_RETURN(const std::string sequences, print_sequences(functions_, interface_));
    text += sequences;
    HSTUJIT_ASSIGN_OR_RETURN(const std::string row, print_struct());
    return text + row;
  }

 private:
  Status add(const std::string& comment, Function function, std::string& text) const {
    HSTUJIT_ASSIGN_OR_RETURN(const std::string printed, print_region(function, activation_, summed_));
    text += "// " + comment + "\n" + printed + "\n";
    return {};
  }

  // Where a name is found by a function of struct Row; empty for one that is nowhere.
  std::string place_of(const std::string& name) const {
    if (const auto at = std::find(elements_.begin(), elements_.end(), name); at != elements_.end())
      return fmt::format("in[{}]", at - elements_.begin());
    if (std::find(scalars_.begin(), scalars_.end(), name) != scalars_.end()) return "params." + name;
    return std::find(statistics_.begin(), statistics_.end(), name) != statistics_.end() ? "row." + name : "";
  }

  // A call, behind `before`, whose first arguments are `given` and whose results go to `results`.
  Result<std::string> call(std::string before, Function function, const std::vector<std::string>& given,
                           const std::vector<std::string>& results) const {
    std::vector<std::string> arguments = given;
    for (auto i = static_cast<unsigned>(given.size()); i < function.getNumArguments(); ++i) {
      const std::string name = argument_name(function, i);
      arguments.push_back(place_of(name));
      if (arguments.back().empty()) {
        return Status(Code::kInternal,
                      fmt::format("{} takes {}, which the operator does not have", function.getName().str(), name));
      }
    }
    if (results.size() == 1) {
      before += results[0] + " = ";
    } else {
      arguments.insert(arguments.end(), results.begin(), results.end());
    }
    return wrapped_call(before + function.getName().str(), arguments, ";\n");
  }

  static std::vector<std::string> indexed(const char* array, unsigned count) {
    std::vector<std::string> texts;
    for (unsigned i = 0; i < count; ++i) texts.push_back(fmt::format("{}[{}]", array, i));
    return texts;
  }

  // A bit for each element of `in` that the function takes.
  uint32_t reads(Function function) const {
    uint32_t bits = 0;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      const auto at = std::find(elements_.begin(), elements_.end(), argument_name(function, i));
      if (at != elements_.end()) bits |= uint32_t{1} << (at - elements_.begin());
    }
    return bits;
  }

  Result<std::string> print_summands() const {
    std::string text = fmt::format(
        "\n"
        "  template <int kRound, class Params>\n"
        "  static __device__ __forceinline__ void summands(const float (&in)[{}], const Statistics& row,\n"
        "                                                  const Params& params, float (&out)[kSums[kRound]]) {{\n",
        elements_.size());
    for (unsigned round = 0; round < functions_.rounds.size(); ++round) {
      Function function = functions_.rounds[round].summands;
      HSTUJIT_ASSIGN_OR_RETURN(const std::string line, call(fmt::format("    if constexpr (kRound == {}) ", round),
                                                            function, {}, indexed("out", function.getNumResults())));
      text += line;
    }
    return text + "  }\n";
  }

  Result<std::string> print_statistics() const {
    std::string text =
        "\n"
        "  template <int kRound, class Params>\n"
        "  static __device__ __forceinline__ void statistics(const float (&sums)[kSums[kRound]], const Params& "
        "params,\n"
        "                                                    Statistics& row) {\n";
    for (unsigned round = 0; round < functions_.rounds.size(); ++round) {
      Function function = functions_.rounds[round].statistics, summands = functions_.rounds[round].summands;
      std::vector<std::string> results;
      for (unsigned i = 0; i < function.getNumResults(); ++i) results.push_back("row." + result_name(function, i));
      HSTUJIT_ASSIGN_OR_RETURN(const std::string line,
                               call(fmt::format("    if constexpr (kRound == {}) ", round), function,
                                    indexed("sums", summands.getNumResults()), results));
      text += line;
    }
    return text + "  }\n";
  }

  Result<std::string> print_outputs() const {
    std::vector<std::string> results;
    Function function = functions_.outputs;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      const std::string name = result_name(function, i);
      const auto at = std::find(outputs_.begin(), outputs_.end(), name);
      if (at == outputs_.end())
        return Status(Code::kInternal, fmt::format("the IR has the output {}, which the operator does not have", name));
      results.push_back(fmt::format("out[{}]", at - outputs_.begin()));
    }
    HSTUJIT_ASSIGN_OR_RETURN(const std::string line, call("    ", function, {}, results));
    return fmt::format(
        "\n"
        "  template <class Params>\n"
        "  static __device__ __forceinline__ void outputs(const float (&in)[{}], const Statistics& row,\n"
        "                                                 const Params& params, float (&out)[{}]) {{\n"
        "{}  }}\n",
        elements_.size(), outputs_.size(), line);
  }

  // Reads an input that decides random numbers.
  std::string seed_text(const std::string& name) const {
    const auto input = std::find_if(interface_.inputs.begin(), interface_.inputs.end(),
                                    [&](const RowOperand& operand) { return operand.name == name; });
    const std::string place = "params." + input->argument();
    return input->kind == RowOperandKind::kSeedTensor ? fmt::format("__ldg({})", place) : place;
  }

  // Empty where there are none, so that a template can tell.
  std::string print_randoms() const {
    if (functions_.randoms.empty()) return {};
    std::string text = fmt::format(
        "\n"
        "  // Random numbers, the last ones of `in`, for neighbouring columns of a row.\n"
        "  struct Random {{\n"
        "    static constexpr int kCount = {};\n"
        "\n"
        "    template <int kNumber, class Params, int kColumns>\n"
        "    static __device__ __forceinline__ void draw(const Params& params, i64 row, int column,\n"
        "                                                float (&out)[kColumns]) {{\n",
        functions_.randoms.size());
    // Threads of a CTA's last rows draw, too, and what they draw counts nowhere.
    if (interface_.has_row_numbers)
      text += fmt::format("      if (row < params.rows) row = __ldg(params.{} + row);\n", kRowNumbers);
    for (size_t i = 0; i < functions_.randoms.size(); ++i) {
      const RowRandom& random = functions_.randoms[i];
      text += fmt::format("      if constexpr (kNumber == {}) draw_uniform<{}, {}>({}, {}, row, column, out);\n", i,
                          random.columns, random.first, seed_text(random.seed), seed_text(random.offset));
    }
    return text + "    }\n  };\n";
  }

  Result<std::string> print_struct() const {
    std::vector<std::string> sums, bits;
    uint32_t all = 0;
    for (const RowRound& round : functions_.rounds) {
      sums.push_back(fmt::to_string(Function(round.summands).getNumResults()));
      bits.push_back(fmt::format("{:#x}", reads(round.summands)));
      all |= reads(round.summands);
    }
    bits.push_back(fmt::format("{:#x}", reads(functions_.outputs)));
    all |= reads(functions_.outputs);
    for (size_t i = 0; i < elements_.size(); ++i) {
      if ((all >> i & 1) == 0) return Status(Code::kInternal, fmt::format("nothing reads the input {}", elements_[i]));
    }
    std::string text = fmt::format(
        "// The functions by number. `in` has an element of each of {}, and `row` what is known of the row.\n"
        "struct Row {{\n"
        "  static constexpr int kRounds = {};\n"
        "  static constexpr int kMaxSums = {};\n",
        fmt::join(elements_, ", "), functions_.rounds.size(), functions_.max_sums());
    if (!sums.empty())
      text += fmt::format("  static constexpr int kSums[] = {{{}}};  // of each round\n", fmt::join(sums, ", "));
    text += fmt::format(
        "  static constexpr u32 kReads[] = {{{}}};  // inputs of each round and of the outputs, a bit each\n",
        fmt::join(bits, ", "));
    text += "\n  struct Statistics {\n";
    for (const std::string& statistic : statistics_) text += fmt::format("    float {};\n", statistic);
    text += "  };\n" + print_randoms();
    if (!sums.empty()) {
      HSTUJIT_ASSIGN_OR_RETURN(const std::string summands, print_summands());
      HSTUJIT_ASSIGN_OR_RETURN(const std::string numbers, print_statistics());
      text += summands + numbers;
    }
    HSTUJIT_ASSIGN_OR_RETURN(const std::string outputs, print_outputs());
    return text + outputs + "};\n\n";
  }

  const RowFunctions& functions_;
  const RowInterface& interface_;
  const Activation activation_;
  const std::vector<std::string> statistics_;
  std::vector<std::string> elements_, scalars_, outputs_;  // names, in the order of their numbers
  llvm::DenseSet<mlir::Operation*> summed_;                // what goes into sums over rows
};

}  // namespace

Result<std::string> print_row(const RowFunctions& functions, const RowInterface& interface, Activation activation) {
  return RowPrinter(functions, interface, activation).print();
}

}  // namespace hstujit
