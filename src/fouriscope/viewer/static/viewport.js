// Where pixels of an image lie on a canvas. The view is in fractions of the image: images of any size are linked.

/** Canvas x = left + column · across, y = top + row · down, in pixels of the canvas. */
export function placing(image, width, height, view) {
  const aspect = image.step[0] / image.step[1];
  const fit = Math.min(width / image.columns, height / (image.rows * aspect));
  const across = fit * view.zoom;
  const down = across * aspect;
  return {
    across,
    down,
    left: width / 2 - view.x * image.columns * across,
    top: height / 2 - view.y * image.rows * down,
  };
}

/** [column, row] as whole numbers of the pixel at (x, y) of the canvas, or null outside. */
export function pixelAt(image, place, x, y) {
  const column = Math.floor((x - place.left) / place.across);
  const row = Math.floor((y - place.top) / place.down);
  return column >= 0 && row >= 0 && column < image.columns && row < image.rows ? [column, row] : null;
}

/** The view zoomed by `factor` so that (x, y) of the canvas stays where it is. */
export function zoomed(image, width, height, view, factor, x = width / 2, y = height / 2) {
  const zoom = Math.min(400, Math.max(0.2, view.zoom * factor));
  const before = placing(image, width, height, view);
  const after = placing(image, width, height, { ...view, zoom });
  const u = (x - before.left) / (before.across * image.columns);
  const v = (y - before.top) / (before.down * image.rows);
  return bounded({
    zoom,
    x: u - (x - width / 2) / (after.across * image.columns),
    y: v - (y - height / 2) / (after.down * image.rows),
  });
}

/** The view moved by (x, y) pixels of the canvas. */
export function moved(image, width, height, view, x, y) {
  const place = placing(image, width, height, view);
  return bounded({
    zoom: view.zoom,
    x: view.x - x / (place.across * image.columns),
    y: view.y - y / (place.down * image.rows),
  });
}

// The middle of the canvas always shows a part of the image: nobody gets lost.
function bounded(view) {
  const clamp = (value) => Math.min(1, Math.max(0, value));
  return { zoom: view.zoom, x: clamp(view.x), y: clamp(view.y) };
}

/** The longest round length, 1, 2 or 5 times a power of ten, of at most `most`. */
export function roundLength(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].map((digit) => digit * power).find((length) => length <= most) ?? power;
}
