#include "operations/api/worker_api.h"
#include "operations/tuning/timing/device_bench.h"
#include "operations/tuning/worker/worker_server.h"
#include "runtime/dispatch/bench_problem.h"

namespace hstujit {

namespace {

Result<std::unique_ptr<CandidateBench>> open_device_bench(const nlohmann::ordered_json& json) {
  HSTUJIT_ASSIGN_OR_RETURN(const BenchProblem problem, parse_bench_problem(json));
  HSTUJIT_ASSIGN_OR_RETURN(CudaDriverPtr driver, CudaDriver::open(problem.cuda_driver));
  HSTUJIT_ASSIGN_OR_RETURN(auto bench,
                           DeviceBench::create(std::move(driver), problem.spec, problem.direction, problem.device,
                                               problem.ordinal, problem.lengths, problem.alpha));
  return std::unique_ptr<CandidateBench>(std::move(bench));
}

}  // namespace

}  // namespace hstujit

void hstujit_worker_serve(int socket) {
  hstujit::serve_worker(hstujit::Descriptor(socket), &hstujit::open_device_bench);
}
