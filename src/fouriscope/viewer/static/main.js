// Start everything, and keep it fresh.

import * as api from './api.js';
import * as controls from './controls.js';
import * as convergence from './convergence.js';
import * as details from './details.js';
import * as enlarge from './enlarge.js';
import * as histogram from './histogram.js';
import { image, renew } from './images.js';
import * as keys from './keys.js';
import * as leds from './leds.js';
import * as pointer from './pointer.js';
import * as runlist from './runlist.js';
import * as saving from './saving.js';
import * as scale from './scale.js';
import * as stage from './stage.js';
import { atMostEvery, set, state, tell } from './store.js';
import * as theme from './theme.js';

const PACE = 3000; // milliseconds between two descriptions of a run that goes on
const describers = new Map();

function describe(run) {
  if (!describers.has(run)) {
    describers.set(
      run,
      atMostEvery(PACE, async () => {
        const [before, looks] = [state.runs[run].state, looksLike(state.runs[run])];
        state.runs[run] = await api.run(run).catch((error) => lostRun(run, error));
        if (before === 'running' && state.runs[run].state !== 'running') tell('ended', run);
        if (looksLike(state.runs[run]) !== looks) tell('draw');
        tell('runs');
      }),
    );
  }
  describers.get(run)();
}

// What the stage shows of a description, in words: all else changes often, and is not worth a drawing.
const looksLike = (about) => JSON.stringify([about.name, about.state, about.images, about.message]);
const lostRun = (run, error) => ({ ...state.runs[run], state: 'unknown', message: error.message });

function changed(run, kinds) {
  if (kinds.includes('images')) {
    renew(run, [state.quantity]);
    tell('changed', run);
  }
  if (kinds.includes('metrics')) convergence.renew(run);
  describe(run);
}

/** After the first connection, and after each that was lost: everything may have changed. */
async function begin() {
  const found = await api.runs();
  const isFirst = !state.runs.length;
  state.runs = found;
  if (isFirst) set({ visible: new Set(found.keys()), second: Math.min(1, found.length - 1) });
  document.title = `${found.map(({ name }) => name).join(', ')} – fouriscope`;
  for (const run of found.keys()) image(run, state.quantity); // on its way while the rest is drawn
  tell('runs');
  tell('draw');
  found.forEach((_, run) => {
    if (!isFirst) renew(run, [state.quantity]);
    convergence.renew(run);
  });
}

function lost() {
  const message = 'The server does not answer; is `fouriscope view` running?';
  for (const about of state.runs) Object.assign(about, { message });
  tell('runs');
}

const parts = [
  theme, controls, scale, histogram, stage, pointer, convergence, leds, details, enlarge, runlist, saving, keys,
];
for (const part of parts) part.begin();
begin().catch(lost);
api.listen(changed, () => state.runs.length && begin().catch(lost), lost);

// For tests and for the console: where a pixel lies on the screen, and which version of a run is painted.
window.fouriscope = {
  state,
  painter: stage.painter.kind,
  isDrawn: stage.isDrawn,
  version: (run) => stage.painted.get(run) ?? null,
  whereIs(pane, row, column) {
    const shown = stage.panes[pane];
    const box = shown.canvas.getBoundingClientRect();
    const place = shown.place(state.view);
    return {
      x: box.left + (place.left + (column + 0.5) * place.across) / shown.ratio,
      y: box.top + (place.top + (row + 0.5) * place.down) / shown.ratio,
    };
  },
  colourAt(pane, row, column) {
    const shown = stage.panes[pane];
    const place = shown.place(state.view);
    const at = [place.left + (column + 0.5) * place.across, place.top + (row + 0.5) * place.down].map(Math.floor);
    return [...shown.context.getImageData(...at, 1, 1).data.slice(0, 3)];
  },
};
