// SPDX-License-Identifier: Apache-2.0
/// What a policy is: any copyable struct with `name()` and `decide(view, decision)`; its memory is its
/// members. AnyPolicy erases one by value where the choice is made at run time.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// decide() is called once an instant, after all of its events were applied. It reads the view, whose queues and
/// cluster already reflect the commands given so far, and gives commands. A copy decides the same from the same state.
template <class P>
concept Policy = requires(P policy, const P& constant, const OracleView& view, Decision& decision) {
  { constant.name() } -> std::convertible_to<std::string_view>;
  policy.decide(view, decision);
}
&&std::copyable<P>;  // last: it would recurse for a class that converts from AnyPolicy

/// True when the policy asks for true run times, which no real scheduler has. A policy whose parameters decide that (it
/// may be told to estimate) says so itself, with a member `clairvoyant()`.
template <class P>
inline constexpr bool is_clairvoyant = Policy<P> && !requires(P policy, const View& view, Decision& decision) {
  policy.decide(view, decision);
};

/// Any policy, by value: a copy is a copy of the policy inside.
class AnyPolicy {
 public:
  /// Holds `policy`.
  template <class P>
  requires(!std::same_as<P, AnyPolicy>) && Policy<P> explicit AnyPolicy(P policy)
      : self_(std::make_unique<Model<P>>(std::move(policy))) {}

  /// A copy has a policy of its own, which decides as the original would.
  AnyPolicy(const AnyPolicy& other) : self_(other.self_->clone()) {}
  /// The moved-from object holds no policy: it may only be assigned to or destroyed.
  AnyPolicy(AnyPolicy&&) noexcept = default;
  /// Replaces the policy.
  AnyPolicy& operator=(AnyPolicy other) noexcept {
    self_ = std::move(other.self_);
    return *this;
  }
  ~AnyPolicy() = default;

  /// The policy's name.
  [[nodiscard]] std::string_view name() const { return self_->name(); }
  /// Whether it reads true run times (is_clairvoyant).
  [[nodiscard]] bool clairvoyant() const { return self_->clairvoyant(); }
  /// What it has a member `void adopt(const View&)` for: it took over, rehearsed who runs (AdoptedPolicy), and is shown
  /// where they truly are. Others learn that by themselves.
  void adopt(const View& view) { self_->adopt(view); }
  /// What it has a member `void inherit(const P& before, const View&)` for: after adopt() it is given what `before`, a
  /// policy of the same kind that decided until this instant, knows of jobs that are over. Owners and demands have the
  /// numbers that they had; jobs do not. False where it has none, or is of another kind.
  bool inherit(const AnyPolicy& before, const View& view) { return self_->inherit(*before.self_, view); }
  /// True where it has a constant `places_afresh`: it places all jobs at every event, from a memory of its own.
  [[nodiscard]] bool places_afresh() const { return self_->places_afresh(); }
  /// What the policy tells of its run, where it has a member `std::string notes() const`; else nothing.
  [[nodiscard]] std::string notes() const { return self_->notes(); }
  /// Lets the policy decide; see Policy.
  void decide(const OracleView& view, Decision& decision) { self_->decide(view, decision); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    [[nodiscard]] virtual std::unique_ptr<Concept> clone() const = 0;
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual bool clairvoyant() const = 0;
    [[nodiscard]] virtual std::string notes() const = 0;
    [[nodiscard]] virtual bool places_afresh() const = 0;
    virtual void adopt(const View& view) = 0;
    virtual bool inherit(const Concept& before, const View& view) = 0;
    virtual void decide(const OracleView& view, Decision& decision) = 0;
  };

  template <class P>
  struct Model final : Concept {
    explicit Model(P p) : policy(std::move(p)) {}
    [[nodiscard]] std::unique_ptr<Concept> clone() const override { return std::make_unique<Model>(policy); }
    [[nodiscard]] std::string_view name() const override { return policy.name(); }
    [[nodiscard]] bool clairvoyant() const override {
      if constexpr (requires { policy.clairvoyant(); }) {
        return policy.clairvoyant();
      } else {
        return is_clairvoyant<P>;
      }
    }
    [[nodiscard]] std::string notes() const override {
      if constexpr (requires { policy.notes(); }) return policy.notes();
      return {};
    }
    [[nodiscard]] bool places_afresh() const override {
      if constexpr (requires { P::places_afresh; }) return P::places_afresh;
      return false;
    }
    void adopt(const View& view) override {
      if constexpr (requires { policy.adopt(view); }) policy.adopt(view);
    }
    bool inherit(const Concept& before, const View& view) override {
      if constexpr (requires { policy.inherit(policy, view); }) {
        const auto* const same = dynamic_cast<const Model*>(&before);
        if (same != nullptr) policy.inherit(same->policy, view);
        return same != nullptr;
      } else {
        return false;
      }
    }
    void decide(const OracleView& view, Decision& decision) override { policy.decide(view, decision); }
    P policy;
  };

  std::unique_ptr<Concept> self_;
};

}  // namespace gpusched
