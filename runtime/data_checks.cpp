#include "runtime/data_checks.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <utility>

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

// The integer argument that no sequence's rows exceed, by the name of the offsets.
std::string_view most_rows_argument(std::string_view offsets) {
  if (offsets == "seq_offsets") return "max_seq_len";
  return offsets == "seq_offsets_q" ? "max_delta_len" : std::string_view();
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
    if (const int64_t rows = offsets[i] - offsets[i - 1]; rows > axis.most_rows) {
      return fail(fmt::format("sequence {} has {} rows by {}; {} = {} is allowed", i - 1, rows, axis.offsets,
                              axis.most_rows_name, axis.most_rows));
    }
  }
  return {};
}

Status check_targets(const std::vector<int64_t>& seq_offsets, const std::vector<int64_t>& num_targets) {
  for (size_t i = 0; i < num_targets.size(); ++i) {
    const int64_t rows = seq_offsets[i + 1] - seq_offsets[i];
    if (num_targets[i] < 0 || num_targets[i] > rows) {
      return fail(fmt::format("num_targets[{}] is {}; it must be between 0 and the sequence's {} rows", i,
                              num_targets[i], rows));
    }
  }
  return {};
}

Status check_launch_data(const CudaDriver* driver, const Signature& signature, const hstujit_value* values,
                         cuda::Stream stream) {
  if (find_argument(signature, "seq_offsets") < 0) return {};
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
      if (const int most = find_argument(signature, most_rows_argument(dimension.offsets)); most >= 0) {
        axis.most_rows_name = signature[static_cast<size_t>(most)].name;
        axis.most_rows = values[most].integer;
      }
      HSTUJIT_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, integers(offsets_index));
      HSTUJIT_RETURN_IF_ERROR(check_jagged(axis, offsets));
      checked.emplace(dimension.offsets, std::move(offsets));
    }
  }
  if (const int index = find_argument(signature, "num_targets"); index >= 0) {
    auto offsets = checked.find("seq_offsets");
    if (offsets == checked.end()) {
      HSTUJIT_ASSIGN_OR_RETURN(std::vector<int64_t> read, integers(find_argument(signature, "seq_offsets")));
      offsets = checked.emplace("seq_offsets", std::move(read)).first;
    }
    HSTUJIT_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, integers(index));
    return check_targets(offsets->second, targets);
  }
  return {};
}

}  // namespace hstujit
