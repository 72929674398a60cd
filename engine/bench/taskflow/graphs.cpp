// Taskflow on the five graphs of the benchmark area `graph`: two workers, empty tasks, nanoseconds for each task.
//
// static:  the graph is made before, the second run is timed: what a replay of ours is compared with.
// dynamic: tasks are submitted one by one with their predecessors, from the first submission to the last task's end:
//          what explicit dependencies of ours are compared with.
// The graphs are those of engine/lab/src/graphs/bundled.rs, made by the same rules and the same random numbers.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <taskflow/taskflow.hpp>

using Before = std::vector<std::vector<uint32_t>>;

static Before random_graph(uint32_t tasks) {
    uint64_t state = 88172645463325252ull;
    auto next = [&state](uint32_t bound) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<uint32_t>(state >> 32) % bound;
    };
    Before all(tasks);
    for (uint32_t task = 0; task < tasks; ++task) {
        const uint32_t count = task == 0 ? 0 : next(3);
        for (uint32_t i = 0; i < count; ++i) all[task].push_back(task - 1 - next(std::min(task, 1000u)));
        all[task].erase(std::unique(all[task].begin(), all[task].end()), all[task].end());
    }
    return all;
}

static Before graph(const std::string& name, uint32_t tasks) {
    if (name == "random") return random_graph(tasks);
    const uint32_t side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(tasks))));
    Before all(name == "wavefront" ? side * side : tasks);
    for (uint32_t task = 0; task < all.size(); ++task) {
        if (name == "chain" && task > 0) all[task] = {task - 1};
        if (name == "tree" && task > 0) all[task] = {(task - 1) / 2};
        if (name == "wavefront" && task % side != 0) all[task].push_back(task - 1);
        if (name == "wavefront" && task >= side) all[task].push_back(task - side);
    }
    return all;
}

template <class Run>
static double ns_per_task(size_t tasks, Run run) {
    const auto from = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
    return took.count() / static_cast<double>(tasks);
}

static double static_run(tf::Executor& executor, const Before& all) {
    tf::Taskflow flow;
    std::vector<tf::Task> tasks;
    for (size_t i = 0; i < all.size(); ++i) tasks.push_back(flow.emplace([] {}));
    for (size_t i = 0; i < all.size(); ++i)
        for (const uint32_t before : all[i]) tasks[before].precede(tasks[i]);
    executor.run(flow).wait();
    return ns_per_task(all.size(), [&] { executor.run(flow).wait(); });
}

static double dynamic_run(tf::Executor& executor, const Before& all) {
    double found = 0;
    for (int round = 0; round < 2; ++round) {
        std::vector<tf::AsyncTask> tasks(all.size());
        std::vector<tf::AsyncTask> before;
        found = ns_per_task(all.size(), [&] {
            for (size_t i = 0; i < all.size(); ++i) {
                before.clear();
                for (const uint32_t one : all[i]) before.push_back(tasks[one]);
                tasks[i] = executor.silent_dependent_async([] {}, before.begin(), before.end());
            }
            executor.wait_for_all();
        });
    }
    return found;
}

int main(int count, char** words) {
    const int rounds = count > 1 ? std::atoi(words[1]) : 1;
    const std::pair<const char*, uint32_t> shapes[] = {
        {"chain", 100000}, {"independent", 400000}, {"tree", 131071}, {"wavefront", 512 * 512}, {"random", 100000}};
    for (const auto& [name, tasks] : shapes) {
        const Before all = graph(name, tasks);
        std::vector<double> fixed, dynamic;
        tf::Executor executor(2);
        for (int round = 0; round < rounds; ++round) {
            fixed.push_back(static_run(executor, all));
            dynamic.push_back(dynamic_run(executor, all));
        }
        std::sort(fixed.begin(), fixed.end());
        std::sort(dynamic.begin(), dynamic.end());
        std::printf("%s %.2f %.2f\n", name, fixed[fixed.size() / 2], dynamic[dynamic.size() / 2]);
    }
}
