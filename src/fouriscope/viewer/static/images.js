// The images that are on the stage, fetched when they are wanted and when the server says that they have changed.

import * as api from './api.js';
import { state, tell } from './store.js';

const images = new Map(); // "run/quantity" → image
const failures = new Map(); // "run/quantity" → why there is none
const busy = new Map(); // "run/quantity" → whether it must be fetched again

const keyOf = (run, quantity) => `${run}/${quantity}`;

/** The image, if it is here; it is fetched if it is not. */
export function image(run, quantity) {
  const key = keyOf(run, quantity);
  const known = state.runs[run]?.images.includes(quantity);
  if (known && !images.has(key) && !failures.has(key) && !busy.has(key)) fetchImage(run, quantity);
  return images.get(key) ?? null;
}

export const failure = (run, quantity) => failures.get(keyOf(run, quantity)) ?? null;

/** The run has changed: what was shown of it is fetched again, what failed is tried again. */
export function renew(run, quantities) {
  const failed = [...failures.keys()].filter((key) => key.startsWith(`${run}/`));
  for (const key of failed) failures.delete(key);
  for (const key of new Set([...images.keys(), ...failed])) {
    const [owner, quantity] = key.split('/');
    if (Number(owner) !== run) continue;
    if (quantities.includes(quantity)) fetchImage(run, quantity);
    else if (images.has(key)) drop(key);
  }
}

async function fetchImage(run, quantity) {
  const key = keyOf(run, quantity);
  if (busy.has(key)) {
    busy.set(key, true);
    return;
  }
  busy.set(key, false);
  try {
    const found = await api.image(api.imageAddress(run, quantity), images.get(key));
    const old = images.get(key);
    if (found !== old) {
      images.set(key, found);
      if (old) tell('image gone', old);
    }
    failures.delete(key);
  } catch (error) {
    failures.set(key, error.message);
  }
  const again = busy.get(key);
  busy.delete(key);
  tell('image', { run, quantity });
  if (again) fetchImage(run, quantity);
}

function drop(key) {
  tell('image gone', images.get(key));
  images.delete(key);
}
