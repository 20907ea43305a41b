// Dark and light rooms: as the system says, until a person says otherwise.

import { tell } from './store.js';

const button = document.getElementById('theme');
const system = matchMedia('(prefers-color-scheme: dark)');
let chosen = localStorage.getItem('fouriscope theme');

function apply() {
  const theme = chosen ?? (system.matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = theme;
  button.textContent = theme === 'dark' ? 'Light' : 'Dark';
  tell('theme');
  tell('draw');
}

export function toggleTheme() {
  chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('fouriscope theme', chosen);
  apply();
}

export function begin() {
  button.addEventListener('click', toggleTheme);
  system.addEventListener('change', apply);
  apply();
}
