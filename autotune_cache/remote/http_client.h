// HTTP as a remote cache needs it: GET, PUT and MKCOL of whole bodies that are bounded in size and time.
//
// libcurl does it. It is opened when the first request is made, so that libhstujit.so needs none to be loaded.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "autotune_cache/remote/remote_url.h"
#include "compiler/support/status.h"

namespace hstujit {

struct HttpTimes {
  std::chrono::milliseconds connect{1000};
  std::chrono::milliseconds whole{10000};  // of one request, the connection included
  std::chrono::seconds stalled{3};         // with less than 1 KiB/s
};

struct HttpRequest {
  std::string method;                       // "GET" "PUT" "MKCOL"
  std::string path;                         // below the URL: "/ac/<digest>"
  std::string_view body;                    // of a PUT
  size_t max_bytes = 65536;                 // of the answer's body; a longer one is a failure
  const std::atomic<bool>* stop = nullptr;  // ends the request soon after it becomes true
};

struct HttpAnswer {
  int status = 0;  // 0: there was no answer
  std::string body;
  std::string failure;     // why there is none, in words that are the same for the same cause
  std::string detail;      // the same, with figures
  bool no_memory = false;  // there was one, and no memory for it

  bool ok() const { return status >= 200 && status < 300; }
};

class HttpClient {
 public:
  // kNotFound when this machine has no libcurl.
  static Result<std::unique_ptr<HttpClient>> open(const RemoteUrl& url, const HttpTimes& times);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any number of threads at once. Redirects are not followed: an answer with one is an answer as any other.
  HttpAnswer send(const HttpRequest& request);

 private:
  struct Connections;
  HttpClient(RemoteUrl url, const HttpTimes& times);

  RemoteUrl url_;
  HttpTimes times_;
  std::unique_ptr<Connections> connections_;
};

}  // namespace hstujit
