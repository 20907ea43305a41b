// Statistics of the rectangle that was drawn, one line for each run on the stage.

import { image } from './images.js';
import { extentOf, lengthText, statisticsOf } from './measures.js';
import { number, unitName } from './scale.js';
import { QUANTITIES, element, shownRuns, state } from './store.js';

/** Write them into `place`; returns a note. */
export function showRegion(place) {
  if (!state.region) {
    const words = 'Choose Region above the images (or hold Alt) and drag to draw a rectangle.';
    place.replaceChildren(element('p', { class: 'quiet' }, words));
    return '';
  }
  const runs = shownRuns().filter((run) => image(run, state.quantity));
  if (!runs.length) {
    place.replaceChildren(element('p', { class: 'quiet' }, 'Nothing to measure.'));
    return '';
  }
  const first = image(runs[0], state.quantity);
  const { width, height, wide, high } = extentOf(state.region, first);
  const size = `${lengthText(width, first.axisUnit)} × ${lengthText(height, first.axisUnit)}, ${wide} × ${high} pixels`;
  const cells = (tag, texts) => element('tr', {}, ...texts.map((text) => element(tag, {}, text)));
  const unit = unitName(first.unit);
  const heading = cells('th', ['', 'mean', 'std', 'min', 'max']);
  const rows = runs.map((run) => {
    const found = statisticsOf(state.region, image(run, state.quantity));
    const numbers = found ? [found.mean, found.deviation, found.low, found.high].map(number) : ['–', '–', '–', '–'];
    return cells('td', [state.runs[run].name, ...numbers]);
  });
  const caption = `${QUANTITIES[state.quantity]}${unit ? ` in ${unit}` : ''}, values as on disk`;
  place.replaceChildren(
    element('p', { class: 'size' }, size),
    element('table', { class: 'numbers' }, element('caption', {}, caption), heading, ...rows),
  );
  return '';
}
