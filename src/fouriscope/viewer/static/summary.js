// A run in a few lines; the configuration itself is one click further.

import * as api from './api.js';
import { element, shownRuns, state } from './store.js';

let shownConfig = null; // of which run config.toml is shown instead

/** Write the summary of the first run on the stage into `place`; resolves to a note. */
export async function showSummary(place) {
  const [run] = shownRuns();
  if (run === undefined) {
    place.replaceChildren();
    return '';
  }
  const { name } = state.runs[run];
  if (shownConfig === run) {
    const text = await api.config(run);
    if (place.querySelector('pre')?.textContent === text) return name;
    place.replaceChildren(turn('Back to the summary', null, place), element('pre', {}, text));
    return name;
  }
  const parts = await api.summary(run);
  const pair = ([title, value]) => [element('dt', {}, title), element('dd', {}, value)];
  const lists = parts.map((part) => [
    element('h3', {}, part.title),
    element('dl', {}, ...part.rows.flatMap(pair)),
  ]);
  place.replaceChildren(
    element('div', { class: 'summary' }, ...lists.flat()),
    turn('Show config.toml', run, place),
  );
  return name;
}

function turn(words, run, place) {
  const again = () => {
    shownConfig = run;
    showSummary(place);
  };
  return element('button', { class: 'turn', onclick: again }, words);
}
