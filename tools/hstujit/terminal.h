// Abilities of a stream: whether it is a terminal, how wide, and whether colour is wanted (NO_COLOR, TERM=dumb).
#pragma once

namespace hstujit {

bool is_terminal(int file_descriptor);
bool wants_colour(int file_descriptor);

// Columns of the terminal; 80 when it does not say.
int terminal_width(int file_descriptor);

}  // namespace hstujit
