// The card on the right: a summary of the run, frames of an LED, the profile, a region, the figures.

import * as api from './api.js';
import { enlarging } from './enlarge.js';
import { showFrames } from './frames.js';
import { showProfile } from './profile.js';
import { showRegion } from './region.js';
import { element, on, shownRuns, state } from './store.js';
import { showSummary } from './summary.js';

const TABS = { summary: 'Summary', frames: 'LED frames', profile: 'Profile', region: 'Region', figures: 'Figures' };
const tabs = document.getElementById('detail-tabs');
const card = document.getElementById('details');
const place = document.getElementById('detail');
const note = document.getElementById('detail-note');
let current = 'summary';
let turn = 0;

const showers = {
  summary: showSummary,
  frames: showFrames,
  profile: showProfile,
  region: showRegion,
  figures: showFigures,
};

async function show() {
  for (const button of tabs.children) button.setAttribute('aria-pressed', String(button.dataset.tab === current));
  const mine = ++turn;
  let words;
  busy(current === 'frames' && state.led !== null);
  try {
    words = await showers[current](place);
  } catch (error) {
    if (mine === turn) place.replaceChildren(element('p', { class: 'quiet' }, error.message));
    words = '';
  }
  if (mine !== turn) return; // who came later says when it is done
  busy(false);
  note.textContent = words ?? '';
}

/** A sign that the server computes: a prediction of a large frame takes seconds. */
function busy(isBusy) {
  place.setAttribute('aria-busy', String(isBusy));
  card.classList.toggle('busy', isBusy);
  if (isBusy) note.textContent = `computing the frame of LED ${state.led} …`;
}

export function open(tab) {
  current = tab;
  show();
}

function showFigures() {
  const pictures = shownRuns().flatMap((run) =>
    (state.runs[run].figures ?? []).map((name) => {
      const alt = `${name} of ${state.runs[run].name}`;
      const src = api.figureAddress(run, name, state.runs[run].image_version);
      return enlarging(element('img', { src, alt, loading: 'lazy' }), alt);
    }),
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
  on('profile', () => open('profile'));
  on('region', () => open('region'));
  let seen = '';
  on('runs', () => {
    const now = JSON.stringify(state.runs.map(({ name, state: how, figures }) => [name, how, figures]));
    if (now === seen) return; // configurations and figures change when a run begins or ends, not meanwhile
    seen = now;
    if (['summary', 'figures'].includes(current)) show();
  });
  on('image', () => ['profile', 'region'].includes(current) && show());
  on('theme', () => current === 'profile' && show());
  on('state', (changes) => {
    const runsChanged = ['visible', 'mode', 'first', 'second'].some((key) => key in changes);
    if (runsChanged || ('quantity' in changes && ['profile', 'region'].includes(current))) show();
  });
  new ResizeObserver(() => current === 'profile' && show()).observe(place);
  show();
}
