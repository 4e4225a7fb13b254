// Every construct that a context must pass, or stop at: recursion, functions that call each
// other, pointers, virtual functions, exceptions, variable arguments, longjmp, threads, initialisers,
// computed goto, a library that is loaded. Prints the same with and without contexts.
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define APART __attribute__((noinline))

struct Node {
    Node *left, *right;
    int value;
};

APART static Node *make_node(int value) {
    auto *node = static_cast<Node *>(std::malloc(sizeof(Node)));
    *node = {nullptr, nullptr, value};
    return node;
}

APART static Node *grow(int depth) {
    Node *node = make_node(depth);
    if (depth > 0) {
        node->left = grow(depth - 1);
        node->right = grow(depth - 1);
    }
    return node;
}

APART static int fell(Node *node) {
    if (!node)
        return 0;
    int sum = node->value + fell(node->left) + fell(node->right);
    std::free(node);
    return sum;
}

APART static Node *odd(int n);
APART static Node *even(int n) {
    Node *node = make_node(n);
    node->left = n > 0 ? odd(n - 1) : nullptr;
    return node;
}
APART static Node *odd(int n) {
    Node *node = make_node(-n);
    node->right = n > 0 ? even(n - 1) : nullptr;
    return node;
}

struct Shape {
    virtual ~Shape() = default;
    virtual std::unique_ptr<Shape> copy() const = 0;
    virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    explicit Square(int side) : side(side) {}
    APART std::unique_ptr<Shape> copy() const override { return std::make_unique<Square>(*this); }
    int area() const override { return side * side; }
};
struct Line : Shape {
    APART std::unique_ptr<Shape> copy() const override { return std::make_unique<Line>(); }
    int area() const override { return 0; }
};

struct Guard {
    int *count;
    ~Guard() { ++*count; }
};

APART static char *refuse_or_make(int bytes) {
    auto *block = static_cast<char *>(std::malloc(bytes));
    if (bytes % 2) {
        std::free(block);
        throw std::runtime_error("odd");
    }
    return block;
}
APART static char *through(int bytes, int *count) {
    Guard guard{count};
    return refuse_or_make(bytes);
}

APART static char *format(const char *pattern, ...) {
    auto *text = static_cast<char *>(std::malloc(100));
    va_list words;
    va_start(words, pattern);
    std::vsnprintf(text, 100, pattern, words);
    va_end(words);
    return text;
}

static std::jmp_buf place;
APART static void jump(int bytes) {
    void *volatile block = std::malloc(bytes);
    std::free(block);
    std::longjmp(place, bytes);
}
APART static int land() {
    int came = setjmp(place);
    if (came == 0)
        jump(7);
    return came;
}

APART static int interpret(const char *program) {
    static void *const labels[] = {&&push, &&add, &&end};
    std::vector<int> stack;
    goto *labels[*program - '0'];
push:
    stack.push_back(*++program - '0');
    ++program;
    goto *labels[*program - '0'];
add:
    stack[stack.size() - 2] += stack.back();
    stack.pop_back();
    ++program;
    goto *labels[*program - '0'];
end:
    return stack.back();
}

static std::string greeting = std::string(40, 'g') + format("%d", 1);

using Maker = Node *(*)(int);
static Maker makers[] = {grow, even, make_node};

int main(int count, char **words) {
    std::printf("%s\n", greeting.c_str() + 38);
    std::printf("recursion %d\n", fell(grow(6)));
    std::printf("each other %d %d\n", fell(even(5)), fell(odd(4)));
    for (Maker make : makers)
        std::printf("pointer %d\n", fell(make(3)));
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(3));
    shapes.push_back(std::make_unique<Line>());
    for (int i = 0; i < 4; ++i)
        shapes.push_back(shapes[i]->copy());
    int area = 0;
    for (auto &shape : shapes)
        area += shape->area();
    std::printf("virtual %zu %d\n", shapes.size(), area);
    int unwound = 0, caught = 0;
    for (int bytes = 8; bytes < 14; ++bytes) {
        try {
            std::free(through(bytes, &unwound));
        } catch (const std::runtime_error &) {
            ++caught;
        }
    }
    std::printf("exceptions %d %d\n", unwound, caught);
    char *text = format("%d %s %.1f %c %d %d %d %ld", 1, "two", 3.5, '4', 5, 6, 7, 8L);
    std::printf("variable %s\n", text);
    std::free(text);
    std::printf("longjmp %d\n", land());
    std::printf("goto %d\n", interpret("03040512") + interpret("09012"));
    std::vector<std::thread> threads;
    int sums[4] = {};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&sums, i] {
            for (int j = 0; j < 200; ++j)
                sums[i] += fell(grow(i));
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("threads %d %d %d %d\n", sums[0], sums[1], sums[2], sums[3]);
    void *library = dlopen(count > 1 ? words[1] : "none", RTLD_NOW);
    auto many = library ? reinterpret_cast<int (*)(int)>(dlsym(library, "many")) : nullptr;
    std::printf("library %d\n", many ? many(5) : -1);
    if (library)
        dlclose(library);
    return 0;
}
