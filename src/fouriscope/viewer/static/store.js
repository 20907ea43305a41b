// What is shown and how: one object, and words for those who want to know when it changes.

export const QUANTITIES = {
  phase: 'Phase',
  amplitude: 'Amplitude',
  spectrum: 'Spectrum',
  pupil_amplitude: 'Pupil amplitude',
  pupil_phase: 'Pupil phase',
  phase_flat: 'Flat phase',
  amplitude_red: 'Red amplitude',
  amplitude_green: 'Green amplitude',
  amplitude_blue: 'Blue amplitude',
  phase_flat_red: 'Red phase',
  phase_flat_green: 'Green phase',
  phase_flat_blue: 'Blue phase',
};
export const MODES = { side: 'Side', swipe: 'Swipe', blink: 'Blink', difference: 'Difference' };
// What a drag over an image does.
export const TOOLS = { move: 'Move', line: 'Line', region: 'Region' };
const COLOURS = ['#0f79b8', '#d4641a', '#12936b', '#b9669b', '#c79100', '#4ea3d8', '#8a6d3b', '#7a67c7'];

export const state = {
  runs: [], //        as the server describes them
  visible: new Set(), // numbers of runs shown side by side
  quantity: 'phase',
  mode: 'side',
  first: 0,
  second: 1,
  blink: 0, //        which of the two is on
  swipe: 0.5,
  map: 'grey',
  wrapped: false,
  limits: {}, //      quantity → [low, high] where a person set them
  view: { x: 0.5, y: 0.5, zoom: 1 },
  tool: 'move', //    what dragging does: a key of TOOLS
  profile: null, //   {from: [x, y], to: [x, y]} in fractions of the image
  region: null, //    the same, opposite corners
  led: null,
  ledRun: 0,
};

const listeners = new Map();

export function on(event, listener) {
  if (!listeners.has(event)) listeners.set(event, []);
  listeners.get(event).push(listener);
}

export function tell(event, detail) {
  for (const listener of listeners.get(event) ?? []) listener(detail);
}

/** Change the state and tell those who draw it. */
export function set(changes) {
  Object.assign(state, changes);
  tell('state', changes);
}

/** The runs on the stage, in order: those that are ticked, or the two that are compared. */
export function shownRuns() {
  if (state.mode !== 'side') return [state.first, state.second].filter((run) => run < state.runs.length);
  return [...state.visible].sort((a, b) => a - b);
}

export const colourOf = (run) => COLOURS[run % COLOURS.length];
export const isPhase = (quantity) => quantity.includes('phase');

/** A function that calls `work` at most once in `milliseconds`, and a last time if it was asked meanwhile. */
export function atMostEvery(milliseconds, work) {
  let waiting = false;
  let next = 0;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(
      async () => {
        waiting = false;
        next = performance.now() + milliseconds;
        await work();
      },
      Math.max(0, next - performance.now()),
    );
  };
}

/** An element with text (never HTML: names and messages come from files). */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
