#include "property/random_programs.hpp"

namespace property {

programs second_programs() { return drawn<18>(std::make_integer_sequence<unsigned, 18>{}); }

}  // namespace property
