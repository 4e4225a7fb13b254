// Hot and cold data in containers: constructed, grown, copied, in texts, by a template of the program, in a map.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

constexpr int Words = 1 << 17;

struct table {
    std::vector<int> Rows, Columns;
};

__attribute__((noinline)) static std::vector<int> hot() { return std::vector<int>(Words, 1); }
__attribute__((noinline)) static std::vector<int> grown() {
    std::vector<int> Grown;
    for (int I = 0; I < Words; ++I)
        Grown.push_back(I);
    return Grown;
}
__attribute__((noinline)) static std::string text() { return std::string(Words, 'x'); }
template <typename T> __attribute__((noinline)) std::vector<T> reserved() {
    std::vector<T> Reserved;
    Reserved.reserve(Words);
    Reserved.resize(Words);
    return Reserved;
}
__attribute__((noinline)) static void enter(std::map<std::string, std::unique_ptr<table>> &Map, int Number) {
    auto Table = std::make_unique<table>();
    Table->Rows.assign(Words / 16, Number);
    Table->Columns.resize(Words / 8, Number);
    Map["a name that is too long for the text itself, " + std::to_string(Number)] = std::move(Table);
}

int main() {
    std::vector<int> Hot = hot(), Grown = grown(), Copied = Hot;
    std::vector<short> Shorts = reserved<short>();
    std::vector<double> Doubles = reserved<double>();
    std::string Text = text();
    std::map<std::string, std::unique_ptr<table>> Map;
    for (int Number = 0; Number < 8; ++Number)
        enter(Map, Number);
    long Sum = 0;
    for (int Round = 0; Round < 20; ++Round)
        for (int &Each : Hot)
            Sum += reinterpret_cast<volatile int &>(Each);
    for (int I = 0; I < Words; I += 64) {
        Sum += Copied[I] + Grown[I] + Text[I] + Shorts[I];
        Doubles[I] = Sum;
    }
    for (auto &[Name, Table] : Map)
        Sum += Table->Rows.back() + Table->Columns.back() + Name.back();
    std::printf("done %ld %g\n", Sum, Doubles[64] > 0 ? 1.0 : 0.0);
}
