// How often each value occurs on the stage, with the limits of the colour scale to drag.

import { currentScale, number, samplesOnStage, setLimits } from './scale.js';
import { on } from './store.js';

const box = document.getElementById('histogram');
const canvas = document.getElementById('colours');
const handles = [...box.querySelectorAll('.limit')];
const BINS = 60;
const BAR = 7; // height of the colours below, in pixels of the page
const STEPS = 100; // that a key needs from end to end

let range = [0, 1]; // values at the left and right end
let held = false; // the ends stay where they are while a limit is dragged

function show(scale) {
  if (!scale) return;
  const samples = samplesOnStage();
  if (!held) range = rangeOf(samples, scale);
  draw(samples, scale);
  handles.forEach((handle) => {
    const value = scale[handle.dataset.end];
    handle.style.left = `${100 * placeOf(value)}%`;
    handle.hidden = scale.wrapped;
    handle.setAttribute('aria-valuenow', number(value));
    handle.setAttribute('aria-valuemin', number(range[0]));
    handle.setAttribute('aria-valuemax', number(range[1]));
  });
}

/** All but the rarest values, and both limits, with some air. */
function rangeOf(samples, { low, high }) {
  const at = ({ values, offset }, part) => values[Math.round(part * (values.length - 1))] + offset;
  const known = samples.filter(({ values }) => values.length);
  const from = Math.min(low, ...known.map((one) => at(one, 0.001)));
  const to = Math.max(high, ...known.map((one) => at(one, 0.999)));
  const air = 0.04 * (to - from) || 0.5;
  return [from - air, to + air];
}

const placeOf = (value) => Math.min(1, Math.max(0, (value - range[0]) / (range[1] - range[0])));

function counts(samples) {
  const found = new Float64Array(BINS);
  for (const { values, offset } of samples) {
    for (const value of values) {
      const bin = Math.floor((BINS * (value + offset - range[0])) / (range[1] - range[0]));
      if (bin >= 0 && bin < BINS) found[bin] += 1 / values.length;
    }
  }
  return found;
}

function draw(samples, { low, high, table }) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  if (width < 2 || height < 2) return;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  const bars = height - BAR * ratio - 1;
  // The root, so that a few bright cells on an empty slide are seen.
  const levels = Array.from(counts(samples), Math.sqrt);
  const most = Math.max(...levels) || 1;
  context.fillStyle = getComputedStyle(canvas).getPropertyValue('--quiet');
  levels.forEach((level, bin) => {
    const high = (bars * level) / most;
    context.fillRect((bin * width) / BINS, bars - high, width / BINS - 0.5 * ratio, high);
  });
  for (let x = 0; x < width; x++) {
    const value = range[0] + ((x + 0.5) / width) * (range[1] - range[0]);
    const at = 4 * Math.round(255 * Math.min(1, Math.max(0, (value - low) / (high - low))));
    context.fillStyle = `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`;
    context.fillRect(x, height - BAR * ratio, 1, BAR * ratio);
  }
}

/** Put one limit at `value`; it stops before the other. */
function move(end, value) {
  const scale = currentScale();
  if (!scale || scale.wrapped) return;
  const least = (range[1] - range[0]) / STEPS;
  if (end === 'low') setLimits([Math.min(value, scale.high - least), scale.high]);
  else setLimits([scale.low, Math.max(value, scale.low + least)]);
}

export function begin() {
  for (const handle of handles) {
    const { end } = handle.dataset;
    handle.addEventListener('pointerdown', (event) => {
      handle.setPointerCapture(event.pointerId);
      held = true;
    });
    handle.addEventListener('pointermove', (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const { left, width } = box.getBoundingClientRect();
      const part = Math.min(1, Math.max(0, (event.clientX - left) / width));
      move(end, range[0] + part * (range[1] - range[0]));
    });
    for (const over of ['pointerup', 'pointercancel']) handle.addEventListener(over, () => (held = false));
    handle.addEventListener('keydown', (event) => {
      const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!way) return;
      event.preventDefault();
      event.stopPropagation(); // arrows move the image otherwise
      move(end, currentScale()[end] + (way * (range[1] - range[0])) / STEPS);
    });
  }
  on('drawn', show);
}
