import flamegraph from "d3-flame-graph";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { timerFlush } from "d3-timer";
export { flamegraph, scaleLinear, select, timerFlush };
