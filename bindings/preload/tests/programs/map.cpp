// Containers, strings, exceptions and virtual calls across a restart.
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

struct Rule {
    virtual ~Rule() = default;
    virtual uint64_t apply(uint64_t value) const = 0;
};
struct Twist : Rule {
    uint64_t by;
    explicit Twist(uint64_t by) : by(by) {}
    uint64_t apply(uint64_t value) const override {
        if (value % 97 == 0)
            throw std::runtime_error("odd " + std::to_string(value));
        return (value ^ by) * 2862933555777941757u + 3037000493u;
    }
};

static std::map<std::string, std::vector<double>> table;

int main(int, char **argv) {
    int steps = std::stoi(argv[1]);
    std::vector<std::unique_ptr<Rule>> rules;
    for (uint64_t i = 0; i < 8; i++)
        rules.push_back(std::make_unique<Twist>(i * 77));
    uint64_t state = 1, caught = 0;
    std::cout << "begin" << std::endl;
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 200; i++) {
            try {
                state = rules[i % 8]->apply(state);
            } catch (const std::exception &error) {
                caught += std::string(error.what()).size();
                state++;
            }
            table["key " + std::to_string(state % 500)].push_back(double(state % 1000) / 7);
        }
        std::cout << "step " << step << std::endl;
        usleep(2000);
    }
    double sum = double(caught);
    for (const auto &[key, values] : table)
        for (double value : values)
            sum = sum * 0.999 + value + double(key.size());
    std::cout.precision(17);
    std::cout << "answer " << sum << " " << state << std::endl;
    return 7;
}
