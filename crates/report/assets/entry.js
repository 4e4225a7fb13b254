import * as core from "echarts/core";
import { LineChart, BarChart, HeatmapChart, ScatterChart } from "echarts/charts";
import { GridComponent, TooltipComponent, VisualMapComponent, DataZoomSliderComponent, LegendComponent, MarkLineComponent, AriaComponent } from "echarts/components";
import { SVGRenderer, CanvasRenderer } from "echarts/renderers";
core.use([LineChart, BarChart, HeatmapChart, ScatterChart, GridComponent, TooltipComponent, VisualMapComponent, DataZoomSliderComponent, LegendComponent, MarkLineComponent, AriaComponent, SVGRenderer, CanvasRenderer]);
export const init = core.init;
