#include "runtime/data_checks.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

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

}  // namespace

Status check_jagged(const std::vector<int64_t>& seq_offsets, const std::vector<int64_t>& num_targets,
                    int64_t max_seq_len, int64_t total_rows) {
  const auto fail = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (!seq_offsets.empty() && seq_offsets[0] != 0) {
    return fail(fmt::format("seq_offsets[0] is {}; it must be 0", seq_offsets[0]));
  }
  for (size_t i = 1; i < seq_offsets.size(); ++i) {
    const int64_t rows = seq_offsets[i] - seq_offsets[i - 1];
    if (rows < 0) {
      return fail(fmt::format("seq_offsets[{}] is {}; it must be at least seq_offsets[{}], which is {}", i,
                              seq_offsets[i], i - 1, seq_offsets[i - 1]));
    }
    if (seq_offsets[i] > total_rows) {
      return fail(fmt::format("seq_offsets[{}] is {}; it must be at most L = {}", i, seq_offsets[i], total_rows));
    }
    if (rows > max_seq_len) {
      return fail(fmt::format("sequence {} has {} rows; max_seq_len = {} is allowed", i - 1, rows, max_seq_len));
    }
    if (i - 1 < num_targets.size() && (num_targets[i - 1] < 0 || num_targets[i - 1] > rows)) {
      return fail(fmt::format("num_targets[{}] is {}; it must be between 0 and the sequence's {} rows", i - 1,
                              num_targets[i - 1], rows));
    }
  }
  return {};
}

Status check_launch_data(const CudaDriver* driver, const Signature& signature, const hstujit_value* values,
                         cuda::Stream stream) {
  const int offsets_index = find_argument(signature, "seq_offsets");
  if (offsets_index < 0) return {};
  if (driver != nullptr) {
    cuda::CaptureStatus capturing = cuda::kCaptureNone;
    HSTUJIT_CUDA_CHECK(*driver, stream_is_capturing(stream, &capturing));
    if (capturing != cuda::kCaptureNone) return {};
    HSTUJIT_CUDA_CHECK(*driver, stream_synchronize(stream));
  }
  HSTUJIT_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                           read_integers(driver, signature[offsets_index], *values[offsets_index].tensor));
  std::vector<int64_t> targets;
  if (const int index = find_argument(signature, "num_targets"); index >= 0) {
    HSTUJIT_ASSIGN_OR_RETURN(targets, read_integers(driver, signature[index], *values[index].tensor));
  }
  int64_t max_seq_len = std::numeric_limits<int64_t>::max();
  if (const int index = find_argument(signature, "max_seq_len"); index >= 0) max_seq_len = values[index].integer;
  int64_t total_rows = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].kind == ArgumentKind::kTensor && !signature[i].shape.empty() && signature[i].shape[0].is("L")) {
      total_rows = values[i].tensor->shape[0];
      break;
    }
  }
  return check_jagged(offsets, targets, max_seq_len, total_rows);
}

}  // namespace hstujit
