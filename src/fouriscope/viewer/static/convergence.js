// Curves of all runs: what the solver wrote, iteration by iteration.

import * as api from './api.js';
import { drawChart } from './chart.js';
import { atMostEvery, colourOf, on, shownRuns, state, tell } from './store.js';

const CURVES = { misfit: 'misfit', residual: 'residual', snr: 'SNR', step: 'step', strength: 'strength' };
const AGAINST = { iteration: 'iterations', seconds: 'seconds', frames_seen: 'frames seen' };
const PACE = 3000; // milliseconds between two looks at a run that goes on

const curve = document.getElementById('curve');
const against = document.getElementById('against');
const canvas = document.getElementById('curves');
const known = new Map(); // run → {generation, count, columns}

/** The last value of a column of a run, or undefined. */
export const last = (run, column) => known.get(run)?.columns[column]?.at(-1);

const renewers = new Map();

/** Fetch what is new of a run, soon. */
export function renew(run) {
  if (!renewers.has(run)) renewers.set(run, atMostEvery(PACE, () => fetchNew(run)));
  renewers.get(run)();
}

async function fetchNew(run) {
  const before = known.get(run) ?? { generation: 0, count: 0, columns: {} };
  try {
    const found = await api.metrics(run, before);
    const same = found.generation === before.generation && found.from > 0;
    const joined = ([name, values]) => [name, same ? before.columns[name].concat(values) : values];
    const columns = Object.fromEntries(Object.entries(found.columns).map(joined));
    known.set(run, { generation: found.generation, count: columns.iteration.length, columns });
  } catch {
    known.delete(run); // gone or broken: the list of runs says so in words
  }
  tell('metrics', run);
}

function draw() {
  const series = shownRuns()
    .filter((run) => known.has(run))
    .map((run) => {
      const { columns } = known.get(run);
      const y = columns[curve.value].map((value) => value ?? NaN);
      return { name: state.runs[run].name, colour: colourOf(run), x: columns[against.value], y };
    });
  drawChart(canvas, {
    series,
    xLabel: AGAINST[against.value],
    yLabel: curve.value === 'snr' ? 'SNR (dB)' : CURVES[curve.value],
    log: curve.value !== 'snr',
    empty: curve.value === 'snr' ? 'The truth is not known, so there is no SNR.' : 'No iterations yet.',
  });
}

export function begin() {
  for (const [value, text] of Object.entries(CURVES)) curve.append(new Option(text, value));
  for (const [value, text] of Object.entries(AGAINST)) against.append(new Option(text, value));
  for (const select of [curve, against]) select.addEventListener('change', draw);
  for (const event of ['metrics', 'theme']) on(event, draw);
  on('state', (changes) => ['visible', 'mode', 'first', 'second'].some((key) => key in changes) && draw());
  new ResizeObserver(draw).observe(canvas);
}

/** The next choice of an axis, for the keyboard. */
export function next(which) {
  const select = which === 'curve' ? curve : against;
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  draw();
}
