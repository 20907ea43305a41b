// Numbers about images: limits of a colour scale, and the constant between two phases.

const SAMPLES = 40000;
const kept = new WeakMap();

/** Some finite values of an image, evenly spread and sorted. */
export function sorted(image) {
  if (!kept.has(image)) {
    const values = image.values;
    // A stride that shares no factor with the row length, so that columns are all seen.
    let stride = Math.max(1, Math.floor(values.length / SAMPLES));
    while (stride > 1 && image.columns % stride === 0) stride -= 1;
    const found = [];
    for (let i = 0; i < values.length; i += stride) if (Number.isFinite(values[i])) found.push(values[i]);
    kept.set(image, Float32Array.from(found).sort());
  }
  return kept.get(image);
}

function quantile(values, fraction) {
  return values[Math.round(fraction * (values.length - 1))];
}

/** Limits that hold all but a few values of all images, each moved by its offset. */
export function limits(images, offsets) {
  let [low, high] = [Infinity, -Infinity];
  images.forEach((image, i) => {
    const values = sorted(image);
    if (!values.length) return;
    low = Math.min(low, quantile(values, 0.003) + offsets[i]);
    high = Math.max(high, quantile(values, 0.997) + offsets[i]);
  });
  if (!(low <= high)) return [0, 1];
  if (high - low < 1e-12 + 1e-6 * Math.abs(high)) return [low - 0.5, high + 0.5];
  return [low, high];
}

export const sameShape = (a, b) => a.rows === b.rows && a.columns === b.columns;

/** A function of two images that computes each pair once: panning draws the same ones again and again. */
function once(compute) {
  const known = new WeakMap();
  return (a, b, ...others) => {
    if (!known.has(a)) known.set(a, new WeakMap());
    const ofFirst = known.get(a);
    if (!ofFirst.has(b)) ofFirst.set(b, compute(a, b, ...others));
    return ofFirst.get(b);
  };
}

/** Some finite values of b − a, evenly spread and sorted. */
export const sortedDifferences = once((a, b) => {
  const differences = [];
  const stride = Math.max(1, Math.floor(a.values.length / SAMPLES)) | 1;
  for (let i = 0; i < a.values.length; i += stride) {
    const difference = b.values[i] - a.values[i];
    if (Number.isFinite(difference)) differences.push(difference);
  }
  return Float32Array.from(differences).sort();
});

/** The median of b − a: between two phases, the constant that no intensity can show. */
export const constantBetween = once((a, b) => {
  const differences = sortedDifferences(a, b);
  return differences.length ? quantile(differences, 0.5) : 0;
});

/** Limits of b − a − constant that hold all but a few values, as far below zero as above. */
export const differenceLimits = once((a, b, constant) => {
  const sizes = [];
  const stride = Math.max(1, Math.floor(a.values.length / SAMPLES)) | 1;
  for (let i = 0; i < a.values.length; i += stride) {
    const size = Math.abs(b.values[i] - a.values[i] - constant);
    if (Number.isFinite(size)) sizes.push(size);
  }
  const most = sizes.length ? quantile(Float32Array.from(sizes).sort(), 0.995) : 1;
  return most > 0 ? [-most, most] : [-1, 1];
});

export const wrap = (phase) => phase - 2 * Math.PI * Math.ceil((phase - Math.PI) / (2 * Math.PI));
