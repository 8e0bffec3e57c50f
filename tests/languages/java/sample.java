package org.example.mill;

import static java.util.Objects.requireNonNull;

import java.util.*;
import java.util.function.Function;

/** Grinds whatever it is given. */
@Component("mill")
public abstract class Mill<T extends Grain> extends Machine<T> implements Closeable, plant.Powered {
    public static final int MAX_LOAD = 50, MIN_LOAD = 1;
    @Inject
    protected List<Sack<T>> sacks = new ArrayList<>();
    private final Gauge gauge;

    static {
        Registry.register(Mill.class);
    }

    protected Mill(Gauge gauge) {
        super("mill");
        this.gauge = requireNonNull(gauge);
    }

    abstract <R> R grind(T grain, Function<T, R> stone) throws JamException;

    @Override
    public void close() {
        sacks.stream().map(Sack::weigh).forEach(gauge::add);
        new plant.Cleaner().run();
    }

    public enum Speed implements Labelled {
        SLOW(1),
        FAST(3) {
            @Override
            int turns() {
                return 6;
            }
        };

        private final int turns;

        Speed(int turns) {
            this.turns = turns;
        }

        int turns() {
            return turns;
        }
    }

    interface Stone extends Comparable<Stone>, Weighed {
        double HARDNESS = 7.5;

        default boolean harder(Stone other) {
            return compareTo(other) > 0;
        }
    }

    public record Batch(String code, int kilos) implements Labelled {
        public Batch {
            check(kilos);
        }
    }

    @interface Calibrated {
        String value() default "";
    }
}
