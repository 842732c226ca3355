// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/batch_dynamics.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "../kernels/kernels.hpp"

namespace dynamics_core {

namespace {

/// What a thread takes at once: long beside the way to a lock, short beside a large batch. A multiple
/// of every width.
constexpr std::size_t portion = 128;

[[nodiscard]] BatchOutcome first_of(const BatchOutcome& x, const BatchOutcome& y) noexcept {
  if (x.status == Status::ok) return y;
  if (y.status == Status::ok) return x;
  return x.configuration < y.configuration ? x : y;
}

}  // namespace

/// A kernel for the caller and one for each thread. The threads sleep until a task is announced, and
/// take portions of it until none is left.
class BatchDynamics::Workers {
 public:
  Workers(const Model& model, int threads)
      : nq(model.nq), nv(model.nv), links_(static_cast<int>(model.links.size())) {
    auto* const with_lanes = kernels().make_batch_kernel;
    auto* const make = with_lanes != nullptr ? with_lanes : &make_batch_kernel;
    for (int i = 0; i <= threads; ++i) kernels_.push_back(make(model));
    threads_.reserve(static_cast<std::size_t>(std::max(0, threads)));
    try {
      for (std::size_t i = 1; i < kernels_.size(); ++i)
        threads_.emplace_back([this, i] { work(*kernels_[i]); });
    } catch (...) {
      stop();
      throw;
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  [[nodiscard]] int threads() const noexcept { return static_cast<int>(threads_.size()); }
  [[nodiscard]] int width() const noexcept { return kernels_.front()->width(); }
  [[nodiscard]] bool has_link(int link) const noexcept { return link >= 0 && link < links_; }

  /// `inputs`: how many of q, v and u the task reads. Results have `size` elements.
  [[nodiscard]] Status run(const BatchTask& task, int inputs, int size,
                           std::size_t count) noexcept {
    const bool sizes_fit = task.q.size == nq && (inputs < 2 || task.v.size == nv) &&
                           (inputs < 3 || task.u.size == nv) && task.out.size == size;
    if (!sizes_fit) return Status::wrong_size;
    if (threads_.empty() || count <= portion) return kernels_.front()->run(task, 0, count).status;
    announce(task, count);
    take_portions(*kernels_.front());
    return wait_for_all();
  }

  /// The same to all kernels, which answer alike.
  template <class Change>
  Status change(Change change) noexcept {
    Status status = Status::ok;
    for (auto& kernel : kernels_) status = change(*kernel);
    return status;
  }

  const int nq;
  const int nv;

 private:
  void announce(const BatchTask& task, std::size_t count) noexcept {
    {
      const std::lock_guard lock(mutex_);
      task_ = &task;
      count_ = count;
      next_ = 0;
      outcome_ = {count, Status::ok};
      working_ = threads_.size();
      ++round_;
    }
    wake_.notify_all();
  }

  [[nodiscard]] Status wait_for_all() noexcept {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return working_ == 0; });
    return outcome_.status;
  }

  void take_portions(BatchKernel& kernel) noexcept {
    BatchOutcome outcome{count_, Status::ok};
    for (;;) {
      const std::size_t first = next_.fetch_add(portion);
      if (first >= count_) break;
      outcome = first_of(outcome, kernel.run(*task_, first, std::min(count_, first + portion)));
    }
    const std::lock_guard lock(mutex_);
    outcome_ = first_of(outcome_, outcome);
  }

  void work(BatchKernel& kernel) noexcept {
    for (std::size_t seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
      }
      take_portions(kernel);
      {
        const std::lock_guard lock(mutex_);
        if (--working_ > 0) continue;
      }
      done_.notify_one();
    }
  }

  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int links_;
  std::vector<std::unique_ptr<BatchKernel>> kernels_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  // Set under the mutex while no thread works.
  const BatchTask* task_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_ = 0;
  // Under the mutex.
  BatchOutcome outcome_{0, Status::ok};
  std::size_t working_ = 0;
  std::size_t round_ = 0;
  bool stop_ = false;
};

BatchDynamics::BatchDynamics(const Model& model, int threads)
    : workers_(std::make_unique<Workers>(model, threads)) {}
BatchDynamics::BatchDynamics(BatchDynamics&&) noexcept = default;
BatchDynamics& BatchDynamics::operator=(BatchDynamics&&) noexcept = default;
BatchDynamics::~BatchDynamics() = default;

int BatchDynamics::nq() const noexcept { return workers_->nq; }
int BatchDynamics::nv() const noexcept { return workers_->nv; }
int BatchDynamics::threads() const noexcept { return workers_->threads(); }
int BatchDynamics::width() const noexcept { return workers_->width(); }
void BatchDynamics::use(std::optional<Method> method) noexcept {
  (void)workers_->change([&](BatchKernel& kernel) {
    kernel.use(method);
    return Status::ok;
  });
}

// --- What is computed ----------------------------------------------------------------------------

Status BatchDynamics::inverse_dynamics(std::size_t count, BatchIn q, BatchIn v, BatchIn a,
                                       BatchOut tau, Status* statuses) noexcept {
  return workers_->run({BatchQuantity::inverse_dynamics, q, v, a, tau, statuses}, 3, nv(), count);
}
Status BatchDynamics::forward_dynamics(std::size_t count, BatchIn q, BatchIn v, BatchIn tau,
                                       BatchOut a, Status* statuses) noexcept {
  return workers_->run({BatchQuantity::forward_dynamics, q, v, tau, a, statuses}, 3, nv(), count);
}
Status BatchDynamics::forward_dynamics(std::size_t count, BatchIn q, BatchIn v, BatchIn tau,
                                       const std::vector<int>& held, BatchOut a,
                                       Status* statuses) noexcept {
  return workers_->run({BatchQuantity::forward_dynamics_held, q, v, tau, a, statuses, &held}, 3,
                       nv(), count);
}
Status BatchDynamics::bias(std::size_t count, BatchIn q, BatchIn v, BatchOut tau,
                           Status* statuses) noexcept {
  return workers_->run({BatchQuantity::bias, q, v, {}, tau, statuses}, 2, nv(), count);
}
Status BatchDynamics::velocity_effort(std::size_t count, BatchIn q, BatchIn v, BatchOut tau,
                                      Status* statuses) noexcept {
  return workers_->run({BatchQuantity::velocity_effort, q, v, {}, tau, statuses}, 2, nv(), count);
}
Status BatchDynamics::gravity(std::size_t count, BatchIn q, BatchOut tau,
                              Status* statuses) noexcept {
  return workers_->run({BatchQuantity::gravity, q, {}, {}, tau, statuses}, 1, nv(), count);
}
Status BatchDynamics::mass_matrix(std::size_t count, BatchIn q, BatchOut M,
                                  Status* statuses) noexcept {
  return workers_->run({BatchQuantity::mass_matrix, q, {}, {}, M, statuses}, 1, nv() * nv(), count);
}
Status BatchDynamics::inverse_mass_matrix(std::size_t count, BatchIn q, BatchOut inverse,
                                          Status* statuses) noexcept {
  return workers_->run({BatchQuantity::inverse_mass_matrix, q, {}, {}, inverse, statuses}, 1,
                       nv() * nv(), count);
}
Status BatchDynamics::coriolis(std::size_t count, BatchIn q, BatchIn v, BatchOut C,
                               Status* statuses) noexcept {
  return workers_->run({BatchQuantity::coriolis, q, v, {}, C, statuses}, 2, nv() * nv(), count);
}
Status BatchDynamics::coriolis_christoffel(std::size_t count, BatchIn q, BatchIn v, BatchOut C,
                                           Status* statuses) noexcept {
  return workers_->run({BatchQuantity::coriolis_christoffel, q, v, {}, C, statuses}, 2, nv() * nv(),
                       count);
}
Status BatchDynamics::inverse_dynamics_derivatives(std::size_t count, BatchIn q, BatchIn v,
                                                   BatchIn a, BatchOut derivatives,
                                                   Status* statuses) noexcept {
  return workers_->run(
      {BatchQuantity::inverse_dynamics_derivatives, q, v, a, derivatives, statuses}, 3,
      3 * nv() * nv(), count);
}
Status BatchDynamics::forward_dynamics_derivatives(std::size_t count, BatchIn q, BatchIn v,
                                                   BatchIn tau, BatchOut derivatives,
                                                   Status* statuses) noexcept {
  return workers_->run(
      {BatchQuantity::forward_dynamics_derivatives, q, v, tau, derivatives, statuses}, 3,
      3 * nv() * nv(), count);
}
Status BatchDynamics::jacobian(std::size_t count, BatchIn q, int link, BatchOut J,
                               const Vec3<double>& offset, JacobianAxes axes,
                               Status* statuses) noexcept {
  if (!workers_->has_link(link)) return Status::out_of_range;
  return workers_->run(
      {BatchQuantity::jacobian, q, {}, {}, J, statuses, nullptr, link, offset, axes}, 1, 6 * nv(),
      count);
}

// --- What stays until it is changed --------------------------------------------------------------

Status BatchDynamics::set_gravity(const Vec3<double>& g) noexcept {
  return workers_->change([&](BatchKernel& kernel) { return kernel.set_gravity(g); });
}
Status BatchDynamics::set_payload(int link, const Payload<double>& payload) noexcept {
  return workers_->change([&](BatchKernel& kernel) { return kernel.set_payload(link, payload); });
}
Status BatchDynamics::set_rotor_inertia(int dof, double inertia) noexcept {
  return workers_->change(
      [&](BatchKernel& kernel) { return kernel.set_rotor_inertia(dof, inertia); });
}
Status BatchDynamics::add_external_force(int link, const Force<double>& F_L) noexcept {
  return workers_->change(
      [&](BatchKernel& kernel) { return kernel.add_external_force(link, F_L); });
}
void BatchDynamics::clear_external_forces() noexcept {
  (void)workers_->change([](BatchKernel& kernel) {
    kernel.clear_external_forces();
    return Status::ok;
  });
}

}  // namespace dynamics_core
