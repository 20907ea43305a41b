// What the camera saw of one LED, what the model predicts, and the difference.

import * as api from './api.js';
import { DIVERGING, table } from './colormaps.js';
import { enlarging } from './enlarge.js';
import { number } from './scale.js';
import { element, state } from './store.js';

const KINDS = { measured: 'measured', predicted: 'predicted', difference: 'predicted − measured' };

/** Three pictures of the chosen LED into `place`; resolves to a note about them. */
export async function showFrames(place) {
  const { led, ledRun } = state;
  if (led === null) {
    place.replaceChildren(element('p', { class: 'quiet' }, 'Click an LED to see its frame.'));
    return '';
  }
  const kinds = Object.keys(KINDS);
  const found = await Promise.all(kinds.map((kind) => api.image(`api/runs/${ledRun}/led/${led}/${kind}`)));
  if (led !== state.led || ledRun !== state.ledRun) return ''; // another was clicked meanwhile
  const [measured, predicted, difference] = found;
  const [low, high] = extent([measured, predicted]);
  const most = Math.max(...extent([difference]).map(Math.abs)) || 1;
  const scales = [[low, high, 'grey'], [low, high, 'grey'], [-most, most, DIVERGING]];
  const figures = found.map((image, i) => {
    const canvas = element('canvas', { width: image.columns, height: image.rows, 'data-kind': kinds[i] });
    paint(canvas, image, ...scales[i]);
    const range = `${number(scales[i][0])} … ${number(scales[i][1])}`;
    const caption = `${KINDS[kinds[i]]}, ${range}`;
    return element('figure', {}, element('figcaption', {}, caption), enlarging(canvas, `LED ${led}: ${caption}`));
  });
  place.replaceChildren(element('div', { id: 'frames', 'data-led': led }, ...figures));
  return `LED ${led} of ${state.runs[ledRun].name}`;
}

function extent(images) {
  const values = images.flatMap(({ values: all }) => Array.from(all).filter(Number.isFinite)).sort((a, b) => a - b);
  const at = (fraction) => values[Math.round(fraction * (values.length - 1))] ?? 0;
  const [low, high] = [at(0.002), at(0.998)];
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}

function paint(canvas, { values, rows, columns }, low, high, map) {
  const context = canvas.getContext('2d');
  const picture = context.createImageData(columns, rows);
  const bytes = table(map);
  values.forEach((value, i) => {
    const at = 4 * Math.round(255 * Math.min(1, Math.max(0, (value - low) / (high - low))));
    for (let c = 0; c < 3; c++) picture.data[4 * i + c] = Number.isFinite(value) ? bytes[at + c] : 128;
    picture.data[4 * i + 3] = 255;
  });
  context.putImageData(picture, 0, 0);
}
