// A server for tests on a port of this machine that answers as it is told: well, wrongly, late or never.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hstujit {

// A port of this machine that nobody else can take as long as this lives. Until somebody listens, a connection to it is
// refused: of a dead server. One that is only free may be taken before it is tried, by another test or by the
// connection itself.
class BoundPort {
 public:
  BoundPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }
  BoundPort(const BoundPort&) = delete;
  BoundPort& operator=(const BoundPort&) = delete;
  ~BoundPort() { ::close(socket_); }

  int socket() const { return socket_; }
  int number() const { return number_; }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", number_); }

 private:
  const int socket_;
  int number_ = 0;
};

class HttpServer {
 public:
  struct Request {
    std::string method;
    std::string path;
    std::string body;
  };
  enum class Then { kClose, kHang, kRepeat };  // kRepeat: the bytes again and again, as long as anybody reads them
  struct Answer {
    std::string bytes;  // headers and body
    Then then = Then::kClose;
  };
  using Handler = std::function<Answer(const Request&)>;

  static Answer answer(int status, const std::string& body = "") {
    return {fmt::format("HTTP/1.1 {} Said\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status, body.size(),
                        body)};
  }

  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {
    ::listen(port_.socket(), 64);
    acceptor_ = std::thread([this] { accept(); });
  }

  ~HttpServer() {
    ending_ = true;
    ::shutdown(port_.socket(), SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (const int connection : connections_) ::close(connection);
  }

  std::string url() const { return port_.url() + "/cache"; }

  // "GET /cache/ac/…", in the order of their arrival.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void accept() {
    while (!ending_) {
      const int connection = ::accept4(port_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      const std::lock_guard lock(mutex_);
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    std::string text;
    size_t end = std::string::npos;
    size_t body = 0;
    while (end == std::string::npos || text.size() < end + body) {
      char buffer[65536];
      const ssize_t count = ::recv(connection, buffer, sizeof(buffer), 0);
      if (count <= 0) return;
      text.append(buffer, static_cast<size_t>(count));
      if (end != std::string::npos) continue;
      end = text.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      end += 4;
      if (const size_t length = text.find("Content-Length: "); length < end)
        body = std::stoul(text.substr(length + 16));
    }
    Request request;
    request.method = text.substr(0, text.find(' '));
    const size_t path = request.method.size() + 1;
    request.path = text.substr(path, text.find(' ', path) - path);
    request.body = text.substr(end);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request.method + " " + request.path);
    }
    const Answer answer = handler_(request);
    do {
      size_t sent = 0;
      while (sent < answer.bytes.size()) {
        const ssize_t count = ::send(connection, answer.bytes.data() + sent, answer.bytes.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += static_cast<size_t>(count);
      }
    } while (answer.then == Then::kRepeat && !ending_);
    if (answer.then == Then::kClose) ::shutdown(connection, SHUT_RDWR);
  }

  Handler handler_;
  const BoundPort port_;
  std::atomic<bool> ending_{false};
  std::thread acceptor_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  std::vector<std::string> requests_;
};

// A remote cache: it keeps what is put.
class MemoryRemote {
 public:
  HttpServer::Answer operator()(const HttpServer::Request& request) {
    const std::lock_guard lock(mutex_);
    if (request.method == "PUT") {
      files_[request.path] = request.body;
      return HttpServer::answer(201);
    }
    const auto found = files_.find(request.path);
    return found == files_.end() ? HttpServer::answer(404, "not here") : HttpServer::answer(200, found->second);
  }
  std::map<std::string, std::string> files() const {
    const std::lock_guard lock(mutex_);
    return files_;
  }
  void put(const std::string& path, const std::string& body) {
    const std::lock_guard lock(mutex_);
    files_[path] = body;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
};

}  // namespace hstujit
