// The stage: which panes there are, what each paints, and one drawing a frame however much changes.

import { failure, image } from './images.js';
import { makePainter } from './painter.js';
import { Pane } from './pane.js';
import { currentScale, differenceConstant, offsetOf } from './scale.js';
import { sameShape } from './statistics.js';
import { QUANTITIES, colourOf, element, on, set, shownRuns, state, tell } from './store.js';

const stage = document.getElementById('stage');
const handle = element('div', { class: 'handle', role: 'separator', 'aria-label': 'Edge between the two runs' });
const BLINK_MILLISECONDS = 600;

export const painter = makePainter();
export const panes = [];
export const painted = new Map(); // run → version of its image that was painted last
let asked = false;

/** Draw before the next frame of the screen. */
export function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    drawNow();
  });
}

/** Whether everything that was asked for is on the screen. */
export const isDrawn = () => !asked && panes.length > 0 && panes.every(({ image: shown }) => shown);

/** Draw at once, for who saves the picture. */
export function drawNow() {
  arrange();
  const scale = currentScale();
  for (const pane of panes) if (pane.fit()) paint(pane, scale);
  tell('drawn', scale);
}

/** As many panes as are needed, in the arrangement that makes the pictures largest. */
function arrange() {
  const runs = shownRuns();
  const groups = state.mode === 'side' ? runs.map((run) => [run]) : [runs];
  while (panes.length > groups.length) panes.pop().element.remove();
  while (panes.length < groups.length) {
    panes.push(new Pane());
    stage.append(panes.at(-1).element);
    tell('pane', panes.at(-1));
  }
  groups.forEach((group, i) => (panes[i].runs = group));
  const columns = bestColumns(groups.length, stage.clientWidth / Math.max(1, stage.clientHeight));
  stage.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  stage.style.gridAutoRows = 'minmax(0, 1fr)';
  const swiping = state.mode === 'swipe' && panes.length === 1;
  if (swiping && handle.parentElement !== panes[0].element) panes[0].element.append(handle);
  handle.hidden = !swiping;
  handle.style.left = `${100 * state.swipe}%`;
}

function bestColumns(count, aspect) {
  const side = (columns) => Math.min(aspect / columns, 1 / Math.ceil(count / columns));
  const options = Array.from({ length: Math.max(1, count) }, (_, i) => i + 1);
  return options.reduce((best, columns) => (side(columns) > side(best) ? columns : best), 1);
}

function paint(pane, scale) {
  const { quantity, mode } = state;
  const [a, b] = pane.runs;
  const only = mode === 'blink' ? pane.runs[state.blink] : a;
  const needed = mode === 'side' ? [a] : [a, b];
  const problem = mode !== 'side' && pane.runs.length < 2 ? 'Two runs are needed for this.' : problemOf(needed);
  pane.label(...labelsOf(pane, only));
  pane.say(problem ?? '');
  if (problem) return;
  const [first, second] = needed.map((run) => image(run, quantity));
  pane.image = mode === 'blink' ? image(only, quantity) : first;
  const job = { how: 'one', swipe: state.swipe, place: pane.place(state.view), background: background(), ...scale };
  if (mode === 'side' || mode === 'blink') job.first = { image: pane.image, offset: offsetOf(only) };
  else {
    job.how = mode;
    job.first = { image: first, offset: offsetOf(a) };
    job.second = { image: second, offset: mode === 'difference' ? differenceConstant(first, second) : offsetOf(b) };
  }
  painter.paint(pane.context, pane.canvas.width, pane.canvas.height, job);
  for (const run of needed) painted.set(run, image(run, quantity).version);
  if (state.profile) pane.drawProfile(state.profile, state.view);
  if (state.region) pane.drawRegion(state.region, state.view);
  pane.drawScaleBar(state.view);
}

function labelsOf(pane, only) {
  const [a, b] = pane.runs;
  const name = (run) => ({ text: state.runs[run]?.name ?? '', colour: colourOf(run) });
  if (state.mode === 'side') return [name(a)];
  if (state.mode === 'blink') return [name(only)];
  if (state.mode === 'difference' && b !== undefined) {
    return [{ text: `${name(b).text} − ${name(a).text}`, colour: colourOf(b) }];
  }
  return [name(a), ...(b === undefined ? [] : [name(b)])];
}

/** Why these runs cannot be painted, in words, or null. */
function problemOf(runs) {
  for (const run of runs) {
    const about = state.runs[run];
    const why = failure(run, state.quantity);
    if (!about) return 'There is no such run.';
    if (why) return `${about.name}: ${why}`;
    if (image(run, state.quantity)) continue;
    if (about.images.includes(state.quantity)) return ' ';
    if (about.images.length) return `${about.name} has no ${QUANTITIES[state.quantity].toLowerCase()}.`;
    return wordsFor(about);
  }
  const [a, b] = runs.map((run) => image(run, state.quantity));
  if (b && !sameShape(a, b)) {
    return `The two images differ in size:\n${a.rows} × ${a.columns} and ${b.rows} × ${b.columns} pixels.`;
  }
  return null;
}

function wordsFor(about) {
  if (about.state === 'running') return 'Running: the first picture comes after the first iteration.';
  return about.message || `Nothing to show: the run is ${about.state}.`;
}

function background() {
  return getComputedStyle(stage).getPropertyValue('--field').match(/[0-9a-f]{2}/gi).map((byte) => parseInt(byte, 16));
}

export function begin() {
  on('state', draw);
  on('draw', draw);
  on('image', ({ quantity }) => quantity === state.quantity && draw());
  on('image gone', (old) => painter.forget(old));
  new ResizeObserver(draw).observe(stage);
  setInterval(() => state.mode === 'blink' && set({ blink: 1 - state.blink }), BLINK_MILLISECONDS);
  handle.addEventListener('pointerdown', (event) => {
    handle.setPointerCapture(event.pointerId);
    event.stopPropagation();
  });
  handle.addEventListener('pointermove', (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = handle.parentElement.getBoundingClientRect();
    set({ swipe: Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) });
  });
}
