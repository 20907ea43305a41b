// The view as a PNG, the data as TIFF.

import { imageAddress } from './api.js';
import { currentScale, number, paintBar, unitName } from './scale.js';
import { drawNow, panes } from './stage.js';
import { QUANTITIES, element, shownRuns, state } from './store.js';

const FOOT = 34;

function download(address, name) {
  const link = element('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/** What is on the stage, with names and colour scale below, as a canvas. */
function composed() {
  drawNow();
  const boxes = panes.map(({ element: pane }) => pane.getBoundingClientRect());
  const ratio = panes[0]?.ratio ?? 1;
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const width = (Math.max(...boxes.map((box) => box.right)) - left) * ratio;
  const height = (Math.max(...boxes.map((box) => box.bottom)) - top) * ratio;
  const canvas = element('canvas', { width: Math.round(width), height: Math.round(height + FOOT * ratio) });
  const context = canvas.getContext('2d');
  const style = getComputedStyle(document.body);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.font = `600 ${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  panes.forEach((pane, i) => {
    const [x, y] = [(boxes[i].left - left) * ratio, (boxes[i].top - top) * ratio];
    context.drawImage(pane.canvas, x, y);
    const labels = pane.labels.filter((label) => !label.hidden);
    labels.forEach((label, k) => tag(context, label.textContent, x, y, pane, k, ratio));
  });
  foot(context, canvas, style.color, ratio);
  return canvas;
}

function tag(context, text, x, y, pane, place, ratio) {
  const wide = context.measureText(text).width + 16 * ratio;
  const left = place ? x + pane.canvas.width - wide - 8 * ratio : x + 8 * ratio;
  context.fillStyle = 'rgb(20 20 20 / 62%)';
  context.beginPath();
  context.roundRect(left, y + 8 * ratio, wide, 22 * ratio, 10 * ratio);
  context.fill();
  context.fillStyle = '#fff';
  context.fillText(text, left + 8 * ratio, y + 23 * ratio);
}

function foot(context, canvas, ink, ratio) {
  const scale = currentScale();
  if (!scale) return;
  const middle = canvas.height - (FOOT * ratio) / 2;
  const bar = 180 * ratio;
  const what = state.mode === 'difference' ? `difference of ${state.quantity}` : QUANTITIES[state.quantity];
  context.fillStyle = ink;
  const words = `${what}   ${number(scale.low)}`;
  context.fillText(words, 8 * ratio, middle + 4 * ratio);
  const start = 16 * ratio + context.measureText(words).width;
  const box = [start, middle - 6 * ratio, bar, 12 * ratio].map(Math.round);
  paintBar(context, ...box, scale.table);
  context.fillStyle = ink;
  context.fillText(`${number(scale.high)} ${unitName(scale.unit)}`, start + bar + 8 * ratio, middle + 4 * ratio);
}

const plain = (text) => text.replace(/[^\w.-]+/g, '-');

export function savePicture() {
  if (!panes.some(({ image }) => image)) return;
  composed().toBlob((blob) => {
    const address = URL.createObjectURL(blob);
    download(address, `${plain(shownRuns().map((run) => state.runs[run].name).join('-'))}-${state.quantity}.png`);
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });
}

/** One TIFF for each run on the stage, as the server has it: all pixels, not the view. */
export function saveData() {
  for (const run of shownRuns()) {
    if (!state.runs[run]?.images.includes(state.quantity)) continue;
    download(`${imageAddress(run, state.quantity)}.tif`, `${plain(state.runs[run].name)}-${state.quantity}.tif`);
  }
}

export function begin() {
  document.getElementById('png').addEventListener('click', savePicture);
  document.getElementById('tiff').addEventListener('click', saveData);
}
