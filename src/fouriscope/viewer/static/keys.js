// Everything that the mouse can do, with keys.

import * as convergence from './convergence.js';
import { CHOICES } from './colormaps.js';
import { savePicture, saveData } from './saving.js';
import { choose } from './leds.js';
import { automatic } from './scale.js';
import { panes } from './stage.js';
import { QUANTITIES, element, set, state } from './store.js';
import { toggleTheme } from './theme.js';
import { moved, zoomed } from './viewport.js';

const help = document.getElementById('help');

export const fit = () => set({ view: { x: 0.5, y: 0.5, zoom: 1 } });

function withPane(change) {
  const pane = panes.find(({ image }) => image);
  if (pane) set({ view: change(pane.image, pane.canvas.width, pane.canvas.height) });
}

const zoom = (factor) => withPane((image, width, height) => zoomed(image, width, height, state.view, factor));
const move = (x, y) =>
  withPane((image, width, height) => moved(image, width, height, state.view, (x * width) / 10, (y * height) / 10));
const swipe = (by) => set({ swipe: Math.min(1, Math.max(0, state.swipe + by)) });

function quantity(number) {
  const name = Object.keys(QUANTITIES)[number];
  if (state.runs.some(({ images }) => images.includes(name))) set({ quantity: name });
}

function mode(name) {
  if (name === 'side' || state.runs.length > 1) set({ mode: name });
}

/** One run alone: the next one, or the first or last if there were several. */
function alone(by) {
  const [only] = state.visible;
  const from = state.visible.size === 1 ? only : by > 0 ? -1 : 0;
  set({ visible: new Set([(from + by + state.runs.length) % state.runs.length]), mode: 'side' });
}

const everything = () => set({ visible: new Set(state.runs.keys()), mode: 'side' });
const nextMap = () => set({ map: CHOICES[(CHOICES.indexOf(state.map) + 1) % CHOICES.length] });
const showHelp = () => (help.open ? help.close() : help.showModal());

const nextLed = (by) => choose(state.led === null ? 0 : state.led + by);

const MODE_KEYS = { s: 'side', w: 'swipe', b: 'blink', d: 'difference' };
const TOOL_KEYS = { v: 'move', g: 'line', h: 'region' };
const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// [what is pressed, what it is called, what it does]
const KEYS = [
  [
    ['1', '2', '3', '4', '5', '6'],
    'phase, amplitude, spectrum, pupil amplitude, pupil phase, phase without its background',
    (key) => quantity(Number(key) - 1),
  ],
  [Object.keys(MODE_KEYS), 'side by side, swipe, blink, difference', (key) => mode(MODE_KEYS[key])],
  [['n', 'N'], 'only the next run, only the one before', (key) => alone(key === 'n' ? 1 : -1)],
  [['r'], 'all runs', everything],
  [['+', '=', '-'], 'zoom in, zoom out', (key) => zoom(key === '-' ? 1 / 1.25 : 1.25)],
  [Object.keys(ARROWS), 'move', (key) => move(...ARROWS[key])],
  [['f', '0'], 'the whole image', fit],
  [[',', '.'], 'edge of the swipe to the left, to the right', (key) => swipe(key === ',' ? -0.05 : 0.05)],
  [['v', 'g', 'h'], 'a drag moves, draws a line, draws a region', (key) => set({ tool: TOOL_KEYS[key] })],
  [['a'], 'colour scale from the data', automatic],
  [['m'], 'next colour map', nextMap],
  [['p'], 'wrapped phase, with a cyclic map', () => set({ wrapped: !state.wrapped })],
  [['c', 'x'], 'next curve, next axis of the curves', (key) => convergence.next(key === 'c' ? 'curve' : 'against')],
  [['l', 'L'], 'next LED, LED before', (key) => nextLed(key === 'l' ? 1 : -1)],
  [['e', 'E'], 'save the view as PNG, the data as TIFF', (key) => (key === 'e' ? savePicture() : saveData())],
  [['t'], 'dark or light', toggleTheme],
  [['?'], 'these keys', showHelp],
];
const SHOWN = { ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', N: '⇧N', L: '⇧L', E: '⇧E' };

export function begin() {
  const actions = new Map(KEYS.flatMap(([keys, , action]) => keys.map((key) => [key, action])));
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest('input:not([type=checkbox]), select, textarea')) return;
    if (document.querySelector('dialog[open]') && !(help.open && event.key === '?')) return;
    const action = actions.get(event.key);
    if (!action) return;
    event.preventDefault();
    action(event.key);
  });
  const rows = KEYS.flatMap(([keys, text]) => {
    const caps = keys.filter((key) => key !== '=').flatMap((key) => [element('kbd', {}, SHOWN[key] ?? key), ' ']);
    return [element('dt', {}, ...caps), element('dd', {}, text)];
  });
  document.getElementById('keys').append(...rows);
  document.getElementById('help-button').addEventListener('click', showHelp);
  document.getElementById('fit').addEventListener('click', fit);
}
