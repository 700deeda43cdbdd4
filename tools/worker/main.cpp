// hstujit-worker: the process in which the tuner compiles or runs candidates. Started by the library, with a socket to
// it; of no use to anybody else.
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

#include "compiler/support/standard_streams.h"
#include "operations/api/worker_api.h"

int main() {
  hstujit::protect_standard_streams();
  constexpr int kSocket = 3;  // kWorkerSocket of operations/tuning/worker/worker_process.h
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("hstujit-worker is started by libhstujit_operations.so when it tunes; use hstujit tune\n", stderr);
    return EXIT_FAILURE;
  }
  hstujit_worker_serve(kSocket);
}
