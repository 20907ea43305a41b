// One colour scale for everything that is on the stage.

import { CHOICES, CYCLIC, DIVERGING, table } from './colormaps.js';
import { image } from './images.js';
import { constantBetween, differenceLimits, limits, sameShape, sorted, sortedDifferences } from './statistics.js';
import { isPhase, on, set, shownRuns, state } from './store.js';

const $ = (id) => document.getElementById(id);

/** The constant that is added to a run's phase for showing, so that all look like the first: values are not touched. */
export function offsetOf(run) {
  if (!isPhase(state.quantity) || state.quantity === 'pupil_phase') return 0;
  const [reference] = shownRuns();
  const [a, b] = [image(reference, state.quantity), image(run, state.quantity)];
  return run !== reference && a && b && sameShape(a, b) ? -constantBetween(a, b) : 0;
}

const isWrapped = () => state.wrapped && isPhase(state.quantity) && state.mode !== 'difference';
const limitsKey = () => (state.mode === 'difference' ? `difference of ${state.quantity}` : state.quantity);

/** {low, high, table, wrapped, automatic, unit} for what is on the stage now; null while there is nothing. */
export function currentScale() {
  const runs = shownRuns().filter((run) => image(run, state.quantity));
  const shown = runs.map((run) => image(run, state.quantity));
  if (!shown.length) return null;
  const set = state.limits[limitsKey()];
  const scale = { wrapped: isWrapped(), automatic: !set, unit: shown[0].unit, map: state.map };
  if (isWrapped()) {
    return { ...scale, low: -Math.PI, high: Math.PI, map: CYCLIC, table: table(CYCLIC), automatic: true };
  }
  let found = set;
  if (state.mode === 'difference') {
    scale.map = DIVERGING;
    const [a, b] = shown;
    if (!found) found = b && sameShape(a, b) ? differenceLimits(a, b, differenceConstant(a, b)) : [-1, 1];
  }
  found = found ?? limits(shown, runs.map(offsetOf));
  return { ...scale, low: found[0], high: found[1], table: table(scale.map) };
}

/** What a difference leaves out: between phases a constant, otherwise nothing. */
export const differenceConstant = (a, b) => (isPhase(state.quantity) ? constantBetween(a, b) : 0);

export const number = (value) => (Number.isFinite(value) ? Number(value.toPrecision(4)).toString() : '–');
export const unitName = (unit) => ({ rad: 'rad', log10: 'log₁₀', grey: 'grey' })[unit] ?? '';

/** Values of what is on the stage: [{values, offset}], some of each image, sorted. */
export function samplesOnStage() {
  const runs = shownRuns().filter((run) => image(run, state.quantity));
  if (state.mode !== 'difference') {
    return runs.map((run) => ({ values: sorted(image(run, state.quantity)), offset: offsetOf(run) }));
  }
  const [a, b] = runs.map((run) => image(run, state.quantity));
  return b && sameShape(a, b) ? [{ values: sortedDifferences(a, b), offset: -differenceConstant(a, b) }] : [];
}

/** Take limits that a person types. */
export function begin() {
  const map = $('map');
  for (const name of CHOICES) map.append(new Option(name, name));
  map.value = state.map;
  map.addEventListener('change', () => set({ map: map.value }));
  $('wrapped').addEventListener('change', (event) => set({ wrapped: event.target.checked }));
  $('auto').addEventListener('click', automatic);
  for (const id of ['low', 'high']) {
    $(id).addEventListener('change', take);
  }
  on('drawn', show);
}

/** Use what is typed, or mark what is wrong with it. */
function take() {
  const fields = [$('low'), $('high')];
  const typed = fields.map(({ value }) => (value.trim() ? Number(value.replace('−', '-').replace(',', '.')) : NaN));
  const isNumber = typed.map(Number.isFinite);
  const inOrder = typed[0] < typed[1];
  if (inOrder) setLimits(typed);
  else mark(isNumber.every(Boolean) ? [true, true] : isNumber.map((known) => !known));
}

/** Mark the boxes that hold what is wrong, and say what is needed. */
function mark(wrong) {
  ['low', 'high'].forEach((id, i) => $(id).setAttribute('aria-invalid', String(wrong[i])));
  const words = wrong[0] && wrong[1] ? 'The lower limit must be less than the upper one.' : 'This must be a number.';
  $('scale-problem').textContent = words;
  $('scale-problem').hidden = !wrong.some(Boolean);
}

export const automatic = () => setLimits(undefined);

export function setLimits(found) {
  mark([false, false]);
  set({ limits: { ...state.limits, [limitsKey()]: found } });
}

function show(scale) {
  $('map').value = state.map;
  $('wrapped').checked = state.wrapped;
  $('wrapped').disabled = !isPhase(state.quantity) || state.mode === 'difference';
  $('scale').hidden = !scale;
  if (!scale) return;
  // While one box is wrong, the other one keeps what was typed too: both are used when the wrong one is mended.
  const isWrong = !$('scale-problem').hidden;
  for (const [id, value] of [['low', scale.low], ['high', scale.high]]) {
    if (document.activeElement !== $(id) && !isWrong) $(id).value = number(value);
    $(id).disabled = scale.wrapped;
  }
  $('auto').setAttribute('aria-pressed', String(scale.automatic));
  $('unit').textContent = unitName(scale.unit);
}

/** The colours from left to right. */
export function paintBar(context, left, top, width, height, bytes) {
  for (let x = 0; x < width; x++) {
    const at = 4 * Math.round((255 * x) / (width - 1));
    context.fillStyle = `rgb(${bytes[at]}, ${bytes[at + 1]}, ${bytes[at + 2]})`;
    context.fillRect(left + x, top, 1, height);
  }
}
