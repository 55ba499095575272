// SPDX-License-Identifier: Apache-2.0
/// Occupancy: which runs are on which node and card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/core/record_pool.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched::detail {

/// A run on one node: one seat for each grant. A share of a card has its seat on that card, too.
struct Seat {
  JobId job = no_job;
  NodeId node = no_node;
  std::uint32_t card = no_index;  ///< of a share; no_index: whole GPUs, or a node that does not tell its GPUs apart
  std::uint32_t tasks = 0;        ///< of the job, here
  std::uint8_t slice = 0;         ///< as Grant::slice
  std::uint32_t next_of_job = no_index;
  std::uint32_t next_on_node = no_index, previous_on_node = no_index;
  std::uint32_t next_on_card = no_index, previous_on_card = no_index;
};

/// A value: the one home of who is where. Empty unless some effect asks (open()). Runs enter when they begin or move
/// and leave when they end; a decision that is not applied yet changes nothing here. O(1) a seat.
class Occupancy {
 public:
  /// Nobody is anywhere yet.
  void open(std::uint32_t jobs, std::uint32_t nodes, std::uint32_t cards) {
    first_of_job_.assign(jobs, no_index);
    first_on_node_.assign(nodes, no_index);
    first_on_card_.assign(cards, no_index);
  }
  /// False until open().
  [[nodiscard]] bool active() const { return !first_of_job_.empty(); }

  /// The job takes a seat, the first in all its lists; returns its number. Precondition: active().
  std::uint32_t enter(JobId job, NodeId node, std::uint32_t card, std::uint32_t tasks, std::uint8_t slice) {
    const std::uint32_t at = seats_.add({.job = job,
                                         .node = node,
                                         .card = card,
                                         .tasks = tasks,
                                         .slice = slice,
                                         .next_of_job = first_of_job_[index(job)],
                                         .next_on_node = first_on_node_[index(node)]});
    first_of_job_[index(job)] = at;
    push_front<&Seat::next_on_node, &Seat::previous_on_node>(first_on_node_[index(node)], at);
    if (card != no_index) push_front<&Seat::next_on_card, &Seat::previous_on_card>(first_on_card_[card], at);
    return at;
  }

  /// The job gives up all its seats.
  void leave(JobId job) {
    for (std::uint32_t at = first_of_job_[index(job)]; at != no_index;) {
      const Seat seat = seats_[at];
      unlink<&Seat::next_on_node, &Seat::previous_on_node>(first_on_node_[index(seat.node)], seat);
      if (seat.card != no_index) {
        unlink<&Seat::next_on_card, &Seat::previous_on_card>(first_on_card_[seat.card], seat);
      }
      seats_.remove(at);
      at = seat.next_of_job;
    }
    first_of_job_[index(job)] = no_index;
  }

  /// The seat of that number.
  [[nodiscard]] const Seat& seat(std::uint32_t at) const { return seats_[at]; }
  /// The job's seat that it took last, or no_index; the others follow by Seat::next_of_job.
  [[nodiscard]] std::uint32_t first_of_job(JobId job) const { return first_of_job_[index(job)]; }
  /// The latest seat on the node, or no_index; the others follow by Seat::next_on_node.
  [[nodiscard]] std::uint32_t first_on_node(NodeId node) const { return first_on_node_[index(node)]; }
  /// The latest seat on the card, or no_index; the others follow by Seat::next_on_card.
  [[nodiscard]] std::uint32_t first_on_card(std::uint32_t card) const { return first_on_card_[card]; }

  /// The jobs on the node, by id, each once. O(n log n).
  [[nodiscard]] std::vector<JobId> jobs_on(NodeId node) const {
    std::vector<JobId> jobs;
    for (std::uint32_t at = first_on_node_[index(node)]; at != no_index; at = seats_[at].next_on_node) {
      jobs.push_back(seats_[at].job);
    }
    std::sort(jobs.begin(), jobs.end());
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
    return jobs;
  }

  /// The nodes of the job, each once, in the order in which it took seats there.
  [[nodiscard]] std::vector<NodeId> nodes_of(JobId job) const {
    std::vector<NodeId> nodes;
    for (std::uint32_t at = first_of_job_[index(job)]; at != no_index; at = seats_[at].next_of_job) {
      nodes.push_back(seats_[at].node);
    }
    std::reverse(nodes.begin(), nodes.end());
    auto end = nodes.begin();
    for (const NodeId node : nodes) {
      if (std::find(nodes.begin(), end, node) == end) *end++ = node;
    }
    nodes.erase(end, nodes.end());
    return nodes;
  }

 private:
  template <std::uint32_t Seat::*next, std::uint32_t Seat::*previous>
  void push_front(std::uint32_t& first, std::uint32_t at) {
    seats_[at].*next = first;
    if (first != no_index) seats_[first].*previous = at;
    first = at;
  }

  template <std::uint32_t Seat::*next, std::uint32_t Seat::*previous>
  void unlink(std::uint32_t& first, const Seat& seat) {
    (seat.*previous == no_index ? first : seats_[seat.*previous].*next) = seat.*next;
    if (seat.*next != no_index) seats_[seat.*next].*previous = seat.*previous;
  }

  RecordPool<Seat, &Seat::next_of_job> seats_;
  std::vector<std::uint32_t> first_of_job_, first_on_node_, first_on_card_;
};

}  // namespace gpusched::detail
