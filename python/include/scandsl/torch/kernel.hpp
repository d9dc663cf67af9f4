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

/// A function for the dispatcher, and how its op is declared. Each op has an overload no_grad, by the same
/// function, which autograd takes no notice of (python/scandsl/_operation.py): for the caller who knows that
/// no gradient is wanted, the way through the dispatcher is shorter.
struct kernel {
  std::string schema;
  void (*function)(StableIValue*, std::uint64_t, std::uint64_t);

  std::string name() const { return schema.substr(0, schema.find('(')); }
  std::string name_no_grad() const { return name() + ".no_grad"; }
  std::string schema_no_grad() const { return name_no_grad() + schema.substr(schema.find('(')); }
};

// Objects at namespace scope, which hold what they register as long as the library is loaded.

using stable_library = torch::stable::detail::StableLibrary;

/// Declares ops.
class declarations {
public:
  declarations(const char* name_space, const std::vector<kernel>& list)
      : library_(stable_library::Kind::FRAGMENT, name_space, nullptr, __FILE__, __LINE__) {
    for (const kernel& each : list) {
      library_.def(each.schema.c_str());
      library_.def(each.schema_no_grad().c_str());
    }
  }

private:
  stable_library library_;
};

/// Kernels for the tensors of a device, "CPU" or "CUDA".
class device_kernels {
public:
  device_kernels(const char* name_space, const char* device, const std::vector<kernel>& list)
      : library_(stable_library::Kind::IMPL, name_space, device, __FILE__, __LINE__) {
    for (const kernel& each : list) {
      library_.impl(each.name().c_str(), each.function);
      library_.impl(each.name_no_grad().c_str(), each.function);
    }
  }

private:
  stable_library library_;
};

/// Ops whose kernels take the tensors of both.
class kernels {
public:
  kernels(const char* name_space, const std::vector<kernel>& list)
      : declared_(name_space, list), cpu_(name_space, "CPU", list), cuda_(name_space, "CUDA", list) {}

private:
  declarations declared_;
  device_kernels cpu_, cuda_;
};

/// An op without arguments that gives a text.
class text_kernel {
public:
  text_kernel(const char* name_space, const std::string& name,
              void (*function)(StableIValue*, std::uint64_t, std::uint64_t))
      : definition_(stable_library::Kind::FRAGMENT, name_space, nullptr, __FILE__, __LINE__),
        implementation_(stable_library::Kind::IMPL, name_space, "CompositeExplicitAutograd", __FILE__,
                        __LINE__) {
    definition_.def((name + "() -> str").c_str());
    implementation_.impl(name.c_str(), function);
  }

private:
  stable_library definition_, implementation_;
};

}  // namespace scandsl::binding
