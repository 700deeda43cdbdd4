#include "compiler/emit/launcher_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "compiler/emit/expression.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

struct DeviceType {
  const char* name;     // what the buffer holds
  const char* convert;  // from float
  const char* tensor_map;
};

DeviceType device_type(DataType type) {
  switch (type) {
    case DataType::kBf16:
      return {"uint16_t", "to_bf16", "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"};
    case DataType::kFp16:
      return {"uint16_t", "to_fp16", "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"};
    case DataType::kFp32:
      return {"float", "[](float x) { return x; }", "CU_TENSOR_MAP_DATA_TYPE_FLOAT32"};
    case DataType::kInt32:
      return {"int32_t", "", "CU_TENSOR_MAP_DATA_TYPE_INT32"};
    case DataType::kInt64:
      return {"int64_t", "", "CU_TENSOR_MAP_DATA_TYPE_INT64"};
  }
  return {"", "", ""};
}

bool is_real(DataType type) { return type != DataType::kInt32 && type != DataType::kInt64; }

// Values that a launch gets where a signature has no more than a name and a type. A value that is not in this table is
// a member of the program's `struct Chosen`, for its user to change:
//
//   symbol    L                 rows of the batch
//             B                 its sequences
//             Lq                the last Chosen::max_delta_len rows of each sequence, or all it has
//             of offsets        its share of the batch's rows: offsets of all such axes have them together
//             another           Chosen::size_<symbol>, 1024
//   integer   most rows, of L   the batch's max_seq_len
//             most rows, of Lq  Chosen::max_delta_len, 64
//             of an axis        where L is jagged the batch's max_seq_len: rows of each sequence
//             another           Chosen::<name>, 0: an optional size is at its default
//   real      every             Chosen::<name>, 1
//   tensor    offsets, of L     the batch's
//             offsets, of Lq    as Lq
//             other offsets     as their symbol
//             counts, of L      Chosen::<name>, 8, for each sequence, but never more than it has rows
//             other integers    0, which is a valid index and a valid count
//             reals             random numbers in [-1, 1)
struct Known {
  std::string_view name;
  std::string_view text;
};
constexpr Known kSymbols[] = {
    {"L", "batch.rows()"}, {"B", "batch.sequences()"}, {"Lq", "batch.query_offsets(Chosen::max_delta_len).back()"}};
template <size_t count>
std::string_view look_up(const Known (&table)[count], std::string_view name) {
  for (const Known& known : table) {
    if (known.name == name) return known.text;
  }
  return {};
}

bool is_max_rows(const Argument& argument, std::string_view axis) {
  return argument.semantic == Semantic::kMaxRows && argument.axis == axis;
}

// Whether the batch says the integer, and not the program's user.
bool is_max_seq_len(const Signature& signature, const Argument& argument) {
  if (is_max_rows(argument, kSequenceAxis)) return true;
  const bool of_axis = std::any_of(signature.begin(), signature.end(), [&](const Argument& tensor) {
    return !tensor.shape.empty() && tensor.shape[0].is_uniform() && tensor.shape[0].integer == argument.name;
  });
  return argument.semantic == Semantic::kData && of_axis &&
         find_argument(signature, Semantic::kOffsets, kSequenceAxis) >= 0;
}

std::string scalar_text(const Signature& signature, std::string_view name) {
  const int index = find_argument(signature, name);
  if (index >= 0 && is_max_seq_len(signature, signature[static_cast<size_t>(index)])) return "batch.max_seq_len";
  return fmt::format("Chosen::{}", name);
}

// Offsets of an axis that has a share of each sequence's rows; empty for another.
std::string shared_offsets(const Signature& signature, std::string_view axis) {
  int shares = 0, own = -1;
  for (const Argument& argument : signature) {
    if (argument.semantic != Semantic::kOffsets || argument.axis == kSequenceAxis || argument.axis == kQueryAxis)
      continue;
    if (argument.axis == axis) own = shares;
    ++shares;
  }
  return own < 0 ? "" : fmt::format("batch.shared_offsets({}, {})", own, shares);
}

// The numbers of an integer tensor; empty for one that only has to be valid.
std::string integers_text(const Signature& signature, const Argument& argument) {
  if (argument.semantic == Semantic::kCounts) return fmt::format("batch.targets(Chosen::{})", argument.name);
  if (argument.semantic != Semantic::kOffsets) return {};
  if (const std::string shared = shared_offsets(signature, argument.axis); !shared.empty()) return shared;
  return argument.axis == kSequenceAxis ? "batch.offsets" : "batch.query_offsets(Chosen::max_delta_len)";
}

CExpression number(int64_t value) { return {fmt::to_string(value)}; }

// Sums with 0 and products and quotients with 1 are what they are of.
CExpression sum(const CExpression& a, int64_t b) {
  return b == 0 ? a : binary(a, b < 0 ? "-" : "+", number(std::abs(b)), Precedence::kSum, true);
}

CExpression product(const CExpression& a, const CExpression& b) {
  if (a.text == "1") return b;
  return b.text == "1" ? a : binary(a, "*", b, Precedence::kProduct, true);
}

CExpression quotient(const CExpression& a, int64_t divisor) {
  return divisor == 1 ? a : call("ceil_divide", {a, number(divisor)});
}

CExpression extent(const Signature& signature, const Dimension& dimension) {
  if (dimension.is_constant()) return number(dimension.bias);
  if (dimension.is_scalar()) return {scalar_text(signature, dimension.integer)};
  const std::string_view known = look_up(kSymbols, dimension.symbol);
  const std::string shared = shared_offsets(signature, dimension.symbol);
  CExpression size{!shared.empty() ? shared + ".back()"
                   : known.empty() ? fmt::format("Chosen::size_{}", dimension.symbol)
                                   : std::string(known)};
  if (dimension.is_uniform()) size = product(size, {scalar_text(signature, dimension.integer)});
  return sum(product(number(dimension.factor), size), dimension.bias);
}

std::string size_text(const Signature& signature, const Dimension& dimension) {
  return extent(signature, dimension).text;
}

// Elements of the axes from `first` on. Tensors are contiguous, but rows as long as an integer says end where the
// alignment lets the next one begin.
std::string elements_text(const Signature& signature, const Argument& argument, size_t first = 0) {
  CExpression elements = number(1);
  for (size_t i = first; i < argument.shape.size(); ++i) {
    CExpression size = extent(signature, argument.shape[i]);
    const int64_t unit = argument.alignment / static_cast<int64_t>(size_of(argument.dtype));
    if (argument.shape[i].is_scalar() && i > 0 && i + 1 == argument.shape.size() && unit > 1)
      size = product(quotient(size, unit), number(unit));
    elements = product(elements, size);
  }
  return elements.text;
}

CExpression factor_of(const Signature& signature, const GridFactor& factor) {
  const auto whole = [&](const CExpression& source) { return quotient(sum(source, factor.bias), factor.divisor); };
  switch (factor.source) {
    case GridFactor::Source::kConstant:
      return number(factor.constant);
    case GridFactor::Source::kScalar:
      return whole({signature[static_cast<size_t>(factor.argument)].name});
    case GridFactor::Source::kSize:
      return whole(extent(
          signature, signature[static_cast<size_t>(factor.argument)].shape[static_cast<size_t>(factor.dimension)]));
  }
  return {};
}

}  // namespace

std::string print_choices(const Signature& signature) {
  std::vector<std::string> members;
  const auto add = [&](std::string member) {
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(std::move(member));
  };
  for (const Argument& argument : signature) {
    for (const Dimension& dimension : argument.shape) {
      if (dimension.symbol.empty() || !look_up(kSymbols, dimension.symbol).empty() ||
          !shared_offsets(signature, dimension.symbol).empty())
        continue;
      add(fmt::format("  static constexpr int64_t size_{} = 1024;\n", dimension.symbol));
    }
    if (argument.kind == ArgumentKind::kInt && !is_max_seq_len(signature, argument)) {
      add(fmt::format("  static constexpr int64_t {} = {};\n", argument.name,
                      is_max_rows(argument, kQueryAxis) ? 64 : 0));
    }
    if (argument.kind == ArgumentKind::kFloat) add(fmt::format("  static constexpr double {} = 1.0;\n", argument.name));
    if (argument.semantic == Semantic::kCounts)
      add(fmt::format("  static constexpr int64_t {} = 8;  // of a sequence, when it has that many rows\n",
                      argument.name));
  }
  if (members.empty()) return {};
  std::string text = "\n// What the kernel does not say: change it to what the model has.\nstruct Chosen {\n";
  for (const std::string& member : members) text += member;
  return text + "};\n";
}

std::string declare_argument(const Signature& signature, const Argument& argument) {
  if (argument.kind != ArgumentKind::kTensor) {
    const bool real = argument.kind == ArgumentKind::kFloat;
    return fmt::format("  const {} {} = {};\n", real ? "double" : "int64_t", argument.name,
                       real ? "Chosen::" + argument.name : scalar_text(signature, argument.name));
  }
  const DeviceType type = device_type(argument.dtype);
  if (is_real(argument.dtype)) {
    return fmt::format("  {0}* const {1} = random_tensor<{0}>({2}, {3});\n", type.name, argument.name,
                       elements_text(signature, argument), type.convert);
  }
  const std::string known = integers_text(signature, argument);
  const std::string values = known.empty()
                                 ? fmt::format("std::vector<{}>({}, 0)", type.name, elements_text(signature, argument))
                                 : fmt::format("convert<{}>({})", type.name, known);
  return fmt::format("  {}* const {} = upload({});\n", type.name, argument.name, values);
}

std::string map_text(const Signature& signature, const Argument& argument, const TensorMapPlan& map) {
  std::vector<std::string> sizes, strides;
  std::vector<int> box;
  for (const TensorMapPlan::Axis& axis : map.axes) {
    const auto dimension = static_cast<size_t>(axis.dimension);
    sizes.push_back(size_text(signature, argument.shape[dimension]));
    strides.push_back(elements_text(signature, argument, dimension + 1));
    box.push_back(axis.box);
  }
  const std::string swizzle = map.swizzle_bytes == 0 ? "NONE" : fmt::format("{}B", map.swizzle_bytes);
  return fmt::format("encode_map({}, {}, {}, {{{}}}, {{{}}}, {{{}}}, CU_TENSOR_MAP_SWIZZLE_{})", argument.name,
                     device_type(argument.dtype).tensor_map, size_of(argument.dtype), fmt::join(sizes, ", "),
                     fmt::join(strides, ", "), fmt::join(box, ", "), swizzle);
}

std::string slot_value(const Signature& signature, const ParamSlot& slot) {
  const Argument& argument = signature[static_cast<size_t>(slot.argument)];
  const auto dimension = static_cast<size_t>(slot.dimension);
  switch (slot.kind) {
    case ParamSlot::Kind::kPointer:
      return fmt::format("reinterpret_cast<{}>({})", slot.type, argument.name);
    case ParamSlot::Kind::kStride:
      return elements_text(signature, argument, dimension + 1);
    case ParamSlot::Kind::kSize:
      return sum(extent(signature, argument.shape[dimension]), slot.bias).text;
    case ParamSlot::Kind::kFloat:
      return fmt::format("static_cast<float>({})", argument.name);
    case ParamSlot::Kind::kInt:
      return fmt::format("static_cast<int>({})", argument.name);
    case ParamSlot::Kind::kLong:
      return argument.name;
    case ParamSlot::Kind::kInverse:
      return fmt::format("1.0f / static_cast<float>({0} > 0 ? {0} : {1})", argument.name,
                         signature[static_cast<size_t>(slot.fallback)].name);
    case ParamSlot::Kind::kTensorMap:
      return map_text(signature, argument, slot.map);
    case ParamSlot::Kind::kWorkspace:
      return fmt::format("reinterpret_cast<{}>(workspace + region_{})", slot.type, slot.region);
  }
  return {};
}

std::string product_text(const Signature& signature, const std::vector<GridFactor>& factors) {
  CExpression text = number(1);
  for (const GridFactor& factor : factors) text = product(text, factor_of(signature, factor));
  return text.text;
}

}  // namespace hstujit
