#pragma once
#include <torch/csrc/stable/library.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "scandsl/core/error.hpp"

/// Kernels for torch's dispatcher.
namespace scandsl::binding {

/// Calls f so that its errors reach Python as what they are. torch turns invalid_argument into a ValueError
/// and out_of_range into an IndexError; of a TypeError it knows nothing, so the message says it.
template <class F> void translating_errors(F&& f) {
  try {
    f();
  } catch (const index_error& raised) {
    throw std::out_of_range(raised.what());
  } catch (const dtype_error& raised) {
    throw std::runtime_error(std::string("TypeError: ") + raised.what());
  } catch (const cuda_error&) {
    throw;
  } catch (const error& raised) {
    throw std::invalid_argument(raised.what());
  }
}

/// The function F as torch's dispatcher calls it.
template <auto F> void boxed(StableIValue* stack, std::uint64_t inputs, std::uint64_t outputs) {
  translating_errors([&] { TORCH_BOX(F)(stack, inputs, outputs); });
}

/// A kernel for tensors of the CPU and of CUDA.
struct kernel {
  std::string schema;
  void (*function)(StableIValue*, std::uint64_t, std::uint64_t);
};

/// An object at namespace scope that holds kernels in the dispatcher as long as the library is loaded.
class kernels {
public:
  kernels(const char* name_space, const std::vector<kernel>& list)
      : definitions_(library::Kind::FRAGMENT, name_space, nullptr, __FILE__, __LINE__),
        cpu_(library::Kind::IMPL, name_space, "CPU", __FILE__, __LINE__),
        cuda_(library::Kind::IMPL, name_space, "CUDA", __FILE__, __LINE__) {
    for (const kernel& each : list) {
      definitions_.def(each.schema.c_str());
      const std::string name = each.schema.substr(0, each.schema.find('('));
      cpu_.impl(name.c_str(), each.function);
      cuda_.impl(name.c_str(), each.function);
    }
  }

private:
  using library = torch::stable::detail::StableLibrary;

  library definitions_, cpu_, cuda_;
};

/// The same for an op without arguments that gives a text.
class text_kernel {
public:
  text_kernel(const char* name_space, const std::string& name,
              void (*function)(StableIValue*, std::uint64_t, std::uint64_t))
      : definition_(library::Kind::FRAGMENT, name_space, nullptr, __FILE__, __LINE__),
        implementation_(library::Kind::IMPL, name_space, "CompositeExplicitAutograd", __FILE__, __LINE__) {
    definition_.def((name + "() -> str").c_str());
    implementation_.impl(name.c_str(), function);
  }

private:
  using library = torch::stable::detail::StableLibrary;

  library definition_, implementation_;
};

}  // namespace scandsl::binding
