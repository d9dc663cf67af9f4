#include "property/random_programs.hpp"

namespace property {

programs softmax_programs() {
  return drawn<generate::first_softmax>(std::make_integer_sequence<unsigned, 8>{});
}

}  // namespace property
