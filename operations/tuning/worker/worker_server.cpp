#include "operations/tuning/worker/worker_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "compiler/generator/generator_digest.h"
#include "compiler/support/json.h"
#include "compiler/support/threads.h"
#include "operations/tuning/worker/worker_compile.h"

namespace hstujit {

namespace {

constexpr std::chrono::hours kNoLimit{24 * 365};

[[noreturn]] void end_process() { ::_exit(EXIT_SUCCESS); }

// Without a thread the process ends when it is done with what it is doing, and reads from the socket again.
void end_process_with(int socket) {
  auto watching = start_thread([socket] {
    pollfd poller{socket, POLLRDHUP, 0};
    while (::poll(&poller, 1, -1) <= 0) {
    }
    end_process();
  });
  if (watching) watching->detach();
}

class Server {
 public:
  Server(const BenchOpener& open_bench, std::function<void(int)> observer)
      : open_bench_(open_bench), observer_(std::move(observer)) {}

  WorkerMessage answer(const WorkerMessage& request) {
    WorkerMessage reply{Json::object(), ""};
    Status status;
    try {
      status = run(request, &reply);
    } catch (const std::exception& error) {
      status =
          Status(Code::kInvalidArgument, fmt::format("worker request {}: {}", brief_json(request.head), error.what()));
    }
    if (!status.ok() && bench_) reply.head["state"] = static_cast<int>(bench_->state());
    reply.head["code"] = static_cast<int>(status.code());
    reply.head["message"] = status.message();
    return reply;
  }

 private:
  Status run(const WorkerMessage& request, WorkerMessage* reply) {
    const Json& head = request.head;
    const auto action = head.at("do").get<std::string>();
    if (action == "generator") {
      reply->head["generator"] = generator_digest();
      return {};
    }
    if (action == "compiler") {
      HSTUJIT_ASSIGN_OR_RETURN(
          compiler_, open_compiler_of({head.at("library").get<std::string>(), head.at("nvrtc").get<std::string>()}));
      return {};
    }
    if (action == "emit" || action == "compile") return compile(action, head.at("request"), reply);
    if (action == "open") {
      HSTUJIT_ASSIGN_OR_RETURN(bench_, open_bench_(head.at("problem")));
      bench_->observe_launches(observer_);
      return {};
    }
    return run_bench(action, request, &reply->head);
  }

  Status compile(const std::string& action, const Json& json, WorkerMessage* reply) {
    if (!compiler_) {
      return Status(Code::kInvalidArgument, fmt::format("worker request \"{}\" before \"compiler\"", action));
    }
    HSTUJIT_ASSIGN_OR_RETURN(const CompileRequest request, parse_compile_request(json));
    HSTUJIT_ASSIGN_OR_RETURN(const Blobs blobs,
                             action == "emit" ? compiler_->emit(request) : compiler_->compile(request));
    put_blobs(blobs, reply);
    return {};
  }

  Status run_bench(const std::string& action, const WorkerMessage& request, Json* reply) {
    const Json& head = request.head;
    if (!bench_) return Status(Code::kInvalidArgument, fmt::format("worker request \"{}\" before \"open\"", action));
    if (action == "load") {
      HSTUJIT_ASSIGN_OR_RETURN(const KernelConfig config, parse_kernel_config(head.at("config")));
      HSTUJIT_ASSIGN_OR_RETURN((*reply)["number"], bench_->load({config, request.body}));
      return {};
    }
    if (action == "unload") {
      bench_->unload(head.at("number").get<int>());
      return {};
    }
    if (action == "validate") return bench_->validate(head.at("number").get<int>());
    if (action == "time") {
      HSTUJIT_ASSIGN_OR_RETURN((*reply)["samples"],
                               bench_->time(head.at("numbers").get<std::vector<int>>(), head.at("repeats").get<int>()));
      return {};
    }
    return Status(Code::kInvalidArgument,
                  fmt::format("worker request \"{}\"; known are generator, open, load, unload, validate, "
                              "time, compiler, emit and compile",
                              action));
  }

  const BenchOpener& open_bench_;
  std::function<void(int)> observer_;
  std::unique_ptr<CandidateBench> bench_;
  KernelCompilerPtr compiler_;
};

}  // namespace

void serve_worker(Descriptor socket, const BenchOpener& open_bench) {
  end_process_with(socket.number());
  WorkerChannel channel(std::move(socket));
  const auto far = [] { return std::chrono::steady_clock::now() + kNoLimit; };
  Server server(open_bench, [&, last = -1](int number) mutable {
    if (number != last) static_cast<void>(channel.send({{{"launching", number}}, ""}, far()));
    last = number;
  });
  WorkerMessage request;
  WorkerChannel::End end = WorkerChannel::End::kClosed;
  while (channel.receive(&request, far(), &end)) {
    if (!channel.send(server.answer(request), far())) break;
  }
  end_process();
}

}  // namespace hstujit
