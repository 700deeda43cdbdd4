// A problem instance in device memory, ready to be launched.
#pragma once

#include "operations/tuning/data/device_buffers.h"
#include "operations/tuning/data/problem_data.h"

namespace hstujit {

class DeviceProblem {
 public:
  // Uploads the inputs into the current context, which is on device `ordinal`; outputs are poison.
  static Result<DeviceProblem> upload(const CudaDriverPtr& driver, const ProblemData& problem, int ordinal);

  const hstujit_value* values() const { return values_.values(); }
  size_t count() const { return values_.count(); }

  // Outputs to poison again, before another kernel writes them; done on `stream`.
  Status poison_outputs(cuda::Stream stream);
  // The bytes of one argument, a tensor. The caller has synchronised.
  Result<std::vector<std::byte>> download(size_t argument) const;
  // By argument; empty for inputs. The caller has synchronised.
  Result<std::vector<std::vector<std::byte>>> download_outputs() const;

 private:
  DeviceProblem(Signature signature, std::vector<DeviceBuffer> buffers, LaunchValues values)
      : signature_(std::move(signature)), buffers_(std::move(buffers)), values_(std::move(values)) {}

  Signature signature_;
  std::vector<DeviceBuffer> buffers_;
  LaunchValues values_;
};

}  // namespace hstujit
