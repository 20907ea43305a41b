// Values along a line, of every run on the stage.

import { drawChart } from './chart.js';
import { image } from './images.js';
import { lengthOf, lengthText } from './measures.js';
import { offsetOf, unitName } from './scale.js';
import { QUANTITIES, colourOf, element, shownRuns, state } from './store.js';

/** Values along the line, at the middle of as many steps as it crosses pixels; {x, y}, x in units of the axis. */
function along({ from, to }, found, offset = 0) {
  const { rows, columns, step, values } = found;
  const [dx, dy] = [(to[0] - from[0]) * columns, (to[1] - from[1]) * rows];
  const count = Math.max(2, Math.ceil(Math.hypot(dx, dy)) + 1);
  const length = Math.hypot(dx * step[1], dy * step[0]);
  const [x, y] = [[], []];
  for (let i = 0; i < count; i++) {
    const part = i / (count - 1);
    const column = Math.min(columns - 1, Math.floor(from[0] * columns + part * dx));
    const row = Math.min(rows - 1, Math.floor(from[1] * rows + part * dy));
    x.push(part * length);
    y.push(values[row * columns + column] + offset);
  }
  return { x, y };
}

/** Draw the profile into `place`. */
export function showProfile(place) {
  if (!state.profile) {
    place.replaceChildren(element('p', { class: 'quiet' }, 'Drag over an image with Shift to draw a line.'));
    return '';
  }
  let canvas = place.querySelector('canvas.plot');
  if (!canvas) {
    canvas = element('canvas', { class: 'plot', role: 'img', 'aria-label': 'Line profile' });
    place.replaceChildren(canvas);
  }
  const runs = shownRuns().filter((run) => image(run, state.quantity));
  const series = runs.map((run) => ({
    name: state.runs[run].name,
    colour: colourOf(run),
    ...along(state.profile, image(run, state.quantity), offsetOf(run)),
  }));
  const first = runs.length ? image(runs[0], state.quantity) : null;
  const unit = first ? unitName(first.unit) : '';
  drawChart(canvas, {
    series,
    xLabel: first ? `along the line (${{ um: 'µm', NA: 'NA', px: 'pixels' }[first.axisUnit]})` : '',
    yLabel: `${QUANTITIES[state.quantity].toLowerCase()}${unit ? ` (${unit})` : ''}`,
    log: false,
    empty: 'Nothing to draw.',
  });
  const length = first ? lengthText(lengthOf(state.profile, first), first.axisUnit) : '';
  return `${length}${runs.some((run) => offsetOf(run)) ? ', constants between phases are removed' : ''}`;
}
