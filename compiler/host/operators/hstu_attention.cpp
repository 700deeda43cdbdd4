#include "compiler/host/attention.h"

namespace hstujit {

Result<HostOperatorPtr> make_host_hstu_attention(OpSpecPtr spec, Direction direction, const RegisterTile& tile) {
  return make_host_attention(*spec, direction, tile);
}

}  // namespace hstujit
