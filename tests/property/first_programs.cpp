#include "property/random_programs.hpp"

namespace property {

programs first_programs() { return drawn<0>(std::make_integer_sequence<unsigned, 18>{}); }

}  // namespace property
