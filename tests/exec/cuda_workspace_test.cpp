#include "scandsl/exec/cuda_workspace.hpp"

#include <new>
#include <vector>

#include "support/catch.hpp"

using namespace scandsl;
using cuda_detail::workspace_layout;

// What a run on the GPU asks of its workspace, which needs none.

namespace {

constexpr name user = make_name("sums");

/// Gives memory and keeps a record of what it was asked for.
struct recorder {
  alignas(256) char memory[2048];
  std::vector<std::int64_t> asked = {};

  static void* give(void* context, std::int64_t bytes) {
    auto& self = *static_cast<recorder*>(context);
    self.asked.push_back(bytes);
    return self.memory;
  }
  static void* give_nothing(void*, std::int64_t) { return nullptr; }
  static void* fail(void*, std::int64_t) { throw std::bad_alloc(); }
};

}  // namespace

TEST_CASE("places follow one another in units of 256 bytes", "[exec][cuda]") {
  workspace_layout sizing;
  CHECK(sizing.take(1) == 0);
  CHECK(sizing.take(257) == 256);
  CHECK(sizing.take_if_there(std::int64_t{1} << 40) == 768);
  CHECK(sizing.bytes() == 768 + (std::int64_t{1} << 40));
}

TEST_CASE("an allocator is asked once, for all that was taken", "[exec][cuda]") {
  recorder record;
  const cuda device{nullptr, recorder::give, &record};
  workspace_layout layout(device);
  CHECK(layout.take(300) == 0);
  CHECK(layout.take_if_there(100) == 512);
  CHECK(record.asked.empty());
  CHECK(layout.memory(device, user) == record.memory);
  CHECK(record.asked == std::vector<std::int64_t>{768});
}

TEST_CASE("an allocator is not asked where nothing was taken", "[exec][cuda]") {
  recorder record;
  const cuda device{nullptr, recorder::give, &record};
  CHECK(workspace_layout(device).memory(device, user) == nullptr);
  CHECK(record.asked.empty());
}

TEST_CASE("what an allocator throws passes through, and it gives memory or throws", "[exec][cuda]") {
  const cuda full{nullptr, recorder::fail, nullptr}, wrong{nullptr, recorder::give_nothing, nullptr};
  workspace_layout layout(full);
  layout.take(1);
  CHECK_THROWS_AS(layout.memory(full, user), std::bad_alloc);
  CHECK_THROWS_WITH(layout.memory(wrong, user),
                    "expected 256 bytes of device memory for sums; got a null pointer; let the allocator "
                    "throw where it has none");
}

TEST_CASE("a workspace that is given is used, and what can do without goes without", "[exec][cuda]") {
  recorder record;
  const cuda device{nullptr, {record.memory, 600}};
  workspace_layout layout(device);
  CHECK(layout.take(256) == 0);
  CHECK(layout.take_if_there(257) == workspace_layout::nowhere);
  CHECK(layout.take_if_there(256) == 256);
  CHECK(layout.memory(device, user) == record.memory);
}

TEST_CASE("a workspace that is too small is refused", "[exec][cuda]") {
  recorder record;
  for (const cuda_workspace given : {cuda_workspace{record.memory, 600}, cuda_workspace{}}) {
    const cuda device{nullptr, given};
    workspace_layout layout(device);
    layout.take(700);
    CHECK_THROWS_WITH(layout.memory(device, user),
                      message("expected a workspace of at least 768 bytes for sums; got ", given.bytes,
                              "; give what workspace_bytes asks for"));
  }
}
