// A worker process without a GPU: each candidate does what the text of its "cubin" says.
//
//   ok <milliseconds>   is right and takes that long
//   wrong               disagrees with the reference
//   fault               loses the device context, as a faulting kernel does
//   segfault, abort, exit, kill, hang   does that when it is validated
//   slow-segfault       is right, and crashes when it is timed
//   note, flood, noise  says what no worker says when it is validated: once, without an end, or as no message
//   talk                is wrong, in a million letters
//   torn                is right, and has one sample whatever it is asked for
//
// FAKE_WORKER_GENERATOR: the generator that it says; "none": it does not know the question, like older workers.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "operations/tuning/worker/worker_process.h"
#include "operations/tuning/worker/worker_server.h"

namespace {

using namespace hstujit;

// Beside the server's own messages.
void say(const nlohmann::ordered_json& head) {
  WorkerChannel channel{Descriptor(::dup(kWorkerSocket))};
  if (!channel.send({head, ""}, std::chrono::steady_clock::now() + std::chrono::seconds(10))) ::_exit(1);
}

// Notes faster than anybody reads them, from several processes; they end with the socket.
[[noreturn]] void flood() {
  const std::string note = R"({"launching": 1})";
  const std::string frame = std::string({static_cast<char>(note.size()), 0, 0, 0, 0, 0, 0, 0}) + note;
  for (int i = 0; i < 3; ++i) static_cast<void>(::fork());
  while (::send(kWorkerSocket, frame.data(), frame.size(), MSG_NOSIGNAL) > 0) {
  }
  ::_exit(1);
}

class ScriptedBench final : public CandidateBench {
 public:
  Result<int> load(const CompiledCandidate& candidate) override {
    if (candidate.cubin == "unloadable") return Status(Code::kDriverError, "no kernel image for this device");
    scripts_.emplace(next_, candidate.cubin);
    return next_++;
  }
  void unload(int number) override { scripts_.erase(number); }
  Status validate(int number) override {
    const std::string& script = scripts_.at(number);
    if (script == "wrong") return Status(Code::kCheckFailed, "out differs from the reference");
    if (script == "fault") {
      state_ = BenchState::kCrashed;
      return Status(Code::kDriverError, "an illegal memory access was encountered");
    }
    if (script == "segfault") ::raise(SIGSEGV);
    if (script == "abort") ::abort();
    if (script == "exit") ::_exit(7);
    if (script == "kill") ::raise(SIGKILL);
    while (script == "hang") ::pause();
    if (script == "note") say({{"launching", "me"}});
    if (script == "flood") flood();
    if (script == "noise") say(7);
    if (script == "talk") return Status(Code::kCheckFailed, std::string(1 << 20, 'a'));
    return {};
  }
  Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats) override {
    std::vector<std::vector<double>> samples;
    for (const int number : numbers) {
      const std::string& script = scripts_.at(number);
      launching(number);
      if (script == "slow-segfault") ::raise(SIGSEGV);
      const bool torn = script == "torn";
      samples.emplace_back(torn ? 1 : static_cast<size_t>(repeats),
                           torn ? 1 : std::atof(script.c_str() + sizeof("ok")));
    }
    return samples;
  }

  BenchState state() override { return state_; }
  int culprit() const override { return 0; }

 private:
  BenchState state_ = BenchState::kSound;
  std::map<int, std::string> scripts_;
  int next_ = 0;
};

Result<std::unique_ptr<CandidateBench>> open_bench(const nlohmann::ordered_json& problem) {
  const auto script = problem.value("script", "");
  if (script == "fail") return Status(Code::kOutOfMemory, "the device has no memory left");
  if (script == "segfault") ::raise(SIGSEGV);
  while (script == "hang") ::pause();
  return std::unique_ptr<CandidateBench>(std::make_unique<ScriptedBench>());
}

// Answers the first request as a worker of another build does.
void say_generator(const std::string& generator) {
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  WorkerChannel channel{Descriptor(::dup(kWorkerSocket))};
  WorkerMessage request;
  WorkerChannel::End end = WorkerChannel::End::kClosed;
  if (!channel.receive(&request, soon, &end)) ::_exit(1);
  if (generator == "none") {
    say({{"code", static_cast<int>(Code::kInvalidArgument)}, {"message", "worker request \"generator\""}});
  } else {
    say({{"generator", generator}, {"code", 0}, {"message", ""}});
  }
}

}  // namespace

int main() {
  if (const char* const generator = std::getenv("FAKE_WORKER_GENERATOR")) say_generator(generator);
  // A sanitizer would report these and exit.
  ::signal(SIGABRT, SIG_DFL);
  ::signal(SIGSEGV, SIG_DFL);
  hstujit::serve_worker(hstujit::Descriptor(hstujit::kWorkerSocket), &open_bench);
}
