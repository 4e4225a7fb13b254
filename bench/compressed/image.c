/* An image editor's pipeline: a large image in tiles, of which a view shows some, and tiles as they were before edits, to undo these.
 *
 *   image FRAMES      an image of 6144 x 5120 pixels, 4 channels of 16 bits, 240 MiB in 480 tiles of 512 KiB; 48 MiB of saved tiles
 *
 * A frame blurs the 16 tiles of the view, applies a curve of tones to them, and adds up what it shows. The view moves by a tile every 24 frames,
 * within a corner of 6 x 6 tiles. At the end a row of each tile is read. Half of each page is compressible: every second row is flat.
 * Prints sums of the frames and of these rows, and the time of the frames to standard error. */
#include "../truth/programs/kernel.h"

enum { SIDE = 256, CHANNELS = 4, ROW = SIDE * CHANNELS, TILE = SIDE * ROW };
enum { ACROSS = 24, DOWN = 20, SAVED = 96, VIEW = 4, REGION = 6, FRAMES_PER_MOVE = 24, TONES = 1 << 16 };

typedef uint16_t Tile[TILE];

static uint64_t state = 1;
static uint16_t curve[TONES];

static Tile *made(size_t tiles) {
    Tile *made = ARRAY(Tile, tiles);
    for (size_t tile = 0; tile < tiles; tile++)
        for (int at = 0; at < TILE; at++)
            made[tile][at] = (uint16_t)(at / ROW % 2 == 0 ? tile * 64 : draw(&state));
    return made;
}

/* The mean of three pixels side by side, by the curve, as the sum of the tile. */
static uint64_t show(const uint16_t *tile, uint16_t *shown) {
    uint64_t sum = 0;
    for (int at = CHANNELS; at < TILE - CHANNELS; at++) {
        uint32_t mean = ((uint32_t)tile[at - CHANNELS] + tile[at] + tile[at + CHANNELS]) / 3;
        shown[at] = curve[mean];
        sum += shown[at];
    }
    return sum;
}

static uint64_t show_view(Tile *image, Tile shown, int frame) {
    int move = frame / FRAMES_PER_MOVE, steps = REGION - VIEW + 1;
    int left = move % steps, top = move / steps % steps;
    uint64_t sum = 0;
    for (int down = top; down < top + VIEW; down++)
        for (int across = left; across < left + VIEW; across++)
            sum += show(image[down * ACROSS + across], shown);
    return sum;
}

static uint64_t second_rows(Tile *tiles, int count) {
    uint64_t sum = 0;
    for (int tile = 0; tile < count; tile++)
        for (int at = ROW; at < 2 * ROW; at++)
            sum = sum * 31 + tiles[tile][at];
    return sum;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: image FRAMES\n");
        return 2;
    }
    int frames = atoi(arguments[1]);
    for (int tone = 0; tone < TONES; tone++)
        curve[tone] = (uint16_t)((uint64_t)tone * tone / TONES);
    Tile *image = made(ACROSS * DOWN), *saved = made(SAVED), *shown = made(1);
    double begin = seconds();
    uint64_t sum = 0;
    for (int frame = 0; frame < frames; frame++)
        sum += show_view(image, *shown, frame);
    fprintf(stderr, "kernel_seconds %.6f\n", seconds() - begin);
    uint64_t rows = second_rows(image, ACROSS * DOWN) + second_rows(saved, SAVED);
    printf("frames %llu rows %llu\n", (unsigned long long)sum, (unsigned long long)rows);
    return 0;
}
