// The way to a remote cache: what is asked of it, when it is left alone, and what is said about that.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "autotune_cache/remote/backoff.h"
#include "autotune_cache/remote/http_client.h"
#include "compiler/support/log.h"
#include "compiler/support/status.h"

namespace hstujit {

struct RemoteOptions {
  bool upload = true;
  HttpTimes times;
  std::chrono::milliseconds slow{3000};         // an answer that takes longer is used, and counts as a failure, too
  std::chrono::milliseconds first_pause{5000};  // after a failure the remote is left alone
  std::chrono::milliseconds max_pause{300000};  // twice as long each time, up to this
  std::chrono::milliseconds last_wait{5000};    // for uploads, at the end
  size_t max_uploads = 1024;                    // that wait
  size_t max_upload_bytes = size_t{256} << 20;
};

class RemoteConnection {
 public:
  RemoteConnection(RemoteUrl url, const RemoteOptions& options, Log log);

  struct Fetched {
    std::string body;
    uint64_t attempt = 0;
    bool slow = false;
  };
  // Gets "/ac/<digest>" or "/cas/<digest>". kNotFound when the remote has none, kIo when it is left alone or has failed
  // just now, which is logged already, and kOutOfMemory where there is no memory for its answer. What it gave is
  // nobody's before accept or distrust. `first`: what the same entry began with, when this is another part of it.
  Result<Fetched> get(const std::string& path, size_t max_bytes, const std::atomic<bool>* stop = nullptr,
                      const Fetched* first = nullptr);
  void accept(const Fetched& fetched, const std::string& path);
  // These bytes are not what was asked for. It becomes a failure as any other when it goes on.
  void distrust(const Fetched& fetched, const std::string& path, std::string_view reason);

  // True when the remote has taken it.
  bool put(const std::string& path, std::string_view body, const std::atomic<bool>* stop);
  // False once the remote has refused an upload, too.
  bool uploads() const { return uploads_; }

  // Asks for what no cache has, whether or not the remote is left alone at the moment.
  Status health();

  const std::string& name() const { return name_; }

 private:
  // Null when there is no libcurl, which is logged once.
  HttpClient* client();
  void failed(uint64_t attempt, const std::string& kind, const std::string& path, std::string_view reason);
  // Takes note of an answer that is as it should be. A slow one costs whoever waits for it more than it is worth.
  void answered(uint64_t attempt, const std::string& path, bool slow);
  void log_once(const std::string& kind, std::string_view event, const std::string& path, std::string_view reason);
  HttpAnswer put_once(const std::string& path, std::string_view body, const std::atomic<bool>* stop);

  const RemoteUrl url_;
  const std::string name_;
  const RemoteOptions options_;
  const Log log_;
  Backoff backoff_;
  Backoff upload_backoff_;  // of a remote that answers and takes nothing
  std::atomic<bool> uploads_;
  std::atomic<int> wrong_{0};      // answers in a row
  std::atomic<bool> slow_{false};  // the last answer was: an upload that works says nothing of the next one
  std::atomic<bool> collections_made_{false};
  std::once_flag opened_;
  Status open_status_;
  std::unique_ptr<HttpClient> client_;
  std::mutex mutex_;  // held for a look into the set only
  std::set<std::string> logged_;
};

}  // namespace hstujit
