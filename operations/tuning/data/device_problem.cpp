#include "operations/tuning/data/device_problem.h"

namespace hstujit {

Result<DeviceProblem> DeviceProblem::upload(const CudaDriverPtr& driver, const ProblemData& problem, int ordinal) {
  std::vector<DeviceBuffer> buffers(problem.signature.size());
  std::vector<void*> addresses(problem.signature.size(), nullptr);
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    if (problem.signature[i].kind != ArgumentKind::kTensor) continue;
    const std::vector<std::byte>& image = problem.images[i];
    HSTUJIT_ASSIGN_OR_RETURN(buffers[i],
                             DeviceBuffer::allocate(driver, problem.sizes.empty() ? image.size() : problem.sizes[i]));
    HSTUJIT_RETURN_IF_ERROR(buffers[i].upload(image.data(), image.size()));
    addresses[i] = buffers[i].data();
  }
  return DeviceProblem(problem.signature, std::move(buffers), LaunchValues(problem, addresses, {kDLCUDA, ordinal}));
}

Status DeviceProblem::poison_outputs(cuda::Stream stream) {
  for (size_t i = 0; i < signature_.size(); ++i) {
    if (signature_[i].role == ArgumentRole::kOutput) HSTUJIT_RETURN_IF_ERROR(buffers_[i].fill(kPoison, stream));
  }
  return {};
}

Result<std::vector<std::byte>> DeviceProblem::download(size_t argument) const {
  std::vector<std::byte> bytes(buffers_[argument].size());
  HSTUJIT_RETURN_IF_ERROR(buffers_[argument].download(bytes.data(), bytes.size()));
  return bytes;
}

Result<std::vector<std::vector<std::byte>>> DeviceProblem::download_outputs() const {
  std::vector<std::vector<std::byte>> outputs(signature_.size());
  for (size_t i = 0; i < signature_.size(); ++i) {
    if (signature_[i].role != ArgumentRole::kOutput) continue;
    HSTUJIT_ASSIGN_OR_RETURN(outputs[i], download(i));
  }
  return outputs;
}

}  // namespace hstujit
