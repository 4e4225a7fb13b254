"""The kernels of PolyBench a second time, straight from their equations, for small sizes: what workloads/polybench must compute.

    tests/workloads/polybench_equations.py      prints the checksums that workloads/polybench/table.hpp holds for `polybench --check`

Matrices are lists of lists. Where the program works in place or in several passes, the equations here are solved as a whole
(a sum over the original values, a system by elimination with a dense matrix), so that the two have little in common but the result.
"""
import itertools
import math

ALPHA, BETA = 1.5, 1.2
SIZES = {"n": 20, "m": 24, "steps": 3}  # of `polybench --check`
WORD = 1 << 32


def filled(rows, columns, shift):
    return [[(i * j + shift) % columns / columns for j in range(columns)] for i in range(rows)]


def vector(n, shift):
    return [(i + shift) % n / n for i in range(n)]


def dominant(n):
    return [[n + 1.0 if i == j else (i * j + 1) % n / n for j in range(n)] for i in range(n)]


def transposed(matrix):
    return [list(column) for column in zip(*matrix)]


def dot(left, right):
    return math.fsum(map(lambda a, b: a * b, left, right))


def product(left, right):
    columns = transposed(right)
    return [[dot(row, column) for column in columns] for row in left]


def times(matrix, values):
    return [dot(row, values) for row in matrix]


def combined(*terms):
    """The sum of factor · matrix over the terms."""
    return [[math.fsum(factor * matrix[i][j] for factor, matrix in terms) for j in range(len(terms[0][1][0]))]
            for i in range(len(terms[0][1]))]


def flat(values):
    return [value for part in values for value in flat(part)] if isinstance(values, list) else [values]


def checksum(*results):
    return math.fsum(value * (1 + i % 97) for result in results for i, value in enumerate(flat(result)))


def solved(matrix, right):
    """The solution of a system by Gauss and Jordan, with pivots."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k])]
    return [row[-1] for row in rows]


def gemm(n, m, steps):
    return [combined((ALPHA, product(filled(m, n, 1), filled(n, n, 2))), (BETA, filled(m, n, 3)))]


def two_products(n, m, steps):
    a, b, c, d = filled(m, n, 1), filled(n, n, 2), filled(n, n, 3), filled(m, n, 4)
    return [combined((ALPHA, product(a, product(b, c))), (BETA, d))]


def three_products(n, m, steps):
    a, b, c, d = filled(m, n, 1), filled(n, n, 2), filled(n, m, 3), filled(m, n, 4)
    return [product(product(product(a, b), c), d)]


def symm(n, m, steps):
    lower = filled(m, m, 1)
    a = [[lower[max(i, j)][min(i, j)] for j in range(m)] for i in range(m)]
    return [combined((ALPHA, product(a, filled(m, n, 2))), (BETA, filled(m, n, 3)))]


def syrk(n, m, steps):
    a = filled(n, m, 1)
    return [combined((ALPHA, product(a, transposed(a))), (BETA, filled(n, n, 2)))]


def syr2k(n, m, steps):
    a, b = filled(n, m, 1), filled(n, m, 2)
    return [combined((ALPHA, product(a, transposed(b))), (ALPHA, product(b, transposed(a))), (BETA, filled(n, n, 3)))]


def trmm(n, m, steps):
    values = filled(m, m, 1)
    a = [[values[i][j] if j < i else float(i == j) for j in range(m)] for i in range(m)]
    return [combined((ALPHA, product(a, filled(m, n, 2))))]


def doitgen(n, m, steps):
    c4 = filled(m, m, 1)
    return [[product([[(r * q + p) % m / m for p in range(m)] for q in range(n)], c4) for r in range(n)]]


def atax(n, m, steps):
    a = filled(n, n, 1)
    return [times(product(transposed(a), a), vector(n, 1))]


def bicg(n, m, steps):
    a = filled(n, n, 1)
    return [times(transposed(a), vector(n, 1)), times(a, vector(n, 2))]


def mvt(n, m, steps):
    a = filled(n, n, 1)
    first = [x + y for x, y in zip(vector(n, 1), times(a, vector(n, 3)))]
    return [first, [x + y for x, y in zip(vector(n, 2), times(transposed(a), vector(n, 4)))]]


def gemver(n, m, steps):
    u1, v1, u2, v2, y, z = (vector(n, shift) for shift in range(1, 7))
    a = filled(n, n, 1)
    a = [[a[i][j] + u1[i] * v1[j] + u2[i] * v2[j] for j in range(n)] for i in range(n)]
    x = [BETA * value + shift for value, shift in zip(times(transposed(a), y), z)]
    return [[ALPHA * value for value in times(a, x)]]


def gesummv(n, m, steps):
    return [times(combined((ALPHA, filled(n, n, 1)), (BETA, filled(n, n, 2))), vector(n, 1))]


def lower_factor(a):
    """L of A = L Lᵀ, by the equation of each of its cells."""
    lower = [[0.0] * len(a) for _ in a]
    for i, j in itertools.product(range(len(a)), repeat=2):
        if j <= i:
            rest = a[i][j] - dot(lower[i][:j], lower[j][:j])
            lower[i][j] = math.sqrt(rest) if i == j else rest / lower[j][j]
    return lower


def cholesky(n, m, steps):
    a = dominant(n)
    lower = lower_factor(a)
    return [[[lower[i][j] if j < i else a[i][j] for j in range(n)] for i in range(n)], [1 / lower[i][i] for i in range(n)]]


def durbin(n, m, steps):
    r = [1 / (k + 2) for k in range(n)]
    toeplitz = [[1.0 if i == j else r[abs(i - j) - 1] for j in range(n)] for i in range(n)]
    return [solved(toeplitz, [-value for value in r])]


def gramschmidt(n, m, steps):
    a = filled(m, n, 1)
    for i in range(m):
        a[i][i % n] += 4
    # Q R with a positive diagonal is unique: R is the transposed factor of Aᵀ A, and Q = A R⁻¹.
    upper = transposed(lower_factor(product(transposed(a), a)))
    return [[solved(transposed(upper), row) for row in a]] + [row[k:] for k, row in enumerate(upper)]


def factors(a):
    """L with the pivots on its diagonal and U with ones, in one matrix: cell by cell."""
    size, out = len(a), [[0.0] * len(a) for _ in a]
    for k in range(size):
        for i in range(k, size):
            out[i][k] = a[i][k] - math.fsum(out[i][p] * out[p][k] for p in range(k))
        for j in range(k + 1, size):
            out[k][j] = (a[k][j] - math.fsum(out[k][p] * out[p][j] for p in range(k))) / out[k][k]
    return out


def lu(n, m, steps):
    return [factors(dominant(n))]


def ludcmp(n, m, steps):
    return [solved(dominant(n), vector(n, 1))]


def trisolv(n, m, steps):
    a = dominant(n)
    return [solved([[a[i][j] if j <= i else 0.0 for j in range(n)] for i in range(n)], vector(n, 1))]


def centered(n, m):
    columns = transposed(filled(m, n, 1))
    return [[value - math.fsum(column) / m for value in column] for column in columns]


def covariance(n, m, steps):
    columns = centered(n, m)
    return [[[dot(a, b) / (m - 1) for b in columns] for a in columns]]


def correlation(n, m, steps):
    columns = centered(n, m)
    deviations = [math.sqrt(dot(column, column) / m) for column in columns]
    scales = [deviation if deviation > 0.1 else 1.0 for deviation in deviations]
    return [[[1.0 if i == j else dot(columns[i], columns[j]) / (m * scales[i] * scales[j]) for j in range(n)] for i in range(n)]]


def dynprog(n, m, steps):
    c = [[0] * n for _ in range(n)]
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            c[i][j] = ((i * j + 1) % 7 + sum(c[i][k] + c[k][j] for k in range(i + 1, j))) % WORD
    return [c, steps * c[0][n - 1] % WORD]


def floyd_warshall(n, m, steps):
    """By Bellman and Ford's rounds, from each place to each."""
    def length(i, j):
        return i * j % 7 + 1 if all((i + j) % divisor for divisor in (7, 11, 13)) else 999

    edges = [[length(i, j) for j in range(n)] for i in range(n)]
    path = edges
    for _ in range(n):
        path = [[min(path[i][j], min(path[i][k] + edges[k][j] for k in range(n))) for j in range(n)] for i in range(n)]
    return [path]


def reg_detect(n, m, steps):
    def mean(j, i):
        return m * (i + 1) * (j + 1)

    return [[sum(mean(j - k, i - k) for k in range(j + 1)) % WORD for i in range(j, n)] for j in range(n)]


def half_step(x, a, b):
    """Solves the system of each row. The matrix has b on its diagonal, and a[j] couples j - 1 and j. b becomes the pivots."""
    size, solutions, pivots = len(x[0]), [], []
    for values, beside, diagonal in zip(x, a, b):
        matrix = [[diagonal[i] if i == j else beside[max(i, j)] if abs(i - j) == 1 else 0.0 for j in range(size)] for i in range(size)]
        solutions.append(solved(matrix, values))
        lower = factors(matrix)
        pivots.append([lower[i][i] for i in range(size)])
    return solutions, pivots


def adi(n, m, steps):
    x = filled(n, n, 1)
    a = [[0.01 * value for value in row] for row in filled(n, n, 2)]
    b = [[1 + 0.02 * value for value in row] for row in filled(n, n, 3)]
    for _ in range(steps):
        x, b = half_step(x, a, b)
        x, b = half_step(transposed(x), transposed(a), transposed(b))
        x, b = transposed(x), transposed(b)
    return [x]


def fdtd_2d(n, m, steps):
    ex, ey, hz = filled(n, n, 1), filled(n, n, 2), filled(n, n, 3)
    cells = range(n)
    for step in range(steps):
        ey = [[ey[i][j] - 0.5 * (hz[i][j] - hz[i - 1][j]) if i else float(step) for j in cells] for i in cells]
        ex = [[ex[i][j] - 0.5 * (hz[i][j] - hz[i][j - 1]) if j else ex[i][j] for j in cells] for i in cells]
        hz = [[hz[i][j] - 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]) if max(i, j) < n - 1 else hz[i][j] for j in cells]
              for i in cells]
    return [ex, ey, hz]


def fdtd_apml(n, m, steps):
    low = [1 + (i + 1) % n / n for i in range(n)]
    high = [3 + (i + 2) % n / n for i in range(n)]
    ax, ry = filled(n, n, 1), filled(n, n, 2)
    flux_out, field_out = [], []
    for z in range(n):
        ex, ey, bza, hz = (filled(n, n, z + shift) for shift in range(1, 5))
        ex = ex + [ax[z]]
        ey = [row + [ry[z][y]] for y, row in enumerate(ey)]
        for _, y, x in itertools.product(range(steps), range(n), range(n)):
            curl = ex[y][x] - ex[y + 1][x] + ey[y][x + 1] - ey[y][x]
            flux = (low[y] * bza[y][x] - 0.25 * curl) / high[y]
            hz[y][x] = (low[x] * hz[y][x] + 0.5 * (high[z] * flux - low[z] * bza[y][x])) / high[x]
            bza[y][x] = flux
        flux_out.append(bza)
        field_out.append(hz)
    return [flux_out, field_out]


def jacobi_1d(n, m, steps):
    a = vector(n, 2)
    for _ in range(steps):
        a = [math.fsum(a[i - 1:i + 2]) / 3 if 0 < i < n - 1 else a[i] for i in range(n)]
    return [a]


def inner(n, i, j):
    return 0 < i < n - 1 and 0 < j < n - 1


def jacobi_2d(n, m, steps):
    a = filled(n, n, 2)
    for _ in range(steps):
        a = [[math.fsum((a[i][j], a[i - 1][j], a[i + 1][j], a[i][j - 1], a[i][j + 1])) / 5 if inner(n, i, j) else a[i][j]
              for j in range(n)] for i in range(n)]
    return [a]


def seidel_2d(n, m, steps):
    a = filled(n, n, 2)
    for _, i, j in itertools.product(range(steps), range(1, n - 1), range(1, n - 1)):
        a[i][j] = math.fsum(a[i + y][j + x] for y in (-1, 0, 1) for x in (-1, 0, 1)) / 9
    return [a]


KERNELS = {
    "gemm": gemm, "2mm": two_products, "3mm": three_products, "symm": symm, "syrk": syrk, "syr2k": syr2k, "trmm": trmm,
    "doitgen": doitgen, "atax": atax, "bicg": bicg, "mvt": mvt, "gemver": gemver, "gesummv": gesummv, "cholesky": cholesky,
    "durbin": durbin, "gramschmidt": gramschmidt, "lu": lu, "ludcmp": ludcmp, "trisolv": trisolv, "correlation": correlation,
    "covariance": covariance, "dynprog": dynprog, "floyd-warshall": floyd_warshall, "reg_detect": reg_detect, "adi": adi,
    "fdtd-2d": fdtd_2d, "fdtd-apml": fdtd_apml, "jacobi-1d": jacobi_1d, "jacobi-2d": jacobi_2d, "seidel-2d": seidel_2d,
}


def result(name, **sizes):
    return checksum(*KERNELS[name](**{**SIZES, **sizes}))


if __name__ == "__main__":
    for kernel in KERNELS:
        print(f"{kernel} {result(kernel):.14e}")
