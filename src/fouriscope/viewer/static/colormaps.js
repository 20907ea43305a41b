// Colour maps as tables of 256 colours, interpolated between the colours of matplotlib's maps of these names.

const STEPS = {
  grey: '000000ffffff',
  viridis: '44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219' +
    'fde725',
  magma: '0000040a08221d114736106b51127c6a1c818326819c2e7fb73779d0416fe75263f56b5cfc8961fea772fec488fde2a3' +
    'fcfdbf',
  cividis: '00224e1a386f434e6c61656f7d7c789b9476bcae6cdec958fee838',
  twilight: 'e2d9e2d1d5dab3c6ce95b5c77ba1c26b8cbf6276ba5f5eb35e43a5592a8f4e186f3d114d2f14363f123d581647741e4f' +
    '8e2c50a24050b25652be6f5bc6896ccca389d4bcacddd0cee2d9e2',
  difference: '0530611752902a71b23f8ec06bacd19bc9e0c2ddece0ecf3f7f6f6fbe5d8fbccb4f5aa89e48066d05548ba2832930e26' +
    '67001f',
};

// What a person may choose; wrapped phases and differences have maps of their own.
export const CHOICES = ['grey', 'viridis', 'magma', 'cividis'];
export const CYCLIC = 'twilight';
export const DIVERGING = 'difference';

const tables = new Map();

/** 256 × RGBA, as bytes. */
export function table(name) {
  if (!tables.has(name)) tables.set(name, interpolate(STEPS[name]));
  return tables.get(name);
}

/** The colour of a number from 0 to 1, for style sheets. */
export function colour(name, fraction) {
  const at = 4 * Math.round(255 * Math.min(1, Math.max(0, fraction)));
  const bytes = table(name);
  return `rgb(${bytes[at]}, ${bytes[at + 1]}, ${bytes[at + 2]})`;
}

function interpolate(hex) {
  const known = hex.match(/../g).map((pair) => parseInt(pair, 16));
  const last = known.length / 3 - 1;
  const bytes = new Uint8Array(4 * 256);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * last;
    const left = Math.min(last - 1, Math.floor(place));
    for (let c = 0; c < 3; c++) {
      const [from, to] = [known[3 * left + c], known[3 * left + 3 + c]];
      bytes[4 * i + c] = Math.round(from + (to - from) * (place - left));
    }
    bytes[4 * i + 3] = 255;
  }
  return bytes;
}
