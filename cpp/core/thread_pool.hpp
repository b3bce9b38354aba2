// Threads that help the thread which calls them, and sleep in between.  No Eigen, no Python.
#pragma once

namespace ssnmf {

// A function that somebody else keeps.
class TaskRef {
 public:
  static constexpr int kWaiting = -1;

  template <class Function>
  explicit TaskRef(const Function& function)
      : function_(&function),
        call_([](const void* f, int thread) { (*static_cast<const Function*>(f))(thread); }) {}

  void operator()(int thread) const { call_(function_, thread); }

 private:
  const void* function_;
  void (*call_)(const void*, int);
};

// Calls task(0) on this thread, and at the same time task(number) on at most `helpers` threads of
// the pool; a thread has the same number in every call, two of them may share one.  While this
// thread waits for the others it calls task(TaskRef::kWaiting) now and then.
//
// A helper that comes late, when this thread has ended its own call, does not call the task at all:
// the task must be one that any number of threads can do together, and it must not throw.  Returns
// when all who have begun have ended.  May be called by several threads at once and by a task; in
// the child of a fork there are no helpers.  Throws in a child that was forked by the task itself
// (a handler of a signal may do so) if helpers, and what they had begun, stayed behind.
//
// With a team in place of the pool it also waits for helpers that come late, and a task that is
// called by a task has no helpers.
void run_with_helpers(const TaskRef& task, int helpers);

// Calls the task on so many threads at once, of which this is one.
using Team = void (*)(const TaskRef& task, int threads);

// Name of the capsules of Python that hold a Team.
constexpr const char* kTeam = "ssnmf_fast.team";

// Those of OpenMP, in a module of their own.  Known differences: in a child that was forked by the
// task itself it waits for ever, its threads do not block the signals of the program, and where the
// system has no more threads to give it ends the process.
void run_in_team(const TaskRef& task, int threads);

// What helps from now on, also the calls of other threads; null is the pool.
void use_team(Team team);

// What the threads are made of: "pool (futex)", "pool (mutex)" or "openmp".
const char* thread_back_end();

}  // namespace ssnmf
