#include "runtime/launch/data_checks.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "compiler/spec/limits.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

Result<std::vector<int64_t>> read_integers(const CudaDriver* driver, const Argument& argument, const DLTensor& tensor) {
  const auto count = static_cast<size_t>(tensor.shape[0]);
  std::vector<char> bytes(count * size_of(argument.dtype));
  const char* const data = tensor_data(tensor);
  if (driver == nullptr) {
    std::memcpy(bytes.data(), data, bytes.size());
  } else if (!bytes.empty()) {
    HSTUJIT_CUDA_CHECK(*driver, copy_to_host(bytes.data(), reinterpret_cast<cuda::DevicePtr>(data), bytes.size()));
  }
  std::vector<int64_t> integers(count);
  for (size_t i = 0; i < count; ++i) {
    if (argument.dtype == DataType::kInt64) {
      std::memcpy(&integers[i], bytes.data() + i * sizeof(int64_t), sizeof(int64_t));
    } else {
      int32_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + i * sizeof(int32_t), sizeof(int32_t));
      integers[i] = narrow;
    }
  }
  return integers;
}

// `argument` is the element that is wrong; empty: the sentence begins with it.
Status fail(std::string text, std::string argument = "") {
  if (argument.empty()) argument = text.substr(0, text.find(" is "));
  return Status(Code::kInvalidArgument, std::move(text), {std::move(argument), "", "", ""});
}

}  // namespace

Status check_jagged(const JaggedAxis& axis, const std::vector<int64_t>& offsets) {
  if (!offsets.empty() && offsets[0] != 0) {
    return fail(fmt::format("{}[0] is {}; it must be 0", axis.offsets, offsets[0]));
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      return fail(fmt::format("{0}[{1}] is {2}; it must be at least {0}[{3}], which is {4}", axis.offsets, i,
                              offsets[i], i - 1, offsets[i - 1]));
    }
    if (offsets[i] > axis.total_rows) {
      return fail(fmt::format("{}[{}] is {}; it must be at most {} = {}", axis.offsets, i, offsets[i], axis.symbol,
                              axis.total_rows));
    }
    if (const int64_t rows = offsets[i] - offsets[i - 1]; rows > axis.max_rows) {
      const std::string_view equals = axis.max_rows_name.empty() ? "" : " = ";
      return fail(fmt::format("sequence {} has {} by {}; at most {}{}{} are allowed", i - 1, counted(rows, "row"),
                              axis.offsets, axis.max_rows_name, equals, axis.max_rows),
                  fmt::format("{}[{}]", axis.offsets, i));
    }
  }
  if (axis.all_rows && !offsets.empty() && offsets.back() != axis.total_rows) {
    return fail(fmt::format("{}[{}] is {}; it must be {} = {}, because rows after the last sequence would count, too",
                            axis.offsets, offsets.size() - 1, offsets.back(), axis.symbol, axis.total_rows));
  }
  return {};
}

Status check_counts(std::string_view name, const std::vector<int64_t>& offsets, const std::vector<int64_t>& counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t rows = offsets[i + 1] - offsets[i];
    if (counts[i] < 0 || counts[i] > rows) {
      return fail(fmt::format("{}[{}] is {}; it must be between 0 and the sequence's {}", name, i, counts[i],
                              counted(rows, "row")));
    }
  }
  return {};
}

namespace {

// The numbers of a launch's integer tensors, each read once.
class DataChecker {
 public:
  DataChecker(const CudaDriver* driver, const Signature& signature, const hstujit_value* values)
      : driver_(driver), signature_(signature), values_(values) {}

  Status check() {
    // Offsets of axes that tensors have, then those of others, whose rows a tensor without sequences bounds, or none.
    for (size_t i = 0; i < signature_.size(); ++i) {
      for (size_t d = 0; d < signature_[i].shape.size(); ++d) {
        const Dimension& dimension = signature_[i].shape[d];
        if (dimension.is_jagged())
          HSTUJIT_RETURN_IF_ERROR(check_offsets(dimension.offsets, dimension.symbol, values_[i].tensor->shape[d]));
      }
    }
    for (const Argument& argument : signature_) {
      if (argument.semantic == Semantic::kOffsets)
        HSTUJIT_RETURN_IF_ERROR(check_offsets(argument.name, argument.axis, plain_rows(argument.axis)));
    }
    for (size_t i = 0; i < signature_.size(); ++i) {
      if (!signature_[i].joined.empty()) HSTUJIT_RETURN_IF_ERROR(check_joined(signature_[i], *values_[i].tensor));
      if (signature_[i].semantic == Semantic::kCounts) {
        const int of = find_argument(signature_, Semantic::kOffsets, signature_[i].axis);
        HSTUJIT_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, integers(static_cast<int>(i)));
        HSTUJIT_RETURN_IF_ERROR(
            check_counts(signature_[i].name, checked_[signature_[static_cast<size_t>(of)].name], counts));
      }
    }
    return {};
  }

 private:
  // Rows of a tensor of that axis that is not cut at sequences; the largest number where there is none.
  int64_t plain_rows(std::string_view axis) const {
    for (size_t i = 0; i < signature_.size(); ++i) {
      if (has_rows(signature_[i]) && signature_[i].shape[0] == Dimension::of(std::string(axis)))
        return values_[i].tensor->shape[0];
    }
    return std::numeric_limits<int64_t>::max();
  }

  Result<std::vector<int64_t>> integers(int index) const {
    return read_integers(driver_, signature_[static_cast<size_t>(index)], *values_[index].tensor);
  }

  Status check_offsets(std::string_view name, std::string_view symbol, int64_t total_rows) {
    const int index = find_argument(signature_, name);
    if (index < 0 || checked_.contains(name)) return {};
    JaggedAxis axis{name, symbol, total_rows, {}, kMaxSeqLen};
    axis.all_rows = total_rows < std::numeric_limits<int64_t>::max() && every_row_counts(signature_);
    if (const int max = find_argument(signature_, Semantic::kMaxRows, symbol); max >= 0) {
      axis.max_rows_name = signature_[static_cast<size_t>(max)].name;
      axis.max_rows = values_[max].integer;
    }
    HSTUJIT_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, integers(index));
    HSTUJIT_RETURN_IF_ERROR(check_jagged(axis, offsets));
    checked_.emplace(name, std::move(offsets));
    return {};
  }

  // The sequences' rows on an axis are those of others together: they end where its own offsets say, or within it.
  Status check_joined(const Argument& argument, const DLTensor& tensor) const {
    const Dimension& rows = argument.shape[0];
    const auto own = checked_.find(rows.offsets);
    size_t count = 0;
    for (const std::string& axis : argument.joined) {
      if (const auto offsets = checked_.find(axis); offsets != checked_.end()) count = offsets->second.size();
    }
    for (size_t b = 0; b < count; ++b) {
      int64_t end = 0;
      const bool counted = end_of(argument.joined, b, end);
      if (own != checked_.end() && (!counted || own->second[b] != end)) {
        return fail(fmt::format("{}[{}] is {}; it must be {}{}", rows.offsets, b, own->second[b],
                                joined_text(argument.joined, b),
                                counted ? fmt::format(", which is {}", end) : std::string()));
      }
      if (!counted || end > tensor.shape[0]) {
        return fail(fmt::format("{} is {}; it must be at most the rows of {}, {}", joined_text(argument.joined, b),
                                counted ? std::to_string(end) : "more than 64 bits hold", argument.name,
                                tensor.shape[0]));
      }
    }
    return {};
  }

  // Where the rows of the sequences before `b` end; false where that is no number.
  bool end_of(const std::vector<std::string>& axes, size_t b, int64_t& end) const {
    end = 0;
    for (const std::string& axis : axes) {
      const auto offsets = checked_.find(axis);
      int64_t rows = 0;
      if (offsets != checked_.end()) {
        rows = offsets->second[b];
      } else if (__builtin_mul_overflow(values_[find_argument(signature_, axis)].integer, static_cast<int64_t>(b),
                                        &rows)) {
        return false;
      }
      if (__builtin_add_overflow(end, rows, &end)) return false;
    }
    return true;
  }

  // "offsets_left[2] + 2 * max_len_right".
  std::string joined_text(const std::vector<std::string>& axes, size_t b) const {
    std::string text;
    for (const std::string& axis : axes) {
      if (!text.empty()) text += " + ";
      text += checked_.contains(axis) ? fmt::format("{}[{}]", axis, b) : fmt::format("{} * {}", b, axis);
    }
    return text;
  }

  const CudaDriver* driver_;
  const Signature& signature_;
  const hstujit_value* values_;
  std::map<std::string_view, std::vector<int64_t>> checked_;  // offsets, by their names in the signature
};

}  // namespace

Status check_launch_data(const CudaDriver* driver, const Signature& signature, const hstujit_value* values,
                         cuda::Stream stream) {
  if (find_argument(signature, Semantic::kOffsets) < 0) return {};
  if (driver != nullptr) {
    cuda::CaptureStatus capturing = cuda::kCaptureNone;
    HSTUJIT_CUDA_CHECK(*driver, stream_is_capturing(stream, &capturing));
    if (capturing != cuda::kCaptureNone) return {};
    HSTUJIT_CUDA_CHECK(*driver, stream_synchronize(stream));
  }
  return DataChecker(driver, signature, values).check();
}

}  // namespace hstujit
