// Allocations in virtual functions: two classes at one place in their tables, reached by two calls; and five classes, of
// which one call has too many to guess. Prints the 2 MiB that hold each of the first.
#include <cstdio>
#include <cstdlib>

#define APART __attribute__((noinline))

struct maker {
    virtual ~maker() = default;
    // Of the type of the next, at another place.
    virtual void *none(size_t) { return nullptr; }
    virtual void *make(size_t Bytes) = 0;
};
struct small : maker {
    APART void *make(size_t Bytes) override { return malloc(Bytes); }
};
struct large : maker {
    APART void *make(size_t Bytes) override { return malloc(Bytes + 1); }
};
// Another type: of the same, `maker` would have too many.
struct shape {
    virtual ~shape() = default;
    virtual void *outline(size_t Bytes, int) = 0;
};
template <int Corners> struct polygon : shape {
    APART void *outline(size_t Bytes, int Width) override { return malloc(Bytes * Corners + Width); }
};

APART static void *first(maker &Maker) { return Maker.make(3001); }
APART static void *second(maker &Maker) { return Maker.make(3001); }
APART static void *nothing(maker &Maker) { return Maker.none(3001); }
APART static void *draw(shape &Shape) { return Shape.outline(100, 1); }

int main() {
    small Small;
    large Large;
    polygon<3> A;
    polygon<4> B;
    polygon<5> C;
    polygon<6> D;
    shape *Shapes[] = {&A, &B, &C, &D};
    maker *Makers[] = {&Small, &Large};
    void *Blocks[4];
    for (int I = 0; I < 2; ++I) {
        Blocks[2 * I] = first(*Makers[I]);
        Blocks[2 * I + 1] = second(*Makers[I]);
    }
    const char *Names[] = {"small-first", "small-second", "large-first", "large-second"};
    for (int I = 0; I < 4; ++I)
        std::printf("%s %lx\n", Names[I], reinterpret_cast<unsigned long>(Blocks[I]) >> 21);
    for (void *Block : Blocks)
        free(Block);
    for (shape *Shape : Shapes)
        free(draw(*Shape));
    return nothing(Small) != nullptr;
}
