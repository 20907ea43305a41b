// Float images to colours: in the fragment shader of one WebGL2 context, or pixel by pixel where there is none.
//
// A job says what to paint: {first, second, how, swipe, place, table, low, high, wrapped, background}; `first` and
// `second` are {image, offset}, `how` is 'one', 'swipe' or 'difference', and `place` comes from viewport.js.

import { wrap } from './statistics.js';

const VERTEX = `#version 300 es
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(4.0 * corner - 1.0, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D first, second, table;
uniform vec2 origin, scale, offsets, range;
uniform float height, swipe;
uniform int how;
uniform bool wrapped;
uniform vec3 background;
out vec4 colour;
const float PI = 3.14159265358979;

// Where several pixels of the image fall on one of the screen: the mean of up to 4 × 4 of them.
float value(sampler2D image, vec2 place) {
  ivec2 last = textureSize(image, 0) - 1;
  ivec2 taps = wrapped ? ivec2(1) : clamp(ivec2(ceil(1.0 / scale - 0.01)), 1, 4);
  float sum = 0.0;
  for (int j = 0; j < taps.y; j++)
    for (int i = 0; i < taps.x; i++) {
      vec2 shift = ((vec2(i, j) + 0.5) / vec2(taps) - 0.5) / scale;
      vec2 where = taps == ivec2(1) ? place : place + shift;
      sum += texelFetch(image, clamp(ivec2(floor(where)), ivec2(0), last), 0).r;
    }
  return sum / float(taps.x * taps.y);
}

void main() {
  vec2 at = vec2(gl_FragCoord.x, height - gl_FragCoord.y);
  vec2 place = (at - origin) / scale;
  vec2 size = vec2(textureSize(first, 0));
  colour = vec4(background, 1.0);
  if (any(lessThan(place, vec2(0.0))) || any(greaterThanEqual(place, size))) return;
  float found;
  if (how == 2) found = value(second, place) - value(first, place) - offsets.y;
  else if (how == 1 && at.x >= swipe) found = value(second, place) + offsets.y;
  else found = value(first, place) + offsets.x;
  if (isnan(found) || isinf(found)) { colour = vec4(mix(background, vec3(0.5), 0.25), 1.0); return; }
  if (wrapped) found = found - 2.0 * PI * ceil((found - PI) / (2.0 * PI));
  float fraction = clamp((found - range.x) / (range.y - range.x), 0.0, 1.0);
  colour = vec4(texelFetch(table, ivec2(int(fraction * 255.0 + 0.5), 0), 0).rgb, 1.0);
}`;

const HOW = { one: 0, swipe: 1, difference: 2 };

/** The painter that suits this browser. WebGL2 without a graphics card is slower than painting pixel by pixel. */
export function makePainter() {
  const canvas = document.createElement('canvas');
  const gl = canvas.getContext('webgl2', {
    antialias: false,
    preserveDrawingBuffer: true,
    failIfMajorPerformanceCaveat: location.hash !== '#shaders', // which tests ask for, where there is no card
  });
  return gl ? new ShaderPainter(canvas, gl) : new PlainPainter();
}

class ShaderPainter {
  constructor(canvas, gl) {
    this.kind = 'webgl2';
    this.canvas = canvas;
    this.gl = gl;
    this.textures = new WeakMap();
    canvas.addEventListener('webglcontextlost', (event) => event.preventDefault());
    canvas.addEventListener('webglcontextrestored', () => this.begin());
    this.begin();
  }

  begin() {
    const gl = this.gl;
    this.textures = new WeakMap();
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(`the shader does not compile: ${gl.getProgramInfoLog(program)}`);
    }
    gl.useProgram(program);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    this.at = (name) => gl.getUniformLocation(program, name);
    this.warmUp();
  }

  /** Paint one pixel of nothing: drivers compile for good with the first drawing, best before there is a picture. */
  warmUp() {
    const nothing = { image: { rows: 1, columns: 1, values: new Float32Array(1) }, offset: 0 };
    const context = document.createElement('canvas').getContext('2d');
    const place = { left: 0, top: 0, across: 1, down: 1 };
    const job = { first: nothing, how: 'one', swipe: 0, place, table: new Uint8Array(1024), low: 0, high: 1 };
    this.paint(context, 1, 1, { ...job, wrapped: false, background: [0, 0, 0] });
  }

  texture(key, unit, internal, columns, rows, format, type, data) {
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE0 + unit);
    if (this.textures.has(key)) {
      gl.bindTexture(gl.TEXTURE_2D, this.textures.get(key));
      return;
    }
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, internal, columns, rows, 0, format, type, data);
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
      gl.texParameteri(gl.TEXTURE_2D, filter, gl.NEAREST);
    }
    this.textures.set(key, texture);
  }

  image(image, unit) {
    const gl = this.gl;
    this.texture(image, unit, gl.R32F, image.columns, image.rows, gl.RED, gl.FLOAT, image.values);
  }

  /** The image is no longer shown. */
  forget(image) {
    this.gl.deleteTexture(this.textures.get(image) ?? null);
    this.textures.delete(image);
  }

  paint(context, width, height, job) {
    const gl = this.gl;
    if (this.canvas.width < width || this.canvas.height < height) {
      this.canvas.width = Math.max(this.canvas.width, width);
      this.canvas.height = Math.max(this.canvas.height, height);
    }
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(0, 0, width, height);
    this.image(job.first.image, 0);
    this.image((job.second ?? job.first).image, 1);
    this.texture(job.table, 2, gl.RGBA8, 256, 1, gl.RGBA, gl.UNSIGNED_BYTE, job.table);
    ['first', 'second', 'table'].forEach((name, unit) => gl.uniform1i(this.at(name), unit));
    gl.uniform2f(this.at('origin'), job.place.left, job.place.top);
    gl.uniform2f(this.at('scale'), job.place.across, job.place.down);
    gl.uniform2f(this.at('offsets'), job.first.offset, (job.second ?? job.first).offset);
    gl.uniform2f(this.at('range'), job.low, job.high);
    gl.uniform1f(this.at('height'), height);
    gl.uniform1f(this.at('swipe'), job.swipe * width);
    gl.uniform1i(this.at('how'), HOW[job.how]);
    gl.uniform1i(this.at('wrapped'), job.wrapped ? 1 : 0);
    gl.uniform3f(this.at('background'), ...job.background.map((byte) => byte / 255));
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    context.drawImage(this.canvas, 0, this.canvas.height - height, width, height, 0, 0, width, height);
  }
}

class PlainPainter {
  constructor() {
    this.kind = '2d';
  }

  forget() {}

  paint(context, width, height, job) {
    const { place, low, high, how } = job;
    const picture = context.createImageData(width, height);
    const pixels = new Uint32Array(picture.data.buffer); // a colour at once
    const table = new Uint32Array(job.table.buffer);
    const [outside, missing] = [job.background, job.background.map((byte) => 0.75 * byte + 32)].map(packed);
    const { rows, columns, values: first } = job.first.image;
    const second = job.second?.image.values;
    const edge = job.swipe * width;
    const across = Array.from({ length: width }, (_, x) => Math.floor((x + 0.5 - place.left) / place.across));
    const scale = 255 / (high - low);
    for (let y = 0, to = 0; y < height; y++) {
      const row = Math.floor((y + 0.5 - place.top) / place.down);
      for (let x = 0; x < width; x++, to++) {
        const column = across[x];
        if (row < 0 || column < 0 || row >= rows || column >= columns) {
          pixels[to] = outside;
          continue;
        }
        const at = row * columns + column;
        let value = first[at] + job.first.offset;
        if (how === 'difference') value = second[at] - first[at] - job.second.offset;
        else if (how === 'swipe' && x >= edge) value = second[at] + job.second.offset;
        if (job.wrapped) value = wrap(value);
        const place255 = Math.round(Math.min(255, Math.max(0, (value - low) * scale)));
        pixels[to] = Number.isFinite(value) ? table[place255] : missing;
      }
    }
    context.putImageData(picture, 0, 0);
  }
}

/** A colour as the four bytes of a pixel, in the order of this machine. */
function packed(colour) {
  return new Uint32Array(Uint8Array.from([...colour.map(Math.round), 255]).buffer)[0];
}
