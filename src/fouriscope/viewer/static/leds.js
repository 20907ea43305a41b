// The map of the LEDs: which frames are there, what they weigh, how well they are explained.

import * as api from './api.js';
import { colour, table } from './colormaps.js';
import { number, paintBar } from './scale.js';
import { atMostEvery, on, set, state, tell } from './store.js';

const SHOWN = { relative: 'misfit / noise', misfit: 'misfit', weight: 'weight', arrived: 'arrived' };
const SVG = 'http://www.w3.org/2000/svg';
const card = document.getElementById('leds');
const map = document.getElementById('led-map');
const bar = document.getElementById('led-scale');
const note = document.getElementById('led-note');
const shown = document.getElementById('led-colour');
const ofRun = document.getElementById('led-run');

let leds = null;
let before = '';

/** Fetch the LEDs of the run anew; misfits are computed by the server, once asked for. */
const renew = atMostEvery(2000, async () => {
  const run = state.ledRun;
  try {
    const found = await api.leds(run, false);
    const drawn = JSON.stringify([run, shown.value, state.runs[run]?.state, found]);
    if (drawn === before) return; // three hundred circles are not drawn anew for nothing
    [leds, before] = [found, drawn];
    draw();
    // While a run works its processor is its own: then only what it writes is shown.
    const idle = state.runs[run]?.state !== 'running';
    const unknown = { relative: leds.noise, misfit: leds.misfit }[shown.value] ?? [0];
    if (leds.na.length && unknown.every((value) => value === null) && idle) {
      card.classList.add('busy');
      say('computing the misfit of each LED …');
      leds = await api.leds(run, true);
    }
    draw();
  } catch (error) {
    before = '';
    draw();
    say(error.message);
  } finally {
    card.classList.remove('busy');
  }
});

function say(text) {
  note.textContent = text;
}

function node(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** What the colours show, for each LED; null where it is not known. */
function valuesOf(name) {
  if (name !== 'relative') return leds[name];
  return leds.misfit.map((value, i) => (value === null || !leds.noise[i] ? null : value / leds.noise[i]));
}

function draw() {
  map.replaceChildren();
  bar.hidden = true;
  if (!leds || !leds.na.length) {
    say(leds ? 'The LEDs are known when the first picture is written.' : '');
    return;
  }
  const reach = Math.max(leds.objective_na ?? 0, ...leds.na.map(([y, x]) => Math.hypot(y, x))) * 1.06 || 1;
  const svg = node('svg', { viewBox: `${-reach} ${-reach} ${2 * reach} ${2 * reach}`, role: 'group' });
  if (leds.objective_na) svg.append(node('circle', { class: 'pupil', r: leds.objective_na }));
  const radius = 0.46 * spacing(leds.na);
  const values = valuesOf(shown.value);
  const scale = scaleOf(values);
  const fractions = values.map((value) => (value === null || !scale ? null : scale.fraction(Number(value))));
  drawBar(scale);
  leds.na.forEach(([y, x], led) => {
    const circle = node('circle', { class: 'led', cx: x, cy: y, r: radius, 'data-led': led });
    circle.style.strokeWidth = String(radius * 0.5);
    circle.style.fill = fillOf(led, fractions[led]);
    circle.setAttribute('aria-pressed', String(led === state.led));
    const title = node('title', {});
    title.textContent = describe(led);
    circle.append(title);
    circle.addEventListener('click', () => choose(led));
    circle.addEventListener('pointerenter', () => say(describe(led)));
    svg.append(circle);
  });
  map.append(svg);
  say(state.led === null ? summary() : describe(state.led));
}

function fillOf(led, fraction) {
  if (!leds.arrived[led]) return 'var(--line)';
  if (shown.value === 'arrived') return 'var(--accent)';
  return fraction === null ? 'var(--quiet)' : colour('viridis', fraction);
}

/** {low, high, fraction}: from values to 0 … 1, over the logarithm where they span decades; null if none is known. */
function scaleOf(values) {
  const known = values.filter((value) => value !== null && Number.isFinite(Number(value))).map(Number);
  if (!known.length) return null;
  const isRelative = shown.value === 'relative';
  // Beside noise, 1 is always on the scale, and what is hardly above it does not look bad.
  if (isRelative) known.push(1, 2);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const log = low > 0 && (isRelative || high > 20 * low);
  const scaled = log ? Math.log : (value) => value;
  const [from, to] = [scaled(low), scaled(high)];
  return { low, high, log, fraction: (value) => (to > from ? (scaled(value) - from) / (to - from) : 0.5) };
}

function drawBar(scale) {
  bar.hidden = !scale || shown.value === 'arrived';
  if (bar.hidden) return;
  const unit = shown.value === 'relative' ? ' × noise' : '';
  for (const end of ['low', 'high']) document.getElementById(`led-${end}`).textContent = unit ? `${Number(scale[end].toPrecision(2))}${unit}` : number(scale[end]);
  const canvas = document.getElementById('led-bar');
  paintBar(canvas.getContext('2d'), 0, 0, canvas.width, canvas.height, table('viridis'));
}

/** The distance between neighbours: the median of each LED's nearest, of some LEDs. */
function spacing(places) {
  const nearest = places.slice(0, 60).map(([y, x], i) => {
    let best = Infinity;
    places.forEach(([v, u], j) => i !== j && (best = Math.min(best, Math.hypot(y - v, x - u))));
    return best;
  });
  const found = nearest.sort((a, b) => a - b)[Math.floor(nearest.length / 2)];
  return Number.isFinite(found) && found > 0 ? found : 0.05;
}

function describe(led) {
  if (led >= leds.na.length) return '';
  const [y, x] = leds.na[led];
  const parts = [`LED ${led}`, `NA ${x.toFixed(3)}, ${y.toFixed(3)}`];
  if (!leds.arrived[led]) return [...parts, 'not arrived yet'].join(' · ');
  if (leds.weight[led] !== 1) parts.push(leds.weight[led] ? `weight ${number(leds.weight[led])}` : 'left out');
  if (leds.misfit[led] !== null) parts.push(`misfit ${number(leds.misfit[led])}`);
  const relative = valuesOf('relative')[led];
  if (relative !== null) parts.push(`${Number(relative.toPrecision(2))} × what noise leaves`);
  return parts.join(' · ');
}

function summary() {
  const arrived = leds.arrived.filter(Boolean).length;
  const count = arrived === leds.na.length ? `${arrived} LEDs` : `${arrived} of ${leds.na.length} LEDs have arrived`;
  return `${count} · click one to see its frame`;
}

export function choose(led) {
  if (!leds?.na.length) return;
  set({ led: (led + leds.na.length) % leds.na.length });
  draw();
  tell('led');
}

export function begin() {
  for (const [value, text] of Object.entries(SHOWN)) shown.append(new Option(text, value));
  shown.addEventListener('change', renew);
  ofRun.addEventListener('change', () => {
    set({ ledRun: Number(ofRun.value) });
    renew();
    tell('led');
  });
  on('runs', () => {
    if (ofRun.options.length === state.runs.length) return;
    ofRun.replaceChildren(...state.runs.map(({ name }, run) => new Option(name, run)));
    ofRun.hidden = state.runs.length < 2;
    renew();
  });
  on('changed', (run) => run === state.ledRun && renew());
  on('ended', (run) => run === state.ledRun && renew());
}
