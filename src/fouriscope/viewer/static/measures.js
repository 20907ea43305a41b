// Lengths on an image, and numbers about a part of it. Places are fractions of the image, as in viewport.js.

const UNITS = { um: 'µm', NA: 'NA', px: 'pixels' };

/** A length with its unit, to four digits. */
export const lengthText = (length, axisUnit) => `${Number(length.toPrecision(4))} ${UNITS[axisUnit]}`;

/** From end to end, in the unit of the image's axes. */
export function lengthOf({ from, to }, { rows, columns, step }) {
  return Math.hypot((to[0] - from[0]) * columns * step[1], (to[1] - from[1]) * rows * step[0]);
}

/** The pixels that a rectangle covers, at least one: first and last row and column, and its size. */
export function extentOf({ from, to }, { rows, columns, step }) {
  const span = (a, b, count) => {
    const first = Math.min(count - 1, Math.floor(Math.min(a, b) * count));
    return [first, Math.max(first, Math.ceil(Math.max(a, b) * count) - 1)];
  };
  const [left, right] = span(from[0], to[0], columns);
  const [top, bottom] = span(from[1], to[1], rows);
  const [high, wide] = [bottom - top + 1, right - left + 1];
  return { left, right, top, bottom, high, wide, height: high * step[0], width: wide * step[1] };
}

/** Of the finite pixels in a rectangle; null if there are none. The deviation is that of the pixels, not of a sample. */
export function statisticsOf(region, image) {
  const { left, right, top, bottom } = extentOf(region, image);
  let [count, mean, squares, low, high] = [0, 0, 0, Infinity, -Infinity];
  for (let row = top; row <= bottom; row++) {
    for (let at = row * image.columns + left; at <= row * image.columns + right; at++) {
      const value = image.values[at];
      if (!Number.isFinite(value)) continue;
      count += 1;
      const before = value - mean; // Welford: nothing cancels, however far the values lie from zero
      mean += before / count;
      squares += before * (value - mean);
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return count ? { count, mean, deviation: Math.sqrt(squares / count), low, high } : null;
}
