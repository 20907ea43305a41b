// One picture on the stage: a canvas with the image, its scale bar, and what was drawn to measure.

import { extentOf, lengthOf, lengthText } from './measures.js';
import { placing, pixelAt, roundLength } from './viewport.js';
import { element } from './store.js';

export class Pane {
  constructor() {
    this.canvas = element('canvas');
    this.words = element('div', { class: 'words' });
    this.labels = [element('div', { class: 'label' }), element('div', { class: 'label right' })];
    this.element = element('div', { class: 'pane' }, this.canvas, this.words, ...this.labels);
    this.context = this.canvas.getContext('2d', { willReadFrequently: true, alpha: false });
    this.image = null; // what readings are taken from
    this.runs = [];
  }

  /** Make the canvas as fine as the screen; returns whether it has any size. */
  fit() {
    const ratio = window.devicePixelRatio || 1;
    const box = this.element.getBoundingClientRect();
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.ratio = ratio;
    return width > 1 && height > 1;
  }

  place(view) {
    return placing(this.image, this.canvas.width, this.canvas.height, view);
  }

  /** The pixel [column, row] below a pointer event, or null. */
  under(event, view) {
    if (!this.image) return null;
    const [x, y] = this.position(event);
    return pixelAt(this.image, this.place(view), x, y);
  }

  /** Of an event, in pixels of the canvas. */
  position(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.ratio, (event.clientY - box.top) * this.ratio];
  }

  /** Names of what is shown, left and right, each with its colour. Text, never HTML. */
  label(...names) {
    this.labels.forEach((label, i) => {
      label.hidden = !names[i];
      if (!names[i]) return;
      const swatch = element('i', { class: 'swatch' });
      swatch.style.setProperty('--colour', names[i].colour);
      label.replaceChildren(swatch, names[i].text);
    });
  }

  /** Say why there is no picture. */
  say(text) {
    this.words.textContent = text;
    if (text) {
      this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
      this.image = null;
    }
  }

  drawScaleBar(view) {
    const { image, context, ratio } = this;
    const place = this.place(view);
    const perPixel = image.step[1] / place.across;
    const length = roundLength(Math.min(this.canvas.width / 3, 180 * ratio) * perPixel);
    const width = length / perPixel;
    const unit = { um: 'µm', NA: 'NA', px: 'px' }[image.axisUnit];
    const text = `${Number(length.toPrecision(1))} ${unit}`;
    // In the corner of what is seen of the image, not of the pane.
    const edge = (size, end) => Math.max(60 * ratio, Math.min(size, end)) - 12 * ratio;
    const right = edge(this.canvas.width, place.left + image.columns * place.across);
    const bottom = edge(this.canvas.height, place.top + image.rows * place.down);
    context.font = `600 ${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = 'center';
    const wide = Math.max(width, context.measureText(text).width) + 16 * ratio;
    context.fillStyle = 'rgb(20 20 20 / 62%)';
    context.beginPath();
    context.roundRect(right - wide, bottom - 28 * ratio, wide, 28 * ratio, 5 * ratio);
    context.fill();
    context.fillStyle = '#fff';
    context.fillText(text, right - wide / 2, bottom - 13 * ratio);
    context.fillRect(right - wide / 2 - width / 2, bottom - 8 * ratio, width, 3 * ratio);
  }

  /** A line, with its length. */
  drawProfile(profile, view) {
    const [from, to] = this.corners(profile, view);
    this.outline((context) => {
      context.moveTo(...from);
      context.lineTo(...to);
    });
    this.tag(lengthText(lengthOf(profile, this.image), this.image.axisUnit), ...to);
  }

  /** A rectangle, with its width and height. */
  drawRegion(region, view) {
    const [[x, y], [u, v]] = this.corners(region, view);
    this.outline((context) => context.rect(x, y, u - x, v - y));
    const { height, width } = extentOf(region, this.image);
    const unit = this.image.axisUnit;
    this.tag(`${lengthText(width, unit)} × ${lengthText(height, unit)}`, Math.max(x, u), Math.max(y, v));
  }

  corners({ from, to }, view) {
    const { image } = this;
    const place = this.place(view);
    return [from, to].map(([u, v]) => [
      place.left + u * image.columns * place.across,
      place.top + v * image.rows * place.down,
    ]);
  }

  outline(path) {
    const { context, ratio } = this;
    for (const [colour, width] of [['rgb(0 0 0 / 70%)', 4], ['#ffd24a', 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width * ratio;
      context.beginPath();
      path(context);
      context.stroke();
    }
  }

  /** Words beside a place, inside the canvas. */
  tag(text, x, y) {
    const { context, ratio, canvas } = this;
    context.font = `600 ${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = 'left';
    const wide = context.measureText(text).width + 12 * ratio;
    const high = 20 * ratio;
    const left = Math.max(2, Math.min(x + 6 * ratio, canvas.width - wide - 2));
    const top = Math.max(2, Math.min(y + 6 * ratio, canvas.height - high - 2));
    context.fillStyle = 'rgb(20 20 20 / 72%)';
    context.beginPath();
    context.roundRect(left, top, wide, high, 5 * ratio);
    context.fill();
    context.fillStyle = '#ffd24a';
    context.fillText(text, left + 6 * ratio, top + 14 * ratio);
  }
}
