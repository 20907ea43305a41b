// The buttons above the stage: what is shown, and how runs are compared.

import { MODES, QUANTITIES, TOOLS, element, on, set, state } from './store.js';

const quantities = document.getElementById('quantities');
const modes = document.getElementById('modes');
const tools = document.getElementById('tools');
const pair = document.getElementById('pair');
const choices = { first: document.getElementById('first'), second: document.getElementById('second') };

function draw() {
  for (const button of quantities.children) {
    const name = button.dataset.quantity;
    button.setAttribute('aria-pressed', String(name === state.quantity));
    button.hidden = name !== state.quantity && !state.runs.some(({ images }) => images.includes(name));
  }
  for (const button of modes.children) {
    button.setAttribute('aria-pressed', String(button.dataset.mode === state.mode));
  }
  for (const button of tools.children) button.setAttribute('aria-pressed', String(button.dataset.tool === state.tool));
  modes.hidden = state.runs.length < 2;
  pair.hidden = state.mode === 'side';
  for (const [key, select] of Object.entries(choices)) {
    if (select.options.length !== state.runs.length) {
      select.replaceChildren(...state.runs.map(({ name }, run) => new Option(name, run)));
    }
    select.value = String(state[key]);
  }
}

export function begin() {
  for (const [name, text] of Object.entries(QUANTITIES)) {
    quantities.append(element('button', { 'data-quantity': name, onclick: () => set({ quantity: name }) }, text));
  }
  for (const [name, text] of Object.entries(MODES)) {
    modes.append(element('button', { 'data-mode': name, onclick: () => set({ mode: name }) }, text));
  }
  for (const [name, text] of Object.entries(TOOLS)) {
    tools.append(element('button', { 'data-tool': name, onclick: () => set({ tool: name }) }, text));
  }
  for (const [key, select] of Object.entries(choices)) {
    select.addEventListener('change', () => set({ [key]: Number(select.value) }));
  }
  on('runs', draw);
  on('state', draw);
}
