// The card on the right: frames of an LED, the profile, the configuration, the figures.

import * as api from './api.js';
import { showFrames } from './frames.js';
import { showProfile } from './profile.js';
import { element, on, shownRuns, state } from './store.js';

const TABS = { frames: 'LED frames', profile: 'Profile', config: 'Configuration', figures: 'Figures' };
const tabs = document.getElementById('detail-tabs');
const place = document.getElementById('detail');
const note = document.getElementById('detail-note');
let current = 'config';
let turn = 0;

const showers = { frames: showFrames, profile: showProfile, config: showConfig, figures: showFigures };

async function show() {
  for (const button of tabs.children) button.setAttribute('aria-pressed', String(button.dataset.tab === current));
  const mine = ++turn;
  let words;
  try {
    words = await showers[current](place);
  } catch (error) {
    if (mine === turn) place.replaceChildren(element('p', { class: 'quiet' }, error.message));
    words = '';
  }
  if (mine === turn) note.textContent = words ?? '';
}

export function open(tab) {
  current = tab;
  show();
}

async function showConfig() {
  const [run] = shownRuns();
  if (run === undefined) return place.replaceChildren();
  const text = await api.config(run);
  const old = place.querySelector('pre');
  if (old?.textContent === text) return state.runs[run].name;
  place.replaceChildren(element('pre', {}, text));
  return state.runs[run].name;
}

function showFigures() {
  const pictures = shownRuns().flatMap((run) =>
    (state.runs[run].figures ?? []).map((name) =>
      element('img', {
        src: api.figureAddress(run, name, state.runs[run].image_version),
        alt: `${name} of ${state.runs[run].name}`,
        loading: 'lazy',
      }),
    ),
  );
  const none = element('p', { class: 'quiet' }, 'Figures are drawn when a run ends.');
  place.replaceChildren(...(pictures.length ? pictures : [none]));
  return '';
}

export function begin() {
  for (const [tab, text] of Object.entries(TABS)) {
    tabs.append(element('button', { 'data-tab': tab, onclick: () => open(tab) }, text));
  }
  on('led', () => open('frames'));
  on('profile', () => (current === 'profile' ? show() : open('profile')));
  let seen = '';
  on('runs', () => {
    const now = JSON.stringify(state.runs.map(({ name, state: how, figures }) => [name, how, figures]));
    if (now === seen) return; // configurations and figures change when a run begins or ends, not meanwhile
    seen = now;
    if (['config', 'figures'].includes(current)) show();
  });
  on('image', () => current === 'profile' && show());
  on('theme', () => current === 'profile' && show());
  on('state', (changes) => {
    const runsChanged = ['visible', 'mode', 'first', 'second'].some((key) => key in changes);
    if (runsChanged || ('quantity' in changes && current === 'profile')) show();
  });
  new ResizeObserver(() => current === 'profile' && show()).observe(place);
  show();
}
