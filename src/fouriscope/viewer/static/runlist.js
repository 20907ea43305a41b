// The list of runs: what state each is in, how far it is, and whether it is shown.

import { last } from './convergence.js';
import { number } from './scale.js';
import { colourOf, element, on, set, state } from './store.js';

const list = document.getElementById('runs');

export function begin() {
  on('runs', draw);
  on('metrics', draw);
  on('state', (changes) => 'visible' in changes && draw());
}

function draw() {
  const focused = document.activeElement?.dataset?.run;
  list.replaceChildren(...state.runs.map(card));
  if (focused !== undefined) list.querySelector(`input[data-run="${focused}"]`)?.focus();
}

function card(about, run) {
  const tick = element('input', { type: 'checkbox', 'data-run': run, onchange: () => toggle(run) });
  tick.checked = state.visible.has(run);
  const swatch = element('i', { class: 'swatch' });
  const title = element('label', { class: 'title' }, tick, swatch, element('span', {}, about.name));
  const fraction = about.state === 'finished' ? 1 : (about.fraction ?? 0);
  const filled = element('i');
  filled.style.width = `${100 * fraction}%`;
  const words = [element('b', {}, about.state), element('span', {}, progress(about))];
  const status = element('div', { class: 'state' }, ...words);
  const made = element('section', { class: 'run', 'data-state': about.state, 'data-run': run }, title, status);
  made.style.setProperty('--colour', colourOf(run));
  made.append(element('div', { class: 'bar' }, filled), facts(about, run));
  if (about.message) made.append(element('p', {}, about.message));
  if (about.verdict) made.append(verdict(about.verdict));
  return made;
}

/** What the run says about itself; its warnings are in the summary, and here for who points at it. */
function verdict({ level, sentence, warnings }) {
  const title = warnings.length ? warnings.join('\n') : null;
  return element('p', { class: 'verdict', 'data-level': level, title }, sentence);
}

function toggle(run) {
  const visible = new Set(state.visible);
  if (!visible.delete(run)) visible.add(run);
  set({ visible });
}

function progress(about) {
  if (about.tiles) return `${about.tiles[0]} of ${about.tiles[1]} tiles`;
  if (about.state !== 'running') return '';
  if (about.seconds_left === null || about.seconds_left === undefined) return '';
  return `${duration(about.seconds_left)} left`;
}

/** Seconds as a person says them. */
function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

function facts(about, run) {
  const rows = [
    ['iteration', last(run, 'iteration') ?? about.iteration],
    ['time', last(run, 'seconds') === undefined ? undefined : duration(last(run, 'seconds'))],
    ['misfit', last(run, 'misfit')],
    ['SNR', last(run, 'snr')],
  ];
  const found = rows.filter(([, value]) => value !== undefined && value !== null && value !== 0);
  const plain = (value) => (typeof value === 'number' ? number(value) : value);
  const text = (name, value) => (name === 'SNR' ? `${value.toFixed(2)} dB` : plain(value));
  const pair = ([name, value]) => [element('dt', {}, name), element('dd', {}, text(name, value))];
  return element('dl', {}, ...found.flatMap(pair));
}
