// The mouse (or a finger) on a pane: move, zoom, read values, draw a line or a rectangle.

import { image } from './images.js';
import { number, unitName } from './scale.js';
import { constantBetween, sameShape, wrap } from './statistics.js';
import { isPhase, on, set, shownRuns, state, tell } from './store.js';
import { moved, zoomed } from './viewport.js';

const readout = document.getElementById('readout');
let hovered = null; // {pane, column, row}

export function begin() {
  on('pane', attach);
  on('drawn', read);
}

function attach(pane) {
  const { canvas } = pane;
  let dragged = null;
  canvas.addEventListener('pointerdown', (event) => {
    if (!pane.image || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const tool = event.shiftKey ? 'line' : event.altKey ? 'region' : state.tool;
    dragged = { x: event.clientX, y: event.clientY, tool, from: fraction(pane, event) };
  });
  canvas.addEventListener('pointermove', (event) => {
    hover(pane, event);
    if (!dragged || !pane.image) return;
    if (dragged.tool !== 'move') {
      const drawn = dragged.tool === 'line' ? 'profile' : 'region';
      set({ [drawn]: { from: dragged.from, to: fraction(pane, event) } });
      tell(drawn);
      return;
    }
    const [x, y] = [event.clientX - dragged.x, event.clientY - dragged.y].map((distance) => distance * pane.ratio);
    Object.assign(dragged, { x: event.clientX, y: event.clientY });
    set({ view: moved(pane.image, canvas.width, canvas.height, state.view, x, y) });
  });
  for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => (dragged = null));
  canvas.addEventListener('pointerleave', () => {
    hovered = null;
    read();
  });
  canvas.addEventListener('dblclick', () => set({ view: { x: 0.5, y: 0.5, zoom: 1 } }));
  canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      if (!pane.image) return;
      const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016));
      set({ view: zoomed(pane.image, canvas.width, canvas.height, state.view, factor, ...pane.position(event)) });
    },
    { passive: false },
  );
}

/** A place on the image as fractions of it, inside. */
function fraction(pane, event) {
  const [x, y] = pane.position(event);
  const place = pane.place(state.view);
  const inside = (value) => Math.min(1, Math.max(0, value));
  return [
    inside((x - place.left) / (place.across * pane.image.columns)),
    inside((y - place.top) / (place.down * pane.image.rows)),
  ];
}

function hover(pane, event) {
  const found = pane.under(event, state.view);
  hovered = found && { pane, column: found[0], row: found[1] };
  read();
}

/** Write the values under the pointer: of the run below it first, then of the others at the same place. */
function read() {
  const shown = hovered?.pane.image;
  if (!shown) {
    readout.textContent = '';
    for (const key of Object.keys(readout.dataset)) delete readout.dataset[key];
    return;
  }
  const { column, row, pane } = hovered;
  const unit = unitName(shown.unit);
  const runs = [...new Set([...pane.runs, ...shownRuns()])];
  const found = runs
    .map((run) => ({ run, image: image(run, state.quantity) }))
    .filter(({ image: other }) => other && row < other.rows && column < other.columns)
    .map(({ run, image: other }) => ({ run, value: other.values[row * other.columns + column], image: other }));
  const parts = found.map(({ run, value }) => {
    const name = runs.length > 1 ? `${state.runs[run].name} ` : '';
    return `${name}${number(isWrapped() ? wrap(value) : value)}`;
  });
  let value = found[0]?.value;
  if (state.mode === 'difference' && found.length > 1 && sameShape(found[0].image, found[1].image)) {
    const constant = isPhase(state.quantity) ? constantBetween(found[0].image, found[1].image) : 0;
    value = found[1].value - found[0].value - constant;
    parts.unshift(`difference ${number(value)}`);
  }
  readout.textContent = `${parts.join('   ')} ${unit}     ${placeText(shown, column, row)}`;
  Object.assign(readout.dataset, { value, row, column });
}

const isWrapped = () => state.wrapped && isPhase(state.quantity);

function placeText(shown, column, row) {
  const zero = shown.centred ? [Math.floor(shown.rows / 2), Math.floor(shown.columns / 2)] : [0, 0];
  const [y, x] = [(row - zero[0]) * shown.step[0], (column - zero[1]) * shown.step[1]];
  const unit = { um: ' µm', NA: ' NA', px: '' }[shown.axisUnit];
  const digits = shown.axisUnit === 'um' ? 2 : 3;
  return `x ${x.toFixed(digits)}${unit}  y ${y.toFixed(digits)}${unit}  (row ${row}, column ${column})`;
}
