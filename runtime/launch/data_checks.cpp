#include "runtime/launch/data_checks.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <utility>

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

Status fail(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

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
      return fail(fmt::format("sequence {} has {} by {}; at most {} = {} are allowed", i - 1, counted(rows, "row"),
                              axis.offsets, axis.max_rows_name, axis.max_rows));
    }
  }
  if (axis.all_rows && !offsets.empty() && offsets.back() != axis.total_rows) {
    return fail(fmt::format("{}[{}] is {}; it must be {} = {}, since rows behind the last sequence would count, too",
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

Status check_launch_data(const CudaDriver* driver, const Signature& signature, const hstujit_value* values,
                         cuda::Stream stream) {
  if (find_argument(signature, Semantic::kOffsets) < 0) return {};
  if (driver != nullptr) {
    cuda::CaptureStatus capturing = cuda::kCaptureNone;
    HSTUJIT_CUDA_CHECK(*driver, stream_is_capturing(stream, &capturing));
    if (capturing != cuda::kCaptureNone) return {};
    HSTUJIT_CUDA_CHECK(*driver, stream_synchronize(stream));
  }
  const auto integers = [&](int index) {
    return read_integers(driver, signature[static_cast<size_t>(index)], *values[index].tensor);
  };
  std::map<std::string_view, std::vector<int64_t>> checked;  // by the name of the offsets
  for (size_t i = 0; i < signature.size(); ++i) {
    for (size_t d = 0; d < signature[i].shape.size(); ++d) {
      const Dimension& dimension = signature[i].shape[d];
      const int offsets_index = find_argument(signature, dimension.offsets);
      if (offsets_index < 0 || checked.contains(dimension.offsets)) continue;
      JaggedAxis axis{dimension.offsets, dimension.symbol, values[i].tensor->shape[d], {}};
      axis.all_rows = every_row_counts(signature);
      if (const int max = find_argument(signature, Semantic::kMaxRows, dimension.symbol); max >= 0) {
        axis.max_rows_name = signature[static_cast<size_t>(max)].name;
        axis.max_rows = values[max].integer;
      }
      HSTUJIT_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, integers(offsets_index));
      HSTUJIT_RETURN_IF_ERROR(check_jagged(axis, offsets));
      checked.emplace(dimension.offsets, std::move(offsets));
    }
  }
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].semantic != Semantic::kCounts) continue;
    const int index = find_argument(signature, Semantic::kOffsets, signature[i].axis);
    const std::string& name = signature[static_cast<size_t>(index)].name;
    if (!checked.contains(name)) {
      HSTUJIT_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, integers(index));
      checked.emplace(name, std::move(offsets));
    }
    HSTUJIT_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, integers(static_cast<int>(i)));
    HSTUJIT_RETURN_IF_ERROR(check_counts(signature[i].name, checked[name], counts));
  }
  return {};
}

}  // namespace hstujit
