import java.util.Random;

/**
 * The kernels of SciMark 2.0, written anew: fft, sor, montecarlo, sparse and lu. As in SPECjvm2008 each repetition makes its data anew.
 *
 * <pre>java SciMark KERNEL SIZE REPETITIONS</pre>
 *
 * Prints a check sum; work is floating-point operations, by SciMark's own formulas.
 */
public final class SciMark {
    /** Passes over the data in one repetition of sor and sparse. */
    private static final int PASSES = 20;
    private static final int NONZERO_IN_ROW = 10;

    private static double[] randomVector(int length, Random random) {
        double[] made = new double[length];
        for (int i = 0; i < length; i++) {
            made[i] = random.nextDouble();
        }
        return made;
    }

    private static double[][] randomMatrix(int size, Random random) {
        double[][] made = new double[size][];
        for (int row = 0; row < size; row++) {
            made[row] = randomVector(size, random);
        }
        return made;
    }

    // fft: complex numbers in turn, real part first.

    private static void swap(double[] data, int one, int other) {
        for (int part = 0; part < 2; part++) {
            double kept = data[2 * one + part];
            data[2 * one + part] = data[2 * other + part];
            data[2 * other + part] = kept;
        }
    }

    private static void reverseBits(double[] data, int size) {
        int shift = 32 - Integer.numberOfTrailingZeros(size);
        for (int i = 0; i < size; i++) {
            int other = Integer.reverse(i) >>> shift;
            if (i < other) {
                swap(data, i, other);
            }
        }
    }

    private static void butterfly(double[] data, int low, int high, double real, double imaginary) {
        double r = data[2 * high] * real - data[2 * high + 1] * imaginary;
        double i = data[2 * high] * imaginary + data[2 * high + 1] * real;
        data[2 * high] = data[2 * low] - r;
        data[2 * high + 1] = data[2 * low + 1] - i;
        data[2 * low] += r;
        data[2 * low + 1] += i;
    }

    /** The roots of unity exp(sign * 2 * pi * i * k / size) of the first half circle. */
    private static double[] roots(int size, int sign) {
        double[] made = new double[size];
        for (int k = 0; k < size / 2; k++) {
            made[2 * k] = Math.cos(2 * Math.PI * k / size);
            made[2 * k + 1] = sign * Math.sin(2 * Math.PI * k / size);
        }
        return made;
    }

    private static void transform(double[] data, int size, int sign) {
        reverseBits(data, size);
        double[] roots = roots(size, sign);
        for (int half = 1; half < size; half *= 2) {
            int step = size / (2 * half);
            for (int block = 0; block < size; block += 2 * half) {
                for (int k = 0; k < half; k++) {
                    butterfly(data, block + k, block + k + half, roots[2 * k * step], roots[2 * k * step + 1]);
                }
            }
        }
    }

    /** There and back: the largest error. */
    static double fft(int size, Random random) {
        double[] data = randomVector(2 * size, random);
        double[] kept = data.clone();
        transform(data, size, -1);
        transform(data, size, 1);
        double error = 0;
        for (int i = 0; i < data.length; i++) {
            error = Math.max(error, Math.abs(data[i] / size - kept[i]));
        }
        return error < 1e-9 ? data[1] / size : Double.NaN;
    }

    private static void relax(double[][] grid, double omega) {
        for (int row = 1; row < grid.length - 1; row++) {
            double[] above = grid[row - 1];
            double[] here = grid[row];
            double[] below = grid[row + 1];
            for (int i = 1; i < here.length - 1; i++) {
                here[i] = omega / 4 * (above[i] + below[i] + here[i - 1] + here[i + 1]) + (1 - omega) * here[i];
            }
        }
    }

    static double sor(int size, Random random) {
        double[][] grid = randomMatrix(size, random);
        for (int pass = 0; pass < PASSES; pass++) {
            relax(grid, 1.25);
        }
        return grid[size / 2][size / 2];
    }

    /** A fourth of pi by random points. */
    static double montecarlo(int size, Random random) {
        int within = 0;
        for (int i = 0; i < size; i++) {
            double x = random.nextDouble();
            double y = random.nextDouble();
            if (x * x + y * y <= 1) {
                within++;
            }
        }
        return (double) within / size;
    }

    /** A matrix in rows, each with the same number of values; {@code columns} says where they are. */
    private static void multiply(double[] values, int[] columns, double[] vector, double[] result) {
        for (int row = 0; row < result.length; row++) {
            double sum = 0;
            for (int i = row * NONZERO_IN_ROW; i < (row + 1) * NONZERO_IN_ROW; i++) {
                sum += values[i] * vector[columns[i]];
            }
            result[row] = sum;
        }
    }

    private static int[] randomColumns(int size, Random random) {
        int[] columns = new int[size * NONZERO_IN_ROW];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = random.nextInt(size);
        }
        return columns;
    }

    static double sparse(int size, Random random) {
        double[] values = randomVector(size * NONZERO_IN_ROW, random);
        int[] columns = randomColumns(size, random);
        double[] vector = randomVector(size, random);
        double[] result = new double[size];
        for (int pass = 0; pass < PASSES; pass++) {
            multiply(values, columns, vector, result);
        }
        return result[size / 2];
    }

    private static int pivotOf(double[][] matrix, int column) {
        int found = column;
        for (int row = column + 1; row < matrix.length; row++) {
            if (Math.abs(matrix[row][column]) > Math.abs(matrix[found][column])) {
                found = row;
            }
        }
        return found;
    }

    private static void eliminate(double[] row, double[] pivot, int column) {
        double factor = row[column] / pivot[column];
        row[column] = factor;
        for (int i = column + 1; i < row.length; i++) {
            row[i] -= factor * pivot[i];
        }
    }

    static double lu(int size, Random random) {
        double[][] matrix = randomMatrix(size, random);
        for (int column = 0; column < size; column++) {
            int pivot = pivotOf(matrix, column);
            double[] kept = matrix[pivot];
            matrix[pivot] = matrix[column];
            matrix[column] = kept;
            for (int row = column + 1; row < size; row++) {
                eliminate(matrix[row], kept, column);
            }
        }
        return matrix[size - 1][size - 1];
    }

    private static double run(String kernel, int size, Random random) {
        switch (kernel) {
            case "fft": return fft(size, random);
            case "sor": return sor(size, random);
            case "montecarlo": return montecarlo(size, random);
            case "sparse": return sparse(size, random);
            case "lu": return lu(size, random);
            default: throw new IllegalArgumentException("no kernel " + kernel);
        }
    }

    /** Floating-point operations of one repetition. */
    private static long operations(String kernel, long size) {
        switch (kernel) {
            case "fft": return 2 * (5 * size - 2) * Long.numberOfTrailingZeros(size) + 4 * (size + 1);
            case "sor": return (size - 1) * (size - 1) * PASSES * 6;
            case "montecarlo": return 4 * size;
            case "sparse": return 2 * size * NONZERO_IN_ROW * PASSES;
            default: return 2 * size * size * size / 3;
        }
    }

    public static void main(String[] words) {
        int size = Integer.parseInt(words[1]);
        int repetitions = Integer.parseInt(words[2]);
        Random random = new Random(1);
        Phase phase = new Phase();
        double sum = 0;
        for (int i = 0; i < repetitions; i++) {
            sum += run(words[0], size, random);
        }
        phase.end(operations(words[0], size) * repetitions);
        System.out.println("sum " + sum);
    }
}
