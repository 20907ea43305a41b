// Curves on a canvas: two axes with round numbers, a legend, and nothing else.

const roundStep = (span, count) => {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((digit) => digit * power >= rough) ?? 10);
};

const short = (value) => {
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= 1e5 || size < 1e-3) return value.toExponential(0).replace('e+', 'e');
  return String(Number(value.toPrecision(6)));
};

function ticks(low, high, count, log) {
  if (log) {
    const powers = [];
    for (let p = Math.ceil(low - 1e-9); p <= high + 1e-9; p++) powers.push(p);
    if (powers.length >= 2) {
      const every = Math.ceil(powers.length / count);
      return powers.filter((p) => p % every === 0).map((p) => [p, short(10 ** p)]);
    }
    const [from, to] = [10 ** low, 10 ** high];
    return ticks(from, to, count, false).filter(([v]) => v > 0).map(([v, text]) => [Math.log10(v), text]);
  }
  const step = roundStep(high - low || 1, count);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    found.push([k * step, short(Number((k * step).toPrecision(10)))]);
  }
  return found;
}

function extent(series, key, keep) {
  let [low, high] = [Infinity, -Infinity];
  for (const line of series) {
    for (const value of line[key]) {
      if (!keep(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}

/** Draw `series` ({name, colour, x, y}); `log` is of the vertical axis, where only positive values are drawn. */
export function drawChart(canvas, { series, xLabel, yLabel, log, empty }) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width < 40 || height < 40) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  const style = getComputedStyle(canvas);
  const [text, quiet, rule] = ['--text', '--quiet', '--line'].map((name) => style.getPropertyValue(name));
  const usable = (y) => Number.isFinite(y) && (!log || y > 0);
  let [bottom, top] = extent(series, 'y', usable);
  let [left, right] = extent(series, 'x', Number.isFinite);
  if (!(bottom <= top) || !(left <= right)) {
    context.fillStyle = quiet;
    context.textAlign = 'center';
    context.fillText(empty, width / 2, height / 2);
    return;
  }
  const up = log ? Math.log10 : (value) => value;
  [bottom, top] = [up(bottom), up(top)];
  const air = (top - bottom || Math.abs(top) || 1) * 0.05;
  [bottom, top] = [bottom - air, top + air];
  if (left === right) [left, right] = [left - 1, right + 1];
  const box = { left: 48, top: 8, right: width - 8, bottom: height - 30 };
  const X = (value) => box.left + ((value - left) / (right - left)) * (box.right - box.left);
  const Y = (value) => box.bottom - ((value - bottom) / (top - bottom)) * (box.bottom - box.top);
  context.lineWidth = 1;
  context.fillStyle = quiet;
  context.strokeStyle = rule;
  context.textAlign = 'right';
  for (const [value, label] of ticks(bottom, top, Math.max(2, (box.bottom - box.top) / 32), log)) {
    line(context, [[box.left, Math.round(Y(value)) + 0.5], [box.right, Math.round(Y(value)) + 0.5]]);
    context.fillText(label, box.left - 5, Y(value) + 4);
  }
  context.textAlign = 'center';
  for (const [value, label] of ticks(left, right, Math.max(2, (box.right - box.left) / 70), false)) {
    const half = context.measureText(label).width / 2;
    context.fillText(label, Math.min(X(value), width - half - 1), box.bottom + 13);
  }
  context.fillText(xLabel, (box.left + box.right) / 2, height - 3);
  context.save();
  context.translate(9, (box.top + box.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(yLabel, 0, 0);
  context.restore();
  context.lineWidth = 1.6;
  context.lineJoin = 'round';
  for (const one of series) {
    context.strokeStyle = one.colour;
    const points = [];
    const stride = Math.ceil(one.x.length / (3 * width)); // more points than the screen has columns say nothing
    one.x.forEach((x, i) => i % stride === 0 && usable(one.y[i]) && points.push([X(x), Y(up(one.y[i]))]));
    line(context, points);
    if (points.length === 1) context.strokeRect(points[0][0] - 1, points[0][1] - 1, 2, 2);
  }
  legend(context, series, box, text);
}

function line(context, points) {
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

function legend(context, series, box, text) {
  if (series.length < 2) return;
  context.textAlign = 'right';
  series.slice(0, 8).forEach(({ name, colour }, i) => {
    const shown = name.length > 28 ? `${name.slice(0, 27)}…` : name;
    const y = box.top + 12 + 15 * i;
    context.fillStyle = text;
    context.fillText(shown, box.right - 4, y);
    context.fillStyle = colour;
    context.fillRect(box.right - 24 - context.measureText(shown).width, y - 5, 15, 3);
  });
}
