import java.util.Random;

/** Six classes of objects, each twice as often accessed as the one before: exact counts and samples must rank them alike. */
public final class Ranks {
    abstract static class Counted {
        long value;
    }

    static final class One extends Counted {}

    static final class Two extends Counted {}

    static final class Four extends Counted {}

    static final class Eight extends Counted {}

    static final class Sixteen extends Counted {}

    static final class ThirtyTwo extends Counted {}

    static Counted make(int kind) {
        switch (kind) {
            case 0: return new One();
            case 1: return new Two();
            case 2: return new Four();
            case 3: return new Eight();
            case 4: return new Sixteen();
            default: return new ThirtyTwo();
        }
    }

    public static void main(String[] words) {
        int each = Integer.parseInt(words[0]);
        int rounds = Integer.parseInt(words[1]);
        Random random = new Random(1);
        Counted[][] objects = new Counted[6][each];
        for (int i = 0; i < each; i++) {
            for (int kind = 0; kind < 6; kind++) {
                objects[kind][i] = make(kind);
            }
        }
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            for (int kind = 0; kind < 6; kind++) {
                Counted[] of = objects[kind];
                for (int i = 0; i < each << kind >> 5; i++) {
                    Counted one = of[random.nextInt(each)];
                    one.value += round;
                    sum += one.value;
                }
            }
        }
        System.out.println("sum " + sum);
    }
}
